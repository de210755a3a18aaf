//! What origins may answer, one table: the status and body that come out, or the refusal, and whether the connection
//! is used again. After each case a second request must get its own answer, so nothing can leak from the first.

use crate::sockets::contents::read;
use crate::sockets::larder::{Larder, get, request};
use crate::sockets::origins::{ended, fine, in_turn};
use bytes::Bytes;
use http::Method;
use larder_http::body::BodyError;
use larder_testkit::origin::{Answer, Origin, PathScript};
use larder_testkit::wire::latin1;

enum Then {
    Stay,
    Close,
    Reset,
}
use Then::{Close, Reset, Stay};

enum Expect<'a> {
    /// `send` fails with this token.
    Refused(&'a str),
    /// Complete; then whether the connection served the second request too.
    Whole(u16, &'a str, Connection),
    /// The body breaks after this much.
    Broken(u16, &'a str, BodyError),
}
use Expect::{Broken, Refused, Whole};

#[derive(PartialEq)]
enum Connection {
    Kept,
    Closed,
}
use Connection::{Closed, Kept};

async fn check(name: &str, method: Method, raw: &[u8], then: Then, expect: Expect<'_>) {
    let first = Answer::literal(latin1(raw));
    let first = match then {
        Stay => first.keep_open(),
        Close => first,
        Reset => first.wait_for("reset").reset(),
    };
    let scripts = vec![PathScript::new("/first", [first]), PathScript::new("/second", [fine("second")])];
    let origin = Origin::simple(scripts).unwrap();
    let larder = Larder::before(&origin, |_| ());

    let outcome = larder.origin.send(request(method, "/first", larder_http::body::Body::Empty)).await;
    origin.gates().release("reset");
    let mut is_kept = false;
    match (outcome, expect) {
        (Err(error), Refused(token)) => assert_eq!(error.token(), token, "{name}"),
        (Ok(response), Whole(status, text, connection)) => {
            assert_eq!(response.status.as_u16(), status, "{name}");
            for field in ["content-length", "transfer-encoding", "connection", "keep-alive", "trailer"] {
                assert!(!response.fields.contains_key(field), "{name}: {field}");
            }
            let (body, outcome) = read(response.body).await;
            assert_eq!((String::from_utf8_lossy(&body).as_ref(), outcome), (text, Ok(())), "{name}");
            is_kept = connection == Kept;
        }
        (Ok(response), Broken(status, text, error)) => {
            assert_eq!(response.status.as_u16(), status, "{name}");
            let (body, outcome) = read(response.body).await;
            assert_eq!((String::from_utf8_lossy(&body).as_ref(), outcome), (text, Err(error)), "{name}");
        }
        (Ok(response), Refused(token)) => panic!("{name}: {response:?}, expected {token}"),
        (Err(error), _) => panic!("{name}: {error:?}"),
    }

    let second = larder.origin.send(get("/second")).await.unwrap();
    assert_eq!(second.reused, is_kept, "{name}");
    assert_eq!(read(second.body).await.0, b"second", "{name}");
    assert_eq!(origin.log().connections(), if is_kept { 1 } else { 2 }, "{name}");
    assert_eq!(origin.log().count(), 2, "{name}");
    if !is_kept {
        ended(&origin, 1).await;
    }
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn framing_decides_where_a_body_ends() {
    let cases: Vec<(&str, &str, Then, Expect<'_>)> = vec![
        ("length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Stay, Whole(200, "abc", Kept)),
        ("length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Stay, Whole(200, "", Kept)),
        (
            "same length twice",
            "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
            Stay,
            Whole(200, "abc", Kept),
        ),
        ("no framing", "HTTP/1.1 200 OK\r\n\r\nabc", Close, Whole(200, "abc", Closed)),
        ("no framing, reset", "HTTP/1.1 200 OK\r\n\r\nabc", Reset, Broken(200, "abc", BodyError::Cut)),
        (
            "connection close",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "short",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            Close,
            Broken(200, "abc", BodyError::Cut),
        ),
        (
            "short, reset",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            Reset,
            Broken(200, "abc", BodyError::Cut),
        ),
        ("long", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", Stay, Whole(200, "abc", Closed)),
        (
            "two answers at once",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "different lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            Stay,
            Refused("bad-response"),
        ),
        ("length list", "HTTP/1.1 200 OK\r\nContent-Length: 3,4\r\n\r\nabcd", Stay, Refused("bad-response")),
        ("empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Stay, Refused("bad-response")),
        ("signed length", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", Stay, Refused("bad-response")),
        (
            "huge length",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
        // hyper keeps the largest numbers for itself and calls them too large.
        (
            "largest length",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
            Stay,
            Refused("head-too-large"),
        ),
        (
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            Stay,
            Whole(200, "abcde", Kept),
        ),
        (
            "trailers",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\nContent-Length: 9\r\n\r\n",
            Stay,
            Whole(200, "abc", Kept),
        ),
        (
            "chunked, no end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            Close,
            Broken(200, "abc", BodyError::Cut),
        ),
        (
            "chunk cut",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            Close,
            Broken(200, "abc", BodyError::Cut),
        ),
        (
            "last chunk without its end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            Close,
            Broken(200, "abc", BodyError::Cut),
        ),
        (
            "bad chunk size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "signed chunk size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n+1\r\nd\r\n0\r\n\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "0x chunk size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0x1\r\nd\r\n0\r\n\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "huge chunk size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n11111111111111111\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "chunk longer than said",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "bare LF after size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\nd\r\n0\r\n\r\n",
            Stay,
            Broken(200, "abc", BodyError::Framing),
        ),
        (
            "bytes after chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nextra",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "chunked and length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "chunked and bad length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n0\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
        (
            "chunked twice",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
        (
            "gzip, chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
        (
            "chunked, identity",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
        (
            "unknown coding",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\nabc",
            Close,
            Whole(200, "abc", Closed),
        ),
        (
            "unknown coding, reset",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\nabc",
            Reset,
            Broken(200, "abc", BodyError::Cut),
        ),
        (
            "unknown coding, length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\nContent-Length: 3\r\n\r\nabc",
            Stay,
            Refused("bad-response"),
        ),
        ("1.0 to close", "HTTP/1.0 200 OK\r\n\r\nabc", Close, Whole(200, "abc", Closed)),
        (
            "1.0 with length",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "1.0 keep-alive",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
            Stay,
            Whole(200, "abc", Closed),
        ),
        (
            "1.0 chunked",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Stay,
            Refused("bad-response"),
        ),
    ];
    for (name, raw, then, expect) in cases {
        check(name, Method::GET, raw.as_bytes(), then, expect).await;
    }
}

#[tokio::test]
async fn answers_without_content_have_none() {
    let cases: Vec<(&str, Method, &str, Expect<'_>)> = vec![
        ("HEAD", Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", Whole(200, "", Kept)),
        (
            "HEAD chunked",
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            Whole(200, "", Kept),
        ),
        (
            "HEAD with body",
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            Whole(200, "", Closed),
        ),
        (
            "HEAD, two lengths",
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            Refused("bad-response"),
        ),
        ("204", Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", Whole(204, "", Kept)),
        (
            "204 with body",
            Method::GET,
            "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
            Whole(204, "", Closed),
        ),
        ("304", Method::GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", Whole(304, "", Kept)),
        (
            "304 with body",
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nabc",
            Whole(304, "", Closed),
        ),
        (
            "304 with an answer as body",
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
            Whole(304, "", Closed),
        ),
    ];
    for (name, method, raw, expect) in cases {
        check(name, method, raw.as_bytes(), Stay, expect).await;
    }
}

#[tokio::test]
async fn heads_are_repaired_or_refused() {
    let long_reason = format!("HTTP/1.1 200 {}\r\nContent-Length: 3\r\n\r\nabc", "r".repeat(8192));
    let cases: Vec<(&str, &[u8], Then, Expect<'_>)> = vec![
        ("no status line", b"hello world\r\n\r\n", Stay, Refused("bad-response")),
        ("HTTP/0.9", b"<html>hello</html>", Close, Refused("bad-response")),
        ("HTTP/2.0", b"HTTP/2.0 200 OK\r\n\r\n", Stay, Refused("bad-response")),
        ("status 099", b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("status 20", b"HTTP/1.1 20 Low\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("status 1000", b"HTTP/1.1 1000 High\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("status -20", b"HTTP/1.1 -20 Odd\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("status 999", b"HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n", Stay, Whole(999, "", Kept)),
        ("no reason", b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Stay, Whole(200, "", Kept)),
        ("long reason", long_reason.as_bytes(), Stay, Whole(200, "abc", Kept)),
        ("high bytes in the reason", b"HTTP/1.1 200 \xff\xfe\r\nContent-Length: 0\r\n\r\n", Stay, Whole(200, "", Kept)),
        ("CR in the reason", b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("NUL in the reason", b"HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("folded line", b"HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("space before the colon", b"HTTP/1.1 200 OK\r\nX-A : 1\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("space before the name", b"HTTP/1.1 200 OK\r\n X-A: 1\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("no colon", b"HTTP/1.1 200 OK\r\nX-A\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("empty name", b"HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("name is no token", b"HTTP/1.1 200 OK\r\nX(A): 1\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("high byte in a name", b"HTTP/1.1 200 OK\r\nX\xe9: 1\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("NUL in a value", b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("CR in a value", b"HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("control in a value", b"HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n", Stay, Refused("bad-response")),
        ("high bytes in a value", b"HTTP/1.1 200 OK\r\nX-A: \xe9\xff\r\nContent-Length: 0\r\n\r\n", Stay, Whole(200, "", Kept)),
        ("bare LF", b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", Stay, Whole(200, "abc", Kept)),
        ("connection-level fields", b"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nContent-Length: 0\r\n\r\n", Stay, Whole(200, "", Kept)),
        ("101 unasked", b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n", Stay, Refused("unexpected-upgrade")),
        ("nothing", b"", Close, Refused("closed")),
        ("nothing, reset", b"", Reset, Refused("closed")),
        ("half a head", b"HTTP/1.1 200 OK\r\nX-A: ", Close, Refused("closed")),
        ("only interim", b"HTTP/1.1 103 Early Hints\r\n\r\n", Close, Refused("closed")),
    ];
    for (name, raw, then, expect) in cases {
        if matches!(then, Reset) {
            // The origin resets after the test has seen the head; here there is none to see.
            let origin = in_turn([Answer::literal("").reset()]);
            let larder = Larder::before(&origin, |_| ());
            let error = larder.origin.send(get("/")).await.unwrap_err();
            assert!(matches!(expect, Refused(token) if token == error.token()), "{name}: {error:?}");
            assert!(error.is_dead(), "{name}");
            larder.ends_without_leaks().await;
            continue;
        }
        check(name, Method::GET, raw, then, expect).await;
    }
}

#[tokio::test]
async fn limits_of_the_head_hold() {
    let fields = |count: usize| -> String { (0..count).map(|i| format!("X-{i}: 1\r\n")).collect() };
    let with = |fields: String| format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
    let value = |bytes: usize| format!("X-A: {}\r\n", "v".repeat(bytes));
    let endless = format!("HTTP/1.1 200 OK\r\n{}", value(60_000).repeat(3));
    let cases: Vec<(&str, String, Expect<'_>)> = vec![
        ("256 fields", with(fields(255)), Whole(200, "", Kept)),
        ("257 fields", with(fields(256)), Refused("head-too-large")),
        ("field of 64 KiB", with(value(65_536 - 3)), Whole(200, "", Kept)),
        ("field over 64 KiB", with(value(65_536 - 2)), Refused("head-too-large")),
        ("name of 65536", with(format!("{}: 1\r\n", "n".repeat(65_536))), Refused("head-too-large")),
        ("head near 128 KiB", with(value(62_000).repeat(2)), Whole(200, "", Kept)),
        ("head over 128 KiB", with(value(50_000).repeat(3)), Refused("head-too-large")),
        ("head that never ends", endless, Refused("head-too-large")),
    ];
    for (name, raw, expect) in cases {
        check(name, Method::GET, raw.as_bytes(), Stay, expect).await;
    }
}

#[tokio::test]
async fn announced_lengths_are_told_also_where_no_content_follows() {
    let origin = in_turn([fine("1234567")]);
    let larder = Larder::before(&origin, |_| ());
    let head = larder.origin.send(request(Method::HEAD, "/", Default::default())).await.unwrap();
    assert_eq!((head.content_length, head.body.length()), (Some(7), Some(0)));
    let get = larder.origin.send(get("/")).await.unwrap();
    assert_eq!((get.content_length, get.body.length()), (Some(7), Some(7)));
}

#[tokio::test]
async fn interims_are_passed_on_stripped_and_bounded() {
    let many = |count: usize| "HTTP/1.1 102 Processing\r\n\r\n".repeat(count);
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";
    let cases: Vec<(&str, String, Result<usize, &str>)> = vec![
        ("none", ok.to_owned(), Ok(0)),
        ("100 is never passed on", format!("HTTP/1.1 100 Continue\r\n\r\n{ok}"), Ok(0)),
        ("103", format!("{hints}{ok}"), Ok(1)),
        ("16 at most", format!("{}{ok}", many(40)), Ok(16)),
        ("a flood is refused", format!("{}{ok}", many(100)), Err("bad-response")),
        ("a flood without end", many(100), Err("bad-response")),
    ];
    for (name, raw, expected) in cases {
        let more = Some("x".to_owned());
        let origin = in_turn([Answer { extra: more, ..Answer::literal(raw).keep_open() }]);
        let larder = Larder::before(&origin, |_| ());
        let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let sink = seen.clone();
        let mut asked = get("/");
        asked.interims = Some(std::sync::Arc::new(move |interim| sink.lock().push(interim)));
        match (larder.origin.send(asked).await, expected) {
            (Ok(_), Ok(count)) => assert_eq!(seen.lock().len(), count, "{name}"),
            (Err(error), Err(token)) => assert_eq!(error.token(), token, "{name}"),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
        for interim in seen.lock().iter() {
            assert!(!interim.fields.contains_key("x-hop") && !interim.fields.contains_key("connection"));
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn requests_go_out_byte_for_byte_with_our_host_and_framing() {
    let cases: Vec<(Method, &'static str, &str, &str)> = vec![
        (Method::GET, "/", "", "GET / HTTP/1.1\r\nhost: app.example\r\n\r\n"),
        (Method::GET, "//a/../b?", "", "GET //a/../b? HTTP/1.1\r\nhost: app.example\r\n\r\n"),
        (
            Method::GET,
            "/%2e%2E/%zz?a=b&&c=%",
            "",
            "GET /%2e%2E/%zz?a=b&&c=% HTTP/1.1\r\nhost: app.example\r\n\r\n",
        ),
        (Method::POST, "/p", "", "POST /p HTTP/1.1\r\nhost: app.example\r\ncontent-length: 0\r\n\r\n"),
        (Method::POST, "/p", "abc", "POST /p HTTP/1.1\r\nhost: app.example\r\ncontent-length: 3\r\n\r\nabc"),
        (Method::from_bytes(b"purge").unwrap(), "/", "", "purge / HTTP/1.1\r\nhost: app.example\r\n\r\n"),
    ];
    for (method, target, body, expected) in cases {
        let origin = in_turn([fine("ok")]);
        let larder = Larder::before(&origin, |_| ());
        let body = Bytes::copy_from_slice(body.as_bytes()).into();
        let response = larder.origin.send(request(method, target, body)).await.unwrap();
        assert_eq!(read(response.body).await, (b"ok".to_vec(), Ok(())));
        larder.ends_without_leaks().await;
        assert_eq!(ended(&origin, 1).await, expected);
    }
}
