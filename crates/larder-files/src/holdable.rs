//! What a plain file can stand for.
//!
//! In: a head that may be stored, and its URI. Out: whether a file could be served in its place by a server that
//! knows nothing but the file. So it has no other status, no coding that the name does not tell, nothing that depends
//! on the request beyond its URI, and nothing that needs the origin before each use. Nor is it a template, whose markup other
//! servers would show. A Vary on Accept-Encoding alone is no obstacle where the content has no coding: everybody understands that.

use http::StatusCode;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE};
use larder_cache::StoredHead;

use super::error::NotAFile;
use super::meta::{META_BYTES_MAX, lines_bytes_max};
use super::name::{Name, TargetUri};

/// Whether a file may stand for a response. `has_more_key_parts`: its cache key has more than scheme, authority, path and
/// query.
///
/// # Errors
/// It may not, and why.
pub fn may_hold(uri: &TargetUri<'_>, head: &StoredHead, has_more_key_parts: bool) -> Result<(), NotAFile> {
    let fields = &head.fields.map;
    if head.status != StatusCode::OK || head.part.is_some() || fields.contains_key(CONTENT_RANGE) {
        return Err(NotAFile::Status);
    }
    if head.template.is_some() {
        return Err(NotAFile::Template);
    }
    if has_more_key_parts {
        return Err(NotAFile::KeyParts);
    }
    if fields.contains_key(CONTENT_ENCODING) {
        return Err(NotAFile::Encoded);
    }
    if head.vary.names().names().iter().any(|name| *name != ACCEPT_ENCODING) {
        return Err(NotAFile::Varies);
    }
    if !head.freshness.is_shareable() {
        return Err(NotAFile::NotShareable);
    }
    if lines_bytes_max(fields, uri) > META_BYTES_MAX {
        return Err(NotAFile::LargeHead);
    }
    Name::of(uri).map(drop).map_err(NotAFile::Unnameable)
}
