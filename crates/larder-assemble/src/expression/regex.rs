//! Patterns of SSI's conditions: unanchored, case-sensitive, in linear time.
//!
//! In: a pattern between slashes. Out: whether a value matches, and what its groups did. Patterns match bytes, so that any
//! value can be looked at. Look-around and back-references cannot be had in linear time, and are refused.

use regex::bytes::{Regex, RegexBuilder};

use super::Unreadable;
use crate::composed::Lookup;
use crate::value::Value;

/// What one pattern may take once it is compiled.
const PATTERN_BYTES_MAX: usize = 64 * 1024;
/// `$0` to `$9`.
const CAPTURES_MAX: usize = 10;
/// Bytes of a value that count as one operation.
const BYTES_PER_OPERATION: usize = 64;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    has_groups: bool,
}

impl Pattern {
    /// Compiles what stands between two slashes.
    pub(crate) fn compile(text: &[u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(text).map_err(|_| Unreadable::Pattern)?;
        let built = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .nest_limit(32)
            .build();
        let regex = built.map_err(|_| Unreadable::Pattern)?;
        let has_groups = regex.captures_len() > 1;
        Ok(Self { regex, has_groups })
    }

    /// Whether `value` matches; what the groups matched is handed on.
    pub(crate) fn matches(&self, value: &Value, lookup: &mut impl Lookup) -> bool {
        lookup.spend(value.text().len() / BYTES_PER_OPERATION);
        let text = value.text();
        if !self.has_groups {
            let Some(found) = self.regex.find(text) else { return false };
            lookup.captured(vec![Some(value.slice(found.range()))], Vec::new());
            return true;
        }
        let Some(captures) = self.regex.captures(text) else { return false };
        let numbered = captures.iter().take(CAPTURES_MAX);
        let numbered = numbered.map(|group| group.map(|group| value.slice(group.range()))).collect();
        let named = self.regex.capture_names().flatten().filter_map(|name| {
            let group = captures.name(name)?;
            Some((name.to_ascii_lowercase().into_bytes().into(), value.slice(group.range())))
        });
        lookup.captured(numbered, named.collect());
        true
    }
}
