//! What holds for the decoder and the encoder together, and what a hostile block meets.
//!
//! In: random fields, sizes of tables, and false blocks. Out: nothing, or what does not hold.
//! Deliberately absent: the examples of the RFC, which have a file of their own.

use http::{HeaderName, HeaderValue, StatusCode};
use larder_http::field_block::{CodingError, FieldBlock, Name, Pseudo};
use proptest::prelude::*;

use super::decode::{Counted, DecodeError, DecodedField, Decoder, HeadLimits, Malformed};
use super::encode::Encoder;

const LIMITS: HeadLimits = HeadLimits { fields_max: 100, bytes_max: 16 * 1024 };

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<(Vec<DecodedField<'static>>, Counted), DecodeError> {
    let mut seen = Vec::new();
    let counted = decoder.decode(block, &LIMITS, |decoded| seen.push(decoded.into_owned()))?;
    Ok((seen, counted))
}

fn field(name: &'static str, value: &'static str) -> DecodedField<'static> {
    DecodedField::Field(Name::Regular(HeaderName::from_static(name)), HeaderValue::from_static(value))
}

fn encode(encoder: &mut Encoder, fields: &[(&'static str, &'static str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = encoder.begin(&mut out);
    for (name, value) in fields {
        block.field(&HeaderName::from_static(name), &HeaderValue::from_static(value));
    }
    out
}

#[test]
fn false_codings_end_the_connection() {
    let cases: [(&[u8], DecodeError); 11] = [
        (&[0x80], DecodeError::Index),
        (&[0xbe], DecodeError::Index),
        (&[0x7f, 0x00, 0x00], DecodeError::Index),
        (&[0x0f, 0x30, 0x00], DecodeError::Index),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], DecodeError::Coding(CodingError::Integer)),
        (&[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff], DecodeError::Coding(CodingError::Huffman)),
        (&[0x00, 0x01, b'a', 0x82, 0x1f, 0xff], DecodeError::Coding(CodingError::Huffman)),
        (&[0x00, 0x01, b'a', 0x81, 0x18], DecodeError::Coding(CodingError::Huffman)),
        (&[0x82, 0x20], DecodeError::SizeUpdate),
        (&[0x3f, 0xe2, 0x1f], DecodeError::SizeUpdate),
        (&[0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x07], DecodeError::Coding(CodingError::Truncated)),
    ];
    for (block, error) in cases {
        assert_eq!(decode(&mut Decoder::new(4096), block), Err(error), "{block:x?}");
    }
}

#[test]
fn a_size_update_up_to_the_limit_begins_a_block() {
    let mut decoder = Decoder::new(4096);
    assert!(decode(&mut decoder, &[0x40, 1, b'a', 1, b'b']).is_ok());
    assert_eq!(decoder.table(), (34, 1));
    assert!(decode(&mut decoder, &[0x20, 0x3f, 0xe1, 0x1f, 0x82]).is_ok());
    assert_eq!(decoder.table(), (0, 0));
}

#[test]
fn a_block_that_is_cut_off_is_never_whole() {
    let block = [0x82, 0x40, 1, b'a', 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b, 0x0f, 0x09, 2, b'b', b'c'];
    let ends = [0, 1, 10];
    for end in 0..block.len() {
        let result = decode(&mut Decoder::new(4096), &block[..end]);
        if ends.contains(&end) {
            assert!(result.is_ok());
        } else {
            assert_eq!(result, Err(DecodeError::Coding(CodingError::Truncated)), "{end}");
        }
    }
    assert_eq!(decode(&mut Decoder::new(4096), &block).unwrap().0.len(), 3);
}

#[test]
fn malformed_fields_are_told_and_keep_their_place() {
    let mut decoder = Decoder::new(4096);
    let block =
        [&[0x40, 1, b'A', 1, b'b'][..], &[0x40, 1, b'a', 1, b'\n'], &[0x40, 1, b'c', 1, b'd']].concat();
    let (seen, _) = decode(&mut decoder, &block).unwrap();
    let bad = |why| DecodedField::Malformed(why);
    assert_eq!(seen, [bad(Malformed::Name), bad(Malformed::Value), field("c", "d")]);
    // By index; and the name of an entry whose value was false.
    let (seen, _) = decode(&mut decoder, &[0xbe, 0xbf, 0xc0, 0x7f, 0x00, 1, b'x']).unwrap();
    assert_eq!(seen, [field("c", "d"), bad(Malformed::Value), bad(Malformed::Name), field("a", "x")]);
    for value in [" a", "a ", "\ta", "a\0b", "a\rb"] {
        let block = [&[0x00, 1, b'a', value.len() as u8][..], value.as_bytes()].concat();
        assert_eq!(decode(&mut decoder, &block).unwrap().0, [bad(Malformed::Value)], "{value:?}");
    }
    assert_eq!(decode(&mut decoder, &[0x00, 2, b':', b'x', 0]).unwrap().0, [bad(Malformed::Name)]);
}

