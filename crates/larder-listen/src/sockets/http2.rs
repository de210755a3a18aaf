//! Exchanges over HTTP/2 with prior knowledge, on the same port as HTTP/1.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sockets::support::{Listening, eventually, soon};
use crate::{Limits, Refusal, Settings};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;

async fn connect(listener: &Listening) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(listener.address).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    send.ready().await.unwrap()
}

fn request(method: &str, uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(uri).version(http::Version::HTTP_2);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

fn send(
    client: &mut SendRequest<Bytes>,
    request: Request<()>,
    ends: bool,
) -> (ResponseFuture, SendStream<Bytes>) {
    client.send_request(request, ends).unwrap()
}

async fn read(response: ResponseFuture) -> Result<(http::response::Parts, Vec<u8>), h2::Error> {
    let (parts, mut body) = soon(response).await?.into_parts();
    let mut all = Vec::new();
    while let Some(bytes) = soon(body.data()).await {
        let bytes = bytes?;
        body.flow_control().release_capacity(bytes.len()).unwrap();
        all.extend_from_slice(&bytes);
    }
    Ok((parts, all))
}

async fn fetch(
    listener: &Listening,
    request: Request<()>,
) -> Result<(http::response::Parts, Vec<u8>), h2::Error> {
    let mut client = connect(listener).await;
    let (response, _) = send(&mut client, request, true);
    read(response).await
}

#[tokio::test]
async fn requests_and_answers_keep_their_meaning() {
    let listener = Listening::open();
    let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x", "y")];
    let (parts, body) = fetch(&listener, request("GET", "http://A.test:80/p?q", &fields)).await.unwrap();
    assert_eq!(parts.status, 200);
    assert_eq!(body, b"GET a.test /p?q HTTP/2.0\n");
    assert_eq!(parts.headers["content-length"], "25");
    assert!(parts.headers.contains_key("date"));
    let seen = listener.service.seen.lock().pop().unwrap();
    let fields: Vec<_> = seen.fields.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    assert_eq!(fields, [("cookie", "a=1; b=2"), ("x", "y")]);

    let (parts, body) = fetch(&listener, request("HEAD", "http://a/known", &[])).await.unwrap();
    assert_eq!((&parts.headers["content-length"], body.len()), (&"10".parse().unwrap(), 0));
    let (parts, body) = fetch(&listener, request("GET", "http://a/unknown", &[])).await.unwrap();
    assert_eq!((parts.headers.get("content-length"), body.as_slice()), (None, b"0123456789".as_slice()));
    let (parts, body) = fetch(&listener, request("GET", "http://a/stored", &[])).await.unwrap();
    assert_eq!((&parts.headers["x-stored"], body.as_slice()), (&"1".parse().unwrap(), b"stored".as_slice()));
    let (parts, _) = fetch(&listener, request("GET", "http://a/304", &[])).await.unwrap();
    assert_eq!((parts.status.as_u16(), parts.headers.get("content-length")), (304, None));
    let (_, body) = fetch(&listener, request("GET", "http://a/pieces", &[])).await.unwrap();
    assert_eq!(body.len(), 2_000_995);
}

#[tokio::test]
async fn content_flows_as_it_is_read() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let fields = [("expect", "100-continue"), ("content-length", "1000000")];
    let (mut response, mut stream) = send(&mut client, request("POST", "http://a/up", &fields), false);
    let interim = soon(poll_fn(|cx| response.poll_informational(cx))).await.unwrap().unwrap();
    assert_eq!(interim.status(), 100);
    let mut left = Bytes::from(vec![b'x'; 1_000_000]);
    while !left.is_empty() {
        stream.reserve_capacity(left.len());
        let room = soon(poll_fn(|cx| stream.poll_capacity(cx))).await.unwrap().unwrap();
        let piece = left.split_to(room.min(left.len()));
        stream.send_data(piece, false).unwrap();
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-trailer", "1".parse().unwrap());
    trailers.insert("content-length", "1".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
    let (parts, _) = read(response).await.unwrap();
    assert_eq!(parts.status, 200);
    let seen = listener.service.seen.lock()[0].clone();
    assert_eq!(seen.body.as_ref().map(Vec::len), Ok(1_000_000));
    assert_eq!(seen.trailers["x-trailer"], "1");
    assert_eq!(seen.trailers.len(), 1, "content-length is no trailer");
}

#[tokio::test]
async fn interim_responses_come_before_the_final_one() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let (mut response, _) = send(&mut client, request("GET", "http://a/interims", &[]), true);
    let mut links = Vec::new();
    while let Some(interim) = soon(poll_fn(|cx| response.poll_informational(cx))).await {
        let interim: Response<()> = interim.unwrap();
        assert_eq!(interim.status(), 103);
        links.push(interim.headers()["link"].to_str().unwrap().to_owned());
    }
    assert_eq!(links, (0..16).map(|n| format!("</{n}>")).collect::<Vec<_>>());
    assert_eq!(read(response).await.unwrap().1, b"final");
}

#[tokio::test]
async fn a_request_that_http1_would_refuse_is_refused() {
    for (request, status) in [
        (request("GET", "http://a/", &[("host", "b")]), 400),
        (request("GET", "https://a/", &[]), 400),
        (request("GET", "http://u@a/", &[]), 400),
        (request("TRACE", "http://a/", &[]), 501),
        (request("GET", "http://a/", &[("expect", "x")]), 417),
        (request("GET", &format!("http://a/{}", "x".repeat(9000)), &[]), 414),
        (request("GET", "http://a/", &[("x", &"y".repeat(17_000))]), 431),
        (request("GET", "http://a/", &[("cookie", "a"); 101]), 431),
    ] {
        let listener = Listening::open();
        let (parts, _) = fetch(&listener, request).await.unwrap();
        assert_eq!(
            (parts.status.as_u16(), &parts.headers["cache-control"]),
            (status, &"no-store".parse().unwrap())
        );
        assert!(listener.lines().is_empty());
    }
}

#[tokio::test]
async fn a_malformed_request_is_reset_and_told() {
    let listener = Listening::open();
    let error = fetch(&listener, request("GET", "http://a/", &[("x", " y")])).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR));
    assert!(listener.lines().is_empty());
    assert_eq!(listener.metrics.refused(Refusal::FieldLine), 1);
}

