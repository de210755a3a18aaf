//! Fields of one connection (RFC 9110 7.6.1, 7.8, 10.1.1), and fields that no client may supply: none goes further.

use crate::hostile::http1::table::{Case, get, post};

const LINE: &str = "GET / HTTP/1.1";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    options(&mut cases);
    dropped(&mut cases);
    expectations(&mut cases);
    loops(&mut cases);
    cases
}

fn options(cases: &mut Vec<Case>) {
    for (name, lines, left) in [
        ("keep-alive", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", &[][..]),
        ("a field that it names", "Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\n", &["x-b: 2"]),
        ("in any case", "CONNECTION: x-A\r\nx-a: 1\r\nX-A: 2\r\n", &[]),
        ("several", "Connection: X-A,X-B ,\tX-C\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\n", &[]),
        ("several lines", "Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\nConnection: X-B\r\n", &[]),
        ("empty members", "Connection: ,, X-A,,\r\nX-A: 1\r\n", &[]),
        ("an empty value", "Connection:\r\nX-A: 1\r\n", &["x-a: 1"]),
        ("members that are no names", "Connection: (x), \u{e9}, \"X-A\", X-A\r\nX-A: 1\r\n", &[]),
        ("named before it stands", "X-A: 1\r\nConnection: X-A\r\n", &[]),
        ("itself", "Connection: Connection\r\n", &[]),
        ("Cookie", "Connection: Cookie\r\nCookie: a=b\r\n", &[]),
        ("Authorization", "Connection: Authorization\r\nAuthorization: Basic eA==\r\n", &[]),
        // What decides about sharing stays, whatever a client says.
        (
            "Cache-Control",
            "Connection: Cache-Control\r\nCache-Control: no-store\r\n",
            &["cache-control: no-store"],
        ),
        ("Range", "Connection: Range\r\nRange: bytes=0-1\r\n", &[]),
        ("Accept-Encoding", "Connection: Accept-Encoding\r\nAccept-Encoding: gzip\r\n", &[]),
        (
            "what larder adds",
            "Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Via\r\n",
            &[],
        ),
        ("framing and Host", "Connection: Content-Length, Transfer-Encoding, Host\r\n", &[]),
        ("Upgrade", "Connection: Upgrade\r\nUpgrade: foo/2\r\n", &[]),
        (
            "h2c",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
            &[],
        ),
        ("h2c without its settings", "Connection: Upgrade\r\nUpgrade: h2c\r\n", &[]),
        ("h2c unannounced", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", &[]),
        ("TLS", "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n", &[]),
        (
            "websocket among others",
            "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n",
            &["sec-websocket-key: x", "sec-websocket-version: 13"],
        ),
        ("websocket twice", "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n", &[]),
        (
            "websocket unannounced",
            "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n",
            &["sec-websocket-key: x"],
        ),
        (
            "websocket without a key",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            &["sec-websocket-version: 13"],
        ),
    ] {
        cases.push(Case::sent(&format!("Connection: {name}"), get(lines), LINE).fields(left));
    }
    for lines in [
        "Connection: close\r\n",
        "Connection: CLOSE\r\n",
        "Connection: keep-alive, close\r\n",
        "Connection: close\r\nConnection: keep-alive\r\n",
        "Connection: x,close,y\r\n",
    ] {
        cases.push(Case::sent(&format!("{lines:?} closes"), get(lines), LINE).closes());
    }
    let many: String = (0..150).map(|n| format!("x-{n}, ")).collect();
    let lines = format!("Connection: {many}X-A\r\nX-A: 1\r\nX-149: 1\r\n");
    cases.push(Case::sent("Connection: a name behind 150 others", get(&lines), LINE));
    let websocket =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n";
    let send = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{websocket}\r\n");
    let left = ["sec-websocket-key: x", "sec-websocket-version: 13"];
    cases.push(Case::sent("a websocket by POST is none", send, "POST / HTTP/1.1").length("").fields(&left));
    let send = get(&format!("Content-Length: 5\r\n{websocket}")) + "hello";
    cases.push(Case::sent("a websocket with content is none", send, LINE).length("hello").fields(&left));
    let send = format!("GET / HTTP/1.0\r\nHost: a.test\r\n{websocket}\r\n");
    let left = ["sec-websocket-key: x", "sec-websocket-version: 13", "via: 1.0 larder"];
    cases.push(Case::sent("a websocket under HTTP/1.0 is none", send, LINE).fields(&left).closes());
}

fn dropped(cases: &mut Vec<Case>) {
    for line in [
        "Keep-Alive: timeout=100",
        "Proxy-Connection: keep-alive",
        "Proxy-Connection: close",
        "TE: gzip, chunked",
        "TE: trailersx",
        "Trailer: X",
        "Trailer: Content-Length",
        "Proxy-Authorization: Basic eA==",
        "Proxy-Authenticate: x",
        "Proxy-Authentication-Info: x",
        "HTTP2-Settings: x",
        "Upgrade: foo",
        "Proxy: http://evil.test/",
        "PROXY: x",
        "Forwarded: for=1;host=evil.test;proto=https",
        "forwarded: x",
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-For: 127.0.0.1, 1.2.3.4",
        "X-Forwarded-Host: evil.test",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Scheme: x",
        "X-Forwarded-Server: x",
        "X-Forwarded-Prefix: /x",
        "X-Forwarded-Ssl: on",
        "X-Forwarded-Path: /x",
        "X-Forwarded: x",
        "X-Forwarded-By: x",
        "X-Forwarded-Anything: x",
        "x-fOrWaRdEd-hOsT: evil.test",
        "X-Original-URL: /admin",
        "X-Rewrite-URL: /admin",
        "X-HTTP-Method-Override: DELETE",
        "X-HTTP-Method: DELETE",
        "X-Method-Override: DELETE",
        "X-Host: evil.test",
        "X-Original-Host: evil.test",
        "X-HTTP-Host-Override: evil.test",
        "X-Real-IP: 1.2.3.4",
        "Surrogate-Capability: evil=\"ESI/1.0\"",
        "Surrogate_Capability: evil=\"ESI/1.0\"",
        "X_Forwarded_Host: evil.test",
        "X_Forwarded-Proto: https",
        "X_Original_URL: /admin",
        "X_HTTP_Method_Override: DELETE",
    ] {
        cases.push(Case::sent(&format!("dropped: {line}"), get(&format!("{line}\r\n")), LINE));
    }
    // It is told in larder's own words, and nothing else of the field.
    for line in ["TE: trailers", "TE: gzip;q=0.5, Trailers", "TE: trailers\r\nTE: x"] {
        let told = ["te: trailers", "connection: te"];
        cases.push(Case::sent(&format!("told: {line}"), get(&format!("{line}\r\n")), LINE).fields(&told));
    }
    let twice = "X-Forwarded-Host: a.test\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-For:\r\nForwarded: x\r\nForwarded: y\r\n";
    cases.push(Case::sent("dropped: every line of them", get(twice), LINE));
    let long = format!("X-Forwarded-For: {}1.2.3.4\r\n", "1.2.3.4, ".repeat(1800));
    cases.push(Case::sent("dropped: a list of 16 KiB", get(&long), LINE));
    // Only what is known to steer applications is dropped; names that merely resemble it go through.
    cases.push(
        Case::sent(
            "kept: names that resemble them",
            get("X-Hosts: 1\r\nForwarded-X: 1\r\nApi_Key: 1\r\nTe-X: 1\r\n"),
            LINE,
        )
        .fields(&["x-hosts: 1", "forwarded-x: 1", "api_key: 1", "te-x: 1"]),
    );
}

fn expectations(cases: &mut Vec<Case>) {
    for value in [
        "",
        "x",
        "100",
        "100-continu",
        "100-continuee",
        "100 continue",
        "200-ok",
        "100-continue, x",
        "100-continue,100-continue",
        "100-continue;q=1",
        "\"100-continue\"",
        "x=y",
    ] {
        cases.push(Case::refused(&format!("Expect {value:?}"), 417, get(&format!("Expect: {value}\r\n"))));
    }
    cases.extend([
        Case::refused("Expect twice", 417, get("Expect: 100-continue\r\nExpect: 100-continue\r\n")),
        Case::refused("Expect twice, one empty", 417, get("Expect: 100-continue\r\nExpect:\r\n")),
        Case::refused("a bad Expect with content", 417, post("Expect: x\r\nContent-Length: 5\r\n", "hello")),
        Case::sent("Expect without content", get("Expect: 100-continue\r\n"), LINE),
        Case::sent("Expect in capitals", get("EXPECT: 100-CONTINUE\r\n"), LINE),
        Case::sent("Expect named by Connection", get("Connection: Expect\r\nExpect: 100-continue\r\n"), LINE),
        Case::sent(
            "Expect of length 0",
            post("Expect: 100-continue\r\nContent-Length: 0\r\n", ""),
            "POST / HTTP/1.1",
        )
        .length(""),
        Case::sent(
            "Expect with content sent along",
            post("Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"),
            "POST / HTTP/1.1",
        )
        .length("hello"),
        Case::sent(
            "Expect with chunks sent along",
            post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            "POST / HTTP/1.1",
        )
        .chunked("hello"),
        // RFC 9110 10.1.1: from an HTTP/1.0 client it means nothing.
        Case::sent("Expect under HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.test\r\nExpect: x\r\n\r\n", LINE)
            .fields(&["via: 1.0 larder"])
            .closes(),
    ]);
}

fn loops(cases: &mut Vec<Case>) {
    let via = |times: usize| get(&"Via: 1.1 larder\r\n".repeat(times));
    cases.push(Case::own("Via: eight times through a larder", 508, via(8)));
    cases.push(Case::own(
        "Via: eight times in one line",
        508,
        get(&format!("Via: {}1.1 x\r\n", "1.1 larder, ".repeat(8))),
    ));
    cases.push(
        Case::sent("Via is continued", get("Via: 1.0 fred, 1.1 p.test\r\n"), LINE)
            .fields(&["via: 1.0 fred, 1.1 p.test", "via: 1.1 larder"]),
    );
    cases.push(Case::own("only-if-cached and not cached", 504, get("Cache-Control: only-if-cached\r\n")));
}
