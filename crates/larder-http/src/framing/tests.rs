//! Which framings are taken, which are refused, and that content comes out as it went in.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(lines: &[(&'static str, &[u8])], version: Version, expected: Result<Framing, FramingError>) {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        fields.append(*name, HeaderValue::from_bytes(value).expect("a value"));
    }
    assert_eq!(take_request_framing(&mut fields, version), expected, "{lines:?}");
    assert!(expected.is_err() || fields.is_empty());
}

#[test]
fn the_framing_of_a_request_is_beyond_doubt_or_refused() {
    use FramingError::{Both, ContentLength, TransferEncoding};
    let v11 = Version::HTTP_11;
    check(&[], v11, Ok(Framing::None));
    check(&[("content-length", b"0")], v11, Ok(Framing::Length(0)));
    check(&[("content-length", b"007")], v11, Ok(Framing::Length(7)));
    check(&[("content-length", b"5")], Version::HTTP_10, Ok(Framing::Length(5)));
    check(&[("transfer-encoding", b"chunked")], v11, Ok(Framing::Chunked));
    check(&[("transfer-encoding", b"CHUNKED")], v11, Ok(Framing::Chunked));
    let bad: [&[u8]; 15] = [
        b"",
        b"+5",
        b"-5",
        b"5,5",
        b"5, 5",
        b"0x5",
        b"5_0",
        b"5 ",
        b" 5",
        b"5.0",
        b"5e1",
        b"\xd9\xa5",
        b"a",
        b"9223372036854775808",
        b"18446744073709551621",
    ];
    for value in bad {
        check(&[("content-length", value)], v11, Err(ContentLength));
    }
    check(&[("content-length", b"5"), ("content-length", b"5")], v11, Err(ContentLength));
    check(&[("content-length", b"5"), ("transfer-encoding", b"chunked")], v11, Err(Both));
    check(&[("content-length", b"x"), ("transfer-encoding", b"y")], Version::HTTP_10, Err(Both));
    check(&[("transfer-encoding", b"chunked")], Version::HTTP_10, Err(TransferEncoding));
    let odd: [&[u8]; 10] = [
        b"",
        b",chunked",
        b"chunked,",
        b"gzip, chunked",
        b"chunked, chunked",
        b"chunked;a=b",
        b"identity",
        b"xchunked",
        b"\"chunked\"",
        b"chunked\x80",
    ];
    for value in odd {
        check(&[("transfer-encoding", value)], v11, Err(TransferEncoding));
    }
    check(
        &[("transfer-encoding", b"chunked"), ("transfer-encoding", b"chunked")],
        v11,
        Err(TransferEncoding),
    );
    check(
        &[("transfer-encoding", b"identity"), ("transfer-encoding", b"chunked")],
        v11,
        Err(TransferEncoding),
    );
}

/// Decodes `pieces` one after the other: the data, whether the end was reached, and what is left over.
fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), FramingError> {
    let (mut decoder, mut buffer, mut data) = (Chunked::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while let Decoded::Data(bytes) = decoder.decode(&mut buffer)? {
            data.extend_from_slice(&bytes);
        }
    }
    Ok((data, decoder.is_done(), buffer.to_vec()))
}

#[test]
fn chunked_content_is_read_to_its_end_and_no_further() {
    for (input, data, done, left) in [
        ("0\r\n\r\n", "", true, ""),
        ("5\r\nhello\r\n0\r\n\r\nGET", "hello", true, "GET"),
        ("5\r\nhel", "hel", false, ""),
        ("A\r\n0123456789\r\n0001\r\nx\r\n0000000000000000\r\n\r\n", "0123456789x", true, ""),
        ("1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n", "x", true, ""),
        ("1\r\nx\r\n0\r\nA: b\r\nX-Y:\r\nz: \t\u{e9}\r\n\r\nrest", "x", true, "rest"),
        ("0\r\n", "", false, ""),
        ("0\r\n\r", "", false, ""),
    ] {
        let expected = Ok((data.as_bytes().to_vec(), done, left.as_bytes().to_vec()));
        assert_eq!(decode(&[input.as_bytes()]), expected, "{input:?}");
    }
}

#[test]
fn trailers_are_had_at_the_end_wherever_the_bytes_were_split() {
    let input = b"1\r\nx\r\n0\r\nX-A:  b\tc \r\nhost: evil\r\nX-A:\r\n\r\n";
    for cut in 0..input.len() {
        let (mut decoder, mut buffer) = (Chunked::default(), BytesMut::new());
        for piece in [&input[..cut], &input[cut..]] {
            buffer.extend_from_slice(piece);
            while let Decoded::Data(_) = decoder.decode(&mut buffer).expect("good chunks") {}
        }
        let trailers = decoder.take_trailers().expect("trailers");
        let lines: Vec<_> = trailers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        assert_eq!(lines, [("x-a", b"b\tc".as_slice()), ("x-a", b"")]);
        assert_eq!(decoder.take_trailers(), None);
    }
}

