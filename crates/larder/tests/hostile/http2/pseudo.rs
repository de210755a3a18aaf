//! Pseudo-fields: what a request is, and for whom (RFC 9113 8.3).

use crate::hostile::http2::frames::{
    CONTINUATION, END_STREAM, HEADERS, PROTOCOL_ERROR, STREAM, WHOLE, block, field, frame, get, headers,
    request,
};
use crate::hostile::http2::judge::Case;
use crate::hostile::transport::Transport;

type Fields<'a> = &'a [(&'a str, &'a str)];

fn whole(fields: Fields<'_>) -> Vec<u8> {
    headers(WHOLE, &block(fields))
}

/// A GET whose four pseudo-fields are these.
fn four(method: &str, scheme: &str, authority: &str, path: &str) -> Vec<u8> {
    whole(&[(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)])
}

fn authority(authority: &str) -> Vec<u8> {
    four("GET", Transport::current().scheme(), authority, "/")
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::sent("a plain request", "GET / HTTP/1.1", get("/", &[])),
        Case::sent(
            "a head in two frames",
            "GET / HTTP/1.1",
            [
                frame(HEADERS, END_STREAM, STREAM, &request("GET", "/", &[])[..10]),
                frame(CONTINUATION, 4, STREAM, &request("GET", "/", &[])[10..]),
            ]
            .concat(),
        ),
    ];
    cases.extend(authorities());
    cases.extend(presence());
    cases.extend(paths());
    cases.extend(methods_and_schemes());
    cases
}

fn authorities() -> Vec<Case> {
    let transport = Transport::current();
    let without = |host: Fields<'_>| {
        let mut fields = vec![(":method", "GET"), (":scheme", transport.scheme()), (":path", "/")];
        fields.extend_from_slice(host);
        whole(&fields)
    };
    let mut cases = vec![
        Case::status(":authority and host differ", 400, get("/", &[("host", "b.test")])),
        Case::status(":authority and host differ by port", 400, get("/", &[("host", "a.test:81")])),
        Case::sent(
            ":authority and host agree",
            "GET / HTTP/1.1",
            get("/", &[("host", &format!("A.test:{}", transport.port()))]),
        ),
        Case::status("two hosts beside :authority", 400, get("/", &[("host", "a.test"), ("host", "a.test")])),
        Case::status("an empty host beside :authority", 400, get("/", &[("host", "")])),
        Case::status("a list as host", 400, get("/", &[("host", "a.test, b.test")])),
        Case::sent("host alone", "GET / HTTP/1.1", without(&[("host", "a.test")])),
        Case::status("two hosts alone", 400, without(&[("host", "a.test"), ("host", "a.test")])),
        Case::status("two different hosts alone", 400, without(&[("host", "a.test"), ("host", "b.test")])),
        Case::status("neither :authority nor host", 400, without(&[])),
        Case::status("an empty host alone", 400, without(&[("host", "")])),
        Case::sent("an empty port in :authority", "GET / HTTP/1.1", authority("a.test:")),
        Case::status(
            "another scheme than the connection's, without :authority",
            400,
            whole(&[
                (":method", "GET"),
                (":scheme", transport.other_scheme()),
                (":path", "/"),
                ("host", "a.test"),
            ]),
        ),
        Case::sent(":authority in capitals", "GET / HTTP/1.1", authority("A.TEST")),
        Case::status("user information in :authority", 400, authority("u@a.test")),
        Case::status("user information with a password", 400, authority("u:p@a.test")),
        Case::status("a port out of range", 400, authority("a.test:65536")),
    ];
    for bad in [
        "",
        "a b.test",
        "a.test/x",
        "a.test?x",
        "a.test#x",
        "a.test\\x",
        "a.test\r\nx: y",
        "a.test\0.b",
        "a.test\t",
        "a,b@c",
        "[::1",
        "a.test:8a",
    ] {
        let name = format!(":authority is {bad:?}");
        // What no field's value may have is malformed; all else meets the grammar of Host.
        cases.push(match bad.contains(['\r', '\0', '\t']) {
            true => Case::reset(name, PROTOCOL_ERROR, authority(bad)),
            false => Case::status(name, 400, authority(bad)),
        });
    }
    cases
}

