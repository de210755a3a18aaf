//! The labels of this crate's counters, and the words that each may have.

use larder_http::fields::cache_status::Forward;
use larder_observe::{Label, Vocabulary};

use crate::invalidation::InvalidationKind;
use crate::not_stored::NotStored;

impl Label for InvalidationKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["unsafe-method", "purge"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// Why something is fetched that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshKind {
    /// It is stale and was used all the same.
    Behind,
    /// It is in use and its lifetime ends soon.
    Ahead,
    /// The last attempt failed, and it stands in meanwhile.
    Down,
    /// A disk did not keep up with a body when it was sent, twice.
    Gaps,
}

impl Label for RefreshKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["behind", "ahead", "down", "gaps"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// The words that counters are told apart by.
pub fn vocabulary() -> Vocabulary {
    Vocabulary::of::<ForwardLabel, NotStored, InvalidationKind, RefreshKind>()
}

/// A forward reason as a label.
pub(crate) struct ForwardLabel(pub(crate) Forward);

impl Label for ForwardLabel {
    const NAME: &'static str = "status";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; Forward::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = Forward::ALL[index].token();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        self.0 as usize
    }
}
