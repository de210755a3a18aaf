//! A response that larders share, as it lies in Redis.

use bytes::Bytes;
use larder_records::fuzzing::{framed, rewritten, rewritten_piece};
use larder_tier::CacheKey;

/// Reads `input` as a record and as a piece, as it is and behind a right checksum.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut key = CacheKey::new("a.example", "/x");
    key.push_part(b"http");
    let as_it_is = Bytes::copy_from_slice(input);
    let length = u32::try_from(input.len()).unwrap_or(0);
    for bytes in [as_it_is.clone(), framed(&key, true, input), framed(&key, false, input)] {
        if let Some(written) = rewritten(&key, &bytes) {
            assert_eq!(written, bytes, "written again it is another");
        }
    }
    for length in [length, length.saturating_sub(4)] {
        if let Some(written) = rewritten_piece(&as_it_is, length) {
            assert_eq!(written, as_it_is, "written again it is another");
        }
    }
}
