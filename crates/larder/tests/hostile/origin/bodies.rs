//! Content: lengths, transfer-codings, chunks, early ends, and bytes that belong to nobody.

use std::time::Duration;

use crate::hostile::origin::judge::{Case, apart, send};
use crate::hostile::origin::raw::Step;

const HEAD: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
/// What must never reach anybody.
const EVIL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil";

/// A storable answer with these lines, each ended by CRLF, and what follows its head.
fn with(lines: &str, content: &str) -> Vec<Step> {
    send(format!("{HEAD}{lines}\r\n{content}"))
}

fn chunked(content: &str) -> Vec<Step> {
    with("Transfer-Encoding: chunked\r\n", content)
}

fn and(mut steps: Vec<Step>, more: &[Step]) -> Vec<Step> {
    steps.extend_from_slice(more);
    steps
}

pub fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(codings());
    cases.extend(chunks());
    cases.extend(early_ends());
    cases.extend(extra_bytes());
    cases.extend(waits());
    cases
}

fn lengths() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "5\r\nContent-Length: 6",
        "6\r\nContent-Length: 5",
        "5, 6",
        "5,",
        ",5",
        "",
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5;",
        "5.0",
        "five",
        "99999999999999999999",
        "18446744073709551621",
    ]
    .into_iter()
    .map(|length| {
        Case::failed(
            format!("length {length:?}"),
            "bad-response",
            with(&format!("Content-Length: {length}\r\n"), "hello"),
        )
    })
    .collect();
    for (name, lines) in [
        ("a length twice", "Content-Length: 5\r\nContent-Length: 5\r\n"),
        ("a list of one length", "Content-Length: 5, 5\r\n"),
        ("a length with zeroes in front", "Content-Length: 0005\r\n"),
    ] {
        cases.push(Case::whole(name, "hello", with(lines, "hello")).shows(&["content-length: 5"]));
    }
    cases.push(Case::cut(
        "a length of exabytes",
        "hello",
        with("Content-Length: 4611686018427387904\r\n", "hello"),
    ));
    // hyper's own limit, and its own word for it.
    cases.push(Case::failed(
        "a length of all ones",
        "head-too-large",
        with("Content-Length: 18446744073709551615\r\n", "hello"),
    ));
    cases.push(Case::whole("a length of 0", "", with("Content-Length: 0\r\n", "")));
    cases
}

fn codings() -> Vec<Case> {
    let hello = "5\r\nhello\r\n0\r\n\r\n";
    let mut cases: Vec<Case> = [
        "gzip, chunked",
        "chunked, gzip",
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "identity, chunked",
        "chunked, identity",
        "chunked\0",
        "chunked\u{b}",
        "chun\u{e9}ked",
        "gzip\r\nContent-Length: 20",
    ]
    .into_iter()
    .map(|coding| {
        Case::failed(
            format!("transfer-encoding {coding:?}"),
            "bad-response",
            with(&format!("Transfer-Encoding: {coding}\r\n"), hello),
        )
    })
    .collect();
    cases.extend([
        Case::failed(
            "transfer-encoding on HTTP/1.0",
            "bad-response",
            send(format!("{}Transfer-Encoding: chunked\r\n\r\n{hello}", HEAD.replace("1.1", "1.0"))),
        ),
        Case::failed(
            "transfer-encoding with a length on HTTP/1.0",
            "bad-response",
            send(format!(
                "{}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello",
                HEAD.replace("1.1", "1.0")
            )),
        ),
        Case::whole("chunks", "hello", chunked(hello)).hides(&["transfer-encoding-x"]),
        Case::whole("Chunked", "hello", with("Transfer-Encoding: Chunked\r\n", hello)),
        Case::whole("chunked with spaces", "hello", with("Transfer-Encoding: \t chunked \t\r\n", hello)),
        Case::whole(
            "chunks and a length: the chunks count, and the connection is not used again",
            "hello",
            and(
                with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", hello),
                &[Step::Send(EVIL.into()), Step::Keep],
            ),
        ),
        Case::whole(
            "an unknown coding is read to the end of the connection",
            hello,
            with("Transfer-Encoding: foo\r\n", hello),
        ),
        Case::whole(
            "a coding with a parameter is unknown",
            hello,
            with("Transfer-Encoding: chunked;q=1\r\n", hello),
        ),
        Case::cut(
            "an unknown coding and a reset",
            hello,
            and(with("Transfer-Encoding: foo\r\n", hello), &[apart(), Step::Reset]),
        ),
    ]);
    cases
}

