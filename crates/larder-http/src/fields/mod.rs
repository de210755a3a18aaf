//! Parsed fields: what the values say, as far as a proxy and a cache have to understand them.
//!
//! In: field values as bytes, from either side, of any quality. Out: plain values, or a statement that the field is
//! absent or not usable. No parser here fails loudly: each field's own rule says what an unusable value means
//! (an invalid lifetime is stale, an invalid Age is absent, an invalid Range is ignored), and the parser applies it.
//! All lines of a field count, not only the first. Deliberately absent: decisions; those are larder-cache's.

pub mod age;
pub mod cache_control;
pub mod cache_groups;
pub mod cache_status;
pub mod client_cert;
pub mod content_range;
pub mod content_type;
pub mod cookie;
pub mod cookie_names;
pub mod date;
pub mod digits;
pub mod etag;
pub mod larder_purge;
pub mod litespeed;
pub mod preference;
pub mod range;
pub mod surrogate;
pub mod targeted;
pub mod vary;

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

/// All lines of a list-like field as one value, as RFC 9110 5.3 joins them; `None` where there is no line. Borrowed
/// where there is only one.
fn joined<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut lines = fields.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    let mut all = Cow::Borrowed(first);
    for line in lines {
        let all = all.to_mut();
        all.extend_from_slice(b", ");
        all.extend_from_slice(line.as_bytes());
    }
    Some(all)
}
