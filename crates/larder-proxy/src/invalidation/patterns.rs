//! Patterns: a kind of predicate that has to be compared with each response.

use http::header::CONTENT_TYPE;
use larder_cache::purge::pattern::TagText;
use larder_cache::purge::{Pattern, pattern};

use super::kind::Subject;

/// Whether a response matches all expressions of a pattern.
pub(super) fn matches(pattern: &Pattern, subject: &Subject<'_>) -> bool {
    let content_type = subject.head.and_then(|head| head.fields.map.get(CONTENT_TYPE));
    pattern.matches(&pattern::Subject {
        host: subject.host(),
        target: subject.target(),
        content_type: content_type.map(http::HeaderValue::as_bytes),
        tags: match subject.head {
            Some(head) if pattern.has_tags() => head.tag_text(),
            _ => TagText::Every,
        },
    })
}
