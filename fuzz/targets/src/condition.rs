//! Conditions: parentheses around one change nothing, `!` before them turns it, and what is read does not depend on values. Work
//! and memory have limits.
//!
//! The first line of an input is the value of every variable but `no`; the rest is the condition.

use larder_assemble::condition::holds;
use larder_http::template::Language;

use crate::allocated::at_most;

/// For patterns and for values that are copied, a few times over.
const ALLOCATED_MAX: usize = 256 << 20;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(language: Language, input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (value, rest) = input.split_at(end);
    let text = rest.strip_prefix(b"\n").unwrap_or(rest);
    let of = |name: &[u8]| (name != b"no").then(|| value.to_vec());
    at_most(ALLOCATED_MAX, || {
        let found = holds(language, text, &of);
        assert_eq!(
            found.is_some(),
            holds(language, text, &|_| None).is_some(),
            "a value changes how it is read"
        );
        let around = |before: &[u8], after: &[u8]| holds(language, &[before, text, after].concat(), &of);
        // One level more may be one too many.
        if let (Some(plain), Some(wrapped)) = (found, around(b"(", b")")) {
            assert_eq!(plain, wrapped, "parentheses change it");
            assert_eq!(around(b"!(", b")"), Some(!plain), "it is not turned");
        }
    });
}
