//! All kinds of predicates that are found by a hash.

use super::kind::{Kind, Noted};
use super::{base, groups, hosts, paths, purged, tags};

/// Each kind is a file. A further kind has an entry here.
pub(super) const KINDS: [Kind; 4] = [tags::KIND, groups::KIND, paths::KIND, hosts::KIND];

/// What a note names. One that no kind knows stands for everything.
pub(super) fn noted(what: &[u8]) -> Noted {
    let readers = [base::read, purged::read].into_iter().chain(KINDS.iter().map(|kind| kind.read));
    readers.map(|read| read(what)).find_map(std::convert::identity).unwrap_or(Noted::All)
}
