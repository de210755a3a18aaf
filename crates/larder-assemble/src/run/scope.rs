//! Variables and blocks as a document sees them.
//!
//! In: what is set. Out: what was set last. A copy shares everything until one side sets something, so an include hands its scope
//! down for the price of a counter. Deliberately absent: limits, which are the page's.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::step::DocumentId;
use crate::value::Value;

/// What a document sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    set: Option<Arc<Names>>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    values: BTreeMap<Box<[u8]>, Value>,
    blocks: BTreeMap<Box<[u8]>, BlockAt>,
}

/// Where a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockAt {
    pub(super) document: DocumentId,
    /// The first operation in it.
    pub(super) operation: usize,
    /// Its first byte.
    pub(super) offset: u64,
}

impl Scope {
    pub(super) fn value(&self, name: &[u8]) -> Option<&Value> {
        self.set.as_ref()?.values.get(name)
    }

    pub(super) fn block(&self, name: &[u8]) -> Option<BlockAt> {
        self.set.as_ref()?.blocks.get(name).copied()
    }

    pub(super) fn set_value(&mut self, name: &[u8], value: Value) {
        self.names().values.insert(name.into(), value);
    }

    pub(super) fn set_block(&mut self, name: &[u8], block: BlockAt) {
        self.names().blocks.insert(name.into(), block);
    }

    fn names(&mut self) -> &mut Names {
        Arc::make_mut(self.set.get_or_insert_default())
    }
}

/// What the groups of the last pattern matched.
#[derive(Clone, Debug, Default)]
pub(super) struct Captures {
    pub(super) numbered: Vec<Option<Value>>,
    pub(super) named: Vec<(Box<[u8]>, Value)>,
}

impl Captures {
    pub(super) fn numbered(&self, number: usize) -> Option<&Value> {
        self.numbered.get(number)?.as_ref()
    }

    pub(super) fn named(&self, name: &[u8]) -> Option<&Value> {
        self.named.iter().find(|(other, _)| **other == *name).map(|(_, value)| value)
    }
}
