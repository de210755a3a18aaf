//! Host (RFC 9112 3.2, RFC 9110 7.2): exactly one, of the grammar, brought to one form; no site: 421.
//!
//! Known strictness, on purpose: escapes and sub-delimiters, which `reg-name` would allow, are refused, and so is the
//! empty Host that RFC 9112 allows for targets without an authority, since there are none such here.

use crate::hostile::http1::table::{Case, get};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let request = |lines: &str| format!("GET / HTTP/1.1\r\n{lines}\r\n");
    for (name, lines) in [
        ("none", ""),
        ("two alike", "Host: a.test\r\nHost: a.test\r\n"),
        ("two that differ", "Host: a.test\r\nHost: b.test\r\n"),
        ("two, one empty", "Host: a.test\r\nHost:\r\n"),
        ("two, of other case", "Host: a.test\r\nhOST: b.test\r\n"),
        ("two, far apart", "Host: a.test\r\nX: 1\r\nY: 2\r\nHost: b.test\r\n"),
        ("three", "Host: a.test\r\nHost: a.test\r\nHost: a.test\r\n"),
        ("space before the colon", "Host : a.test\r\n"),
        ("tab before the colon", "Host\t: a.test\r\n"),
        ("space before the name", " Host: a.test\r\n"),
        ("a second one, folded", "Host: a.test\r\n Host: b.test\r\n"),
        ("folded value", "Host: a.test\r\n .b.test\r\n"),
        ("folded before the value", "Host:\r\n a.test\r\n"),
        ("a name with NUL", "Host\0: a.test\r\n"),
        ("a long s", "Ho\u{17f}t: a.test\r\n"),
        ("a name in brackets", "[Host]: a.test\r\n"),
        ("no colon", "Host a.test\r\n"),
        ("a second one after a bare LF", "X: y\nHost: b.test\r\nHost: a.test\r\n"),
        ("a second one after a bare CR", "X: y\rHost: b.test\r\nHost: a.test\r\n"),
    ] {
        cases.push(Case::refused(&format!("Host: {name}"), 400, request(lines)));
    }
    for host in [
        "",
        " ",
        "\t",
        ":",
        ":80",
        "a b",
        "a.test b.test",
        "a\tb",
        "a\0.b",
        "a\u{1}b",
        "a\u{7f}",
        "a\u{b}",
        "a\u{e9}",
        "\u{fc}ber.test",
        "\u{2603}.test",
        "a,b",
        "a.test, b.test",
        "a.test,",
        ",a.test",
        "a/b",
        "a.test/",
        "/",
        "a?b",
        "a#b",
        "a\\b",
        "a;b",
        "a%62c",
        "a%00",
        "a%2eb",
        "a\"b",
        "\"a.test\"",
        "'a.test'",
        "a<b",
        "a>b",
        "a{b",
        "a|b",
        "a^b",
        "a`b",
        "a!b",
        "a$b",
        "a&b",
        "a(b)",
        "a*b",
        "*",
        "*.test",
        "a+b",
        "a=b",
        "u@a.test",
        "u:p@a.test",
        "@a.test",
        "a.test@",
        "a.test:80@b.test",
        "http://a.test",
        "http://a.test/",
        "//a.test",
        "a.test:80:80",
        "a.test:x",
        "a.test:80x",
        "a.test:-1",
        "a.test:+80",
        "a.test: 80",
        "a.test :80",
        "a.test:0",
        "a.test:65536",
        "a.test:99999999999",
        "a.test:000080",
        "a.test:\u{b9}",
        "a..test",
        ".a.test",
        "a.test..",
        ".",
        "..",
        "::1",
        "[::1",
        "::1]",
        "[]",
        "[::1]x",
        "[::1]80",
        "[::1]:x",
        "[::g]",
        "[127.0.0.1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[v1.x]",
        "[a.test]",
        "[::1][::1]",
        "[[::1]]",
        "localhost:11211/",
        "169.254.169.254 a.test",
        "a.test\r b.test",
        "a.test\n b.test",
    ] {
        cases.push(Case::refused(&format!("Host {host:?}"), 400, request(&format!("Host: {host}\r\n"))));
    }
    let long = "a".repeat(256);
    cases.push(Case::refused("Host of 256 bytes", 400, request(&format!("Host: {long}\r\n"))));
    let longest = "a".repeat(255);
    let send = request(&format!("Host: {longest}\r\n"));
    cases.push(Case::sent("Host of 255 bytes", send, "GET / HTTP/1.1").host(&longest));
    for (host, canonical) in [
        ("a.test", "a.test"),
        ("A.Test", "a.test"),
        ("a.test.", "a.test"),
        ("a.test:80", "a.test"),
        ("a.test:0080", "a.test"),
        ("a.test:", "a.test"),
        ("a.test:8080", "a.test:8080"),
        ("a.test.:8080", "a.test:8080"),
        ("  a.test\t ", "a.test"),
        ("under_score", "under_score"),
        ("127.0.0.1:3000", "127.0.0.1:3000"),
        ("[::1]", "[::1]"),
        ("[0:0:0:0:0:0:0:1]:80", "[::1]"),
        ("[2001:DB8::1]:81", "[2001:db8::1]:81"),
        ("0x7f.1", "0x7f.1"),
    ] {
        let send = request(&format!("Host: {host}\r\n"));
        cases
            .push(Case::sent(&format!("Host {host:?} has one form"), send, "GET / HTTP/1.1").host(canonical));
    }
    cases.extend([
        Case::sent("Host last, in capitals", request("X: 1\r\nHOST:a.test\r\n"), "GET / HTTP/1.1")
            .fields(&["x: 1"]),
        Case::refused(
            "two Hosts under HTTP/1.0",
            400,
            "GET / HTTP/1.0\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        ),
        Case::refused("a bad Host under HTTP/1.0", 400, "GET / HTTP/1.0\r\nHost: a b\r\n\r\n"),
        Case::refused("an empty Host under HTTP/1.0", 400, "GET / HTTP/1.0\r\nHost:\r\n\r\n"),
        Case::sent("Host named by Connection", get("Connection: Host\r\n"), "GET / HTTP/1.1"),
        Case::sent(
            "Host and its kin named by Connection",
            get("Connection: close, Host, X-Forwarded-Host, Via\r\n"),
            "GET / HTTP/1.1",
        )
        .closes(),
        Case::sent(
            "a field that looks like Host to a CGI",
            get("X_Host: b.test\r\nX_Forwarded_Host: b.test\r\n"),
            "GET / HTTP/1.1",
        ),
    ]);
    cases
}
