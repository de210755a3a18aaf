//! Values that are compressed, as their flags say.
//!
//! In: a value and its flags. Out: its bytes. Flags are the application's, and mean nothing but what the config says of them. What
//! is decoded is at most as large as a value may be, and beyond 1 MiB at most 100 times as large as what came.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::settings::Codings;

/// Up to here the ratio does not count: short texts may be very regular.
const RATIO_FROM: usize = 1 << 20;
const RATIO_MAX: usize = 100;

/// What came is not what its flags say, or it is too large when it is decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undecodable;

/// The value itself, or decoded.
pub(crate) fn decoded(value: Bytes, flags: u32, codings: Codings, max: usize) -> Result<Bytes, Undecodable> {
    let max = max.min(value.len().saturating_mul(RATIO_MAX).max(RATIO_FROM));
    if flags & codings.gzip_flag != 0 {
        return take(MultiGzDecoder::new(&value[..]), max);
    }
    if flags & codings.zlib_flag != 0 {
        let mut decoder = ZlibDecoder::new(&value[..]);
        let body = take(&mut decoder, max)?;
        // Bytes behind the end belong to no value.
        return if decoder.into_inner().is_empty() { Ok(body) } else { Err(Undecodable) };
    }
    Ok(value)
}

fn take(decoder: impl Read, max: usize) -> Result<Bytes, Undecodable> {
    let mut body = Vec::new();
    let limit = (max as u64).saturating_add(1);
    decoder.take(limit).read_to_end(&mut body).map_err(|_| Undecodable)?;
    if body.len() > max { Err(Undecodable) } else { Ok(body.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    const CODINGS: Codings = Codings { gzip_flag: 2, zlib_flag: 8 };
    const MAX: usize = 4 << 20;

    fn gzip(body: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap().into()
    }

    fn zlib(body: &[u8]) -> Bytes {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap().into()
    }

    fn check(value: &Bytes, flags: u32, expected: Result<&[u8], Undecodable>) {
        let found = decoded(value.clone(), flags, CODINGS, MAX);
        assert_eq!(found.as_deref().map_err(|_| Undecodable), expected, "flags {flags}");
    }

    #[test]
    fn flags_of_the_config_tell_codings_and_no_others() {
        check(&gzip(b"body"), 2, Ok(b"body"));
        check(&gzip(b"body"), 3, Ok(b"body"));
        check(&zlib(b"body"), 8, Ok(b"body"));
        let raw = gzip(b"body");
        check(&raw, 0, Ok(&raw));
        check(&raw, 1 | 4 | 16, Ok(&raw));
        let none = decoded(raw.clone(), u32::MAX, Codings::default(), MAX);
        assert_eq!(none, Ok(raw), "a config without flags decodes nothing");
    }

    #[test]
    fn what_is_not_what_its_flags_say_is_no_value() {
        check(&Bytes::from_static(b"body"), 2, Err(Undecodable));
        check(&Bytes::from_static(b"body"), 8, Err(Undecodable));
        check(&gzip(b"body"), 8, Err(Undecodable));
        check(&Bytes::new(), 2, Err(Undecodable));
        let whole = gzip(b"a longer body");
        (1..whole.len()).for_each(|end| check(&whole.slice(..end), 2, Err(Undecodable)));
        let more = Bytes::from([&zlib(b"body")[..], b"x"].concat());
        check(&more, 8, Err(Undecodable));
    }

    #[test]
    fn decoding_is_bounded_by_the_limit_and_beyond_a_mebibyte_by_the_ratio() {
        let (small, bomb) = (vec![0; RATIO_FROM], vec![0; RATIO_FROM + 1]);
        check(&gzip(&small), 2, Ok(&small));
        check(&gzip(&bomb), 2, Err(Undecodable));
        check(&zlib(&bomb), 8, Err(Undecodable));
        // A mixture that compresses by less than 100 is read up to the limit.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mixed: Vec<u8> = (0..MAX + 1).map(|at| if at % 16 == 0 { noise() } else { 0 }).collect();
        check(&gzip(&mixed[..MAX]), 2, Ok(&mixed[..MAX]));
        check(&gzip(&mixed), 2, Err(Undecodable));
    }
}
