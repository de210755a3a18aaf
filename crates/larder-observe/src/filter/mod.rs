//! The filter language: one expression about one exchange, such as `cache!=hit and path=/blog/* and time>200ms`.
//!
//! In: text that a person wrote. Out: a [`Filter`], which is compiled once and tells of the [`Facts`] of any exchange whether it
//! matches; or a [`FilterError`] with the column, what was found and what was expected.
//! It is pure. What a filter may take is bounded: its text, its terms, its depth, its regular expressions; and a comparison
//! takes time in proportion to that. The fields are declared once, in [`FILTER_FIELDS`], and docs/reference/filter.md is generated
//! from there.
//! Deliberately absent: functions, arithmetic, and comparisons of one field with another.

mod eval;
mod expression;
mod fault;
mod fields;
mod glob;
mod lex;
mod operator;
mod page;
mod parse;
mod tree;
mod units;

use std::fmt;
use std::str::FromStr;

pub use eval::{Facts, Scratch};
pub use fault::{
    EXPRESSION_BYTES_MAX, FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX, FilterError, FilterFault,
    Found,
};
pub use fields::{FILTER_FIELDS, FieldKind, FilterField, NumberField, TextField, TimeField};
pub(crate) use glob::Glob;
pub use operator::Operator;
pub use page::filter_markdown;
use tree::Tree;

/// A filter, ready to be compared with exchanges. Two that are equal ask for the same, however they were written; as text
/// ([`fmt::Display`]) it is in the one form that all those have.
#[derive(Clone, Debug)]
pub struct Filter {
    text: Box<str>,
    tree: Tree,
}

impl Filter {
    /// Reads and compiles a filter.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { tree: parse::parse(text)?, text: text.into() })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches an exchange.
    pub fn matches(&self, facts: &impl Facts) -> bool {
        self.matches_in(facts, &mut Scratch::default())
    }

    /// The same, in room that is used for many exchanges.
    pub fn matches_in(&self, facts: &impl Facts, scratch: &mut Scratch) -> bool {
        scratch.begin();
        self.tree.holds(facts, scratch)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.tree == other.tree
    }
}

impl Eq for Filter {}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.tree, f)
    }
}

#[cfg(test)]
mod tests;
