//! A response that larders share, as it lies in Redis.

use bytes::Bytes;
use larder_records::fuzzing::{framed, packed, rewritten};
use larder_tier::CacheKey;

/// The longest body that a record has in itself.
const BODY_BYTES_MAX: usize = 256 << 10;

/// Reads `input` as a record, as it is and behind a right checksum.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut key = CacheKey::new("a.example", "/x");
    key.push_part(b"http");
    let as_it_is = Bytes::copy_from_slice(input);
    for bytes in [as_it_is, framed(&key, true, input), framed(&key, false, input)] {
        let Some((written, is_coded)) = rewritten(&key, &bytes) else { continue };
        assert!(written.len() <= bytes.len() + BODY_BYTES_MAX, "it became {} bytes", written.len());
        // A body that was compressed may be written in several ways, and is the same in all of them.
        assert!(is_coded || written == bytes, "written again it is another");
        for other in [Some(written.clone()), packed(&written)].into_iter().flatten() {
            assert_eq!(rewritten(&key, &other).map(|(again, _)| again), Some(written.clone()));
        }
    }
}
