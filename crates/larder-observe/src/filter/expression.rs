//! Regular expressions of a filter: anywhere in a text, in linear time, within bounds.
//!
//! In: an expression as it was written. Out: one that is compiled, or its fault and the character where that is.
//! One in ASCII is over bytes, so that ignoring case needs no tables; one with other characters is over characters, and
//! case counts in it. Whether tables are there depends on what else is built, and what a filter means must not.
//! Deliberately absent: look-around and back references, whose cost has no bound.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::{ast, hir};

use super::fault::{EXPRESSION_BYTES_MAX, FilterFault};
use super::lex;

/// So deep may the groups of an expression be.
const NESTING_MAX: u32 = 32;

/// A compiled expression. Equal texts with equal regard to case are equal expressions.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    text: Box<str>,
    ignores_case: bool,
    regex: Regex,
}

impl Expression {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The first character that the fault concerns, from 0 on, and the fault.
    pub(super) fn compile(text: &str, ignores_case: bool) -> Result<Self, (usize, FilterFault)> {
        let is_unicode = !text.is_ascii();
        let ignores_case = ignores_case && !is_unicode;
        let mut reader = regex_syntax::ParserBuilder::new();
        reader.utf8(false).unicode(is_unicode).case_insensitive(ignores_case).nest_limit(NESTING_MAX);
        reader.build().parse(text).map_err(|error| {
            let (offset, fault) = fault_of(&error);
            let before = text.get(..offset).unwrap_or(text);
            (before.chars().count(), fault)
        })?;
        let built = RegexBuilder::new(text)
            .unicode(is_unicode)
            .case_insensitive(ignores_case)
            .nest_limit(NESTING_MAX)
            .size_limit(EXPRESSION_BYTES_MAX)
            .dfa_size_limit(EXPRESSION_BYTES_MAX)
            .build();
        // What was read before can only be too large.
        let regex = built.map_err(|_| (0, FilterFault::ExpressionTooLarge))?;
        Ok(Self { text: text.into(), ignores_case, regex })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ignores_case == other.ignores_case
    }
}

impl Eq for Expression {}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lex::value(&self.text))
    }
}

/// The offset of a fault, and what it is.
fn fault_of(error: &regex_syntax::Error) -> (usize, FilterFault) {
    let fault = |words: String| FilterFault::Expression(words.into());
    match error {
        regex_syntax::Error::Parse(error) => {
            let words = match error.kind() {
                ast::ErrorKind::UnsupportedLookAround => "look-around is not supported".to_owned(),
                ast::ErrorKind::UnsupportedBackreference => "back references are not supported".to_owned(),
                kind => kind.to_string(),
            };
            (error.span().start.offset, fault(words))
        }
        regex_syntax::Error::Translate(error) => {
            let words = match error.kind() {
                hir::ErrorKind::UnicodeCaseUnavailable => "beyond ASCII, case cannot be ignored".to_owned(),
                kind => kind.to_string(),
            };
            (error.span().start.offset, fault(words))
        }
        _ => (0, fault("it cannot be read".to_owned())),
    }
}