#[tokio::test]
async fn content_that_is_not_as_long_as_it_said_never_reaches_an_end() {
    for sent in ["hell", "hello!"] {
        let listener = Listening::open();
        let mut client = connect(&listener).await;
        let fields = [("content-length", "5")];
        let (response, mut stream) = send(&mut client, request("POST", "http://a/up", &fields), false);
        stream.send_data(Bytes::from(sent), true).unwrap();
        assert_eq!(read(response).await.unwrap_err().reason(), Some(Reason::PROTOCOL_ERROR), "{sent}");
        eventually(|| listener.service.running.load(Ordering::SeqCst) == 0).await;
        assert!(listener.service.seen.lock().iter().all(|seen| seen.body.is_err()), "{sent}");
    }
}

#[tokio::test]
async fn a_reset_ends_the_call_at_every_stage() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let (response, mut stream) = send(&mut client, request("GET", "http://a/never", &[]), true);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 1).await;
    stream.send_reset(Reason::CANCEL);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 0).await;
    drop((response, stream));

    let (response, mut stream) = send(&mut client, request("POST", "http://a/up", &[]), false);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 1).await;
    stream.send_reset(Reason::CANCEL);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 0).await;
    drop((response, stream));

    let (response, _) = send(&mut client, request("GET", "http://a/slow", &[]), true);
    let mut body = soon(response).await.unwrap().into_body();
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "01234");
    drop(body);
    eventually(|| listener.service.delivered.lock().len() == 1).await;
    assert!(!listener.service.delivered.lock()[0].complete);

    let (response, _) = send(&mut client, request("GET", "http://a/slow", &[]), true);
    let body = soon(response).await.unwrap().into_body();
    drop((client, body));
    eventually(|| listener.service.delivered.lock().len() == 2).await;
    eventually(|| listener.metrics.open.value() == 0).await;
}

#[tokio::test]
async fn what_breaks_on_its_way_is_reset() {
    for path in ["short", "long", "broken"] {
        let listener = Listening::open();
        let error = fetch(&listener, request("GET", &format!("http://a/{path}"), &[])).await.unwrap_err();
        assert!(error.is_reset(), "{path}: {error}");
        eventually(|| listener.service.delivered.lock().len() == 1).await;
        assert!(!listener.service.delivered.lock()[0].complete);
    }
}

#[tokio::test]
async fn what_came_before_a_reset_arrives() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let (response, _) = send(&mut client, request("GET", "http://a/broken", &[]), true);
    let response = soon(response).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let first = soon(poll_fn(|cx| body.poll_data(cx))).await.unwrap();
    assert_eq!(first.unwrap(), "01234");
    let end = soon(poll_fn(|cx| body.poll_data(cx))).await.unwrap();
    assert!(end.unwrap_err().is_reset());
}

