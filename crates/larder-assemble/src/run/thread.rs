//! One place in a template that is being run, with all that belongs to it alone.
//!
//! A document has one, and a block or an `except` that runs later has one of its own. Levels are the conditions and attempts around
//! the place; what is not taken is skipped by counting markers, so that the place may lie at the end of a template that still grows.

use bytes::Bytes;
use smallvec::SmallVec;

use super::scope::{BlockAt, Captures, Scope};
use super::step::{DocumentId, SlotId};

/// Which thread.
pub(super) type ThreadId = usize;

/// A place that is being run.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) document: DocumentId,
    /// How many includes it is in, those whose block it runs counted too.
    pub(super) depth: usize,
    /// The next operation.
    pub(super) operation: usize,
    /// Up to here the body is done with.
    pub(super) cursor: u64,
    /// Where pieces go.
    pub(super) slot: SlotId,
    /// The innermost attempt around it.
    pub(super) attempt: Option<SlotId>,
    pub(super) levels: SmallVec<[Level; 2]>,
    pub(super) skip: Option<Skip>,
    /// The block that is being skipped.
    pub(super) block: Option<(Box<[u8]>, BlockAt)>,
    /// An attempt around it has failed.
    pub(super) is_unwound: bool,
    pub(super) scope: Scope,
    pub(super) captures: Captures,
    pub(super) words: Words,
    pub(super) end: End,
}

/// What SSI's `config` sets.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) error_text: Bytes,
    pub(super) missing_text: Bytes,
    pub(super) date_format: Bytes,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            error_text: Bytes::from_static(b"[an error occurred while processing the directive]"),
            missing_text: Bytes::from_static(b"(none)"),
            date_format: Bytes::from_static(crate::date::DEFAULT_FORMAT),
        }
    }
}

/// Where a thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With its document.
    Document,
    /// With its block.
    Block,
    /// With the `except` of the attempt whose slot it fills.
    Except,
}

/// What is around the place.
#[derive(Clone, Debug)]
pub(super) enum Level {
    If,
    Try(Box<TryLevel>),
}

/// An attempt, as the thread sees it that has begun it.
#[derive(Clone, Debug)]
pub(super) struct TryLevel {
    pub(super) slot: SlotId,
    /// Whether the place is in its `except`.
    pub(super) is_in_except: bool,
    /// What was around it.
    pub(super) outer_slot: SlotId,
    pub(super) outer_attempt: Option<SlotId>,
    /// What was seen when it began: what its parts set ends with them.
    pub(super) scope: Scope,
}

/// What is being skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skip {
    pub(super) until: Until,
    /// Markers within what is skipped that have not ended yet.
    pub(super) depth: usize,
}

/// Where skipping ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The next branch of the condition, or its end.
    Branch,
    /// The end of the innermost level.
    LevelEnd,
    /// The end of a block, which is no level.
    BlockEnd,
    /// The `except` of the innermost attempt, or its end.
    Except,
}

impl Thread {
    /// At the beginning of a document.
    pub(super) fn of_document(
        document: DocumentId,
        depth: usize,
        slot: SlotId,
        attempt: Option<SlotId>,
        scope: Scope,
    ) -> Self {
        Self {
            document,
            depth,
            operation: 0,
            cursor: 0,
            slot,
            attempt,
            levels: SmallVec::new(),
            skip: None,
            block: None,
            is_unwound: false,
            scope,
            captures: Captures::default(),
            words: Words::default(),
            end: End::Document,
        }
    }

    /// Skips from here on.
    pub(super) fn skip(&mut self, until: Until) {
        self.skip = Some(Skip { until, depth: 0 });
    }
}