#[test]
fn broken_chunks_are_refused() {
    use FramingError::{ChunkEnd, ChunkExtension, ChunkSize, Trailer};
    for (input, error) in [
        ("\r\n", ChunkSize),
        (";a\r\n", ChunkSize),
        (" 5\r\nhello", ChunkSize),
        ("5 \r\nhello", ChunkSize),
        ("5 ;a\r\nhello", ChunkSize),
        ("0x5\r\nhello", ChunkSize),
        ("+5\r\nhello", ChunkSize),
        ("-5\r\nhello", ChunkSize),
        ("1_0\r\n", ChunkSize),
        ("g\r\n", ChunkSize),
        ("5\nhello", ChunkSize),
        ("5\r\rhello", ChunkSize),
        ("5\rhello", ChunkSize),
        ("00000000000000005\r\n", ChunkSize),
        ("10000000000000005\r\n", ChunkSize),
        ("ffffffffffffffff\r\n", ChunkSize),
        ("8000000000000000\r\n", ChunkSize),
        ("5\r\nhelloXY0\r\n\r\n", ChunkEnd),
        ("5\r\nhello\n0\r\n\r\n", ChunkEnd),
        ("5\r\nhello\rX0\r\n\r\n", ChunkEnd),
        ("5\r\nhello0\r\n\r\n", ChunkEnd),
        ("5;a\nb\r\nhello", ChunkExtension),
        ("5;a\rb\r\nhello", ChunkSize),
        ("5;\0\r\nhello", ChunkExtension),
        ("5;\u{7f}\r\n", ChunkExtension),
        ("0\r\n\n", Trailer),
        ("0\r\n\r\r", Trailer),
        ("0\r\n: a\r\n\r\n", Trailer),
        ("0\r\nA : b\r\n\r\n", Trailer),
        ("0\r\n A: b\r\n\r\n", Trailer),
        ("0\r\nA: b\r\n c\r\n\r\n", Trailer),
        ("0\r\nA\r\n\r\n", Trailer),
        ("0\r\nA: b\n\r\n", Trailer),
        ("0\r\nA: \0\r\n\r\n", Trailer),
        ("0\r\nA: b\rc\r\n", Trailer),
    ] {
        assert_eq!(decode(&[input.as_bytes()]), Err(error), "{input:?}");
    }
}

#[test]
fn extensions_and_trailers_are_bounded_per_body() {
    let chunks = "1;abcdefg\r\nx\r\n".repeat(512);
    assert!(decode(&[chunks.as_bytes()]).is_ok());
    let chunks = "1;abcdefg\r\nx\r\n".repeat(513);
    assert_eq!(decode(&[chunks.as_bytes()]), Err(FramingError::ChunkExtension));
    let long = format!("0\r\nA: {}\r\n\r\n", "b".repeat(trailers::BYTES_MAX));
    assert_eq!(decode(&[long.as_bytes()]), Err(FramingError::Trailer));
    let many = format!("0\r\n{}\r\n", "a:\r\n".repeat(trailers::LINES_MAX + 1));
    assert_eq!(decode(&[many.as_bytes()]), Err(FramingError::Trailer));
}

proptest! {
    #[test]
    fn a_run_of_field_bytes_ends_where_the_first_other_byte_is(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\t'), Just(0x7f), Just(0x1f), 0x20..=0xff_u8], 0..64)
    ) {
        let expected = bytes.iter().position(|byte| !is_field_byte(*byte)).unwrap_or(bytes.len());
        prop_assert_eq!(field_run(&bytes), expected);
    }
}

proptest! {
    #[test]
    fn where_the_bytes_are_split_does_not_matter(
        input in "(([0-9a-fA-F]{1,2}|1|2|3)(;[a-z=]{0,3})?\r\n[a-z]{0,5}\r\n){0,5}0\r\n([A-Z]:[a-z]{0,2}\r\n){0,2}(\r\n|\n|x){1,2}",
        mut cuts in proptest::collection::vec(0..200_usize, 0..10),
    ) {
        let bytes = input.as_bytes();
        cuts.iter_mut().for_each(|c| *c = (*c).min(bytes.len()));
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(decode(&pieces), decode(&[bytes]));
    }

    #[test]
    fn what_was_chunked_comes_back(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8)) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\nnext");
        prop_assert_eq!(decode(&[&wire]), Ok((chunks.concat(), true, b"next".to_vec())));
    }
}
