//! Content codings: however coded content is cut, the same is decoded; neither content nor memory goes beyond its bounds; and what
//! was coded by another library comes back.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use larder_http::body::BodyError;
use larder_proxy::fuzzing::decode;

use crate::allocated::at_most;

/// As much may come of any content.
const ANYWAY_BYTES: usize = 1 << 20;
/// Beyond that, so much of each coded byte.
const TIMES_MAX: usize = 100;
/// The windows of the codings, what comes anyway, and buffers that grow towards it.
const FIXED_BYTES: usize = 64 << 20;
/// What comes of a byte, copied, and collected in buffers that grow.
const PER_BYTE: usize = 8 * TIMES_MAX;

/// Reads `input`: a byte that says which coding it is, one for the length of pieces, and the content.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let [coding, piece, coded @ ..] = input else { return };
    let whole = at_most(FIXED_BYTES + coded.len() * PER_BYTE, || decode(*coding, [coded]));
    assert!(whole.content.len() <= ANYWAY_BYTES.max(coded.len() * TIMES_MAX), "more than may come");
    for bytes in [usize::from(*piece).max(1), 1] {
        let cut = decode(*coding, coded.chunks(bytes));
        // How far it is read before it is too much may depend on the pieces.
        let is_too_much = [cut.error, whole.error].contains(&Some(BodyError::TooLarge));
        assert!(
            is_too_much || cut.error == whole.error,
            "{:?}, in pieces of {bytes} {:?}",
            whole.error,
            cut.error
        );
        let (shorter, longer) = match cut.content.len() < whole.content.len() {
            true => (&cut.content, &whole.content),
            false => (&whole.content, &cut.content),
        };
        assert!(longer.starts_with(shorter), "another content in pieces of {bytes}");
        assert!(whole.error.is_some() || is_too_much || shorter.len() == longer.len(), "not all of it");
    }
    let text = coded;
    for (coding, encoded) in [(0, gzip(text)), (1, zlib(text)), (1, deflate(text))] {
        let again = decode(coding, encoded.chunks(usize::from(*piece).max(1)));
        let is_too_much = again.error == Some(BodyError::TooLarge);
        assert!(is_too_much || again.content == text && again.error.is_none(), "{:?}", again.error);
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a vector takes everything")
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a vector takes everything")
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a vector takes everything")
}
