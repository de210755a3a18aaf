//! Compression of what is written, by the thread that writes it.
//!
//! In: a record or a piece as it is; there is one of these for a store that compresses. Out: the same shorter, where that is worth it, and what was
//! saved by it.

use bytes::Bytes;

use crate::coding::{SavedBytes, packed};
use crate::record::with_packed_body;

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    saved: SavedBytes,
}

impl Packing {
    /// A record, with its body compressed if it has one.
    pub(crate) fn record(&self, plain: Bytes) -> Bytes {
        self.counted(with_packed_body(&plain), plain)
    }

    /// A piece of a body.
    pub(crate) fn piece(&self, plain: Bytes) -> Bytes {
        self.counted(packed(&plain), plain)
    }

    fn counted(&self, packed: Option<Bytes>, plain: Bytes) -> Bytes {
        let Some(packed) = packed else { return plain };
        self.saved.note(plain.len(), packed.len());
        packed
    }

    /// Bytes that were saved.
    pub(crate) fn saved(&self) -> u64 {
        self.saved.sum()
    }
}
