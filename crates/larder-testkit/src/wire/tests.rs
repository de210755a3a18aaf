//! What is refused on the wire: field lines, line ends, framing.

use super::*;

fn check(block: &str, accepted: bool) {
    assert_eq!(Fields::parse(block.as_bytes()).is_ok(), accepted, "{block:?}");
}

#[test]
fn only_plain_field_lines_are_accepted() {
    check("", true);
    check("A: b\r\nA:c\r\n", true);
    check("A:\r\n", true);
    check("A: b\r\n folded\r\n", false);
    check("A : b\r\n", false);
    check(": b\r\n", false);
    check("A b\r\n", false);
    check("A: b\u{1}\r\n", false);
    check("A: b", false);
}

#[test]
fn bare_line_ends_are_refused() {
    assert!(split_head(b"GET / HTTP/1.1\r\nA: b\r\n\r\n").is_ok());
    assert!(split_head(b"GET / HTTP/1.1\nA: b\r\n\r\n").is_err());
    assert!(split_head(b"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n").is_err());
}

#[test]
fn contradicting_framing_is_refused() {
    let framing = |block: &str| Framing::stated(&Fields::parse(block.as_bytes())?, Framing::UntilClose);
    assert!(matches!(framing("Content-Length: 5\r\n"), Ok(Framing::Length(5))));
    assert!(matches!(framing("Transfer-Encoding: chunked\r\n"), Ok(Framing::Chunked(None))));
    assert!(matches!(framing(""), Ok(Framing::UntilClose)));
    for bad in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    ] {
        assert!(framing(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn every_byte_survives_the_way_through_text() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(to_bytes(&latin1(&all)), all);
}
