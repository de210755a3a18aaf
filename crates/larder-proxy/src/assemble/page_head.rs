//! The fields of a page, from those of its template.
//!
//! In: the template's fields, what the page says to caches behind larder, and its bytes. Out: the page's own fields, with an entity tag
//! where the page is whole and short enough. The rule's edits come after.

use http::header::VARY;
use http::{HeaderMap, HeaderValue};
use larder_cache::page::PageControl;
use larder_cache::page_fields;

use super::whole::{WholePage, entity_tag};

/// A longer page has no entity tag: hashing it would keep a worker from its other work.
const TAGGED_BYTES_MAX: u64 = 1 << 20;

/// The fields of a page but its entity tag, length and age.
pub(crate) fn page_head_fields(template: &HeaderMap, control: &PageControl) -> HeaderMap {
    let mut fields = page_fields(template);
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

/// The entity tag of a whole page; `None` for one that has none.
pub(crate) fn page_tag(page: &WholePage) -> Option<HeaderValue> {
    (page.length() <= TAGGED_BYTES_MAX).then(|| entity_tag(page))
}
