//! How much one page may do, on all of its levels.
//!
//! In: work, as it is done. Out: whether there may be more. Over the limit each document ends where it is.

use crate::program::OPERATIONS_MAX;
use crate::value::VALUE_BYTES_MAX;

/// All values that a page sets, and all blocks, in bytes.
const VALUES_BYTES_MAX: usize = 1024 * 1024;

/// What is left for a page.
#[derive(Debug)]
pub(super) struct Budget {
    operations: usize,
    includes: usize,
    stand_ins: usize,
    value_bytes: usize,
}

impl Budget {
    pub(super) fn new(includes_max: usize) -> Self {
        Self {
            operations: OPERATIONS_MAX,
            includes: includes_max,
            stand_ins: includes_max,
            value_bytes: VALUES_BYTES_MAX,
        }
    }

    /// Counts operations. Once more were asked for than were left, none is.
    pub(super) fn spend(&mut self, operations: usize) -> bool {
        let is_left = operations <= self.operations && self.operations > 0;
        self.operations = if is_left { self.operations - operations } else { 0 };
        is_left
    }

    /// Counts an include.
    pub(super) fn include(&mut self) -> bool {
        let left = self.includes.checked_sub(1);
        self.includes = left.unwrap_or(0);
        left.is_some()
    }

    /// Counts a block that stands in for an include. There are as many as includes, in a count of their own.
    pub(super) fn stand_in(&mut self) -> bool {
        let left = self.stand_ins.checked_sub(1);
        self.stand_ins = left.unwrap_or(0);
        left.is_some()
    }

    /// Counts a value, or a block, that is kept.
    pub(super) fn keep(&mut self, bytes: usize) -> bool {
        let left = self.value_bytes.checked_sub(bytes).filter(|_| bytes <= VALUE_BYTES_MAX);
        self.value_bytes = left.unwrap_or(self.value_bytes);
        left.is_some()
    }
}
