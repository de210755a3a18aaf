//! What is wrong with a template, with its place: for the log, the metric and `larder explain`.
//!
//! In: faults in the order in which they are found. Out: the first of them with line and column, and a count of the others.
//! A fault never ends a page: each directive has a rule for what it does then. `strict` makes the page an error instead.

/// Faults of one template that are listed.
const LISTED_MAX: usize = 64;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: u32,
    /// In bytes, from 1.
    pub column: u32,
    /// What it is.
    pub fault: Fault,
}

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Still open where the template ends.
    Unclosed,
    /// A directive or element beyond its limit.
    TooLong,
    /// A command or element that does not exist, or that larder does not offer.
    Unknown,
    /// Where it may not stand, or without its beginning.
    Misplaced,
    /// An attribute that the directive does not have, or text that is no attribute.
    Attribute,
    /// An attribute that stands twice.
    Repeated,
    /// An attribute or element that has to be there.
    Missing,
    /// Attributes that exclude each other, or a value that an attribute cannot have.
    Value,
    /// A condition that cannot be read.
    Expression,
    /// A pattern that cannot be matched in linear time and within its limit.
    Pattern,
    /// `and` and `or` without parentheses: other programs rank them otherwise.
    Mixed,
    /// A reference that names nothing, or nothing that may be asked for.
    Reference,
    /// Nested too deeply.
    TooDeep,
    /// More directives than a page may run.
    TooMany,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 14] = [
        Self::Unclosed,
        Self::TooLong,
        Self::Unknown,
        Self::Misplaced,
        Self::Attribute,
        Self::Repeated,
        Self::Missing,
        Self::Value,
        Self::Expression,
        Self::Pattern,
        Self::Mixed,
        Self::Reference,
        Self::TooDeep,
        Self::TooMany,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unclosed => "unclosed",
            Self::TooLong => "too-long",
            Self::Unknown => "unknown",
            Self::Misplaced => "misplaced",
            Self::Attribute => "attribute",
            Self::Repeated => "repeated",
            Self::Missing => "missing",
            Self::Value => "value",
            Self::Expression => "expression",
            Self::Pattern => "pattern",
            Self::Mixed => "mixed",
            Self::Reference => "reference",
            Self::TooDeep => "too-deep",
            Self::TooMany => "too-many",
        }
    }
}

/// The faults of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    listed: Vec<Problem>,
    more: u64,
}

impl Problems {
    /// The first ones, in the order of their discovery.
    pub fn listed(&self) -> &[Problem] {
        &self.listed
    }

    /// How many there are beside those.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(problem);
        } else {
            self.more += 1;
        }
    }
}
