//! Chunked content (RFC 9112 7.1): sizes, extensions, the ends of chunks, trailers, and their limits.

use crate::hostile::http1::table::{Case, post};

const LINE: &str = "POST / HTTP/1.1";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let chunked = |content: &str| post("Transfer-Encoding: chunked\r\n", content);
    for size in [
        "",
        " ",
        " 5",
        "5 ",
        "\t5",
        "5\t",
        "0x5",
        "0X5",
        "+5",
        "-5",
        "-0",
        "5_",
        "_5",
        "5.0",
        "5,5",
        "g",
        "5g",
        "5h",
        "five",
        "\"5\"",
        "'5'",
        "5\u{b}",
        "5\0",
        "\u{b2}",
        "5:",
        "5=1",
        "5\r",
        "\r5",
        "\n5",
        "5\n",
        "ffffffffffffffff",
        "8000000000000000",
        "10000000000000005",
        "00000000000000005",
        "fffffffffffffffff5",
        "5\r\r\n",
        ";5",
        ";",
        "5 ;x",
        "5\t;x",
        "5;x\n",
        "5;\n",
        "5;x\ry",
        "5;x\0",
        "5;x\u{1}",
        "5;\u{7f}",
        "5;\"\n\"",
    ] {
        let content = format!("{size}\r\nhello\r\n0\r\n\r\n");
        cases.push(Case::broken(&format!("chunk size {size:?}"), 400, chunked(&content)));
    }
    for (name, content) in [
        ("no line", "hello"),
        ("LF after the size", "5\nhello\r\n0\r\n\r\n"),
        ("CR after the size", "5\rhello\r\n0\r\n\r\n"),
        ("two bytes for CRLF", "5\r\nhelloXX0\r\n\r\n"),
        ("LF after the data", "5\r\nhello\n0\r\n\r\n"),
        ("CR after the data", "5\r\nhello\r0\r\n\r\n"),
        ("CR X after the data", "5\r\nhello\rX0\r\n\r\n"),
        ("LF LF after the data", "5\r\nhello\n\n0\r\n\r\n"),
        ("LF CR after the data", "5\r\nhello\n\r0\r\n\r\n"),
        ("CR CR LF after the data", "5\r\nhello\r\r\n0\r\n\r\n"),
        ("nothing after the data", "5\r\nhello0\r\n\r\n"),
        ("more data than said", "5\r\nhello!\r\n0\r\n\r\n"),
        ("less data than said", "6\r\nhello\r\n0\r\n\r\n"),
        ("an empty line between", "5\r\nhello\r\n\r\n0\r\n\r\n"),
        ("LF after the last chunk", "5\r\nhello\r\n0\n\r\n"),
        ("LF for the end", "5\r\nhello\r\n0\r\n\n"),
        ("LF LF for the end", "5\r\nhello\r\n0\n\n"),
        ("CR X for the end", "5\r\nhello\r\n0\r\n\rX"),
        ("a request instead of the end", "0\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        ("trailer: no name", "0\r\n: y\r\n\r\n"),
        ("trailer: no colon", "0\r\nX\r\n\r\n"),
        ("trailer: space before the colon", "0\r\nX : y\r\n\r\n"),
        ("trailer: folded", "0\r\nX: y\r\n z\r\n\r\n"),
        ("trailer: space first", "0\r\n X: y\r\n\r\n"),
        ("trailer: a bad name", "0\r\nX(: y\r\n\r\n"),
        ("trailer: NUL", "0\r\nX: \0\r\n\r\n"),
        ("trailer: bare CR", "0\r\nX: y\rz\r\n\r\n"),
        ("trailer: bare LF", "0\r\nX: y\n\r\n"),
        ("trailer: LF between", "0\r\nX: y\nZ: a\r\n\r\n"),
    ] {
        cases.push(Case::broken(&format!("chunks: {name}"), 400, chunked(content)));
    }
    for (name, content, data) in [
        ("an extension", "5;a=1\r\nhello\r\n0;b\r\n\r\n", "hello"),
        ("an empty extension", "5;\r\nhello\r\n0;\r\n\r\n", "hello"),
        ("a quoted extension", "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("spaces in an extension", "5; a = 1\r\nhello\r\n0\r\n\r\n", "hello"),
        ("an extension that looks like an end", "5;\\r\\n0\\r\\n\r\nhello\r\n0\r\n\r\n", "hello"),
        ("leading zeros", "005\r\nhello\r\n000\r\n\r\n", "hello"),
        ("sixteen digits", "0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"),
        ("capitals", "A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("small letters", "a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("single bytes", "1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", "hi"),
        ("data that looks like an end", "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n"),
        ("a trailer", "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "hello"),
        ("an empty trailer", "5\r\nhello\r\n0\r\nX:\r\n\r\n", "hello"),
        (
            "trailers that frame",
            "5\r\nhello\r\n0\r\nContent-Length: 7\r\nTransfer-Encoding: x\r\n\r\n",
            "hello",
        ),
        (
            "trailers that route",
            "5\r\nhello\r\n0\r\nHost: evil.test\r\nX-Forwarded-Host: evil.test\r\n\r\n",
            "hello",
        ),
        (
            "trailers that control",
            "5\r\nhello\r\n0\r\nAuthorization: x\r\nCookie: x\r\nCache-Control: x\r\n\r\n",
            "hello",
        ),
    ] {
        cases.push(Case::sent(&format!("chunks: {name}"), chunked(content), LINE).chunked(data));
    }
    bounds(&mut cases, &chunked);
    cases
}

/// Extensions up to 4 KiB per body, trailers up to 8 KiB and 100 lines.
fn bounds(cases: &mut Vec<Case>, chunked: &dyn Fn(&str) -> String) {
    let extended = |bytes: usize| chunked(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "e".repeat(bytes - 1)));
    let scattered = |chunks: usize| chunked(&format!("{}0\r\n\r\n", "1;eeeeeee\r\nx\r\n".repeat(chunks)));
    let trailed = |bytes: usize| chunked(&format!("5\r\nhello\r\n0\r\nX:{}\r\n\r\n", "t".repeat(bytes - 2)));
    let lines = |count: usize| chunked(&format!("5\r\nhello\r\n0\r\n{}\r\n", "X: y\r\n".repeat(count)));
    cases.extend([
        Case::sent("4 KiB of extensions", extended(4096), LINE).chunked("hello"),
        Case::broken("more than 4 KiB of extensions", 400, extended(4097)),
        Case::sent("4 KiB of extensions in all", scattered(512), LINE).chunked(&"x".repeat(512)),
        Case::broken("more than 4 KiB of extensions in all", 400, scattered(513)),
        Case::sent("8 KiB of trailers", trailed(8192), LINE).chunked("hello"),
        Case::broken("more than 8 KiB of trailers", 400, trailed(8193)),
        Case::sent("a hundred trailers", lines(100), LINE).chunked("hello"),
        Case::broken("more than a hundred trailers", 400, lines(101)),
    ]);
}
