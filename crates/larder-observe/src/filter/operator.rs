//! The operators of a comparison, as they are written.
//!
//! In: the run of operator characters between a field and its value. Out: an [`Operator`], or what was probably meant.
//! Which fields take which operators is said by [`fields`](super::fields).

use std::cmp::Ordering;
use std::fmt;

/// How the value of a field is compared with what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`: any of the values.
    Equal,
    /// `!=`: none of the values, or the field has no value.
    Unequal,
    /// `~`: a regular expression.
    Match,
    /// `!~`: its opposite; also where the field has no value.
    NoMatch,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Operator {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 8] = [
        Self::Equal,
        Self::Unequal,
        Self::Match,
        Self::NoMatch,
        Self::Less,
        Self::AtMost,
        Self::More,
        Self::AtLeast,
    ];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Match => "~",
            Self::NoMatch => "!~",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Whether a list may follow.
    pub(super) const fn takes_list(self) -> bool {
        matches!(self, Self::Equal | Self::Unequal)
    }

    /// Whether a regular expression follows, in which a comma is itself.
    pub(super) const fn takes_expression(self) -> bool {
        matches!(self, Self::Match | Self::NoMatch)
    }

    /// Whether it turns around what another operator says.
    pub(super) const fn is_negative(self) -> bool {
        matches!(self, Self::Unequal | Self::NoMatch)
    }

    /// Whether a value that stands so to what is written satisfies the operator, or the one that it turns around.
    pub(super) const fn allows(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Equal | Self::Unequal | Self::Match | Self::NoMatch => order.is_eq(),
        }
    }

    pub(super) fn read(written: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == written)
    }

    /// What stands here for an operator of other languages.
    pub(super) fn meant(written: &str) -> Option<&'static str> {
        match written {
            "==" | "===" => Some("="),
            "<>" | "!==" | "=!" => Some("!="),
            "=~" | "~=" | "~~" => Some("~"),
            "!~=" | "!=~" => Some("!~"),
            "=<" => Some("<="),
            "=>" => Some(">="),
            _ => None,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a character belongs to an operator. None of them begins a word or a value without quotes.
pub(super) const fn is_of_operator(character: char) -> bool {
    matches!(character, '=' | '!' | '~' | '<' | '>')
}
