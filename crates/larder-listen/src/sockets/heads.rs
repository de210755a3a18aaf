//! The head parser against itself, cut anywhere, and against httparse.
use crate::testing::{ParsedHead, Scan, parse};
use crate::{Limits, Refusal};
use bytes::Bytes;
use larder_http::message::Scheme;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits {
        head_bytes_max: 200,
        fields_max: 6,
        field_bytes_max: 60,
        target_bytes_max: 30,
        ..Limits::default()
    }
}

/// Feeds `bytes` up to each of `cuts`, as a connection would.
fn read(bytes: &[u8], cuts: &[usize]) -> Option<Result<(ParsedHead, usize), Refusal>> {
    let mut scan = Scan::default();
    for cut in cuts {
        match scan.advance(&bytes[..*cut], &limits()) {
            Ok(None) => {}
            Err(refusal) => return Some(Err(refusal)),
            Ok(Some(extent)) => {
                let head = Bytes::copy_from_slice(&bytes[..extent.end]);
                let local = "127.0.0.1:1".parse().unwrap();
                let parsed = parse(&head, &extent, &scan, Scheme::Http, local, &limits(), &mut None);
                return Some(parsed.map(|parsed| (parsed, extent.end)));
            }
        }
    }
    None
}

/// Heads that are mostly right.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        9 => Just("GET /a?b HTTP/1.1"),
        2 => Just("POST http://b:81/x HTTP/1.1"),
        1 => Just("GET / HTTP/1.0"),
        1 => Just("GET /\t HTTP/1.1"),
        1 => Just("GET  / HTTP/1.1"),
        1 => Just("OPTIONS * HTTP/1.1"),
        1 => Just("GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1"),
    ];
    let field = prop_oneof![
        6 => Just("Host: a.test".to_owned()),
        3 => "[A-Za-z!#-]{1,6}: {0,2}[a-z \t,\u{e9}]{0,8}",
        1 => "[ :A-Za-z\u{1}]{0,8}",
        1 => Just("Content-Length: 5".to_owned()),
        1 => Just("Transfer-Encoding: chunked".to_owned()),
        1 => Just("Connection: close, x".to_owned()),
        1 => "x: [a-z]{60,80}",
    ];
    let end = prop_oneof![12 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")];
    (0..3_usize, line, proptest::collection::vec((field, end), 0..7)).prop_map(|(empty, line, fields)| {
        let mut head = "\r\n".repeat(empty.saturating_sub(1)) + line + "\r\n";
        for (field, end) in fields {
            head += &field;
            head += end;
        }
        (head + "\r\nrest\r\n\r\n").into_bytes()
    })
}

fn check_cuts(bytes: &[u8], mut cuts: Vec<usize>) {
    cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let whole = read(bytes, &[bytes.len()]);
    let pieces = read(bytes, &cuts);
    match (whole, pieces) {
        (Some(Ok((a, a_end))), Some(Ok((b, b_end)))) => {
            assert_eq!((format!("{a:?}"), a_end), (format!("{b:?}"), b_end));
            check_httparse(&bytes[..a_end], &a);
        }
        (a, b) => {
            assert_eq!(a.map(|r| r.is_ok()), b.map(|r| r.is_ok()), "{:?}", bytes.escape_ascii().to_string())
        }
    }
}

/// What we take, httparse takes, with the same tokens.
fn check_httparse(bytes: &[u8], ours: &ParsedHead) {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut theirs = httparse::Request::new(&mut fields);
    assert_eq!(theirs.parse(bytes), Ok(httparse::Status::Complete(bytes.len())));
    assert_eq!(theirs.method, Some(ours.head.method.as_str()));
    let target = theirs.path.unwrap();
    assert!(target == ours.head.target.as_str() || target.starts_with("http://"));
    for (name, value) in &ours.head.fields {
        let found = theirs.headers.iter().any(|field| {
            field.name.eq_ignore_ascii_case(name.as_str()) && field.value.trim_ascii() == value.as_bytes()
        });
        assert!(found, "{name:?}: {value:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn where_a_head_is_cut_does_not_matter(
        bytes in likely(),
        cuts in proptest::collection::vec(0..300_usize, 0..12),
    ) {
        check_cuts(&bytes, cuts);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), Just(b':'), any::<u8>()], 0..80),
        cuts in proptest::collection::vec(0..80_usize, 0..5),
    ) {
        check_cuts(&bytes, cuts);
    }
}

#[test]
fn a_head_cut_at_every_byte_is_the_same_head() {
    let bytes = b"\r\nPOST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX:\t y \r\n\r\nhello";
    check_cuts(bytes, (0..=bytes.len()).collect());
    let (parsed, end) = read(bytes, &[bytes.len()]).unwrap().unwrap();
    assert_eq!(end, bytes.len() - 5);
    assert_eq!(parsed.head.fields["x"], "y");
}
