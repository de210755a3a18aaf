//! Every way in which two parsers could read a request differently is refused, the connection is closed, and nothing
//! that came behind it is read as a request.

use std::time::Duration;

use crate::sockets::support::{Listening, eventually, soon};
use crate::{Limits, Settings};

/// Sends `request` with another request behind it.
async fn check(name: &str, request: &[u8], status: u16, token: &str) {
    let listener = Listening::open();
    let response = listener.send([request, b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).await;
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {response:?}");
    assert!(response.ends_with(&format!("\r\nconnection: close\r\n\r\n{}", last_line(&response))), "{name}");
    assert!(last_line(&response).ends_with(&format!(": {token}\n")), "{name}: {response:?}");
    assert_eq!(response.matches("HTTP/1.1").count(), 1, "{name}: {response:?}");
    assert!(!listener.lines().iter().any(|line| line.contains("smuggled")), "{name}");
    let told: Vec<_> = listener.service.refused.lock().iter().map(|refusal| refusal.as_str()).collect();
    assert_eq!(told, [token], "{name}");
}

fn last_line(response: &str) -> &str {
    response.rsplit("\r\n").next().unwrap()
}

#[tokio::test]
async fn a_request_line_has_one_reading() {
    for (request, status, token) in [
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET /\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET\r\n\r\n", 400, "request-line"),
        (" / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / HTTP/1.1x\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / HTTP/11\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-line"),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, "version"),
        ("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505, "version"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "version"),
        ("PRI * HTTP/2.0\r\nHost: a\r\n\r\n", 505, "version"),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501, "method"),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501, "method"),
        ("GET # HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET /<> HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"),
        ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "scheme"),
        ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "host"),
        ("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "host"),
    ] {
        check(request, request.as_bytes(), status, token).await;
    }
    let long = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(33));
    check("long method", long.as_bytes(), 501, "method").await;
}

#[tokio::test]
async fn lines_end_in_crlf_and_hold_no_controls() {
    for (request, token) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", "line-end"),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "line-end"),
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\rGET", "line-end"),
        ("GET / HTTP/1.1\r\nHost: a\0.b\r\n\r\n", "control"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n", "control"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "control"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", "control"),
        ("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", "control"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", "control"),
    ] {
        check(request, request.as_bytes(), 400, token).await;
    }
}

#[tokio::test]
async fn field_lines_are_names_and_values_and_nothing_else() {
    for line in [
        "X : a",
        "X\t: a",
        " X: a",
        "\tX: a",
        "X: a\r\n folded",
        ": a",
        "X",
        "X@Y: a",
        "X Y: a",
        "\"X\": a",
        "(X): a",
        "X\u{e9}: a",
        "Content-Length : 5",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n");
        check(line, request.as_bytes(), 400, "field-line").await;
        let request = format!("GET / HTTP/1.1\r\n{line}\r\nHost: a\r\n\r\n");
        check(line, request.as_bytes(), 400, "field-line").await;
    }
}

#[tokio::test]
async fn there_is_exactly_one_good_host() {
    for (fields, token) in [
        ("", "host-count"),
        ("Host: a\r\nHost: a\r\n", "host-count"),
        ("Host: a\r\nhost: b\r\n", "host-count"),
        ("Host:\r\n", "host"),
        ("Host: \r\n", "host"),
        ("Host: a b\r\n", "host"),
        ("Host: a,b\r\n", "host"),
        ("Host: u@a\r\n", "host"),
        ("Host: a:b\r\n", "host"),
        ("Host: a:80:80\r\n", "host"),
        ("Host: a/b\r\n", "host"),
        ("Host: http://a\r\n", "host"),
        ("Host: [::1\r\n", "host"),
        ("Host: \u{e9}\r\n", "host"),
        ("Host: a?b\r\n", "host"),
        ("Host: a..b\r\n", "host"),
    ] {
        for target in ["/", "http://a/"] {
            let request = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
            check(&request, request.as_bytes(), 400, token).await;
        }
    }
    check("1.0", b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400, "host-count").await;
}

#[tokio::test]
async fn framing_is_beyond_doubt() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length: 5_0",
        "Content-Length: 5 0",
        "Content-Length:",
        "Content-Length: 18446744073709551616",
        "Content-Length: 18446744073709551621",
        "Content-Length: five",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding:",
        "Transfer-Encoding: chunked;x=y",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Connection: transfer-encoding\r\nTransfer-Encoding: gzip",
    ] {
        for target in ["/", "/ignore"] {
            let request = format!("POST {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
            check(fields, request.as_bytes(), 400, "framing").await;
        }
    }
    let old = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check("1.0", old, 400, "framing").await;
    let expects = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 5\r\n\r\n";
    check("expect", expects, 417, "expectation").await;
    let expects = b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n";
    check("expect", expects, 417, "expectation").await;
}

