//! Content: lengths, transfer-codings, chunks, early ends, and bytes that belong to nobody.

use larder_testkit::origin::Answer;

use crate::hostile::origin::judge::{APART, Case};

const HEAD: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
/// What must never reach anybody.
const EVIL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil";

/// A storable answer with these lines, each ended by CRLF, and what follows its head.
fn with(lines: &str, content: &str) -> Answer {
    Answer::literal(format!("{HEAD}{lines}\r\n{content}"))
}

fn chunked(content: &str) -> Answer {
    with("Transfer-Encoding: chunked\r\n", content)
}

/// `more` in a segment of its own right behind it.
fn and(answer: Answer, more: &str) -> Answer {
    Answer { extra: Some(more.to_owned()), ..answer.keep_open() }
}

/// A reset a moment later.
fn and_reset(answer: Answer) -> Answer {
    answer.wait(APART).reset()
}

/// Each byte of `more` a while after the one before.
fn and_drip(answer: Answer, more: &str, pause: &str) -> Answer {
    more.chars().fold(answer, |answer, byte| answer.wait(pause).send(byte.encode_utf8(&mut [0; 4])))
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
            Answer::literal(format!(
                "{}Transfer-Encoding: chunked\r\n\r\n{hello}",
                HEAD.replace("1.1", "1.0")
            )),
        ),
        Case::failed(
            "transfer-encoding with a length on HTTP/1.0",
            "bad-response",
            Answer::literal(format!(
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
            and(with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", hello), EVIL),
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
            and_reset(with("Transfer-Encoding: foo\r\n", hello)),
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
        Case::cut("chunks: a size without end", "", chunked("").flood_with("0")),
        Case::cut("chunks: an extension without end", "", chunked("5;").flood_with("a")),
        Case::cut(
            "chunks: trailers without end",
            "hello",
            chunked("5\r\nhello\r\n0\r\n").flood_with("X: a\r\n"),
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
            and_drip(chunked(""), "1\r\na\r\n1\r\na\r\n2\r\naa\r\n1\r\na\r\n0\r\n\r\n", "1ms"),
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
        cases.push(Case::cut(format!("a close {name}"), content, Answer::literal(&sent)));
        cases.push(Case::cut(format!("a reset {name}"), content, and_reset(Answer::literal(&sent))));
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
        cases.push(Case::failed(format!("a close {name}"), "closed", Answer::literal(sent)));
        cases.push(Case::failed(format!("a reset {name}"), "closed", and_reset(Answer::literal(sent))));
    }
    cases.extend([
        Case::whole("content up to an orderly close", "hello", with("", "hello")),
        Case::whole(
            "content up to an orderly close, HTTP/1.0",
            "hello",
            Answer::literal(format!("{}\r\nhello", HEAD.replace("1.1", "1.0"))),
        ),
        Case::cut("content up to a reset", "hello", and_reset(with("", "hello"))),
        Case::cut(
            "content up to a reset, HTTP/1.0",
            "hello",
            and_reset(Answer::literal(format!("{}\r\nhello", HEAD.replace("1.1", "1.0")))),
        ),
    ]);
    cases
}

fn extra_bytes() -> Vec<Case> {
    let hello = || with("Content-Length: 5\r\n", "hello");
    let chunks = || chunked("5\r\nhello\r\n0\r\n\r\n");
    let none = |status: &str| {
        format!("HTTP/1.1 {status}\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil")
    };
    let with_extra = |name: &str, answer: &dyn Fn() -> Answer, extra: &str| {
        [
            ("in the same segment", answer().send(extra).keep_open()),
            ("in the next segment", and(answer(), extra)),
            ("a moment later", answer().wait(APART).send(extra).keep_open()),
        ]
        .map(|(when, answer)| Case::whole(format!("{name} {when}"), "hello", answer))
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
        Case::whole("content of HEAD", "", Answer::literal(none("200 OK")).keep_open()).method("HEAD").not_shared(),
        Case::whole("chunks of HEAD", "", chunked("4\r\nevil\r\n0\r\n\r\n").keep_open()).method("HEAD").not_shared(),
        Case::whole("content of 204", "", Answer::literal(none("204 No Content")).keep_open())
            .status(204)
            .hides(&["content-length", "transfer-encoding"]),
        Case::whole(
            "chunks of 204",
            "",
            Answer::literal("HTTP/1.1 204 No Content\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n")
                .keep_open(),
        )
        .status(204)
        .hides(&["content-length", "transfer-encoding"]),
        Case::failed("304 that nobody asked for", "unasked-not-modified", Answer::literal(none("304 Not Modified")).keep_open()),
    ]);
    cases
}

fn waits() -> Vec<Case> {
    let pause = "60ms";
    vec![
        Case::failed("silence", "first-byte-timeout", Answer::literal("").stay_silent()),
        Case::failed(
            "a head that drips",
            "first-byte-timeout",
            and_drip(Answer::literal(""), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", pause),
        ),
        Case::cut("content that stalls", "hel", with("Content-Length: 5\r\n", "hel").stay_silent()),
        Case::cut("content that never begins", "", with("Content-Length: 5\r\n", "").stay_silent()),
        Case::cut("a chunk that stalls", "hel", chunked("5\r\nhel").stay_silent()),
        Case::cut("a last chunk that never comes", "hello", chunked("5\r\nhello\r\n").stay_silent()),
        Case::cut("content up to a close that never comes", "hello", with("", "hello").stay_silent()),
        Case::whole(
            "content that drips, but within the limit",
            "hello",
            and_drip(with("Content-Length: 5\r\n", ""), "hello", pause),
        ),
    ]
}
