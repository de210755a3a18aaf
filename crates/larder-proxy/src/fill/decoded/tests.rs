//! What holds for all codings: any cutting gives the same, bounds hold, and nothing that is cut or damaged ends well.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use proptest::prelude::*;

use super::super::script::{frames, next, pieces, read};
use super::*;

/// 1008 bytes.
fn text() -> Vec<u8> {
    b"<p>larder <!--#include virtual=\"/a\" --></p>\n".repeat(24)[..1008].to_vec()
}

/// The same, as `brotli --quality=11 --lgwin=16` writes it.
const BROTLI: &[u8] = b"\xe2}\x00\xbf\xd5\x81\xed2\x8f\xae\xabe\xe4N\x06s|\xc9\xf3\x22\xd2#-ap*\x04.\xe5\xd8\x14\xca',A\xc8\xca\xba\x90M\x1a\xeaL\xef\xd0\xca@L)]\x83\x22\xd9.z5\xb4\xdf\x05";
/// The same, as `zstd -19 --check` writes it.
const ZSTD: &[u8] = b"(\xb5/\xfdd\xf0\x02\xad\x01\x00\xc4\x02<p>larder <!--#include virtual=\x22/a\x22 --></p>\x0a\x01\x00\x0c\xfe*U\x06\xcc\xdf\xe3\xa7";
/// 8 MiB of zeros, as `brotli --quality=11` writes them.
const BROTLI_BOMB: &[u8] = b"\xcb\xff\xff?\xf8'\x00\xe2\xb1@ \xf7\xfeo";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A frame of so many blocks, each of which stands for as many bytes as a block may.
fn zstd_of_zeros(blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for left in (0..blocks).rev() {
        let header = u32::from(left == 0) | 1 << 1 | (128 * 1024) << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// Every coding, in every form, of [`text`].
fn coded() -> [(Coding, Vec<u8>); 5] {
    let text = text();
    [
        (Coding::Gzip, gzip(&text)),
        (Coding::Deflate, zlib(&text)),
        (Coding::Deflate, deflate(&text)),
        (Coding::Brotli, BROTLI.to_vec()),
        (Coding::Zstd, ZSTD.to_vec()),
    ]
}

fn whole(coding: Coding, coded: &[u8]) -> (Vec<u8>, Result<Option<HeaderMap>, BodyError>) {
    read(decoded(coding, pieces(coded, coded.len())))
}

#[test]
fn any_cutting_gives_the_same() {
    for (coding, coded) in coded() {
        for bytes in 1..=coded.len() {
            let found = read(decoded(coding, pieces(&coded, bytes)));
            assert_eq!(found, (text(), Ok(None)), "{coding:?} in pieces of {bytes}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_coded_comes_back(
        text in proptest::collection::vec(any::<u8>(), 0..5000),
        times in 1..40_usize,
        bytes in 1..3000_usize,
    ) {
        let text = text.repeat(times);
        for (coding, coded) in
            [(Coding::Gzip, gzip(&text)), (Coding::Deflate, zlib(&text)), (Coding::Deflate, deflate(&text))]
        {
            prop_assert_eq!(read(decoded(coding, pieces(&coded, bytes))), (text.clone(), Ok(None)));
        }
    }
}

#[test]
fn what_is_cut_breaks() {
    for (coding, coded) in coded() {
        for length in 1..coded.len() {
            let (content, end) = whole(coding, &coded[..length]);
            assert_eq!(end, Err(BodyError::Framing), "{coding:?} cut at {length}");
            assert!(text().starts_with(&content), "{coding:?} cut at {length}");
        }
        // A coding without any content is one that was only named.
        assert_eq!(whole(coding, &[]), (Vec::new(), Ok(None)));
    }
}

#[test]
fn what_is_damaged_or_goes_on_breaks() {
    for (coding, coded) in coded() {
        let (_, end) = whole(coding, &[&coded[..], b"more"].concat());
        assert_eq!(end, Err(BodyError::Framing), "{coding:?}");
        let mut damaged = coded.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 0x10;
        // The bare format has no checksum, and neither has brotli.
        if coding != Coding::Brotli && coded != deflate(&text()) {
            assert_eq!(whole(coding, &damaged).1, Err(BodyError::Framing), "{coding:?}");
        }
        assert_eq!(whole(coding, b"no content of any coding").1, Err(BodyError::Framing), "{coding:?}");
    }
}

#[test]
fn a_gzip_header_may_have_more_in_it_and_a_body_more_members() {
    let text = text();
    let plain = gzip(&text);
    let mut header = plain[..10].to_vec();
    header[3] = 0b0001_1110;
    let optional: &[u8] = b"\x03\x00abcname\0comment\0\x12\x34";
    let member = [&header[..], optional, &plain[10..]].concat();
    let both = [&member[..], &plain, &member].concat();
    for bytes in [1, 7, both.len()] {
        let found = read(decoded(Coding::Gzip, pieces(&both, bytes)));
        assert_eq!(found, (text.repeat(3), Ok(None)), "in pieces of {bytes}");
    }
    header[3] = 0b0010_0000;
    let reserved = [&header[..], &plain[10..]].concat();
    assert_eq!(whole(Coding::Gzip, &reserved).1, Err(BodyError::Framing));
    // The length behind the content is that of another.
    let other = [&plain[..plain.len() - 4], &1009_u32.to_le_bytes()[..]].concat();
    assert_eq!(whole(Coding::Gzip, &other).1, Err(BodyError::Framing));
}

#[test]
fn zstd_may_be_several_frames_and_such_that_are_skipped() {
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let coded = [&skipped[..], ZSTD, &skipped, ZSTD].concat();
    for bytes in [1, 7, coded.len()] {
        let found = read(decoded(Coding::Zstd, pieces(&coded, bytes)));
        assert_eq!(found, (text().repeat(2), Ok(None)), "in pieces of {bytes}");
    }
    // A window of 16 MiB: RFC 9659 allows 8.
    let mut large = zstd_of_zeros(1);
    large[5] = 0x70;
    assert_eq!(whole(Coding::Zstd, &large).1, Err(BodyError::Framing));
    large[5] = 0x68;
    assert_eq!(whole(Coding::Zstd, &large).0.len(), 128 * 1024);
}

#[test]
fn a_bomb_is_cut_at_its_bound() {
    const MIB: usize = 1024 * 1024;
    let zeros = vec![0; 8 * MIB];
    for (coding, coded) in [
        (Coding::Gzip, gzip(&zeros)),
        (Coding::Deflate, zlib(&zeros)),
        (Coding::Deflate, deflate(&zeros)),
        (Coding::Brotli, BROTLI_BOMB.to_vec()),
        (Coding::Zstd, zstd_of_zeros(64)),
    ] {
        for bytes in [5, coded.len()] {
            let (content, end) = read(decoded(coding, pieces(&coded, bytes)));
            assert_eq!(end, Err(BodyError::TooLarge), "{coding:?}");
            let most = MIB.max(coded.len() * TIMES_MAX as usize);
            assert!(content.len() <= most && content.len() + 2 * OUTPUT_BYTES > MIB, "{}", content.len());
        }
    }
    // A mebibyte may come of anything, and a hundred times is enough for every text.
    assert_eq!(whole(Coding::Gzip, &gzip(&zeros[..MIB])), (zeros[..MIB].to_vec(), Ok(None)));
    let text = text().repeat(3000);
    let text: Vec<u8> =
        text.chunks(50).enumerate().flat_map(|(at, line)| [line, &[at as u8]].concat()).collect();
    assert_eq!(whole(Coding::Gzip, &gzip(&text)), (text, Ok(None)));
}

#[test]
fn a_piece_is_never_large_and_comes_as_soon_as_it_can() {
    let zeros = vec![0; 1024 * 1024];
    let mut stream = decoded(Coding::Gzip, pieces(&gzip(&zeros), usize::MAX));
    let mut length = 0;
    while let Some(frame) = next(&mut stream) {
        let piece = frame.unwrap().into_data().unwrap();
        assert!(!piece.is_empty() && piece.len() <= OUTPUT_BYTES);
        length += piece.len();
    }
    assert_eq!(length, zeros.len());
    // What was flushed by the origin is there before the rest comes.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"first").unwrap();
    encoder.flush().unwrap();
    let first = Bytes::copy_from_slice(encoder.get_ref());
    encoder.write_all(b"second").unwrap();
    let second = Bytes::copy_from_slice(&encoder.finish().unwrap()[first.len()..]);
    let mut stream = decoded(Coding::Gzip, frames(vec![Ok(Frame::data(first)), Ok(Frame::data(second))]));
    assert_eq!(next(&mut stream).unwrap().unwrap().into_data().unwrap(), "first");
}

#[test]
fn trailers_come_behind_the_content_and_errors_at_once() {
    let fields = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("\"a\""))]);
    let data = |bytes: &[u8]| Ok(Frame::data(Bytes::copy_from_slice(bytes)));
    for (coding, coded) in coded() {
        let script = vec![data(&coded), Ok(Frame::trailers(fields.clone()))];
        assert_eq!(read(decoded(coding, frames(script))), (text(), Ok(Some(fields.clone()))));
        let script = vec![data(&coded[..coded.len() - 1]), Ok(Frame::trailers(fields.clone()))];
        assert_eq!(read(decoded(coding, frames(script))).1, Err(BodyError::Framing));
        let script = vec![data(&coded), Err(BodyError::Cut)];
        assert_eq!(read(decoded(coding, frames(script))).1, Err(BodyError::Cut));
    }
}