#[tokio::test]
async fn broken_chunks_are_answered_by_400_and_never_reach_an_end() {
    for chunks in [
        "x\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n",
        "ffffffffffffffff\r\n",
        "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: \0\r\n\r\n",
    ] {
        let request = format!("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        check(chunks, request.as_bytes(), 400, "framing").await;
    }
}

#[tokio::test]
async fn content_that_is_cut_is_a_400_and_its_reader_knows() {
    for framing in ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\na\r\nhello"] {
        let listener = Listening::open();
        let mut client = listener.connect().await;
        client.write(format!("POST /up HTTP/1.1\r\nHost: a\r\n{framing}")).await;
        eventually(|| listener.service.calls.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
        client.connection.close_write().await.unwrap();
        let response = client.rest().await;
        assert!(response.starts_with("HTTP/1.1 400 ") && response.ends_with(": body-cut\n"), "{response:?}");
        assert!(listener.lines().is_empty(), "the reader never saw an end");
    }
}

#[tokio::test]
async fn each_limit_of_the_head_holds() {
    let request = |line: &str, fields: &str| format!("{line}\r\nHost: a\r\n{fields}\r\n");
    let check_limit = |line: String, fields: String, status: u16, token: &'static str| async move {
        let response = Listening::open().send(request(&line, &fields)).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {response:.100}");
        assert!(status == 200 || response.ends_with(&format!(": {token}\n")), "{token}: {response:.300}");
    };
    let get = "GET / HTTP/1.1".to_owned();
    let close = "Connection: close\r\n";
    let target = |n: usize| format!("GET /{} HTTP/1.1", "a".repeat(n - 1));
    check_limit(target(8192), close.into(), 200, "").await;
    check_limit(target(8193), close.into(), 414, "target-too-long").await;
    check_limit(target(30_000), close.into(), 414, "target-too-long").await;
    let many = |n: usize| format!("{close}{}", "a: b\r\n".repeat(n - 2));
    check_limit(get.clone(), many(100), 200, "").await;
    check_limit(get.clone(), many(101), 431, "too-many-fields").await;
    check_limit(get.clone(), many(3000), 431, "too-many-fields").await;
    let field = |n: usize| format!("{close}x: {}\r\n", "v".repeat(n - 3));
    check_limit(get.clone(), field(16_384), 200, "").await;
    check_limit(get.clone(), field(16_385), 431, "field-too-large").await;
    let name = |n: usize| format!("{close}{}: v\r\n", "n".repeat(n));
    for n in [254, 255, 256, 257, 16_381] {
        check_limit(get.clone(), name(n), 200, "").await;
    }
    check_limit(get.clone(), name(65_537), 431, "field-too-large").await;
    let head = |n: usize| {
        let long = "v".repeat(15_000);
        format!("{close}a: {long}\r\nb: {long}\r\nc: {}\r\n", "v".repeat(n - 30_061))
    };
    let whole = request(&get, &head(32 * 1024));
    assert_eq!(whole.len(), 32 * 1024);
    check_limit(get.clone(), head(32 * 1024), 200, "").await;
    check_limit(get.clone(), head(32 * 1024 + 1), 431, "head-too-large").await;
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_told_so() {
    let short = Duration::from_millis(50);
    let limits = Limits { head_time: short, body_idle: short, keep_alive_idle: short, ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let response = listener.send("GET / HTTP/1.1\r\nHos").await;
    assert!(response.starts_with("HTTP/1.1 408 ") && response.ends_with(": head-timeout\n"), "{response:?}");
    let response = listener.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel").await;
    assert!(response.starts_with("HTTP/1.1 408 ") && response.ends_with(": body-timeout\n"), "{response:?}");
    assert_eq!(listener.send("").await, "", "a connection that says nothing is closed without a word");
    let response = listener.send("GET /empty HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("\r\n\r\n"), "{response:?}");
    let mut found = 0;
    listener.metrics.for_each(&mut |name, _, labels, value| {
        found += u64::from(name == "larder_limit_reached_total" && labels == [("limit", "keep_alive_idle")])
            * value;
    });
    assert_eq!(found, 2);
}

#[tokio::test]
async fn where_no_connection_is_kept_each_answer_says_so() {
    let limits = Limits { keep_alive_idle: Duration::ZERO, ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let response = listener.send("GET /empty HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(
        response.starts_with("HTTP/1.1 200 ") && response.contains("\r\nconnection: close\r\n"),
        "{response:?}"
    );
    assert_eq!(listener.metrics.idle_closed.value(), 0);
}

#[tokio::test]
async fn a_head_that_trickles_has_the_same_time_as_one_that_stops() {
    let limits = Limits { head_time: Duration::from_millis(100), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = listener.connect().await;
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(10_000));
    let trickle = async {
        for byte in head.bytes() {
            client.write([byte]).await;
            // Bytes, or the end, in place of a pause.
            if !matches!(client.connection.ends_within(Duration::from_millis(5)).await, Ok(false)) {
                return;
            }
        }
        panic!("never refused");
    };
    soon(trickle).await;
}

#[tokio::test]
async fn content_beyond_the_limit_is_413() {
    let limits = Limits { body_bytes_max: Some(4), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    for framing in
        ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
    {
        let response = listener.send(format!("POST /up HTTP/1.1\r\nHost: a\r\n{framing}")).await;
        assert!(
            response.starts_with("HTTP/1.1 413 ") && response.ends_with(": body-too-large\n"),
            "{response:?}"
        );
    }
}
