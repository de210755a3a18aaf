//! Conditions, one file for each language, and the patterns of SSI.
//!
//! In: the text of `expr` or `test`, when the template is compiled. Out: a tree that is evaluated for each page over values.
//! Text is read before a value is seen: no value adds an operator or a quote. Trees are at most [`DEPTH_MAX`] deep.

pub(crate) mod esi;
pub(crate) mod regex;
pub(crate) mod ssi;
#[cfg(test)]
mod tests;

/// Parentheses within parentheses.
const DEPTH_MAX: usize = 32;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// Whether it holds for two that compare so.
    fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Unequal => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }

    /// The operator at the start of `text`, with what follows.
    fn read(text: &[u8]) -> Option<(Self, &[u8])> {
        Some(match text {
            [b'=', b'=', rest @ ..] => (Self::Equal, rest),
            [b'!', b'=', rest @ ..] => (Self::Unequal, rest),
            [b'<', b'=', rest @ ..] => (Self::AtMost, rest),
            [b'>', b'=', rest @ ..] => (Self::AtLeast, rest),
            [b'<', rest @ ..] => (Self::Less, rest),
            [b'>', rest @ ..] => (Self::Greater, rest),
            _ => return None,
        })
    }
}

/// Why an expression is false on every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is none.
    Syntax,
    /// A pattern that cannot be had in linear time, or within its bounds.
    Pattern,
}

/// A tree that was read.
#[derive(Debug)]
pub(crate) struct Read<T> {
    pub(crate) expression: T,
    /// Operators stand side by side that other programs rank otherwise.
    pub(crate) is_mixed: bool,
}

/// Several sides under their operator; one stands for itself.
fn one_or<T>(mut sides: Vec<T>, many: fn(Vec<T>) -> T) -> T {
    match (sides.len(), sides.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            sides.extend(last);
            many(sides)
        }
    }
}
