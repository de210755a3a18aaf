//! Bodies in LZ4, by choice.
//!
//! In: the bytes of a body, or of a piece of one. Out: the same compressed, where that saves an eighth at least; and back.
//! Only what shrinks as a rule is tried: content with a coding of its own, and types such as images, are left as they are.
//! Compressing is the work of the thread that writes to the server: a response is stored under a lock, on a thread that serves clients.
//! The length of the plain bytes is known before they are there, and is bounded, so nothing that lies in Redis can become larger than a piece may
//! be. LZ4 was taken because a larder reads a record on the thread of its client: reading it takes little time, and no memory beside the
//! plain bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use larder_cache::Codings;
use larder_cache::coding::type_that_shrinks;
use lz4_flex::block::{compress, decompress_into};

/// The most bytes that are written or read at once.
pub(crate) const PLAIN_MAX_BYTES: usize = 256 << 10;
/// Shorter bytes are left as they are: what they could save is less than a record takes beside its body.
const PLAIN_MIN_BYTES: usize = 256;
/// At least this part of the plain bytes has to be saved.
const SAVED_PART: usize = 8;

/// How the bodies of a record may lie there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As they are.
    #[default]
    None,
    /// Those that are shorter than their record says are in LZ4.
    Lz4,
}

impl Coding {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
        }
    }

    /// `None`: another version has written it.
    pub(crate) const fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// Whether content with these fields shrinks as a rule.
pub(crate) fn shrinks(fields: &HeaderMap) -> bool {
    Codings::of(fields).is_plain() && type_that_shrinks(fields).is_some()
}

/// The bytes in LZ4. `None`: that saves too little.
pub(crate) fn packed(plain: &[u8]) -> Option<Bytes> {
    if plain.len() < PLAIN_MIN_BYTES {
        return None;
    }
    let packed = compress(plain);
    (packed.len() <= plain.len() - plain.len() / SAVED_PART).then(|| packed.into())
}

/// The plain bytes, of which there are so many. `None`: it is no LZ4 of just these many bytes, or they are more than a piece has.
pub(crate) fn unpacked(packed: &[u8], length: usize) -> Option<Bytes> {
    if length > PLAIN_MAX_BYTES {
        return None;
    }
    let mut plain = vec![0; length];
    let written = decompress_into(packed, &mut plain).ok()?;
    (written == length).then(|| plain.into())
}

/// Bytes that were not written because they were compressed.
#[derive(Debug, Default)]
pub(crate) struct SavedBytes(AtomicU64);

impl SavedBytes {
    /// So many bytes became so many.
    pub(crate) fn note(&self, plain: usize, packed: usize) {
        self.0.fetch_add(plain.saturating_sub(packed) as u64, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    /// Text that shrinks, of any length.
    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b"<p>A line of a page. "[at % 21] + u8::from(at % 251 == 0)).collect()
    }

    /// Bytes that do not.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_was_packed_is_unpacked_at_every_length_and_noise_is_left() {
        let lengths = (0..600).chain([4095, 4096, 65_535, 65_536, PLAIN_MAX_BYTES - 1, PLAIN_MAX_BYTES]);
        for length in lengths {
            let plain = text(length);
            match packed(&plain) {
                Some(packed) => {
                    assert!(packed.len() <= length - length / SAVED_PART);
                    assert_eq!(unpacked(&packed, length).unwrap(), plain, "{length}");
                }
                None => assert!(length < 2 * PLAIN_MIN_BYTES, "{length}"),
            }
            assert_eq!(packed(&noise(length)), None, "{length}");
        }
    }

    #[test]
    fn any_other_length_and_any_cut_is_refused_and_nothing_becomes_larger_than_a_piece() {
        let plain = text(5000);
        let whole = packed(&plain).unwrap();
        for length in [0, 1, 4999, 5001, PLAIN_MAX_BYTES, PLAIN_MAX_BYTES + 1, usize::MAX] {
            assert_eq!(unpacked(&whole, length), None, "{length}");
        }
        for cut in 0..whole.len() {
            assert!(unpacked(&whole[..cut], 5000).is_none_or(|other| other != plain), "{cut}");
        }
        // A megabyte of zeros in a few thousand bytes, and a length that never ends.
        let bomb = compress(&vec![0; 1 << 20]);
        assert_eq!((unpacked(&bomb, 1 << 20), unpacked(&bomb, PLAIN_MAX_BYTES)), (None, None));
        let endless = [&[0x1f, b'a', 1, 0][..], &[255; 4000]].concat();
        assert_eq!(unpacked(&endless, PLAIN_MAX_BYTES), None);
    }

    #[test]
    fn only_plain_content_of_types_that_shrink_is_tried() {
        for (media, coding, expected) in [
            ("text/html; charset=utf-8", None, true),
            ("application/json", None, true),
            ("image/svg+xml", Some("identity"), true),
            ("text/html", Some("br"), false),
            ("image/jpeg", None, false),
            ("video/mp4", None, false),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert("content-type", HeaderValue::from_static(media));
            coding.map(|coding| fields.insert("content-encoding", HeaderValue::from_static(coding)));
            assert_eq!(shrinks(&fields), expected, "{media} {coding:?}");
        }
        assert!(!shrinks(&HeaderMap::new()));
    }
}
