//! A value of a config that is not shown.
//!
//! In: where it stands, what is shown there, and the secret in it. Out: the same as one, for `mask` and `forms`.

use std::ops::Range;

use crate::document::Position;

/// What stands in place of a secret.
pub(crate) const MASK: &str = "***";

/// A value that is not shown.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    /// All of the value, quotes included.
    pub(super) range: Range<usize>,
    /// What is shown between quotes.
    pub(super) shown: String,
    /// Forms of the secret that are not to be seen elsewhere.
    pub(super) forms: Vec<String>,
    /// Whether it is a secret for certain, and not by the sound of a name.
    pub(super) is_sure: bool,
}

impl Hidden {
    /// A value at a place; `None` where the command line has given it.
    pub(crate) fn at(place: &Position, shown: String, forms: Vec<String>) -> Option<Self> {
        match place {
            Position::Text(range) => Some(Self { range: range.clone(), shown, forms, is_sure: true }),
            Position::Flag(_) => None,
        }
    }

    /// The same of what a name alone makes a secret.
    pub(crate) fn by_sound(place: &Position, shown: String, forms: Vec<String>) -> Option<Self> {
        Some(Self { is_sure: false, ..Self::at(place, shown, forms)? })
    }
}
