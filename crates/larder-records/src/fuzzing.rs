//! What the fuzz targets call.
//!
//! In: bytes as they might lie in Redis. Out: what they are read as, written again; and the same bytes with the checksum that they
//! would need.

use bytes::Bytes;
use larder_tier::CacheKey;

use crate::coding::Coding;
use crate::record::{self, Found};

/// What lies under the name of a key, written again with a plain body, and whether its body may have been compressed; `None` where it is refused.
pub fn rewritten(key: &CacheKey, bytes: &Bytes) -> Option<(Bytes, bool)> {
    Some(match record::read(key, bytes).ok()? {
        Found::Response(read) => (record::response(key, &read), read.coding == Coding::Lz4),
        Found::Varies(names) => (record::varies(key, std::str::from_utf8(&names).ok()?), false),
    })
}

/// The same record with its body compressed; `None` where nothing of it is.
pub fn packed(bytes: &Bytes) -> Option<Bytes> {
    record::with_packed_body(bytes)
}

/// The frame of a record under a key around `rest`, with a right checksum: a response, or else the names of fields.
pub fn framed(key: &CacheKey, is_response: bool, rest: &[u8]) -> Bytes {
    record::framed(key, is_response, rest)
}