fn presence() -> Vec<Case> {
    let own = Transport::current().scheme();
    let all = [(":method", "GET"), (":scheme", own), (":authority", "a.test"), (":path", "/")];
    let reset = |name: String, fields: Vec<(&str, &str)>| Case::reset(name, PROTOCOL_ERROR, whole(&fields));
    let mut cases = Vec::new();
    for (n, (name, value)) in all.into_iter().enumerate() {
        if name != ":authority" {
            let mut fields = all.to_vec();
            fields.remove(n);
            cases.push(reset(format!("no {name}"), fields));
        }
        let mut fields = all.to_vec();
        fields.push((name, value));
        cases.push(reset(format!("{name} twice"), fields));
        let mut fields = all.to_vec();
        fields.remove(n);
        fields.extend([("x", "y"), (name, value)]);
        cases.push(reset(format!("{name} behind a field"), fields));
        // The second one is what another reader might believe.
        let mut fields = all.to_vec();
        fields.push((name, if name == ":path" { "/evil" } else { "evil" }));
        cases.push(reset(format!("{name} twice, and different"), fields));
    }
    cases.push(Case::reset(
        "no :path and no :authority",
        PROTOCOL_ERROR,
        whole(&[(":method", "GET"), (":scheme", own), ("host", "a.test")]),
    ));
    for (name, value) in [(":status", "200"), (":protocol", "websocket")] {
        let mut fields = all.to_vec();
        fields.push((name, value));
        cases.push(reset(format!("{name} in a request"), fields));
    }
    for name in [":x", ":", ":host", ":Method"] {
        let mut block = request("GET", "/", &[]);
        block.extend(field(name, "x"));
        cases.push(Case::reset(
            format!("unknown pseudo-field {name}"),
            PROTOCOL_ERROR,
            headers(WHOLE, &block),
        ));
    }
    cases
}

fn paths() -> Vec<Case> {
    let own = Transport::current().scheme();
    let path = |path: &str| four("GET", own, "a.test", path);
    let mut cases = vec![
        Case::reset("an empty :path", PROTOCOL_ERROR, path("")),
        Case::status("* with GET", 400, path("*")),
        Case::sent("* with OPTIONS", "OPTIONS * HTTP/1.1", four("OPTIONS", own, "a.test", "*")),
        Case::status("a :path beyond the limit", 414, path(&format!("/{}", "a".repeat(8192)))),
        Case::status("a :path that climbs above the root", 400, path("/a/../../b")),
        Case::sent("a :path that begins with two slashes", "GET //b.test/x HTTP/1.1", path("//b.test/x")),
        Case::status("a fragment in :path", 400, path("/a#b")),
    ];
    for bad in [
        "a",
        "?a",
        "http://b.test/",
        "*a",
        "/a b",
        "/a HTTP/1.1\r\nx: y",
        "/a\r\nx: y",
        "/a\nb",
        "/a\tb",
        "/a\0b",
        "/a\u{7f}",
    ] {
        let name = format!(":path is {bad:?}");
        cases.push(match bad.contains(['\r', '\n', '\0', '\u{7f}']) {
            true => Case::reset(name, PROTOCOL_ERROR, path(bad)),
            false => Case::status(name, 400, path(bad)),
        });
    }
    cases.extend([
        Case::status("a :path that is no UTF-8", 400, path("/\u{e9}")),
        Case::status("a :path above 127", 400, path("/\u{c3}\u{a9}")),
        Case::status("angle brackets in :path", 400, path("/a<b>")),
        Case::sent("a quote and a backslash in :path", "GET /a\"\\b HTTP/1.1", path("/a\"\\b")),
    ]);
    cases
}

fn methods_and_schemes() -> Vec<Case> {
    let transport = Transport::current();
    let method = |method: &str| four(method, transport.scheme(), "a.test", "/");
    let scheme = |scheme: &str| four("GET", scheme, "a.test", "/");
    let mut cases = vec![
        Case::status("TRACE", 501, method("TRACE")),
        Case::reset("CONNECT with :scheme and :path", PROTOCOL_ERROR, method("CONNECT")),
        Case::status("CONNECT", 501, whole(&[(":method", "CONNECT"), (":authority", "a.test:443")])),
        Case::sent("a method in small letters is another one", "get / HTTP/1.1", method("get")),
        Case::sent("a long method", &format!("{} / HTTP/1.1", "A".repeat(32)), method(&"A".repeat(32))),
        Case::status("a method that is too long", 501, method(&"A".repeat(33))),
        Case::status("the scheme of the other transport", 400, scheme(transport.other_scheme())),
        Case::status("another scheme", 400, scheme("ftp")),
    ];
    for bad in ["", "GET /x", "GET\r\nx: y", "GET\0", "G\u{1}T", "G:T"] {
        let name = format!(":method is {bad:?}");
        cases.push(match bad.contains(['\r', '\0', '\u{1}']) {
            true => Case::reset(name, PROTOCOL_ERROR, method(bad)),
            false => Case::status(name, 400, method(bad)),
        });
    }
    cases.push(Case::status("an empty :scheme", 400, scheme("")));
    for bad in ["http://b.test/", "ht tp", "http\r\nx: y", "http:"] {
        let name = format!(":scheme is {bad:?}");
        cases.push(match bad.contains('\r') {
            true => Case::reset(name, PROTOCOL_ERROR, scheme(bad)),
            false => Case::status(name, 400, scheme(bad)),
        });
    }
    cases
}
