//! The selectors of one request, and how field values name them.
//!
//! In: values of fields, in the forms that several dialects share. Out: at most [`NAMES_MAX`] selectors, or the words of a
//! refusal. Tags are split as in responses: at blanks and commas.

use http::HeaderValue;
use larder_cache::purge::{Expression, PatternText, Selector};

/// The most selectors of one request.
pub(super) const NAMES_MAX: usize = 1000;

const TOO_MANY: &str = "more than 1000 names";
const NOT_TEXT: &str = "an expression that is not UTF-8";
const EMPTY: &str = "an empty expression";

/// Alone in a tag, these make it an expression. A tag has none of them in any system that is known here.
const OF_EXPRESSIONS: &[u8] = b"()[]^$";

/// The selectors of one request.
#[derive(Debug, Default)]
pub(super) struct Names {
    selectors: Vec<Selector>,
    fault: Option<&'static str>,
}

impl Names {
    /// Adds one.
    pub(super) fn push(&mut self, selector: Selector) {
        if self.selectors.len() < NAMES_MAX {
            self.selectors.push(selector);
        } else {
            self.refuse(TOO_MANY);
        }
    }

    /// Refuses the request in these words. The first refusal counts.
    pub(super) fn refuse(&mut self, words: &'static str) {
        self.fault.get_or_insert(words);
    }

    /// Adds a tag.
    pub(super) fn tag(&mut self, tag: impl Into<Box<[u8]>>) {
        self.push(Selector::Tag(tag.into()));
    }

    /// Adds the tags of a list.
    pub(super) fn list(&mut self, value: &HeaderValue) {
        let tags = value.as_bytes().split(|byte| is_separator(*byte)).filter(|tag| !tag.is_empty());
        for tag in tags {
            if self.fault.is_some() {
                return;
            }
            self.tag(tag);
        }
    }

    /// Adds the tags of `a|b`, with escapes undone. A value that says more than that is an expression for tags.
    pub(super) fn alternatives(&mut self, value: &HeaderValue) {
        match alternatives(value.as_bytes()) {
            Some(tags) => tags.into_iter().for_each(|tag| self.tag(tag)),
            None => self.matching_tags(value),
        }
    }

    /// Adds an expression for tags; `.*` is everything.
    pub(super) fn matching_tags(&mut self, value: &HeaderValue) {
        if !value.is_empty() {
            let tags = self.expression(value);
            self.pattern(PatternText { tags, ..PatternText::default() });
        }
    }

    /// Adds a pattern; one without expressions is everything.
    pub(super) fn pattern(&mut self, pattern: PatternText) {
        self.push(if pattern == PatternText::default() { Selector::All } else { Selector::Pattern(pattern) });
    }

    /// An expression that may match anywhere; `None` for `.*`, which says nothing.
    pub(super) fn expression(&mut self, value: &HeaderValue) -> Option<Expression> {
        match std::str::from_utf8(value.as_bytes()) {
            Ok(".*") => None,
            Ok("") => {
                self.refuse(EMPTY);
                None
            }
            Ok(text) => Some(Expression { text: text.into(), at_start: false }),
            Err(_) => {
                self.refuse(NOT_TEXT);
                None
            }
        }
    }

    /// All of them, in the order in which they were added.
    ///
    /// # Errors
    /// The words of the refusal.
    pub(super) fn into_selectors(self) -> Result<Vec<Selector>, &'static str> {
        match self.fault {
            Some(words) => Err(words),
            None => Ok(self.selectors),
        }
    }
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

/// The tags of `a|b`; `None` for an expression. A backslash before a letter or digit is a class or an anchor, before
/// anything else an escape.
fn alternatives(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut tags, mut tag) = (Vec::new(), Vec::new());
    let mut rest = value;
    loop {
        rest = match rest {
            [] => break,
            [b'\\', byte, ..] if byte.is_ascii_alphanumeric() => return None,
            [b'\\'] | [b'.', b'*' | b'+', ..] => return None,
            [byte, ..] if OF_EXPRESSIONS.contains(byte) => return None,
            [b'\\', byte, after @ ..] => {
                tag.push(*byte);
                after
            }
            [byte, after @ ..] if is_separator(*byte) || *byte == b'|' => {
                tags.push(std::mem::take(&mut tag));
                after
            }
            [byte, after @ ..] => {
                tag.push(*byte);
                after
            }
        }
    }
    tags.push(tag);
    tags.retain(|tag| !tag.is_empty());
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[&str]) {
        let tags = alternatives(value.as_bytes());
        let tags = tags.map(|tags| tags.into_iter().map(|tag| String::from_utf8_lossy(&tag).into_owned()));
        assert_eq!(
            tags.map_or_else(|| vec!["an expression".to_owned()], Iterator::collect),
            expected,
            "{value}"
        );
    }

    #[test]
    fn bare_alternatives_are_tags_and_their_escapes_are_undone() {
        check("", &[]);
        check("|", &[]);
        check("node:1", &["node:1"]);
        check("node:1|node:2", &["node:1", "node:2"]);
        check("node:1 node:2,c", &["node:1", "node:2", "c"]);
        check(r"config:system\.site|p\-12|a\|b|c\\d", &["config:system.site", "p-12", "a|b", r"c\d"]);
        check("config:system.site", &["config:system.site"]);
        check("c++|a?", &["c++", "a?"]);
    }

    #[test]
    fn what_says_more_than_that_is_an_expression() {
        for value in ["(^|,)a(,|$)", r"\bp-1\b", "a[12]", ".*", "a.+", "^a", "a$", "a\\"] {
            check(value, &["an expression"]);
        }
    }

    #[test]
    fn a_thousand_names_are_accepted_and_one_more_is_refused() {
        for (count, expected) in [(1000, Ok(1000)), (1001, Err(TOO_MANY))] {
            let (mut list, mut bare) = (Names::default(), Names::default());
            let value = |separator: &str| HeaderValue::from_str(&vec!["t"; count].join(separator)).unwrap();
            list.list(&value(" "));
            bare.alternatives(&value("|"));
            for names in [list, bare] {
                assert_eq!(names.into_selectors().map(|selectors| selectors.len()), expected);
            }
        }
    }
}
