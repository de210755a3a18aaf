//! Request lines (RFC 9112 2.2, 2.3, 3): versions, separators, methods, targets of every form.
//!
//! Known leniency, on purpose: one empty line before the request line (RFC 9112 2.2); `"`, `\`, `^`, `{`, `|`,
//! `}` and escapes that are none (`%zz`) in a target, which browsers send and which are keyed and passed on raw.

use crate::hostile::http1::table::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    versions(&mut cases);
    separators(&mut cases);
    methods(&mut cases);
    origin_forms(&mut cases);
    other_forms(&mut cases);
    cases
}

fn versions(cases: &mut Vec<Case>) {
    for version in [
        "http/1.1",
        "Http/1.1",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/1.1.1",
        "HTTP/1.10",
        "HTTP/11",
        "HTTP/01.1",
        "HTTP/1,1",
        "HTTP/1_1",
        "HTTP/+1.1",
        "HTTP/-1.1",
        "HTTP/x.1",
        "HTTP/1.x",
        "HTTP-1.1",
        "HTTP1.1",
        "HTTP/",
        "HTTP",
        "HTTPS/1.1",
        "XHTTP/1.1",
        "ICY/1.1",
        "RTSP/1.0",
        "HTTP/1.1x",
        "HTTP/1.1\0",
        "HTTP\\1.1",
        "HTTP/\u{b9}.1",
    ] {
        // A NUL is found before the line is looked at; both are 400.
        let send = format!("GET / {version}\r\nHost: a.test\r\n\r\n");
        cases.push(Case::refused(&format!("version {version:?}"), 400, send));
    }
    for version in ["HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9", "HTTP/0.9", "HTTP/0.0"] {
        let send = format!("GET / {version}\r\nHost: a.test\r\n\r\n");
        cases.push(Case::refused(&format!("version {version}"), 505, send));
    }
    cases.extend([
        Case::refused("HTTP/0.9", 400, "GET /\r\n\r\n"),
        Case::refused("HTTP/0.9 with a Host", 400, "GET /\r\nHost: a.test\r\n\r\n"),
        Case::refused("no target", 400, "GET HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        Case::refused("no method", 400, "/ HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        Case::refused("an HTTP/2 preface that is none", 505, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
        Case::sent("HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n", "GET / HTTP/1.1")
            .fields(&["via: 1.0 larder"])
            .closes(),
        Case::sent(
            "HTTP/1.0 that stays",
            "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n",
            "GET / HTTP/1.1",
        )
        .fields(&["via: 1.0 larder"]),
    ]);
}

fn separators(cases: &mut Vec<Case>) {
    for (name, line) in [
        ("two spaces before the target", "GET  / HTTP/1.1"),
        ("two spaces before the version", "GET /  HTTP/1.1"),
        ("space before the method", " GET / HTTP/1.1"),
        ("space after the version", "GET / HTTP/1.1 "),
        ("space in the version", "GET / HTTP/ 1.1"),
        ("space in the target", "GET /a b HTTP/1.1"),
        ("a version in the target", "GET / HTTP/1.1 HTTP/1.1"),
        ("tab before the target", "GET\t/ HTTP/1.1"),
        ("tab before the version", "GET /\tHTTP/1.1"),
        ("tab before the method", "\tGET / HTTP/1.1"),
        ("tab after the version", "GET / HTTP/1.1\t"),
        ("tab in the target", "GET /a\tb HTTP/1.1"),
        ("vertical tab", "GET\u{b}/ HTTP/1.1"),
        ("form feed", "GET\u{c}/ HTTP/1.1"),
        ("no-break space", "GET\u{a0}/ HTTP/1.1"),
        ("bare CR as a separator", "GET\r/ HTTP/1.1"),
        ("bare CR in the target", "GET /\rx HTTP/1.1"),
        ("bare CR before the end", "GET / HTTP/1.1\r"),
        ("bare LF in the target", "GET /\nx HTTP/1.1"),
        ("a second request line after a bare LF", "GET / HTTP/1.1\nGET /smuggled HTTP/1.1"),
        ("NUL before the method", "\0GET / HTTP/1.1"),
        ("a byte order mark", "\u{ef}\u{bb}\u{bf}GET / HTTP/1.1"),
        ("only a word", "HELLO"),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}"),
        ("a mail server's greeting", "EHLO a.test"),
        ("PROXY protocol", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2"),
    ] {
        cases.push(Case::refused(name, 400, format!("{line}\r\nHost: a.test\r\n\r\n")));
    }
    let get = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    cases.extend([
        Case::sent("one empty line before it", format!("\r\n{get}"), "GET / HTTP/1.1"),
        Case::refused("two empty lines before it", 400, format!("\r\n\r\n{get}")),
        Case::refused("LF before it", 400, format!("\n{get}")),
        Case::refused("CR before it", 400, format!("\r{get}")),
        Case::refused("CR CR LF before it", 400, format!("\r\r\n{get}")),
        Case::refused("LF line ends", 400, "GET / HTTP/1.1\nHost: a.test\n\n"),
        Case::refused("LF after the request line", 400, "GET / HTTP/1.1\nHost: a.test\r\n\r\n"),
        Case::refused("CR line ends", 400, "GET / HTTP/1.1\rHost: a.test\r\r"),
        Case::refused("LF CR line ends", 400, "GET / HTTP/1.1\n\rHost: a.test\n\r\n\r"),
    ]);
}

fn methods(cases: &mut Vec<Case>) {
    for method in [
        "G(T", "GET:", "G\"T", "G/T", "G[T", "G{T", "G@T", "G=T", "G,T", "G;T", "G\\T", "G<T", "G?T",
        "G\u{e9}T", "G\u{7f}T", "G\u{1}T",
    ] {
        let send = format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        cases.push(Case::refused(&format!("method {method:?}"), 400, send));
    }
    for (name, line) in [
        ("CONNECT", "CONNECT a.test:80"),
        ("CONNECT with a path", "CONNECT /"),
        ("TRACE", "TRACE /"),
        ("TRACE of everything", "TRACE *"),
        ("a method of 33 bytes", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG /"),
    ] {
        cases.push(Case::refused(name, 501, format!("{line} HTTP/1.1\r\nHost: a.test\r\n\r\n")));
    }
    // Methods are case-sensitive: these are methods of their own, passed on as they are.
    for method in
        ["get", "Get", "BREW", "M-SEARCH", "PROPFIND", "purge", "X", "PRI", "GETGET", "%!#$&'*+-.^_`|~"]
    {
        let line = format!("{method} / HTTP/1.1");
        cases.push(Case::sent(&format!("method {method}"), format!("{line}\r\nHost: a.test\r\n\r\n"), &line));
    }
}

fn origin_forms(cases: &mut Vec<Case>) {
    for (name, target) in [
        ("fragment", "/#x"),
        ("fragment alone", "#x"),
        ("fragment after a query", "/?a#x"),
        ("NUL", "/\0"),
        ("SOH", "/\u{1}"),
        ("DEL", "/\u{7f}"),
        ("a byte above 0x7f", "/\u{e9}"),
        ("UTF-8", "/\u{2603}"),
        ("UTF-8 in the query", "/?\u{2603}"),
        ("<", "/<script>"),
        ("a backquote", "/`"),
        (">", "/>"),
        ("no slash", "a"),
        ("a query alone", "?a"),
        ("dots", "../a"),
        ("a backslash alone", "\\a"),
        ("an escape alone", "%2fa"),
        ("a semicolon alone", ";a"),
        ("* for GET", "*"),
        ("* with a path", "*/a"),
        ("/ before *, reversed", "*?a"),
    ] {
        let send = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        cases.push(Case::refused(&format!("target: {name}"), 400, send));
    }
    // Climbing above the root is larder's own answer: the message is well-formed.
    for target in ["/..", "/../a", "/a/../../b", "/%2e%2e/a", "/.%2E/a", "//../a", "/./../a"] {
        let send = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        cases.push(Case::own(&format!("target climbs: {target}"), 400, send));
    }
    for target in [
        "//",
        "//evil.test/a",
        "///",
        "/a//b",
        "/./a",
        "/a/./b",
        "/a/../b",
        "/%2e/a",
        "/%2F",
        "/a%2fb",
        "/;a=b",
        "/a;b?c;d",
        "/?",
        "/??",
        "/?a?b",
        "/?&",
        "/a%00b",
        "/%0d%0aX:%20y",
        "/%zz",
        "/%",
        "/\"a\"",
        "/\\evil.test",
        "/a|b",
        "/{a}",
        "/^",
        "/[a]",
        "/@",
        "/a:b",
        "/~a",
        "/*",
        "/http://evil.test/",
        "/?url=http://evil.test/",
        "/a%23b",
        "/a%3fb",
        "/a%20b",
        "/+",
        "/...",
        "/..a",
        "/a..",
        "/.a",
    ] {
        let line = format!("GET {target} HTTP/1.1");
        cases.push(Case::sent(&format!("target {target}"), format!("{line}\r\nHost: a.test\r\n\r\n"), &line));
    }
}

fn other_forms(cases: &mut Vec<Case>) {
    for target in [
        "http:/a.test/",
        "http:a.test/",
        "http:",
        "http:/",
        "http://",
        "http:///a",
        "http://?a",
        "https://a.test/",
        "ftp://a.test/",
        "ws://a.test/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:,x",
        "//",
        "a.test",
        "a.test:80",
        "http//a.test/",
        "http://u@a.test/",
        "http://u:p@a.test/",
        "http://@a.test/",
        "http://a.test:99999/",
        "http://a.test:x/",
        "http://a.test:0/",
        "http://a.test#x",
        "http://a.test/#x",
        "http://a.test\\@evil.test/",
        "http://a..test/",
        "http://a,b/",
        "http://a%2etest/",
        "http://[::1/",
        "http://::1/",
        "http://a.test\0/",
        "http://a.test/\u{e9}",
        "http://%61.test/",
        " http://a.test/",
        "http://a.test;evil.test/",
        "http://a.test&b/",
        "http://.a/",
    ] {
        if target != "//" {
            let send = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
            cases.push(Case::refused(&format!("absolute form {target:?}"), 400, send));
        }
    }
    for (target, host, path) in [
        ("http://a.test", "a.test", "/"),
        ("http://a.test/", "a.test", "/"),
        ("http://a.test?x", "a.test", "/?x"),
        ("http://a.test/x?y=http://c.test/", "a.test", "/x?y=http://c.test/"),
        ("HTTP://A.TEST/X", "a.test", "/X"),
        ("http://b.test/x", "b.test", "/x"),
        ("http://b.test:80/x", "b.test", "/x"),
        ("http://b.test:8080/x", "b.test:8080", "/x"),
        ("http://b.test./x", "b.test", "/x"),
        ("http://[::1]/x", "[::1]", "/x"),
        ("http://127.0.0.1//x", "127.0.0.1", "//x"),
    ] {
        let send = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        cases.push(
            Case::sent(&format!("absolute form {target}"), send, &format!("GET {path} HTTP/1.1")).host(host),
        );
    }
    cases.extend([
        Case::refused("absolute form without Host", 400, "GET http://a.test/ HTTP/1.1\r\n\r\n"),
        Case::refused(
            "absolute form with a bad Host",
            400,
            "GET http://a.test/ HTTP/1.1\r\nHost: a b\r\n\r\n",
        ),
        Case::refused(
            "absolute form with an empty Host",
            400,
            "GET http://a.test/ HTTP/1.1\r\nHost:\r\n\r\n",
        ),
        Case::refused(
            "absolute form with two Hosts",
            400,
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
        ),
        Case::sent("absolute form under HTTP/1.0", "GET http://b.test/ HTTP/1.0\r\n\r\n", "GET / HTTP/1.1")
            .host("b.test")
            .fields(&["via: 1.0 larder"])
            .closes(),
        Case::sent(
            "OPTIONS of the server",
            "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "OPTIONS * HTTP/1.1",
        ),
        // RFC 9112 3.2.4: an absolute form without a path is the server as a whole.
        Case::sent(
            "OPTIONS of a server by its name",
            "OPTIONS http://b.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "OPTIONS * HTTP/1.1",
        )
        .host("b.test"),
        Case::sent(
            "OPTIONS of its root",
            "OPTIONS http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "OPTIONS / HTTP/1.1",
        )
        .host("b.test"),
    ]);
}
