//! Regular expressions over what is known of a stored response.
//!
//! In: expressions as they were sent ([`PatternText`]). Out: a compiled [`Pattern`], and whether it matches a [`Subject`].
//! Matching is linear in the length of the text, whatever the expression. Deliberately absent: look-around and back references.

/// An expression as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Its text.
    pub text: Box<str>,
    /// Whether it matches from the first byte on: so does one that came as a path. One that came in a field may match anywhere.
    pub at_start: bool,
}

/// Expressions of which all have to match; each is for another part of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatternText {
    /// For the host, without port.
    pub host: Option<Expression>,
    /// For path and query, as they are keyed.
    pub target: Option<Expression>,
    /// For Content-Type.
    pub content_type: Option<Expression>,
    /// For the tags, joined by commas.
    pub tags: Option<Expression>,
}
