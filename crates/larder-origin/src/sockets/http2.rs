//! HTTP/2 towards an origin: what one exchange says and what is believed of the answer.

use std::sync::Arc;

use crate::sockets::contents::{frames, piecemeal, read, read_all};
use crate::sockets::larder::{Larder, get, metric, request};
use crate::sockets::patience::within;
use crate::sockets::peer::{
    END_HEADERS, END_STREAM, HEADERS, Manner, Peer, Raw, Reply, data, frame, head, reset, send_all,
};
use crate::{OriginError, Protocol, ServerAddress};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use larder_http::body::{Body, BodyError};
use larder_http::message::Interim;
use parking_lot::Mutex;

fn http2(address: &ServerAddress) -> Larder {
    Larder::new(address, |settings| settings.protocol = Protocol::Http2)
}

#[tokio::test]
async fn a_request_arrives_as_http2_says_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let peer = Peer::start(Manner::default(), move |mut stream| {
        let log = log.clone();
        async move {
            let content = stream.content().await.unwrap();
            let mut text = format!("{} {}", stream.request.method(), stream.request.uri());
            for (name, value) in stream.request.headers() {
                text.push_str(&format!("|{name}: {}", value.to_str().unwrap()));
            }
            log.lock().push(format!("{text}|{}", String::from_utf8(content).unwrap()));
            stream.answer("fine");
        }
    })
    .await;
    let larder = http2(&peer.address);
    let mut plain = get("/a?b=%2F#".strip_suffix('#').unwrap());
    for (name, value) in
        [("x-a", "1"), ("te", "trailers"), ("connection", "x-b"), ("x-b", "2"), ("host", "evil")]
    {
        plain.fields.append(name, HeaderValue::from_static(value));
    }
    plain.trailers.takes = true;
    let response = larder.origin.send(plain).await.unwrap();
    assert_eq!((response.status, response.content_length, response.reused), (StatusCode::OK, Some(4), false));
    assert!(response.fields.is_empty());
    assert_eq!(read(response.body).await, (b"fine".to_vec(), Ok(())));

    let (sender, body) = piecemeal(None);
    sender.send(Ok(Bytes::from_static(b"ab"))).await.unwrap();
    sender.send(Ok(Bytes::from_static(b"c"))).await.unwrap();
    drop(sender);
    for body in [Body::Empty, Body::from("abc"), body] {
        let response = larder.origin.send(request(Method::POST, "/up", body)).await.unwrap();
        assert!(response.reused);
        assert_eq!(read(response.body).await.0, b"fine");
    }
    assert_eq!(
        *seen.lock(),
        [
            "GET http://app.example/a?b=%2F|x-a: 1|te: trailers|",
            "POST http://app.example/up|content-length: 0|",
            "POST http://app.example/up|content-length: 3|abc",
            "POST http://app.example/up|abc",
        ]
    );
    assert_eq!(peer.stage.connections(), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn content_ends_cleanly_only_where_its_framing_says_so() {
    const FIVE: &[(&str, &str)] = &[("content-length", "5")];
    type Case = (&'static str, fn() -> Reply, Result<(), BodyError>, &'static str);
    let cases: &[Case] = &[
        (
            "whole",
            || Reply::Send([head(1, 200, FIVE, 0), data(1, "abcde", END_STREAM)].concat()),
            Ok(()),
            "abcde",
        ),
        (
            "end in a frame of its own",
            || Reply::Send([head(1, 200, FIVE, 0), data(1, "abcde", 0), data(1, "", END_STREAM)].concat()),
            Ok(()),
            "abcde",
        ),
        (
            "no length",
            || Reply::Send([head(1, 200, &[], 0), data(1, "abc", END_STREAM)].concat()),
            Ok(()),
            "abc",
        ),
        (
            "trailers",
            || {
                let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\0\x03x-t\x011");
                Reply::Send([head(1, 200, FIVE, 0), data(1, "abcde", 0), trailers].concat())
            },
            Ok(()),
            "abcde",
        ),
        (
            "short",
            || Reply::Send([head(1, 200, FIVE, 0), data(1, "ab", 0), data(1, "cd", END_STREAM)].concat()),
            Err(BodyError::Framing),
            "ab",
        ),
        (
            "long",
            || Reply::Send([head(1, 200, FIVE, 0), data(1, "abcde", 0), data(1, "f", END_STREAM)].concat()),
            Err(BodyError::Framing),
            "",
        ),
        (
            "reset",
            || Reply::Send([head(1, 200, FIVE, 0), data(1, "ab", 0), reset(1, 2)].concat()),
            Err(BodyError::Cut),
            "ab",
        ),
        (
            "reset without an error, but before the end",
            || Reply::Send([head(1, 200, &[], 0), data(1, "ab", 0), reset(1, 0)].concat()),
            Err(BodyError::Cut),
            "ab",
        ),
        (
            "reset after the end",
            || Reply::Send([head(1, 200, &[], 0), data(1, "ab", END_STREAM), reset(1, 0)].concat()),
            Ok(()),
            "ab",
        ),
        (
            "closed",
            || Reply::Close([head(1, 200, &[], 0), data(1, "ab", 0)].concat()),
            Err(BodyError::Cut),
            "ab",
        ),
    ];
    for (name, reply, expected, most) in cases {
        let raw = Raw::start(move |_, _| reply()).await;
        let larder = http2(&raw.address);
        let response = larder.origin.send(get("/")).await.unwrap();
        let (bytes, outcome) = read(response.body).await;
        assert_eq!(outcome, *expected, "{name}");
        // Of a broken one the beginning may be lost, but never is more seen than what is sound.
        assert!(most.as_bytes().starts_with(&bytes), "{name}: {bytes:?}");
        assert!(outcome.is_err() || bytes.len() == most.len(), "{name}: {bytes:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_head_without_content_has_none_whatever_length_it_names() {
    for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
        for ends_later in [false, true] {
            let raw = Raw::start(move |_, stream| {
                let length: &[_] = if status == 204 { &[] } else { &[("content-length", "5")] };
                Reply::Send(match ends_later {
                    true => [head(stream, status, length, 0), data(stream, "", END_STREAM)].concat(),
                    false => head(stream, status, length, END_STREAM),
                })
            })
            .await;
            let larder = http2(&raw.address);
            for _ in 0..2 {
                let response = larder.origin.send(request(method.clone(), "/", Body::Empty)).await.unwrap();
                assert_eq!(response.status.as_u16(), status);
                assert_eq!(response.content_length, (status != 204).then_some(5), "{method} {status}");
                assert!(matches!(response.body, Body::Empty), "{method} {status}");
            }
            assert_eq!(raw.stage.connections(), 1);
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn a_head_is_too_large_by_the_sum_of_its_fields() {
    const LINE: (&str, &str) =
        ("a-name-of-twenty-one-", "a value that is long enough for few of them to be too many");
    for (lines, fits) in [(90, true), (100, false)] {
        let raw =
            Raw::start(move |_, stream| Reply::Send(head(stream, 200, &vec![LINE; lines], END_STREAM))).await;
        let larder = Larder::new(&raw.address, |settings| {
            settings.protocol = Protocol::Http2;
            settings.head.bytes_max = 8 * 1024;
        });
        match larder.origin.send(get("/")).await {
            Ok(response) => assert!(fits && response.fields.len() == lines, "{lines}"),
            Err(error) => assert!(!fits && error.token() == "head-too-large", "{lines}: {error:?}"),
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn heads_that_are_none_are_refused() {
    type Case = (&'static str, fn() -> Vec<u8>, &'static str);
    let cases: &[Case] = &[
        ("no status", || frame(HEADERS, 5, 1, b"\0\x01a\x01b"), "bad-response"),
        ("connection-level field", || head(1, 200, &[("connection", "close")], END_STREAM), "bad-response"),
        ("transfer-encoding", || head(1, 200, &[("transfer-encoding", "chunked")], 0), "bad-response"),
        ("length that is none", || head(1, 200, &[("content-length", "5,5")], 0), "bad-response"),
        (
            "two lengths",
            || head(1, 200, &[("content-length", "5"), ("content-length", "6")], 0),
            "bad-response",
        ),
        ("an end before the length", || head(1, 200, &[("content-length", "5")], END_STREAM), "bad-response"),
        ("101", || head(1, 101, &[], 0), "unexpected-upgrade"),
        ("too many fields", || head(1, 200, &[("a", "b"); 300], END_STREAM), "head-too-large"),
        ("content before the head", || data(1, "x", 0), "bad-response"),
        ("no http/2 at all", || b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "bad-response"),
    ];
    for (name, bytes, token) in cases {
        let raw = Raw::start(move |_, _| Reply::Send(bytes())).await;
        let larder = http2(&raw.address);
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!(error.token(), *token, "{name}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn interim_responses_are_relayed_up_to_a_limit() {
    for (sent, expected) in [(3, Ok(3)), (20, Ok(16)), (65, Err("bad-response"))] {
        let raw = Raw::start(move |_, stream| {
            let mut bytes = head(stream, 100, &[], 0);
            for _ in 1..sent {
                bytes.extend(head(stream, 103, &[("link", "</a>")], 0));
            }
            bytes.extend(head(stream, 103, &[("link", "</last>")], 0));
            bytes.extend(head(stream, 200, &[], END_STREAM));
            Reply::Send(bytes)
        })
        .await;
        let larder = http2(&raw.address);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let mut request = get("/");
        request.interims = Some(Arc::new(move |interim: Interim| log.lock().push(interim.status.as_u16())));
        let outcome = larder.origin.send(request).await;
        match expected {
            Ok(passed) => {
                assert_eq!(outcome.unwrap().status, StatusCode::OK);
                assert_eq!(*seen.lock(), vec![103; passed], "{sent}");
            }
            Err(token) => assert_eq!(outcome.unwrap_err().token(), token, "{sent}"),
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn uploads_keep_to_the_window_and_a_broken_one_is_never_whole() {
    let manner = Manner { window: Some(1000), ..Manner::default() };
    let peer = Peer::start(manner, |mut stream| async move {
        let outcome = stream.content().await;
        let text = match &outcome {
            Ok(content) => format!("{} bytes", content.len()),
            Err(error) => format!("reset {:?}", error.reason().unwrap()),
        };
        stream.stage.note(text);
        if outcome.is_ok() {
            stream.answer("took it");
        }
    })
    .await;
    let larder = http2(&peer.address);
    let body = Body::from(Bytes::from(vec![b'x'; 300_000]));
    let response = larder.origin.send(request(Method::PUT, "/", body)).await.unwrap();
    assert_eq!(read(response.body).await.0, b"took it");

    for (length, last) in [(None, Some(Err(BodyError::Cut))), (Some(10), None)] {
        let (sender, body) = piecemeal(length);
        sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
        if let Some(last) = last {
            sender.send(last).await.unwrap();
        }
        drop(sender);
        let error = larder.origin.send(request(Method::PUT, "/", body)).await.unwrap_err();
        assert!(matches!(error.error, OriginError::ClientBody(_)), "{error:?}");
    }
    peer.stage.until(|stage| stage.notes().len() == 3).await;
    assert_eq!(peer.stage.notes(), ["300000 bytes", "reset CANCEL", "reset CANCEL"]);
    assert_eq!(peer.stage.connections(), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_early_answer_stops_the_upload_and_is_read_to_its_end() {
    let raw = Raw::start(|_, stream| {
        let head = head(stream, 413, &[("content-length", "7")], 0);
        Reply::Send([head, data(stream, "too big", END_STREAM), reset(stream, 0)].concat())
    })
    .await;
    let larder = http2(&raw.address);
    let (sender, body) = piecemeal(Some(1000));
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    let response = larder.origin.send(request(Method::PUT, "/", body)).await.unwrap();
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(read(response.body).await, (b"too big".to_vec(), Ok(())));
    assert_eq!(metric(&larder.state, "larder_origin_uploads_stopped_total"), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn websocket_is_refused_where_http2_is_spoken_by_prior_knowledge() {
    let raw = Raw::start(|_, stream| {
        Reply::Send([head(stream, 200, &[], 0), data(stream, "fine", END_STREAM)].concat())
    })
    .await;
    let larder = http2(&raw.address);
    for _ in 0..2 {
        let mut switch = get("/");
        switch.websocket = true;
        let error = larder.origin.send(switch).await.unwrap_err();
        let what = (error.token(), error.status().as_u16(), error.is_dead());
        assert_eq!(what, ("no-websocket", 502, false), "the settings are to blame and not the client");
        // The second time there would be a connection.
        assert_eq!(read(larder.origin.send(get("/")).await.unwrap().body).await.0, b"fine");
    }
    larder.ends_without_leaks().await;
}

/// A frame of trailers that ends the stream; names and values below 128 bytes.
fn trailers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        for text in [name, value] {
            block.extend_from_slice(&[u8::try_from(text.len()).unwrap()]);
            block.extend_from_slice(text.as_bytes());
        }
    }
    // Each a literal without indexing, with a literal name.
    let mut literal = Vec::new();
    let mut rest = block.as_slice();
    while !rest.is_empty() {
        literal.push(0);
        for _ in 0..2 {
            let length = 1 + usize::from(rest[0]);
            literal.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
        }
    }
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &literal)
}

#[tokio::test]
async fn trailers_come_behind_the_content_without_what_may_not() {
    let sent = &[("x-sum", "1"), ("set-cookie", "a=b"), ("grpc-status", "0"), ("content-length", "9")];
    type Case = (&'static str, fn(u32) -> Vec<u8>, &'static str);
    let cases: &[Case] = &[
        ("content", |id| [head(id, 200, &[], 0), data(id, "abcde", 0)].concat(), "abcde"),
        (
            "a length",
            |id| [head(id, 200, &[("content-length", "5")], 0), data(id, "abcde", 0)].concat(),
            "abcde",
        ),
        ("no content", |id| head(id, 200, &[], 0), ""),
    ];
    for (name, begin, content) in cases {
        let raw =
            Raw::start(move |_, stream| Reply::Send([begin(stream), trailers(stream, sent)].concat())).await;
        let larder = http2(&raw.address);
        let response = larder.origin.send(get("/")).await.unwrap();
        let (bytes, came) = read_all(response.body).await;
        assert_eq!(bytes, content.as_bytes(), "{name}");
        let lines: Vec<_> = came.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        assert_eq!(lines, [("x-sum", "1"), ("grpc-status", "0")], "{name}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn more_trailers_than_may_be_cut_the_response() {
    let raw = Raw::start(|_, stream| {
        let many: Vec<(&str, &str)> = vec![("a", "b"); 101];
        Reply::Send([head(stream, 200, &[], 0), data(stream, "abcde", 0), trailers(stream, &many)].concat())
    })
    .await;
    let larder = http2(&raw.address);
    let response = larder.origin.send(get("/")).await.unwrap();
    assert_eq!(read(response.body).await, (b"abcde".to_vec(), Err(BodyError::TooLarge)));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_request_and_its_answer_flow_at_the_same_time() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        let mut answer = stream.begin();
        let body = stream.request.body_mut();
        while let Some(Ok(data)) = body.data().await {
            body.flow_control().release_capacity(data.len()).unwrap();
            send_all(&mut answer, data, false).await;
        }
        let sum = body.trailers().await.unwrap().unwrap_or_default();
        answer.send_trailers(sum).unwrap();
    })
    .await;
    let larder = http2(&peer.address);
    let (sender, body) = frames();
    let response = larder.origin.send(request(Method::POST, "/", body)).await.unwrap();
    let Body::Stream { mut stream, .. } = response.body else { panic!("a stream") };
    use http_body_util::BodyExt as _;
    for text in ["one", "two", "three"] {
        sender.send(http_body::Frame::data(Bytes::from_static(text.as_bytes()))).await.unwrap();
        let frame = within(stream.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), text);
    }
    let sum =
        http::HeaderMap::from_iter([(http::HeaderName::from_static("x-sum"), HeaderValue::from_static("3"))]);
    sender.send(http_body::Frame::trailers(sum.clone())).await.unwrap();
    drop(sender);
    let frame = within(stream.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap(), sum);
    assert!(stream.frame().await.is_none());
    drop(stream);
    assert_eq!(metric(&larder.state, "larder_origin_uploads_stopped_total"), 0);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_answer_that_is_given_up_or_ends_first_stops_the_upload() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        let mut answer = stream.begin();
        if stream.request.uri().path() == "/ends" {
            answer.send_data(Bytes::from_static(b"enough"), true).unwrap();
        }
        let outcome = stream.content().await;
        stream.stage.note(format!("{:?}", outcome.map_err(|error| error.reason())));
    })
    .await;
    let larder = http2(&peer.address);
    for target in ["/ends", "/given-up"] {
        let (sender, body) = frames();
        let response = larder.origin.send(request(Method::POST, target, body)).await.unwrap();
        if target == "/ends" {
            assert_eq!(read(response.body).await, (b"enough".to_vec(), Ok(())));
        } else {
            drop(response);
        }
        within(sender.closed()).await;
    }
    peer.stage.until(|stage| stage.notes().len() == 2).await;
    assert_eq!(peer.stage.notes(), ["Err(Some(CANCEL))", "Err(Some(CANCEL))"]);
    larder.ends_without_leaks().await;
}
