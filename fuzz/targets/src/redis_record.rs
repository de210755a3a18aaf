//! A response that larders share, as it lies in Redis.

use bytes::Bytes;
use larder_records::fuzzing::{framed, rewritten};
use larder_tier::CacheKey;

/// Reads `input` as a record, as it is and behind a right checksum.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut key = CacheKey::new("a.example", "/x");
    key.push_part(b"http");
    let as_it_is = Bytes::copy_from_slice(input);
    for bytes in [as_it_is, framed(&key, true, input), framed(&key, false, input)] {
        if let Some(written) = rewritten(&key, &bytes) {
            assert_eq!(written, bytes, "written again it is another");
        }
    }
}
