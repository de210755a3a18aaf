//! Records that are written and read, whole, changed and cut, with bodies as they are and in LZ4.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn key() -> CacheKey {
    let mut key = CacheKey::new("a.example", "/x?y");
    key.push_part(b"http");
    key
}

fn record(body: RecordBody) -> Record {
    Record {
        position: Position { epoch: Epoch(u128::MAX - 5), sequence: 77 },
        received: Duration::from_millis(1_700_000_000_123),
        took: Duration::from_millis(42),
        writer: Bytes::from_static(b"web-1"),
        head: Bytes::from_static(b"a head"),
        coding: Coding::None,
        body,
    }
}

fn pieces() -> Vec<Piece> {
    [&vec![1; PIECE_MAX_BYTES][..], b"a"].map(|bytes| Piece::of(bytes).unwrap()).into()
}

#[test]
fn what_was_written_is_read_again() {
    let inline = RecordBody::Inline(Bytes::from_static(b"a body"));
    let empty = RecordBody::Inline(Bytes::new());
    let pieces = RecordBody::Pieces { id: 9, pieces: pieces() };
    for body in [inline, empty, pieces] {
        let written = record(body);
        assert_eq!(read(&key(), &response(&key(), &written)), Ok(Found::Response(written)));
    }
    let names = "accept-encoding,accept-language";
    assert_eq!(read(&key(), &varies(&key(), names)), Ok(Found::Varies(names.into())));
    // The front tells the same, but for the body.
    let written = response(&key(), &record(RecordBody::Pieces { id: 9, pieces: self::pieces() }));
    let Some(FrontFound::Response(front_of)) = front(&written) else { panic!("no front") };
    assert_eq!((front_of.key.base(), front_of.body_bytes), (key().base(), PIECE_MAX_BYTES as u64 + 1));
    assert_eq!(front_of.record, record(RecordBody::Inline(Bytes::new())));
    let long = response(&key(), &record(RecordBody::Inline(Bytes::from(vec![7; 5000]))));
    let cut = front(&long.slice(..long.len() - 5000));
    assert!(matches!(cut, Some(FrontFound::Response(front)) if front.body_bytes == 5000));
    assert!(front(&long.slice(..long.len() - 5001)).is_none());
    assert!(matches!(front(&varies(&key(), names)), Some(FrontFound::Varies)));
    let piece = Piece::of(b"0123").unwrap();
    let open = |bytes: &'static [u8]| piece.open(Bytes::from_static(bytes), Coding::None);
    assert_eq!((open(b"0123"), open(b"012"), open(b"0124")), (Some("0123".into()), None, None));
    assert_eq!(Piece::of(&vec![0; PIECE_MAX_BYTES + 1]), None);
}

#[test]
fn each_flipped_bit_and_each_cut_is_noticed() {
    let all = [
        response(&key(), &record(RecordBody::Inline(Bytes::from_static(b"a body")))),
        response(&key(), &record(RecordBody::Pieces { id: 9, pieces: pieces() })),
        varies(&key(), "accept-language"),
    ];
    for written in all {
        for bit in 0..written.len() * 8 {
            let mut flipped = written.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_read = read(&key(), &flipped.into());
            assert!(matches!(is_read, Err(Refusal::Damaged | Refusal::Format)), "{bit}: {is_read:?}");
        }
        for length in 0..written.len() {
            assert!(read(&key(), &written.slice(..length)).is_err(), "{length}");
        }
        let longer: Bytes = [&written[..], b"\0"].concat().into();
        assert_eq!(read(&key(), &longer), Err(Refusal::Damaged));
    }
}

/// A record whose body is compressed.
fn coded(body: &[u8]) -> (Record, Bytes) {
    let written = record(RecordBody::Inline(Bytes::copy_from_slice(body)));
    let written = Record { coding: Coding::Lz4, ..written };
    let plain = response(&key(), &written);
    assert_eq!(read(&key(), &plain), Ok(Found::Response(written.clone())), "it may lie there as it is");
    (written, with_packed_body(&plain).unwrap_or(plain))
}

