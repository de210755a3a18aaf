//! Parsed fields: what the values say, as far as a proxy and a cache have to understand them.
//!
//! In: field values as bytes, from either side, of any quality. Out: plain values, or a statement that the field is
//! absent or not usable. No parser here fails loudly: each field's own rule says what an unusable value means
//! (an invalid lifetime is stale, an invalid Age is absent, an invalid Range is ignored), and the parser applies it.
//! All lines of a field count, not only the first. Deliberately absent: decisions; those are larder-cache's.

pub mod age;
pub mod cache_control;
pub mod cache_status;
pub mod content_range;
pub mod cookie;
pub mod date;
pub mod digits;
pub mod etag;
pub mod range;
pub mod vary;
