//! All kinds of predicates.

use super::kind::{Kind, Named};
use super::{base, groups};

/// Each kind is a file. A further kind has an entry here.
pub(super) const KINDS: [Kind; 2] = [base::KIND, groups::KIND];

/// Of which kind a note is, and what it names. One that no kind knows stands for everything.
pub(super) fn named(what: &[u8]) -> Named {
    KINDS.iter().find_map(|kind| (kind.read)(what)).unwrap_or(Named::All)
}