fn chunks() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("no digit", "g\r\nhello\r\n0\r\n\r\n"),
        ("a minus", "-5\r\nhello\r\n0\r\n\r\n"),
        ("a plus", "+5\r\nhello\r\n0\r\n\r\n"),
        ("0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("an underscore", "0_5\r\nhello\r\n0\r\n\r\n"),
        ("two sizes", "5 5\r\nhello\r\n0\r\n\r\n"),
        ("an empty size", "\r\nhello\r\n0\r\n\r\n"),
        ("a space in front", " 5\r\nhello\r\n0\r\n\r\n"),
        ("NUL behind the size", "5\0\r\nhello\r\n0\r\n\r\n"),
        ("a size of 17 digits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("a line feed behind the size", "5\nhello\r\n0\r\n\r\n"),
        ("a CR behind the size", "5\rhello\r\n0\r\n\r\n"),
        ("a line feed inside an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        ("more data than the size", "5\r\nhelloXX\r\n0\r\n\r\n"),
        ("two bytes in place of a line end", "5\r\nhelloXX0\r\n\r\n"),
        ("a line feed behind the data", "5\r\nhello\n0\r\n\r\n"),
        ("no line end behind the data", "5\r\nhello0\r\n\r\n"),
        ("a last chunk of no digit", "5\r\nhello\r\nz\r\n\r\n"),
        ("an extension of 1 MB", &format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(1 << 20))),
        ("trailers of 1 MB", &format!("5\r\nhello\r\n0\r\n{}\r\n", "X: a\r\n".repeat(1 << 18))),
    ]
    .into_iter()
    .map(|(name, content)| Case::cut(format!("chunks: {name}"), "hello", chunked(content)))
    .collect();
    cases.extend([
        // What a size promises is content, whatever it looks like.
        Case::cut("chunks: less data than the size", "hello\r", chunked("6\r\nhello\r\n0\r\n\r\n")),
        Case::cut(
            "chunks: a size of all ones",
            "hello\r\n0\r\n\r\n",
            chunked("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::cut("chunks: a size without end", "", and(chunked(""), &[Step::Flood(vec![b'0'; 1024])])),
        Case::cut(
            "chunks: an extension without end",
            "",
            and(chunked("5;"), &[Step::Flood(vec![b'a'; 1024])]),
        ),
        Case::cut(
            "chunks: trailers without end",
            "hello",
            and(chunked("5\r\nhello\r\n0\r\n"), &[Step::Flood(b"X: a\r\n".to_vec())]),
        ),
        Case::whole(
            "chunks: 1000 zeroes in front",
            "hello",
            chunked(&format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(1000))),
        ),
        Case::whole("chunks: an extension", "hello", chunked("5;a=\"b\"\r\nhello\r\n0;c\r\n\r\n")),
        Case::whole("chunks: zeroes in front", "hello", chunked("0005\r\nhello\r\n000\r\n\r\n")),
        Case::whole(
            "chunks: trailers go no further",
            "hello",
            chunked(
                "5\r\nhello\r\n0\r\nSet-Cookie: a=b\r\nContent-Length: 1\r\nCache-Control: no-store\r\n\r\n",
            ),
        )
        .shows(&["cache-control: max-age=60"])
        .hides(&["set-cookie"]),
        Case::whole(
            "chunks: one byte each",
            &"a".repeat(1000),
            chunked(&format!("{}0\r\n\r\n", "1\r\na\r\n".repeat(1000))),
        ),
        Case::whole(
            "chunks: one byte each, as segments",
            "aaaaa",
            and(
                chunked(""),
                &[Step::Drip(
                    b"1\r\na\r\n1\r\na\r\n2\r\naa\r\n1\r\na\r\n0\r\n\r\n".to_vec(),
                    Duration::from_millis(1),
                )],
            ),
        ),
    ]);
    cases
}

fn early_ends() -> Vec<Case> {
    let mut cases = Vec::new();
    // What is sent before the end, what a client may have of it, and whether an orderly end is an end.
    let length = |content: &str| format!("{HEAD}Content-Length: 5\r\n\r\n{content}");
    let chunks = |content: &str| format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{content}");
    for (name, sent, content) in [
        ("before the content", length(""), ""),
        ("in the content", length("hel"), "hel"),
        ("before the first chunk", chunks(""), ""),
        ("in a size", chunks("5"), ""),
        ("behind a size's CR", chunks("5\r"), ""),
        ("in an extension", chunks("5;a"), ""),
        ("in a chunk", chunks("5\r\nhel"), "hel"),
        ("behind a chunk", chunks("5\r\nhello"), "hello"),
        ("behind a chunk's CR", chunks("5\r\nhello\r"), "hello"),
        ("between chunks", chunks("5\r\nhello\r\n"), "hello"),
        ("in the last size", chunks("5\r\nhello\r\n0"), "hello"),
        ("behind the last size", chunks("5\r\nhello\r\n0\r\n"), "hello"),
        ("in a trailer", chunks("5\r\nhello\r\n0\r\nX: a"), "hello"),
        ("behind a trailer", chunks("5\r\nhello\r\n0\r\nX: a\r\n"), "hello"),
        ("in the last line", chunks("5\r\nhello\r\n0\r\n\r"), "hello"),
    ] {
        cases.push(Case::cut(format!("a close {name}"), content, send(&sent)));
        cases.push(Case::cut(format!("a reset {name}"), content, and(send(&sent), &[apart(), Step::Reset])));
    }
    for (name, sent) in [
        ("before the first byte", ""),
        ("in the version", "HTT"),
        ("in the status", "HTTP/1.1 20"),
        ("behind the status line", "HTTP/1.1 200 OK\r\n"),
        ("in a field", "HTTP/1.1 200 OK\r\nX: a"),
        ("before the head's last line", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"),
        ("in the head's last line", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r"),
    ] {
        cases.push(Case::failed(format!("a close {name}"), "closed", send(sent)));
        cases.push(Case::failed(
            format!("a reset {name}"),
            "closed",
            and(send(sent), &[apart(), Step::Reset]),
        ));
    }
    cases.extend([
        Case::whole("content up to an orderly close", "hello", with("", "hello")),
        Case::whole(
            "content up to an orderly close, HTTP/1.0",
            "hello",
            send(format!("{}\r\nhello", HEAD.replace("1.1", "1.0"))),
        ),
        Case::cut("content up to a reset", "hello", and(with("", "hello"), &[apart(), Step::Reset])),
        Case::cut(
            "content up to a reset, HTTP/1.0",
            "hello",
            and(send(format!("{}\r\nhello", HEAD.replace("1.1", "1.0"))), &[apart(), Step::Reset]),
        ),
    ]);
    cases
}

fn extra_bytes() -> Vec<Case> {
    let hello = with("Content-Length: 5\r\n", "hello");
    let chunks = chunked("5\r\nhello\r\n0\r\n\r\n");
    let none = |status: &str| {
        format!("HTTP/1.1 {status}\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil")
    };
    let with_extra = |name: &str, steps: &[Step], extra: &str| {
        let extra = Step::Send(extra.into());
        [
            Case::whole(
                format!("{name} in the same segment"),
                "hello",
                match steps {
                    [Step::Send(bytes)] => {
                        let Step::Send(more) = &extra else { unreachable!() };
                        vec![Step::Send([&bytes[..], more].concat()), Step::Keep]
                    }
                    _ => unreachable!("one segment"),
                },
            ),
            Case::whole(
                format!("{name} in the next segment"),
                "hello",
                and(steps.to_vec(), &[extra.clone(), Step::Keep]),
            ),
            Case::whole(
                format!("{name} a moment later"),
                "hello",
                and(steps.to_vec(), &[apart(), extra, Step::Keep]),
            ),
        ]
    };
    let mut cases = Vec::new();
    cases.extend(with_extra("a second response behind a length", &hello, EVIL));
    cases.extend(with_extra("a second response behind chunks", &chunks, EVIL));
    cases.extend(with_extra("bytes behind a length", &hello, "xxxx"));
    cases.extend(with_extra("a line end behind a length", &hello, "\r\n"));
    cases.extend(with_extra(
        "an interim response behind a length",
        &hello,
        "HTTP/1.1 103 Early Hints\r\n\r\n",
    ));
    cases.extend(with_extra("half a response behind a length", &hello, "HTTP/1.1 200 OK\r\nCont"));
    cases.extend([
        Case::whole("content of HEAD", "", and(send(none("200 OK")), &[Step::Keep])).method("HEAD").not_shared(),
        Case::whole("chunks of HEAD", "", and(chunked("4\r\nevil\r\n0\r\n\r\n"), &[Step::Keep])).method("HEAD").not_shared(),
        Case::whole("content of 204", "", and(send(none("204 No Content")), &[Step::Keep]))
            .status(204)
            .hides(&["content-length", "transfer-encoding"]),
        Case::whole(
            "chunks of 204",
            "",
            and(
                send("HTTP/1.1 204 No Content\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n"),
                &[Step::Keep],
            ),
        )
        .status(204)
        .hides(&["content-length", "transfer-encoding"]),
        Case::failed("304 that nobody asked for", "unasked-not-modified", and(send(none("304 Not Modified")), &[Step::Keep])),
    ]);
    cases
}

fn waits() -> Vec<Case> {
    let pause = Duration::from_millis(60);
    vec![
        Case::failed("silence", "first-byte-timeout", vec![Step::Stay]),
        Case::failed(
            "a head that drips",
            "first-byte-timeout",
            vec![Step::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec(), pause)],
        ),
        Case::cut("content that stalls", "hel", and(with("Content-Length: 5\r\n", "hel"), &[Step::Stay])),
        Case::cut("content that never begins", "", and(with("Content-Length: 5\r\n", ""), &[Step::Stay])),
        Case::cut("a chunk that stalls", "hel", and(chunked("5\r\nhel"), &[Step::Stay])),
        Case::cut("a last chunk that never comes", "hello", and(chunked("5\r\nhello\r\n"), &[Step::Stay])),
        Case::cut("content up to a close that never comes", "hello", and(with("", "hello"), &[Step::Stay])),
        Case::whole(
            "content that drips, but within the limit",
            "hello",
            and(with("Content-Length: 5\r\n", ""), &[Step::Drip(b"hello".to_vec(), pause)]),
        ),
    ]
}
