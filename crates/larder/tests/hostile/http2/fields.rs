//! Fields: of the connection, with odd names, with odd values, too many (RFC 9113 8.2).

use crate::hostile::http2::frames::{ENHANCE_YOUR_CALM, PROTOCOL_ERROR, get};
use crate::hostile::http2::judge::Case;

pub fn cases() -> Vec<Case> {
    let mut cases = of_the_connection();
    cases.extend(names_and_values());
    cases.extend(cookies_and_counts());
    cases
}

fn of_the_connection() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("connection", "close"),
        ("connection", "x"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("upgrade", "websocket"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", ""),
    ]
    .into_iter()
    .map(|(name, value)| Case::reset(format!("{name}: {value}"), PROTOCOL_ERROR, get("/", &[(name, value)])))
    .collect();
    for (name, value) in [
        ("trailer", "x"),
        ("http2-settings", "AAMAAABk"),
        ("proxy-authorization", "Basic x"),
        ("forwarded", "for=1"),
        ("x-original-url", "/evil"),
        ("x-rewrite-url", "/evil"),
        ("x-host", "evil.test"),
        ("x-forwarded-host", "evil.test"),
        ("surrogate-capability", "evil=\"ESI/1.0\""),
    ] {
        cases.push(Case::sent(
            format!("{name} goes no further"),
            "GET / HTTP/1.1",
            get("/", &[(name, value)]),
        ));
    }
    cases.push(
        Case::sent("te: trailers is told", "GET / HTTP/1.1", get("/", &[("te", "trailers")]))
            .fields(&["te: trailers", "connection: te"]),
    );
    cases.push(Case::status("an unknown expectation", 417, get("/", &[("expect", "200-ok")])));
    cases
}

fn names_and_values() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in [
        "X-Upper",
        "Host",
        "",
        "a b",
        "a:b",
        "x: y\r\nz",
        "x\r\n",
        "a\0b",
        "\u{e9}",
        "a\tb",
        "a\u{7f}",
        "transfer-encoding ",
        "a(b",
    ] {
        cases.push(Case::reset(format!("a field name {name:?}"), PROTOCOL_ERROR, get("/", &[(name, "v")])));
    }
    for value in [
        "a\r\nx: y",
        "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "a\rb",
        "a\nb",
        "a\0b",
        "a\u{1}b",
        "a\u{7f}b",
        "\r\n",
        " a",
        "a ",
        "\ta",
        "a\t",
        " ",
    ] {
        cases.push(Case::reset(
            format!("a field value {value:?}"),
            PROTOCOL_ERROR,
            get("/", &[("x", value)]),
        ));
    }
    cases.extend([
        Case::sent("an empty value", "GET / HTTP/1.1", get("/", &[("x", "")])).fields(&["x: "]),
        Case::sent("a tab inside a value", "GET / HTTP/1.1", get("/", &[("x", "a\tb")])).fields(&["x: a\tb"]),
        Case::sent("a value above 127", "GET / HTTP/1.1", get("/", &[("x", "\u{e9}")]))
            .fields(&["x: \u{e9}"]),
        Case::sent("a line of a name", "GET / HTTP/1.1", get("/", &[("x", "1"), ("x", "2")]))
            .fields(&["x: 1", "x: 2"]),
    ]);
    cases
}

fn cookies_and_counts() -> Vec<Case> {
    let crumbs = |count: usize| get("/", &vec![("cookie", "a"); count]);
    let numbered = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
        let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        get("/", &fields)
    };
    let long = |length: usize| get("/", &[("x", "a".repeat(length).as_str())]);
    let joined = format!("cookie: a{}", "; a".repeat(99));
    vec![
        Case::sent(
            "cookie crumbs are joined",
            "GET / HTTP/1.1",
            get("/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c")]),
        )
        .fields(&["cookie: a=1; b=2; c", "x: y"]),
        Case::sent("100 cookie crumbs", "GET / HTTP/1.1", crumbs(100)).fields(&[joined.as_str()]),
        Case::status("101 cookie crumbs", 431, crumbs(101)),
        Case::goaway("700 cookie crumbs", ENHANCE_YOUR_CALM, crumbs(700)),
        Case::status("101 fields", 431, numbered(101)),
        Case::sent("a field at the limit", "GET / HTTP/1.1", long(16 * 1024 - 1)).fields(&[format!(
            "x: {}",
            "a".repeat(16 * 1024 - 1)
        )
        .as_str()]),
        Case::status("a field beyond the limit", 431, long(16 * 1024)),
    ]
}
