//! Heads: status lines, field lines, sizes, interim responses.

use larder_testkit::origin::Answer;

use crate::hostile::origin::judge::{APART, Case};

/// A storable answer, and `hello`.
const HELLO: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";

/// The same with these lines, each ended by CRLF.
fn with(lines: &str) -> Answer {
    Answer::literal(HELLO.replace("\r\n\r\n", &format!("\r\n{lines}\r\n")))
}

/// The same under another status line.
fn under(status_line: &str) -> Answer {
    Answer::literal(format!("{status_line}\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello"))
}

pub fn cases() -> Vec<Case> {
    let mut cases = status_lines();
    cases.extend(field_lines());
    cases.extend(sizes());
    cases.extend(interims());
    cases
}

fn status_lines() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "HTTP/1.1 0 OK",
        "HTTP/1.1 000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 99 OK",
        "HTTP/1.1 1000 OK",
        "HTTP/1.1 abc OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/1.1 -20 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/2.0 200 OK",
        "HTTP/1.2 200 OK",
        "HTTP/0.9 200 OK",
        "HTTP/1.1200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 O\rK",
        " HTTP/1.1 200 OK",
        "garbage\r\nHTTP/1.1 200 OK",
        "\0\0\0\0HTTP/1.1 200 OK",
        "GET / HTTP/1.1",
    ]
    .into_iter()
    .map(|line| Case::failed(format!("status line {line:?}"), "bad-response", under(line)))
    .collect();
    cases.extend([
        Case::failed(
            "no status line at all",
            "bad-response",
            Answer::literal("Content-Length: 5\r\n\r\nhello"),
        ),
        Case::failed("content without a head", "bad-response", Answer::literal("<html>hello</html>")),
        Case::failed("a TLS alert", "bad-response", Answer::literal("\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{46}")),
        Case::failed("HTTP/2 frames", "bad-response", Answer::literal("\0\0\0\u{4}\0\0\0\0\0")),
        Case::whole("a status without a reason", "hello", under("HTTP/1.1 200")),
        Case::whole("a reason above 127", "hello", under("HTTP/1.1 200 \u{e9}\u{ff}")),
        Case::whole("a reason of 8 KiB", "hello", under(&format!("HTTP/1.1 200 {}", "a".repeat(8192)))),
        Case::whole("an empty line in front", "hello", under("\r\nHTTP/1.1 200 OK")),
        Case::whole("status 999", "hello", under("HTTP/1.1 999 Odd")).status(999),
        Case::whole("status 600", "hello", under("HTTP/1.1 600 Odd")).status(600),
        Case::whole("HTTP/1.0", "hello", under("HTTP/1.0 200 OK")),
    ]);
    cases
}

fn field_lines() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("a folded line", "X: a\r\n b\r\n"),
        ("a folded first line", " X: a\r\n"),
        ("a line folded by a tab", "X: a\r\n\tb\r\n"),
        ("a space before the colon", "X : a\r\n"),
        ("a space before the colon of a length", "Content-Length : 99\r\n"),
        ("NUL in a value", "X: a\0b\r\n"),
        ("CR in a value", "X: a\rb\r\n"),
        ("a control in a value", "X: a\u{1}b\r\n"),
        ("DEL in a value", "X: a\u{7f}b\r\n"),
        ("NUL in a name", "X\0: a\r\n"),
        ("a space in a name", "X Y: a\r\n"),
        ("a name above 127", "X\u{e9}: a\r\n"),
        ("a bracket in a name", "X(: a\r\n"),
        ("an empty name", ": a\r\n"),
        ("no colon", "nonsense\r\n"),
    ]
    .into_iter()
    .map(|(name, line)| Case::failed(name, "bad-response", with(line)))
    .collect();
    cases.extend([
        Case::whole(
            "line feeds alone are written anew",
            "hello",
            Answer::literal("HTTP/1.1 200 OK\nCache-Control: max-age=60\nContent-Length: 5\nX: a\n\nhello"),
        )
        .shows(&["x: a"]),
        Case::whole("a value above 127", "hello", with("X: \u{e9}\r\n")).shows(&["x: \u{e9}"]),
        Case::whole("an empty value", "hello", with("X:\r\nX: \r\n")).shows(&["x: ", "x: "]),
        Case::whole("spaces around a value", "hello", with("X: \t a \t\r\n")).shows(&["x: a"]),
        Case::whole("lines of a name keep their order", "hello", with("X: 1\r\nY: 0\r\nX: 2\r\nX: 1\r\n"))
            .shows(&["x: 1", "x: 2", "x: 1", "y: 0"]),
        Case::whole(
            "fields of the connection",
            "hello",
            with(
                "Connection: close, X, Cache-Control, Content-Type\r\nX: a\r\nContent-Type: text/x\r\nKeep-Alive: timeout=5\r\n\
                 Proxy-Connection: close\r\nUpgrade: h2c, websocket\r\nTE: gzip\r\nTrailer: Y\r\n\
                 Proxy-Authenticate: Basic\r\nHTTP2-Settings: AAMAAABk\r\n",
            ),
        )
        .shows(&["cache-control: max-age=60", "content-type: text/x"])
        .hides(&["x", "keep-alive", "proxy-connection", "upgrade", "te", "trailer", "proxy-authenticate", "http2-settings"]),
        Case::failed("101 that nobody asked for", "unexpected-upgrade", Answer::literal(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        )),
    ]);
    cases
}

