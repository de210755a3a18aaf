//! Replies as the protocol has them, as servers of several versions sent them, and as nobody may send them.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const VALUE_MAX: usize = 1000;

/// What `bytes` are, in pieces of `step`, and why the rest is nothing.
fn read(bytes: &[u8], step: usize) -> (Vec<Reply>, Option<Malformed>) {
    let (mut decoder, mut inbox) = (Decoder::new(VALUE_MAX), BytesMut::new());
    let mut replies = Vec::new();
    for piece in bytes.chunks(step.max(1)) {
        inbox.extend_from_slice(piece);
        loop {
            match decoder.read(&mut inbox) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(malformed) => return (replies, Some(malformed)),
            }
        }
    }
    (replies, None)
}

fn check(bytes: &[u8], expected: &[Reply]) {
    for step in 1..=bytes.len() {
        assert_eq!(read(bytes, step), (expected.to_vec(), None), "{} by {step}", bytes.escape_ascii());
    }
}

fn refuse(bytes: &[u8], expected: Malformed) {
    for step in 1..=bytes.len() {
        assert_eq!(read(bytes, step), (vec![], Some(expected)), "{} by {step}", bytes.escape_ascii());
    }
}

fn value(key: &'static str, flags: u32, ttl: Ttl, body: &'static [u8]) -> Value {
    let (key, body) = (Bytes::from_static(key.as_bytes()), Bytes::from_static(body));
    Value { key, flags, ttl, is_stale: false, is_awaited: false, body }
}

#[test]
fn values_of_meta_commands() {
    let left = |secs| Ttl::Left(Duration::from_secs(secs));
    check(b"VA 3 ka f5 t9\r\nabc\r\n", &[Reply::Value(value("a", 5, left(9), b"abc"))]);
    check(b"VA 2 ka f3 t-1\r\nhi\r\n", &[Reply::Value(value("a", 3, Ttl::Unlimited, b"hi"))]);
    check(b"VA 0 ka f0 t1\r\n\r\n", &[Reply::Value(value("a", 0, left(1), b""))]);
    // A value may look like anything, and other flags are somebody else's.
    check(b"VA 7 t1 s7 kk h1 f0 \r\nEN\r\nEN\n\r\n", &[Reply::Value(value("k", 0, left(1), b"EN\r\nEN\n"))]);
    let stale = Value { is_stale: true, is_awaited: true, ..value("c", 0, left(29), b"c") };
    check(b"VA 1 kc f0 t29 Z X\r\nc\r\n", &[Reply::Value(stale)]);
}

#[test]
fn values_of_classic_commands() {
    check(b"VALUE a 5 3\r\nabc\r\nEND\r\n", &[Reply::Value(value("a", 5, Ttl::Unknown, b"abc"))]);
    check(b"VALUE a 0 0\r\n\r\nEND\r\n", &[Reply::Value(value("a", 0, Ttl::Unknown, b""))]);
}

#[test]
fn replies_without_a_value() {
    let key = |key: &'static [u8]| Some(Bytes::from_static(key));
    check(b"EN\r\n", &[Reply::Absent(None)]);
    check(b"EN kb O1\r\n", &[Reply::Absent(key(b"b"))]);
    check(b"END\r\n", &[Reply::Absent(None)]);
    check(
        b"STORED\r\nNOT_STORED\r\nDELETED\r\nNOT_FOUND\r\nMN\r\nERROR\r\n",
        &[Reply::Stored, Reply::NotStored, Reply::Deleted, Reply::NotFound, Reply::NoOp, Reply::Unknown],
    );
    let refusal = "SERVER_ERROR object too large for cache";
    check(b"SERVER_ERROR object too large for cache\r\n", &[Reply::ServerError(refusal.into())]);
    check(b"CLIENT_ERROR invalid flag\r\n", &[Reply::ClientError("CLIENT_ERROR invalid flag".into())]);
}

#[test]
fn what_is_no_reply_is_refused_wherever_it_is_cut() {
    for line in [
        "",
        " ",
        "\0",
        "HTTP/1.1 400 Bad Request",
        "HD ka",
        "OK  ka",
        "NF",
        "EX",
        "NS",
        "TOUCHED",
        "OK",
        "RESET",
        "5",
        "VERSION 1.6",
        "STAT pid 1",
        "END x",
        "STORED 1",
        "MN k",
        "va 1 ka",
        "VAL a 0 1",
        "VA",
        "VA x ka",
        "VA -1 ka",
        "VA +1 ka",
        "VA 0x1 ka",
        "VA 1,0 ka",
        "VA 1 f0 t1",
        "VA 1 ka f-1",
        "VA 1 ka f4294967296",
        "VA 1 ka t-2",
        "VA 1 ka t",
        "VALUE",
        "VALUE a",
        "VALUE a 0",
        "VALUE a x 1",
        "VALUE a 0 -1",
        "VALUE a 0 1 7",
        "VALUE a -1 1",
    ] {
        refuse(format!("{line}\r\n").as_bytes(), Malformed::Line);
    }
    // A line ends with both.
    refuse(b"END\n", Malformed::Line);
    refuse(b"END\r\r\n", Malformed::Line);
}