#[tokio::test]
async fn an_answer_without_reading_the_content_ends_the_stream_only() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let (response, mut stream) = send(&mut client, request("POST", "http://a/ignore", &[]), false);
    assert_eq!(read(response).await.unwrap().1, b"ignored");
    let reason = soon(poll_fn(|cx| stream.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, Reason::NO_ERROR);
    let (response, _) = send(&mut client, request("GET", "http://a/next", &[]), true);
    assert_eq!(read(response).await.unwrap().0.status, 200);
}

#[tokio::test]
async fn a_window_that_stays_closed_is_given_up() {
    let limits = Limits { write_idle: Duration::from_millis(100), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = connect(&listener).await;
    let (response, _) = send(&mut client, request("GET", "http://a/pieces", &[]), true);
    let mut body = soon(response).await.unwrap().into_body();
    eventually(|| listener.metrics.write_stalled.value() == 1).await;
    while let Some(Ok(_)) = soon(body.data()).await {}
    assert!(!listener.service.delivered.lock()[0].complete);
}

#[tokio::test]
async fn content_that_stalls_is_408() {
    let limits = Limits { body_idle: Duration::from_millis(50), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = connect(&listener).await;
    let (response, mut stream) = send(&mut client, request("POST", "http://a/up", &[]), false);
    stream.send_data(Bytes::from("hel"), false).unwrap();
    assert_eq!(read(response).await.unwrap().0.status, 408);
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let mut sent = 0;
    let error = soon(async {
        loop {
            match client.send_request(request("GET", "http://a/never", &[]), true) {
                Ok((_, mut stream)) => {
                    sent += 1;
                    // Let it begin: what is reset before is bounded by another, lower limit.
                    eventually(|| {
                        listener.service.calls.load(Ordering::SeqCst) == sent
                            || listener.metrics.resets.value() > 0
                    })
                    .await;
                    stream.send_reset(Reason::CANCEL);
                }
                Err(error) => return error,
            }
            if let Err(error) = poll_fn(|cx| client.poll_ready(cx)).await {
                return error;
            }
        }
    })
    .await;
    assert!(error.is_go_away() || error.is_io(), "{error}");
    assert!((200..260).contains(&sent), "{sent}");
    assert_eq!(listener.metrics.resets.value(), 1);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_drain_lets_streams_finish_and_takes_no_new_ones() {
    let listener = Listening::open();
    let mut client = connect(&listener).await;
    let (response, mut stream) = send(&mut client, request("POST", "http://a/up", &[]), false);
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 1).await;
    listener.drain.start();
    stream.send_data(Bytes::from("hello"), true).unwrap();
    assert_eq!(read(response).await.unwrap().0.status, 200);
    soon(listener.drain.drained()).await;
    let refused = soon(poll_fn(|cx| client.poll_ready(cx))).await.is_err()
        || client.send_request(request("GET", "http://a/", &[]), true).is_err();
    assert!(refused);
}

#[tokio::test]
async fn an_idle_connection_is_told_to_go() {
    let short = Duration::from_millis(50);
    let limits = Limits { keep_alive_idle: short, head_time: short, ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let _client = connect(&listener).await;
    eventually(|| listener.metrics.open.value() == 1).await;
    eventually(|| listener.metrics.open.value() == 0).await;
    assert_eq!(listener.metrics.idle_closed.value(), 1);
}

#[tokio::test]
async fn a_connection_that_is_never_kept_serves_its_first_request() {
    let limits = Limits { keep_alive_idle: Duration::ZERO, ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = connect(&listener).await;
    // The settings of both sides are acknowledged by then, and the connection is idle.
    let unanswered =
        tokio::time::timeout(Duration::from_millis(50), poll_fn(|_| std::task::Poll::<()>::Pending));
    assert!(unanswered.await.is_err() && listener.metrics.idle_closed.value() == 0);
    let (response, _) = send(&mut client, request("GET", "http://a/known", &[]), true);
    assert_eq!(read(response).await.unwrap().0.status, 200);
    eventually(|| listener.metrics.open.value() == 0).await;
    assert_eq!(listener.metrics.idle_closed.value(), 1);
}

#[tokio::test]
async fn only_where_there_are_calls_may_a_call_pause() {
    for (has_grpc, expected) in [(false, 408), (true, 200)] {
        let limits = Limits { body_idle: Duration::from_millis(50), has_grpc, ..Limits::default() };
        let listener = Listening::with(Settings { limits, ..Settings::default() });
        let mut client = connect(&listener).await;
        let call = request("POST", "http://a/up", &[("content-type", "application/grpc")]);
        let (response, mut stream) = send(&mut client, call, false);
        stream.send_data(Bytes::from("hel"), false).unwrap();
        // The pause is the case.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let _ = stream.send_data(Bytes::from("lo"), true);
        assert_eq!(read(response).await.unwrap().0.status, expected, "{has_grpc}");
    }
}