fn sizes() -> Vec<Case> {
    let fields = |count: usize| (0..count).map(|n| format!("X{n}: v\r\n")).collect::<String>();
    let many = |bytes: usize| {
        (0..bytes / 1024).map(|n| format!("X{n}: {}\r\n", "v".repeat(1017))).collect::<String>()
    };
    vec![
        Case::whole("a head of 64 KiB", "hello", with(&many(64 * 1024))),
        Case::failed("a head of 129 KiB", "head-too-large", with(&many(129 * 1024))),
        Case::failed(
            "a head without end",
            "head-too-large",
            Answer::literal("HTTP/1.1 200 OK\r\n").flood_with("X: a\r\n"),
        ),
        Case::failed(
            "a field without end",
            "head-too-large",
            Answer::literal("HTTP/1.1 200 OK\r\nX: ").flood_with("a"),
        ),
        Case::failed(
            "a reason without end",
            "head-too-large",
            Answer::literal("HTTP/1.1 200 ").flood_with("a"),
        ),
        Case::failed("nothing but empty lines", "head-too-large", Answer::literal("").flood_with("\r\n")),
        Case::whole("254 fields beside two", "hello", with(&fields(254))),
        Case::failed("255 fields beside two", "head-too-large", with(&fields(255))),
        Case::failed("1000 fields", "head-too-large", with(&fields(1000))),
        Case::whole("a field of 63 KiB", "hello", with(&format!("X: {}\r\n", "v".repeat(63 * 1024)))),
        Case::failed(
            "a field of 65 KiB",
            "head-too-large",
            with(&format!("X: {}\r\n", "v".repeat(65 * 1024))),
        ),
    ]
}

fn interims() -> Vec<Case> {
    let after = |interim: &str, count: usize| Answer::literal(interim.repeat(count)).wait(APART).send(HELLO);
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: a\r\n\r\n";
    vec![
        Case::whole("100 that nobody asked for", "hello", after("HTTP/1.1 100 Continue\r\n\r\n", 1)),
        Case::whole("100 ten times", "hello", after("HTTP/1.1 100 Continue\r\n\r\n", 10)),
        Case::whole("102 once", "hello", after("HTTP/1.1 102 Processing\r\n\r\n", 1)).interims(1),
        Case::whole("103 once", "hello", after(hint, 1)).interims(1),
        Case::whole("103 forty times", "hello", after(hint, 40)).interims(16),
        Case::failed("103 a hundred times", "bad-response", after(hint, 100)),
        Case::failed("100 a hundred times", "bad-response", after("HTTP/1.1 100 Continue\r\n\r\n", 100)),
        Case::failed("103 without end", "bad-response", Answer::literal("").flood_with(hint)),
        Case::failed("103 and then a close", "closed", Answer::literal(hint)),
        Case::failed("103 and then silence", "first-byte-timeout", Answer::literal(hint).stay_silent()),
        Case::failed(
            "100 and then a switch",
            "unexpected-upgrade",
            after("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n", 1),
        ),
    ]
}
