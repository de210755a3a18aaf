//! The fields of a page, from those of its template.
//!
//! In: the template's fields, and what the page says to caches behind larder. Out: the page's own fields. Its entity tag, length and age
//! are told by who knows its bytes. The rule's edits come after.

use http::header::VARY;
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::page::PageControl;
use larder_cache::page_fields;

/// The fields of a page but its entity tag, length and age. `targets` are those of its rule.
pub(crate) fn page_head_fields(
    template: &HeaderMap,
    control: &PageControl,
    targets: &[HeaderName],
) -> HeaderMap {
    let mut fields = page_fields(template, targets);
    for (name, value) in &control.fields {
        fields.insert(name, value.clone());
    }
    for name in &control.vary {
        if let Ok(name) = HeaderValue::from_str(name.as_str()) {
            fields.append(VARY, name);
        }
    }
    fields
}
