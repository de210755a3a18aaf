//! Field blocks: too large, repeated without end, and not HPACK (RFC 7541).

use crate::hostile::http2::frames::{
    COMPRESSION_ERROR, CONTINUATION, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS, PROTOCOL_ERROR,
    STREAM, WHOLE, frame, get, headers, indexed_field, request,
};
use crate::hostile::http2::judge::Case;

/// The dynamic table's first entry, in one byte.
const NEWEST: u8 = 0xbe;

pub fn cases() -> Vec<Case> {
    let mut cases = sizes();
    cases.extend(broken());
    cases
}

/// A request, one field that goes to the dynamic table, and that field again `repeats` times, a byte each.
fn bomb(name: &str, value: &str, repeats: usize) -> Vec<u8> {
    let mut block = request("GET", "/", &[]);
    block.extend(indexed_field(name, value));
    block.extend(std::iter::repeat_n(NEWEST, repeats));
    headers(WHOLE, &block)
}

fn sizes() -> Vec<Case> {
    let big = "a".repeat(4000);
    let list = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
        let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), big.as_str())).collect();
        get("/", &fields)
    };
    let flood = |payload: &[u8]| {
        let mut out = frame(HEADERS, END_STREAM, STREAM, &request("GET", "/", &[]));
        for _ in 0..10_000 {
            out.extend(frame(CONTINUATION, 0, STREAM, payload));
        }
        out
    };
    vec![
        Case::status("a crumb 98 times from the table is too many", 431, bomb("cookie", "a", 100)),
        Case::goaway("a crumb 1000 times from the table", ENHANCE_YOUR_CALM, bomb("cookie", "", 1000)),
        Case::goaway("a crumb 16000 times from the table", ENHANCE_YOUR_CALM, bomb("cookie", "", 16_000)),
        Case::goaway("a field of 4000 bytes 10000 times", ENHANCE_YOUR_CALM, bomb("x", &big, 10_000)),
        Case::status("a list of 40 KB", 431, list(10)),
        Case::goaway("a list of 1 MB", ENHANCE_YOUR_CALM, list(250)),
        Case::goaway("CONTINUATION without end, all empty", ENHANCE_YOUR_CALM, flood(b"")),
        Case::goaway("CONTINUATION without end, a field each", ENHANCE_YOUR_CALM, flood(b"\0\x01x\x01y")),
        Case::goaway("CONTINUATION of a string without end", ENHANCE_YOUR_CALM, {
            let mut out = frame(HEADERS, END_STREAM, STREAM, b"\0\x7f\xff\xff\xff\x01");
            for _ in 0..64 {
                out.extend(frame(CONTINUATION, 0, STREAM, &[b'a'; 16 * 1024]));
            }
            out
        }),
    ]
}

fn broken() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, tail) in [
        ("index 0", &b"\x80"[..]),
        ("an index beyond the table", b"\xff\x80\x80\x01"),
        ("an index without end", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        ("a string that ends early", b"\0\x05ab"),
        ("a string of an absurd length", b"\0\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("a name that is not in the table", b"\x7f\x80\x10\x01a"),
        ("Huffman padding of zeroes", b"\0\x81\x00\x01a"),
        ("the end mark in a Huffman string", b"\0\x84\xff\xff\xff\xff\x01a"),
        ("a table larger than agreed", b"\x3f\xff\xff\x03"),
        ("a change of the table behind fields", b"\x20"),
    ] {
        let mut block = request("GET", "/", &[]);
        block.extend_from_slice(tail);
        cases.push(Case::goaway(
            format!("HPACK: {name}"),
            COMPRESSION_ERROR,
            frame(HEADERS, WHOLE, STREAM, &block),
        ));
    }
    cases.push(Case::reset("HPACK: an empty block", PROTOCOL_ERROR, frame(HEADERS, WHOLE, STREAM, b"")));
    let mut table = vec![0x20];
    table.extend(request("GET", "/", &[]));
    cases.push(Case::sent(
        "HPACK: a change of the table in front",
        "GET / HTTP/1.1",
        frame(HEADERS, END_HEADERS | END_STREAM, STREAM, &table),
    ));
    cases
}