#[test]
fn values_end_where_their_length_says() {
    refuse(b"VA 2 ka f0 t1\r\nabc\r\n", Malformed::Ending);
    refuse(b"VA 1 ka f0 t1\r\na\n", Malformed::Ending);
    refuse(b"VALUE a 0 1\r\na\r\nEN\r\n", Malformed::Ending);
    // One key was asked for.
    refuse(b"VALUE a 0 1\r\na\r\nVALUE b 0 1\r\nb\r\nEND\r\n", Malformed::Ending);
}

#[test]
fn what_is_announced_is_bounded_before_it_comes() {
    check(format!("VA {VALUE_MAX} ka").as_bytes(), &[]);
    refuse(b"VA 1001 ka\r\n", Malformed::TooLarge);
    refuse(b"VA 18446744073709551615 ka\r\n", Malformed::TooLarge);
    refuse(b"VA 18446744073709551616 ka\r\n", Malformed::Line);
    refuse(b"VALUE a 0 1001\r\n", Malformed::TooLarge);
    let mut long = vec![b'E'; LINE_MAX + 1];
    assert_eq!(read(&long, 7).1, Some(Malformed::LongLine));
    long.extend(b"\r\n");
    assert_eq!(read(&long, long.len()).1, Some(Malformed::LongLine));
}

#[test]
fn a_long_value_takes_what_it_needs_and_no_more() {
    let length = 5 * RESERVED + 17;
    let (mut decoder, mut inbox) = (Decoder::new(usize::MAX), BytesMut::new());
    inbox.extend_from_slice(format!("VA {length} ka f0 t1\r\n").as_bytes());
    for piece in vec![b'x'; length].chunks(1000) {
        inbox.extend_from_slice(piece);
        assert_eq!(decoder.read(&mut inbox), Ok(None));
        let State::Body { body, .. } = &decoder.state else { break };
        assert!(body.capacity() <= (2 * body.len()).max(RESERVED).min(length), "{}", body.capacity());
    }
    let State::Ending { value, .. } = &decoder.state else { panic!("{decoder:?}") };
    assert_eq!(value.body.len(), length);
}

/// A reply and its bytes.
fn reply() -> impl Strategy<Value = (Vec<u8>, Reply)> {
    let key = "[!-~]{1,40}";
    let body = || proptest::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        (key, any::<u32>(), proptest::option::of(any::<u32>()), body()).prop_map(
            |(key, flags, ttl, body)| {
                let written = ttl.map_or("-1".to_owned(), |ttl| ttl.to_string());
                let ttl = ttl.map_or(Ttl::Unlimited, |ttl| Ttl::Left(Duration::from_secs(ttl.into())));
                let mut bytes = format!("VA {} k{key} f{flags} t{written}\r\n", body.len()).into_bytes();
                bytes.extend_from_slice(&body);
                bytes.extend_from_slice(b"\r\n");
                let value = Value { flags, ttl, ..bare(key.into()) };
                (bytes, Reply::Value(Value { body: body.into(), ..value }))
            }
        ),
        (key, any::<u32>(), body()).prop_map(|(key, flags, body)| {
            let mut bytes = format!("VALUE {key} {flags} {}\r\n", body.len()).into_bytes();
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(b"\r\nEND\r\n");
            (bytes, Reply::Value(Value { flags, body: body.into(), ..bare(key.into()) }))
        }),
        key.prop_map(|key| (format!("EN k{key}\r\n").into_bytes(), Reply::Absent(Some(key.into())))),
        Just((b"END\r\n".to_vec(), Reply::Absent(None))),
        Just((b"STORED\r\n".to_vec(), Reply::Stored)),
        Just((b"DELETED\r\n".to_vec(), Reply::Deleted)),
        "[ -~]{0,40}".prop_map(|text| {
            let text = format!("SERVER_ERROR {text}");
            (format!("{text}\r\n").into_bytes(), Reply::ServerError(text))
        }),
    ]
}

proptest! {
    #[test]
    fn any_cutting_of_replies_gives_the_same_replies(
        replies in proptest::collection::vec(reply(), 1..8),
        cuts in proptest::collection::vec(1..40_usize, 1..60),
    ) {
        let bytes: Vec<u8> = replies.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Reply> = replies.into_iter().map(|(_, reply)| reply).collect();
        let (mut decoder, mut inbox, mut read) = (Decoder::new(VALUE_MAX), BytesMut::new(), Vec::new());
        let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            inbox.extend_from_slice(piece);
            rest = later;
            while let Some(reply) = decoder.read(&mut inbox).unwrap() {
                read.push(reply);
            }
        }
        prop_assert_eq!(read, expected);
        prop_assert!(inbox.is_empty());
    }

    #[test]
    fn rubbish_is_the_same_rubbish_however_it_is_cut(bytes: Vec<u8>, step in 1..20_usize) {
        prop_assert_eq!(read(&bytes, step), read(&bytes, bytes.len()));
    }
}
