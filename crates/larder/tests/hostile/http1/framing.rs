//! How content is framed (RFC 9112 6): every form that two parsers could read in two ways is refused.

use crate::hostile::http1::table::{Case, get, post};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    lengths(&mut cases);
    codings(&mut cases);
    both(&mut cases);
    content(&mut cases);
    cases
}

fn lengths(cases: &mut Vec<Case>) {
    for value in [
        "",
        " ",
        "\t",
        "+5",
        "-5",
        "-0",
        "+0",
        "5,5",
        "5, 5",
        "5,",
        ",5",
        "5 5",
        "5;",
        "5;x",
        "0x5",
        "0X5",
        "5_0",
        "_5",
        "5.0",
        "5.",
        ".5",
        "5e0",
        "5E1",
        "five",
        "5x",
        "x5",
        "\"5\"",
        "'5'",
        "(5)",
        "5\0",
        "\u{0}5",
        "\u{b}5",
        "5\u{c}",
        "5\u{a0}",
        "\u{b2}",
        "\u{661}",
        "0b11",
        "0o5",
        "5h",
        "NaN",
        "inf",
        "1 0",
        "5\t5",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551621",
        "4294967296000000000000",
        "99999999999999999999999999",
        "-18446744073709551611",
    ] {
        let lines = format!("Content-Length: {value}\r\n");
        cases.push(Case::refused(&format!("Content-Length {value:?}"), 400, post(&lines, "hello")));
    }
    for (name, lines) in [
        ("two alike", "Content-Length: 5\r\nContent-Length: 5\r\n"),
        ("two that differ", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("two, one zero", "Content-Length: 0\r\nContent-Length: 5\r\n"),
        ("two, one empty", "Content-Length: 5\r\nContent-Length:\r\n"),
        ("two, of other case", "Content-Length: 5\r\ncontent-length: 5\r\n"),
        ("two, far apart", "Content-Length: 5\r\nX: 1\r\nY: 2\r\nContent-Length: 5\r\n"),
        ("space before the colon", "Content-Length : 5\r\n"),
        ("folded", "Content-Length:\r\n 5\r\n"),
        ("folded digits", "Content-Length: 5\r\n 0\r\n"),
        ("a NUL in the name", "Content-Length\0: 5\r\n"),
        ("after a bare LF", "X: y\nContent-Length: 5\r\n"),
    ] {
        cases.push(Case::refused(&format!("Content-Length: {name}"), 400, post(lines, "hello")));
        cases.push(Case::refused(
            &format!("GET, Content-Length: {name}"),
            400,
            format!("{}hello", get(lines)),
        ));
    }
    cases.extend([
        Case::sent("Content-Length with zeros", post("Content-Length: 0005\r\n", "hello"), "POST / HTTP/1.1")
            .length("hello"),
        Case::sent("Content-Length 0", post("Content-Length: 0\r\n", ""), "POST / HTTP/1.1").length(""),
        Case::sent("Content-Length 00", post("Content-Length: 00\r\n", ""), "POST / HTTP/1.1").length(""),
        Case::sent("Content-Length and tabs", post("Content-Length:\t5\t \r\n", "hello"), "POST / HTTP/1.1")
            .length("hello"),
        Case::sent("no Content-Length", post("", ""), "POST / HTTP/1.1").length(""),
        Case::sent(
            "fields that look like framing to a CGI",
            post("Content_Length: 5\r\nTransfer_Encoding: chunked\r\n", ""),
            "POST / HTTP/1.1",
        )
        .length(""),
    ]);
}

fn codings(cases: &mut Vec<Case>) {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    for value in [
        "",
        " ",
        "identity",
        "gzip",
        "deflate",
        "compress",
        "br",
        "x",
        "chunked, chunked",
        "chunked,chunked",
        "gzip, chunked",
        "chunked, gzip",
        "identity, chunked",
        "chunked, identity",
        "chunked,",
        ",chunked",
        ", chunked",
        "chunked;",
        "chunked;q=1",
        "chunked; ext=1",
        "chunked ;x",
        "xchunked",
        "chunkedx",
        "chunked chunked",
        "chunk",
        "chunked\u{b}",
        "\u{b}chunked",
        "chunked\u{c}",
        "chunked\0",
        "\0chunked",
        "\"chunked\"",
        "'chunked'",
        "(chunked)",
        "chun ked",
        "chun\tked",
        "c\u{212a}hunked",
        "chun\u{212a}ed",
        "chunked\u{a0}",
        "\u{ef}\u{bb}\u{bf}chunked",
        "chunked\u{7f}",
        "cow",
        "5",
        "chunked, trailers",
        "0",
        "true",
        "@chunked",
        "chunked\\",
        "chunked/1",
    ] {
        let lines = format!("Transfer-Encoding: {value}\r\n");
        cases.push(Case::refused(&format!("Transfer-Encoding {value:?}"), 400, post(&lines, chunks)));
    }
    for (name, lines) in [
        ("two alike", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("chunked, then identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        ("identity, then chunked", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        ("gzip, then chunked", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
        ("chunked, then another", "Transfer-Encoding: chunked\r\nTransfer-encoding: cow\r\n"),
        ("chunked, then empty", "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n"),
        ("space before the colon", "Transfer-Encoding : chunked\r\n"),
        ("tab before the colon", "Transfer-Encoding\t: chunked\r\n"),
        ("space before the name", " Transfer-Encoding: chunked\r\n"),
        ("folded", "Transfer-Encoding:\r\n chunked\r\n"),
        ("folded away", "X: y\r\n Transfer-Encoding: chunked\r\n"),
        ("folded further", "Transfer-Encoding: chunked\r\n , identity\r\n"),
        ("after a bare LF", "X: y\nTransfer-Encoding: chunked\r\n"),
        ("after a bare CR", "X: y\rTransfer-Encoding: chunked\r\n"),
        ("a CR in the value", "Transfer-Encoding: chunked\r\r\n"),
        ("a LF in the value", "Transfer-Encoding: \nchunked\r\n"),
        ("a NUL in the name", "Transfer-Encoding\0: chunked\r\n"),
        ("DEL in the name", "Transfer\u{7f}-Encoding: chunked\r\n"),
        ("a high byte in the name", "\u{ff}Transfer-Encoding: chunked\r\n"),
        ("an empty name before it", ": x\r\nTransfer-Encoding: chunked\r\n"),
    ] {
        cases.push(Case::refused(&format!("Transfer-Encoding: {name}"), 400, post(lines, chunks)));
    }
    let line = "POST / HTTP/1.1";
    cases.extend([
        Case::sent("chunked", post("Transfer-Encoding: chunked\r\n", chunks), line).chunked("hello"),
        Case::sent("chunked in capitals", post("TRANSFER-ENCODING: CHUNKED\r\n", chunks), line).chunked("hello"),
        Case::sent("chunked and spaces", post("Transfer-Encoding:\t chunked \t\r\n", chunks), line).chunked("hello"),
        Case::sent("chunked and named by Connection", post("Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", chunks), line)
            .chunked("hello"),
        Case::sent("length named by Connection", post("Connection: Content-Length\r\nContent-Length: 5\r\n", "hello"), line)
            .length("hello"),
        Case::refused(
            "chunked under HTTP/1.0",
            400,
            format!("POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        ),
        Case::refused(
            "chunked under HTTP/1.0 that stays",
            400,
            format!("POST / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        ),
    ]);
}

fn both(cases: &mut Vec<Case>) {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    for (name, lines) in [
        ("length first", "Content-Length: 15\r\nTransfer-Encoding: chunked\r\n"),
        ("coding first", "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n"),
        ("length of zero", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        ("length of a part", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        ("unknown coding", "Content-Length: 15\r\nTransfer-Encoding: cow\r\n"),
        ("identity", "Content-Length: 15\r\nTransfer-Encoding: identity\r\n"),
        ("empty coding", "Content-Length: 15\r\nTransfer-Encoding:\r\n"),
        ("bad length", "Content-Length: x\r\nTransfer-Encoding: chunked\r\n"),
        (
            "length named by Connection",
            "Connection: Content-Length\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "coding named by Connection",
            "Connection: Transfer-Encoding\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n",
        ),
    ] {
        cases.push(Case::refused(&format!("both framings: {name}"), 400, post(lines, chunks)));
        cases.push(Case::refused(
            &format!("GET, both framings: {name}"),
            400,
            format!("{}{chunks}", get(lines)),
        ));
    }
    cases.push(Case::refused(
        "both framings under HTTP/1.0",
        400,
        format!("POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
    ));
}

fn content(cases: &mut Vec<Case>) {
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW", "PROPFIND"] {
        let line = format!("{method} / HTTP/1.1");
        let head = format!("{line}\r\nHost: a.test\r\n");
        let by_length = format!("{head}Content-Length: {}\r\n\r\n{smuggled}", smuggled.len());
        cases.push(
            Case::sent(&format!("{method} with a request for content"), by_length, &line).length(smuggled),
        );
        let by_chunks = format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{smuggled}\r\n0\r\n\r\n",
            smuggled.len()
        );
        cases.push(
            Case::sent(&format!("{method} with a request in a chunk"), by_chunks, &line).chunked(smuggled),
        );
        let empty = format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        cases.push(Case::sent(&format!("{method} with no chunks"), empty, &line).chunked(""));
    }
    cases.extend([
        Case::sent(
            "HEAD with content",
            "HEAD / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
            "HEAD / HTTP/1.1",
        )
        .length("hello"),
        Case::sent("GET of length 0", get("Content-Length: 0\r\n"), "GET / HTTP/1.1"),
        // Under HTTP/1.0 what follows a head without a length is not content, and not read at all.
        Case::sent(
            "HTTP/1.0 without a length",
            format!("POST / HTTP/1.0\r\nHost: a.test\r\n\r\n{smuggled}"),
            "POST / HTTP/1.1",
        )
        .length("")
        .fields(&["via: 1.0 larder"])
        .closes(),
        Case::sent(
            "HTTP/1.0 with a length",
            "POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1",
        )
        .length("hello")
        .fields(&["via: 1.0 larder"])
        .closes(),
        Case::sent(
            "close with a request behind it",
            format!("{}{smuggled}", get("Connection: close\r\n")),
            "GET / HTTP/1.1",
        )
        .closes(),
    ]);
}