#[test]
fn a_body_in_lz4_is_read_as_it_was_at_every_length() {
    let text: Vec<u8> = (0..INLINE_MAX_BYTES).map(|at| b"<p>A page. "[at % 11]).collect();
    for length in (0..700).chain([65_535, 65_536, 65_537, INLINE_MAX_BYTES - 1, INLINE_MAX_BYTES]) {
        let (written, bytes) = coded(&text[..length]);
        assert_eq!(read(&key(), &bytes), Ok(Found::Response(written)), "{length}");
        assert!(length < 300 || bytes.len() < length, "{length}: {}", bytes.len());
        // The front tells the plain length.
        let front = front(&bytes);
        assert!(matches!(front, Some(FrontFound::Response(front)) if front.body_bytes == length as u64));
        assert!(with_packed_body(&bytes).is_none(), "{length}: not twice");
    }
    let plain = response(&key(), &record(RecordBody::Inline(text.into())));
    assert_eq!(with_packed_body(&plain), None, "only where the record says so");
    let of_pieces = Record { coding: Coding::Lz4, ..record(RecordBody::Pieces { id: 9, pieces: pieces() }) };
    assert_eq!(with_packed_body(&response(&key(), &of_pieces)), None);
}

#[test]
fn each_flipped_bit_of_a_body_in_lz4_is_noticed_also_behind_a_right_checksum() {
    let (written, bytes) = coded(&b"A line of a page. ".repeat(40));
    let RecordBody::Inline(body) = &written.body else { panic!("it is inline") };
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&key(), &flipped.clone().into()).is_err(), "{bit}");
        // Whoever makes the checksum right gets no other body than the one that was written.
        if let Ok(Found::Response(Record { body: RecordBody::Inline(other), .. })) =
            read(&key(), &end(flipped))
        {
            assert_eq!(other, body, "{bit}");
        }
    }
    for length in 0..bytes.len() {
        assert!(read(&key(), &bytes.slice(..length)).is_err(), "{length}");
    }
}

#[test]
fn a_wrong_length_a_bomb_and_an_unknown_coding_are_refused() {
    let text = b"A line of a page. ".repeat(40);
    let (_, bytes) = coded(&text);
    let packed = crate::coding::packed(&text).unwrap();
    let at = bytes.len() - packed.len() - 8;
    let with = |length: u32, sum: u32, body: &[u8]| {
        end([&bytes[..at], &length.to_le_bytes(), &sum.to_le_bytes(), body].concat())
    };
    let length = text.len() as u32;
    assert!(read(&key(), &with(length, crc(&text), &packed)).is_ok());
    for other in [0, 1, length - 1, length + 1, PIECE_MAX_BYTES as u32, PIECE_MAX_BYTES as u32 + 1, u32::MAX]
    {
        assert_eq!(read(&key(), &with(other, crc(&text), &packed)), Err(Refusal::Damaged), "{other}");
    }
    assert_eq!(read(&key(), &with(length, crc(&text) ^ 1, &packed)), Err(Refusal::Damaged));
    // What would become a megabyte, whatever length is said.
    let bomb = lz4_flex::block::compress(&vec![0; 1 << 20]);
    for said in [length, PIECE_MAX_BYTES as u32, 1 << 20] {
        assert_eq!(read(&key(), &with(said, 0, &bomb)), Err(Refusal::Damaged), "{said}");
    }
    let coding = at - 5;
    for byte in 2..=255 {
        let mut other = bytes.to_vec();
        assert_eq!(std::mem::replace(&mut other[coding], byte), 1);
        assert_eq!(read(&key(), &end(other)), Err(Refusal::Format), "{byte}");
    }
    // Nothing is decoded that is not said to be coded.
    let mut other = bytes.to_vec();
    other[coding] = 0;
    assert_eq!(read(&key(), &end(other)), Err(Refusal::Damaged));
}

#[test]
fn the_record_of_another_key_is_not_used() {
    let mut other = CacheKey::new("a.example", "/x?z");
    other.push_part(b"http");
    let written = response(&other, &record(RecordBody::Inline(Bytes::new())));
    assert_eq!(read(&key(), &written), Err(Refusal::OtherKey));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        // With a right checksum as well.
        let framed = end([&begin(RESPONSE, &key())[..], &bytes].concat());
        for bytes in [Bytes::from(bytes), framed] {
            let _ = (read(&key(), &bytes), front(&bytes));
        }
    }
}