#[test]
fn fields_are_counted_before_they_are_kept() {
    let mut decoder = Decoder::new(4096);
    let mut seen = 0;
    assert_eq!(decoder.decode(&[0x82; 100_000], &LIMITS, |_| seen += 1), Err(DecodeError::Excess));
    assert_eq!(seen, 100);
    let mut decoder = Decoder::new(4096);
    let (seen, counted) = decode(&mut decoder, &[0x82; 399]).unwrap();
    assert_eq!((seen.len(), counted.fields, counted.is_over), (100, 399, true));
}

#[test]
fn a_full_table_that_is_named_again_and_again_is_bounded_by_what_it_decodes_to() {
    let mut decoder = Decoder::new(4096);
    let value = vec![b'v'; 3000];
    let insert = [&[0x40, 1, b'a', 0x7f, 0xb9, 0x16][..], &value].concat();
    assert_eq!(decode(&mut decoder, &insert).unwrap().1.bytes, 3033);
    let mut bytes = 0;
    let counted = decoder.decode(&[0xbe; 21], &LIMITS, |decoded| match decoded.into_owned() {
        DecodedField::Field(_, value) => bytes += value.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!((counted.unwrap().is_over, bytes), (true, 5 * 3000));
    assert_eq!(decode(&mut decoder, &[0xbe; 22]), Err(DecodeError::Excess));
}

#[test]
fn the_table_goes_on_beyond_a_limit() {
    let mut decoder = Decoder::new(4096);
    let block = [&[0x82; 150][..], &[0x40, 1, b'a', 1, b'b']].concat();
    assert!(decode(&mut decoder, &block).unwrap().1.is_over);
    assert_eq!(decode(&mut decoder, &[0xbe]).unwrap().0, [field("a", "b")]);
}

#[test]
fn a_string_that_grows_beyond_everything_is_stopped() {
    let code = vec![0_u8; 60_000];
    let mut block = vec![0x00, 1, b'a'];
    larder_http::field_block::integer::write(code.len() as u32, 7, 0x80, &mut block);
    block.extend_from_slice(&code);
    assert_eq!(decode(&mut Decoder::new(4096), &block), Err(DecodeError::Excess));
}

#[test]
fn the_second_use_inserts_and_the_third_costs_an_index() {
    let mut encoder = Encoder::default();
    let fields = [("server", "larder"), ("x-a", "one")];
    assert_eq!(encode(&mut encoder, &fields)[0], 0x0f);
    assert_eq!(encoder.table().1, 0);
    assert_eq!(encode(&mut encoder, &fields)[0], 0x40 | 54);
    assert_eq!(encoder.table().1, 2);
    assert_eq!(encode(&mut encoder, &fields), [0xbf, 0xbe]);
}

#[test]
fn secrets_and_passing_fields_never_enter_the_table() {
    let mut encoder = Encoder::default();
    let secrets = [("authorization", "a"), ("cookie", "b"), ("set-cookie", "c")];
    let passing = [
        ("age", "1"),
        ("date", "x"),
        ("cache-status", "larder; hit"),
        ("content-length", "5"),
        ("etag", "\"a\""),
        ("last-modified", "x"),
    ];
    for _ in 0..4 {
        for secret in secrets {
            assert_eq!(encode(&mut encoder, &[secret])[0] & 0xf0, 0x10, "{secret:?}");
        }
        for field in passing {
            assert_eq!(encode(&mut encoder, &[field])[0] & 0xf0, 0x00, "{field:?}");
        }
    }
    let large: &'static str = Box::leak("v".repeat(1100).into_boxed_str());
    for _ in 0..4 {
        encode(&mut encoder, &[("x-large", large)]);
    }
    assert_eq!(encoder.table(), (0, 0));
}

#[test]
fn a_field_that_was_pushed_out_is_inserted_again() {
    let mut encoder = Encoder::default();
    encoder.set_table_size(160);
    let names = ["x-a", "x-b", "x-c", "x-d", "x-e"];
    for name in names.into_iter().chain(names) {
        encode(&mut encoder, &[(name, "1")]);
    }
    assert_eq!(encoder.table(), (144, 4));
    assert_eq!(encode(&mut encoder, &[("x-a", "1")])[0], 0x40);
    assert_eq!(encode(&mut encoder, &[("x-a", "1")]), [0xbe]);
    assert_eq!(encode(&mut encoder, &[("x-c", "1")]), [0xc1]);
    assert_eq!(encode(&mut encoder, &[("x-b", "1")])[0], 0x40);
}

#[test]
fn the_smallest_size_is_announced_first() {
    let mut encoder = Encoder::default();
    encoder.set_table_size(100);
    encoder.set_table_size(0);
    encoder.set_table_size(1 << 20);
    assert_eq!(encode(&mut encoder, &[]), [0x20, 0x3f, 0xe1, 0x1f]);
    assert!(encode(&mut encoder, &[]).is_empty());
    encoder.set_table_size(30);
    assert_eq!(encode(&mut encoder, &[]), [0x3e]);
}

/// One step on a connection.
#[derive(Clone, Debug)]
enum Step {
    Size(u32),
    Block { status: u16, stored: Vec<(usize, String)>, own: Vec<(usize, String)> },
}

const NAMES: [&str; 8] =
    ["server", "age", "set-cookie", "x-a", "vary", "content-type", "x-long-name", "etag"];

fn fields() -> impl Strategy<Value = Vec<(usize, String)>> {
    let value = prop_oneof![8 => "[a-c]{0,2}", 1 => "[!-~]([ -~]{0,300}[!-~])?", 1 => "z{1000,1100}"];
    proptest::collection::vec((0..NAMES.len(), value), 0..10)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let block = (100_u16..600, fields(), fields()).prop_map(|(status, stored, own)| Step::Block {
        status,
        stored,
        own,
    });
    let size = prop_oneof![0_u32..300, 0_u32..5000].prop_map(Step::Size);
    proptest::collection::vec(prop_oneof![5 => block, 1 => size], 0..30)
}

fn typed(fields: &[(usize, String)]) -> Vec<(HeaderName, HeaderValue)> {
    let typed = |(name, value): &(usize, String)| {
        (HeaderName::from_static(NAMES[*name]), HeaderValue::from_str(value).unwrap())
    };
    fields.iter().map(typed).collect()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(steps in steps()) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
        let limits = HeadLimits { fields_max: 100, bytes_max: 1 << 20 };
        for step in steps {
            let (status, stored, own) = match step {
                Step::Size(bytes) => {
                    encoder.set_table_size(bytes);
                    continue;
                }
                Step::Block { status, stored, own } => (StatusCode::from_u16(status).unwrap(), typed(&stored), typed(&own)),
            };
            let mut out = Vec::new();
            let mut block = encoder.begin(&mut out);
            block.status(status);
            block.stored(&FieldBlock::new(stored.iter().map(|(name, value)| (name, value))));
            for (name, value) in &own {
                block.field(name, value);
            }
            let mut seen = Vec::new();
            decoder.decode(&out, &limits, |decoded| seen.push(decoded.into_owned())).unwrap();
            let mut expected =
                vec![DecodedField::Field(Name::Pseudo(Pseudo::Status), HeaderValue::from_str(status.as_str()).unwrap())];
            expected.extend(stored.into_iter().chain(own).map(|(name, value)| DecodedField::Field(Name::Regular(name), value)));
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(encoder.table(), decoder.table());
        }
    }

    #[test]
    fn no_block_panics_or_is_kept_beyond_the_limits(blocks: Vec<Vec<u8>>) {
        let mut decoder = Decoder::new(4096);
        for block in blocks {
            match decode(&mut decoder, &block) {
                Ok((seen, _)) => prop_assert!(seen.len() <= LIMITS.fields_max),
                Err(_) => break,
            }
            prop_assert!(decoder.table().0 <= 4096);
        }
    }
}
