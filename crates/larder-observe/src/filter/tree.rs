//! A filter as it was read: terms, and how they are joined.
//!
//! In: what the parser found. Out: a tree in one form for all ways to write the same, and that form as text, which is read
//! as an equal tree.
//! Terms joined by the same word are one list, also where parentheses stood between them; a list of one is its term. A tree
//! is no deeper than the parser allows, so that functions over it may call themselves.

use std::fmt::{self, Display};
use std::time::Duration;

use super::expression::Expression;
use super::fields::{FilterField, NumberField, TextField, TimeField};
use super::glob::Glob;
use super::operator::Operator;
use super::units::{self, StatusRange};

/// A filter, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Joined by `and`.
    All(Vec<Tree>),
    /// Joined by `or`.
    Any(Vec<Tree>),
    /// Behind `not`.
    Not(Box<Tree>),
    /// A part of a URL.
    Word(Glob),
    /// A field, an operator and values.
    Comparison(Comparison),
}

/// What a term asks of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) field: &'static FilterField,
    pub(super) operator: Operator,
    pub(super) asked: Asked,
}

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextSource {
    /// The exchange has it.
    Field(TextField),
    /// Host, path and query.
    Url,
    /// Result or reason.
    Cache,
}

/// What is asked for, by kind of field: one value or, after `=` and `!=`, a list of which one is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Globs(TextSource, Vec<Glob>),
    Expression(TextSource, Expression),
    Times(TimeField, Vec<Duration>),
    Bytes(NumberField, Vec<u64>),
    Counts(NumberField, Vec<u64>),
    Statuses(Vec<StatusRange>),
    Stored(Vec<bool>),
}

impl Tree {
    /// Joins by `and`.
    pub(super) fn all(trees: Vec<Self>) -> Self {
        let flat = trees.into_iter().flat_map(|tree| match tree {
            Self::All(inner) => inner,
            other => vec![other],
        });
        Self::one_or(flat.collect(), Self::All)
    }

    /// Joins by `or`.
    pub(super) fn any(trees: Vec<Self>) -> Self {
        let flat = trees.into_iter().flat_map(|tree| match tree {
            Self::Any(inner) => inner,
            other => vec![other],
        });
        Self::one_or(flat.collect(), Self::Any)
    }

    fn one_or(mut trees: Vec<Self>, join: fn(Vec<Self>) -> Self) -> Self {
        match (trees.pop(), trees.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                trees.extend(last);
                join(trees)
            }
        }
    }

    /// With parentheses where it is joined more loosely than what stands around it.
    fn write_in(&self, needs_parentheses: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match needs_parentheses {
            true => write!(f, "({self})"),
            false => write!(f, "{self}"),
        }
    }
}

impl Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(trees) => joined(trees, " and ", f, |tree, f| {
                tree.write_in(matches!(tree, Self::Any(_) | Self::All(_)), f)
            }),
            Self::Any(trees) => {
                joined(trees, " or ", f, |tree, f| tree.write_in(matches!(tree, Self::Any(_)), f))
            }
            Self::Not(tree) => {
                f.write_str("not ")?;
                tree.write_in(matches!(**tree, Self::Any(_) | Self::All(_)), f)
            }
            Self::Word(word) => write!(f, "{word}"),
            Self::Comparison(comparison) => write!(f, "{comparison}"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field.name, self.operator)?;
        match &self.asked {
            Asked::Globs(_, globs) => joined(globs, ",", f, Display::fmt),
            Asked::Expression(_, expression) => write!(f, "{expression}"),
            Asked::Times(_, times) => joined(times, ",", f, |time, f| units::write_time(*time, f)),
            Asked::Bytes(_, sizes) => joined(sizes, ",", f, |bytes, f| units::write_bytes(*bytes, f)),
            Asked::Counts(_, numbers) => joined(numbers, ",", f, Display::fmt),
            Asked::Statuses(statuses) => joined(statuses, ",", f, Display::fmt),
            Asked::Stored(values) => joined(values, ",", f, Display::fmt),
        }
    }
}

fn joined<T>(
    items: &[T],
    between: &str,
    f: &mut fmt::Formatter<'_>,
    write: impl Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        write(item, f)?;
    }
    Ok(())
}
