//! What header compression costs, for docs/design/http2.md; ignored otherwise.
//!
//! In: a browser's request, a response's fields. Out: blocks, as often as `ROUNDS` says, for a count of instructions:
//! the difference of two numbers of rounds is the cost. Deliberately absent: any limit that a test could fail on.

use http::{HeaderName, HeaderValue, StatusCode};
use larder_http::field_block::FieldBlock;

use super::decode::{DecodedField, Decoder, HeadLimits};
use super::encode::Encoder;

const REQUEST: [(&str, &str); 13] = [
    ("sec-ch-ua", "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9"),
    ("priority", "u=0, i"),
];

const RESPONSE: [(&str, &str); 12] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "public, max-age=600"),
    ("vary", "accept-encoding"),
    ("server", "nginx"),
    ("content-encoding", "gzip"),
    ("link", "</style.css>; rel=preload; as=style"),
    ("strict-transport-security", "max-age=31536000"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "SAMEORIGIN"),
    ("referrer-policy", "same-origin"),
    ("etag", "\"65f1c0de-1a2b\""),
    ("last-modified", "Mon, 21 Oct 2013 20:13:21 GMT"),
];

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

#[test]
#[ignore = "measures"]
fn decode_of_a_second_request() {
    decode_second(|decoded| drop(std::hint::black_box(decoded)));
}

#[test]
#[ignore = "measures"]
fn decode_of_a_second_request_with_clones() {
    decode_second(|decoded| drop(std::hint::black_box(decoded.into_owned())));
}

fn decode_second(mut sink: impl FnMut(DecodedField<'_>)) {
    let mut first = vec![0x82, 0x87, 0x41, 11];
    first.extend_from_slice(b"example.com");
    first.extend_from_slice(&[0x44, 11]);
    first.extend_from_slice(b"/index.html");
    for (name, value) in REQUEST.into_iter().chain([("cookie", "session=0123456789abcdef")]) {
        first.extend_from_slice(&[0x40, name.len() as u8]);
        first.extend_from_slice(name.as_bytes());
        first.push(value.len() as u8);
        first.extend_from_slice(value.as_bytes());
    }
    let limits = HeadLimits { fields_max: 100, bytes_max: 16 * 1024 };
    let mut decoder = Decoder::new(4096);
    decoder.decode(&first, &limits, |_| {}).unwrap();
    let second: Vec<u8> = [0x82, 0x87].into_iter().chain((62..78).rev().map(|index| 0x80 | index)).collect();
    for _ in 0..rounds() {
        let counted = decoder.decode(std::hint::black_box(&second), &limits, &mut sink);
        assert_eq!(counted.unwrap().fields, 18);
    }
}

#[test]
#[ignore = "measures"]
fn encode_of_a_stored_response() {
    let fields =
        RESPONSE.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let stored = FieldBlock::new(fields.iter().map(|(name, value)| (name, value)));
    let mut encoder = Encoder::default();
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds() {
        out.clear();
        let mut block = encoder.begin(&mut out);
        block.status(StatusCode::OK);
        block.stored(std::hint::black_box(&stored));
        std::hint::black_box(&out);
    }
}
