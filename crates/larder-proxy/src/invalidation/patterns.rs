//! Patterns: a kind of predicate that has to be compared with each response.

use http::header::CONTENT_TYPE;
use larder_cache::purge::{Pattern, pattern};

use super::kind::Subject;

/// Whether a response matches all expressions of a pattern.
pub(super) fn matches(pattern: &Pattern, subject: &Subject<'_>) -> bool {
    let head = subject.head;
    pattern.matches(&pattern::Subject {
        host: subject.host(),
        target: subject.target(),
        content_type: head.fields.map.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes),
        tags: head.tag_text(),
    })
}
