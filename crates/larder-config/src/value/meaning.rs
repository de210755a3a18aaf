//! Fields with a meaning of their own, which requests or responses are likely to have.
//!
//! A setting that gives a field another meaning refuses these: what the field says to others would be lost. The list is not
//! complete, since any application has fields of its own.

use http::HeaderName;

/// Their names.
const NAMES: &[&str] = &[
    "age",
    "allow",
    "alt-svc",
    "authorization",
    "cache-group-invalidation",
    "cache-groups",
    "cache-status",
    "clear-site-data",
    "cookie",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "permissions-policy",
    "pragma",
    "referrer-policy",
    "refresh",
    "retry-after",
    "server",
    "server-timing",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-content-type-options",
    "x-frame-options",
    "x-robots-tag",
];

/// How their names begin.
const BEGINNINGS: &[&str] = &["accept", "access-control-", "content-", "cross-origin-", "if-", "sec-"];

/// Whether the field means something that no setting may replace.
pub(crate) fn has_meaning(name: &HeaderName) -> bool {
    let name = name.as_str();
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
