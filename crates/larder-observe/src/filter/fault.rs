//! What may be wrong with a filter, and where.
//!
//! In: the place and the kind of a fault. Out: an error that tells the column, what was found and what was expected, and
//! two lines for a terminal with a mark below the place.
//! Every piece of a filter that an error repeats goes through [`Found`], which escapes whatever could steer a terminal and
//! cuts what is long.
//! Deliberately absent: the width of characters on a terminal. Behind wide ones the mark stands too far left.

use std::fmt;

use super::operator::Operator;
use crate::printable::printable;

/// The longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 1024;
/// The most terms of a filter. Each value of a list counts as one.
pub const FILTER_TERMS_MAX: usize = 64;
/// The most levels of parentheses and `not` within each other.
pub const FILTER_DEPTH_MAX: usize = 16;
/// The most that one compiled regular expression may take, in bytes; and the same again for what it keeps while it
/// matches.
pub const EXPRESSION_BYTES_MAX: usize = 64 * 1024;

/// So many characters of a filter are repeated in a message.
const FOUND_CHARACTERS_MAX: usize = 40;
/// So many columns are shown before the mark of a fault.
const BEFORE_MARK_MAX: usize = 60;
/// And so many from there on.
const BEHIND_MARK_MAX: usize = 40;
/// Stands for what is left out.
const CUT: &str = "...";

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {fault}")]
pub struct FilterError {
    /// The first character that the fault concerns, from 1 on; one more than there are where the text ends too early.
    pub column: usize,
    /// What it is.
    pub fault: FilterFault,
}

/// What is wrong with a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterFault {
    /// More than [`FILTER_BYTES_MAX`].
    #[error("a filter has at most {FILTER_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`FILTER_TERMS_MAX`].
    #[error("a filter has at most {FILTER_TERMS_MAX} terms, each value of a list counted")]
    TooManyTerms,
    /// More than [`FILTER_DEPTH_MAX`].
    #[error("parentheses and \"not\" stand within each other at most {FILTER_DEPTH_MAX} times")]
    TooDeep,
    /// Something else stands where a term begins.
    #[error("expected a field, a word, \"not\" or \"(\", found {0}")]
    TermExpected(Found),
    /// Two terms without a word between them.
    #[error("write \"and\" or \"or\" before {0}; a value with blanks is written in quotes")]
    WordMissing(Found),
    /// A sign of another language.
    #[error("{found} is not known here; write \"{write}\"")]
    Sign {
        /// As written.
        found: Found,
        /// The word for it.
        write: &'static str,
    },
    /// A parenthesis without its end.
    #[error("this \"(\" is not closed")]
    Unclosed,
    /// A parenthesis without its beginning.
    #[error("this \")\" closes nothing; a value with parentheses is written in quotes")]
    Unopened,
    /// A parenthesis within a word or a value.
    #[error("a word or value with parentheses is written in quotes")]
    Parenthesis,
    /// A quote without its end.
    #[error("this quote is not closed")]
    OpenQuote,
    /// A quote that begins within a word or a value.
    #[error("quotes stand around the whole of a word or value; within them \" is written \\\"")]
    QuoteInside,
    /// No such field.
    #[error("no field is named {found}; {}", Nearest(nearest))]
    UnknownField {
        /// As written.
        found: Found,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// No such operator.
    #[error("{found} is no operator; {}", Meant(meant))]
    UnknownOperator {
        /// As written.
        found: Found,
        /// The one that was probably meant.
        meant: Option<&'static str>,
    },
    /// An operator that is not for fields of this kind.
    #[error("\"{operator}\" is not for {field}, which takes {}", Listed(takes))]
    WrongOperator {
        /// As written.
        operator: Operator,
        /// Whose.
        field: &'static str,
        /// Those that are.
        takes: &'static [Operator],
    },
    /// An operator without a value.
    #[error("expected a value after {field}{operator}, found {found}; an empty one is written \"\"")]
    ValueExpected {
        /// Whose.
        field: &'static str,
        /// Before it.
        operator: Operator,
        /// Instead of it.
        found: Found,
    },
    /// A list where one value is due.
    #[error("only = and != take a list; \"{0}\" takes one value")]
    List(Operator),
    /// `*` or `?` where a number is due.
    #[error("* and ? are for texts; {field} takes {expected}")]
    Wildcard {
        /// Whose.
        field: &'static str,
        /// What its values are.
        expected: &'static str,
    },
    /// Not a value of the field's kind.
    #[error("{field} takes {expected}, found {found}")]
    WrongValue {
        /// Whose.
        field: &'static str,
        /// What its values are.
        expected: &'static str,
        /// As written.
        found: Found,
    },
    /// A time without a unit.
    #[error("add a unit: \"{0}ms\" or \"{0}s\"")]
    UnitMissing(Box<str>),
    /// No such unit.
    #[error("{found} is no unit; those of {field} are {units}")]
    UnknownUnit {
        /// Whose.
        field: &'static str,
        /// As written.
        found: Found,
        /// Those that there are.
        units: &'static str,
    },
    /// A number beyond what can be compared.
    #[error("{0} is too large")]
    TooLarge(Found),
    /// No regular expression, in the words of the library that reads it.
    #[error("in the regular expression: {0}")]
    Expression(Box<str>),
    /// A regular expression that takes more than [`EXPRESSION_BYTES_MAX`].
    #[error("the regular expression takes more than {EXPRESSION_BYTES_MAX} bytes when compiled: repeat less")]
    ExpressionTooLarge,
}

impl FilterError {
    /// The filter and below it a mark, each a line without its end, joined by a line break. `text` is what was parsed. A
    /// long one is cut around the place.
    pub fn caret(&self, text: &str) -> String {
        let at = text.char_indices().nth(self.column.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
        let (before, behind) = (printable(before), printable(behind));
        let cut = before.chars().count().saturating_sub(BEFORE_MARK_MAX);
        let mut line = String::from(if cut > 0 { CUT } else { "" });
        line.extend(before.chars().skip(cut));
        let column = line.chars().count();
        line.push_str(&shortened(&behind, BEHIND_MARK_MAX));
        format!("{line}\n{:column$}^", "")
    }
}

/// A piece of a filter, fit for a message; or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(Option<Box<str>>);

impl Found {
    /// Nothing was left of the filter.
    pub(super) const END: Self = Self(None);

    /// A piece. One that begins with a quote is shown as it was written.
    pub(super) fn new(piece: &str) -> Self {
        Self(Some(shortened(&printable(piece), FOUND_CHARACTERS_MAX).into()))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(piece) if piece.starts_with('"') => f.write_str(piece),
            Some(piece) => write!(f, "\"{piece}\""),
            None => f.write_str("the end"),
        }
    }
}

fn shortened(text: &str, characters_max: usize) -> String {
    let mut shown: String = text.chars().take(characters_max).collect();
    if shown.len() < text.len() {
        shown.push_str(CUT);
    }
    shown
}

struct Nearest<'a>(&'a Option<&'static str>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "the nearest is \"{name}\""),
            None => f.write_str("a part of a URL that has an operator in it is written in quotes"),
        }
    }
}

struct Meant<'a>(&'a Option<&'static str>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(operator) => write!(f, "write \"{operator}\""),
            None => write!(f, "operators are {}", Listed(&Operator::ALL)),
        }
    }
}

/// Operators as a list in a sentence.
struct Listed<'a>(&'a [Operator]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((last, others)) = self.0.split_last() else { return Ok(()) };
        for (at, operator) in others.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(operator.as_str())?;
        }
        if !others.is_empty() {
            f.write_str(" and ")?;
        }
        f.write_str(last.as_str())
    }
}
