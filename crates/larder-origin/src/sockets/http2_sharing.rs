//! HTTP/2 towards an origin: one connection for many exchanges, and each exchange for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sockets::contents::{piecemeal, read};
use crate::sockets::larder::{Larder, Quiet, get, metric, request};
use crate::sockets::patience::within;
use crate::sockets::peer::{
    END_STREAM, GOAWAY, MAX_CONCURRENT_STREAMS, Manner, Peer, RST_STREAM, Raw, Reply, Stage, data, goaway,
    head, reset, send_all,
};
use crate::{Protocol, ServerAddress};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use larder_http::body::{Body, BodyError};

fn http2(address: &ServerAddress) -> Larder {
    Larder::new(address, |settings| settings.protocol = Protocol::Http2)
}

async fn text(larder: &Larder, target: &'static str) -> String {
    let response = larder.origin.send(get(target)).await.unwrap();
    let (bytes, outcome) = read(response.body).await;
    assert_eq!(outcome, Ok(()));
    String::from_utf8(bytes).unwrap()
}

/// A connection that has served one request.
async fn warm(larder: &Larder) {
    assert_eq!(text(larder, "/warm").await, "warm");
}

fn warm_or(other: impl Fn(usize, u32) -> Reply + Send + Sync + 'static) -> impl Fn(usize, u32) -> Reply {
    move |connection, stream| match (connection, stream) {
        (0, 1) => {
            let bytes = [head(1, 200, &[], 0), data(1, "warm", END_STREAM)].concat();
            Reply::Send(bytes)
        }
        other_one => other(other_one.0, other_one.1),
    }
}

fn ok(stream: u32, body: &str) -> Reply {
    Reply::Send([head(stream, 200, &[], 0), data(stream, body, END_STREAM)].concat())
}

#[tokio::test]
async fn exchanges_share_a_connection_without_waiting_for_each_other() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        if stream.request.uri().path() != "/slow" {
            return stream.answer("fast");
        }
        let mut content = stream.begin();
        content.send_data(Bytes::from_static(b"slow"), false).unwrap();
        stream.stage.wait().await;
        content.send_data(Bytes::from_static(b"ly"), true).unwrap();
    })
    .await;
    let larder = http2(&peer.address);
    let one = larder.origin.send(get("/slow")).await.unwrap();
    let two = larder.origin.send(get("/slow")).await.unwrap();
    assert_eq!(text(&larder, "/").await, "fast");
    assert_eq!(larder.state.counters().in_flight(), 2);
    peer.stage.go(2);
    for response in [two, one] {
        assert_eq!(read(response.body).await, (b"slowly".to_vec(), Ok(())));
    }
    assert_eq!(peer.stage.connections(), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_burst_opens_one_connection_and_a_thousand_requests_use_it() {
    let peer = Peer::start(Manner::default(), |stream| async move { stream.answer("hello") }).await;
    let larder = http2(&peer.address);
    let mut burst = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let origin = larder.origin.clone();
        burst.spawn(async move {
            let response = origin.send(get("/")).await.unwrap();
            ((response.reused, response.timing.connect), read(response.body).await)
        });
    }
    let mut opened = 0;
    for ((reused, connect), got) in burst.join_all().await {
        assert_eq!(got, (b"hello".to_vec(), Ok(())));
        assert_eq!(reused, connect.is_none());
        opened += usize::from(!reused);
    }
    assert_eq!((opened, metric(&larder.state, "larder_origin_connections_reused_total")), (1, 49));
    for _ in 0..950 {
        assert_eq!(text(&larder, "/").await, "hello");
    }
    assert_eq!((peer.stage.streams(), peer.stage.connections()), (1000, 1));
    assert_eq!(larder.state.counters().in_flight(), 0);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn beyond_the_peers_streams_another_connection_is_opened() {
    let manner = Manner { max_streams: Some(2), ..Manner::default() };
    let peer = Peer::start(manner, |mut stream| async move {
        if stream.request.uri().path() == "/" {
            return stream.answer("fast");
        }
        let mut content = stream.begin();
        stream.stage.note(format!("on {}", stream.connection));
        stream.stage.wait().await;
        content.send_data(Bytes::from_static(b"done"), true).unwrap();
    })
    .await;
    let larder = http2(&peer.address);
    assert_eq!(text(&larder, "/").await, "fast");
    let mut responses = Vec::new();
    for _ in 0..5 {
        responses.push(larder.origin.send(get("/slow")).await.unwrap());
    }
    assert_eq!(peer.stage.notes(), ["on 0", "on 0", "on 1", "on 1", "on 2"]);
    peer.stage.go(5);
    for response in responses {
        assert_eq!(read(response.body).await, (b"done".to_vec(), Ok(())));
    }
    // With room again, the oldest serves alone.
    assert_eq!(text(&larder, "/").await, "fast");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_burst_keeps_to_the_peers_streams_from_the_first_moment() {
    let manner = Manner { max_streams: Some(2), ..Manner::default() };
    let peer = Peer::start(manner, |mut stream| async move {
        let mut content = stream.begin();
        stream.stage.wait().await;
        content.send_data(Bytes::from_static(b"done"), true).unwrap();
    })
    .await;
    let larder = http2(&peer.address);
    let mut burst = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let origin = larder.origin.clone();
        let exchange = async move {
            // Content is not sent twice, so whatever were refused would be lost.
            let (sender, body) = piecemeal(None);
            sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
            drop(sender);
            read(origin.send(request(Method::POST, "/", body)).await.unwrap().body).await
        };
        burst.spawn(exchange);
    }
    peer.stage.until(|stage| stage.streams() == 8).await;
    assert_eq!(peer.stage.connections(), 4);
    peer.stage.go(8);
    for got in burst.join_all().await {
        assert_eq!(got, (b"done".to_vec(), Ok(())));
    }
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn what_the_peer_did_not_process_is_sent_again_whatever_it_is() {
    type Case = (&'static str, fn(u32) -> Vec<u8>);
    let cases: [Case; 2] =
        [("refused", |stream| reset(stream, 7)), ("goaway", |stream| goaway(stream - 2, 0))];
    for (name, refusal) in cases {
        let raw = Raw::start(warm_or(move |connection, stream| match connection {
            0 => Reply::Send(refusal(stream)),
            _ => ok(stream, "again"),
        }))
        .await;
        let larder = http2(&raw.address);
        warm(&larder).await;
        let response = larder.origin.send(request(Method::POST, "/", Body::from("abc"))).await.unwrap();
        assert_eq!(read(response.body).await, (b"again".to_vec(), Ok(())), "{name}");
        assert_eq!(raw.stage.connections(), 2, "{name}");
        assert_eq!(metric(&larder.state, "larder_origin_retries_total"), 1, "{name}");
        // Nor is the first connection used for anything else.
        assert_eq!(text(&larder, "/").await, "again", "{name}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn what_is_sent_again_goes_over_a_connection_that_is_newer_than_the_failure() {
    let raw = Raw::with(&[(MAX_CONCURRENT_STREAMS, 1)], |connection, stream| match (connection, stream) {
        (0 | 1, 3..) => Reply::Send(goaway(stream - 2, 0)),
        _ => ok(stream, "fine"),
    })
    .await;
    let larder = http2(&raw.address);
    // Two connections with room, both about to be left by their peer.
    let (one, two) = tokio::join!(larder.origin.send(get("/1")), larder.origin.send(get("/2")));
    for response in [one, two] {
        assert_eq!(read(response.unwrap().body).await.0, b"fine");
    }
    assert_eq!(raw.stage.connections(), 2);
    let response = larder.origin.send(request(Method::POST, "/", Body::from("abc"))).await.unwrap();
    assert_eq!(read(response.body).await, (b"fine".to_vec(), Ok(())));
    assert_eq!(raw.stage.connections(), 3);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_first_attempt_on_a_connection_that_others_opened_is_one_on_a_kept_connection() {
    let raw = Raw::start(|connection, stream| match (connection, stream) {
        (0, 3..) => Reply::Send(goaway(1, 0)),
        _ => ok(stream, "fine"),
    })
    .await;
    let larder = http2(&raw.address);
    let mut burst = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let origin = larder.origin.clone();
        let post = request(Method::POST, "/", Body::from("abc"));
        burst.spawn(async move { read(origin.send(post).await.unwrap().body).await });
    }
    for got in burst.join_all().await {
        assert_eq!(got, (b"fine".to_vec(), Ok(())));
    }
    assert_eq!(raw.stage.connections(), 2);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn interim_responses_are_limited_over_all_attempts() {
    let raw = Raw::start(warm_or(|connection, stream| {
        let mut bytes = head(stream, 103, &[("link", "</a>")], 0).repeat(10);
        bytes.extend(match connection {
            0 => reset(stream, 7),
            _ => head(stream, 200, &[], END_STREAM),
        });
        Reply::Send(bytes)
    }))
    .await;
    let larder = http2(&raw.address);
    warm(&larder).await;
    let passed = Arc::new(AtomicUsize::new(0));
    let counter = passed.clone();
    let mut request = get("/");
    request.interims = Some(Arc::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(larder.origin.send(request).await.unwrap().status, 200);
    assert_eq!(passed.load(Ordering::Relaxed), 16);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn what_the_peer_may_have_processed_is_sent_again_only_where_it_reads() {
    type Case = (&'static str, fn(u32) -> Reply, bool);
    let cases: [Case; 3] = [
        ("closed", |_| Reply::Close(Vec::new()), true),
        ("goaway, then closed", |stream| Reply::Close(goaway(stream, 0)), true),
        ("reset", |stream| Reply::Send(reset(stream, 2)), false),
    ];
    for (name, failure, repeats_get) in cases {
        for method in [Method::GET, Method::POST] {
            let raw = Raw::start(warm_or(move |connection, stream| match connection {
                0 => failure(stream),
                _ => ok(stream, "again"),
            }))
            .await;
            let larder = http2(&raw.address);
            warm(&larder).await;
            let outcome = larder.origin.send(request(method.clone(), "/", Body::Empty)).await;
            if repeats_get && method == Method::GET {
                assert_eq!(read(outcome.unwrap().body).await.0, b"again", "{name}");
            } else {
                assert_eq!(outcome.unwrap_err().token(), "closed", "{name} {method}");
                assert_eq!(raw.stage.streams(), 2, "{name} {method}");
            }
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn a_goaway_lets_the_streams_under_way_end() {
    let raw = Raw::start(warm_or(|connection, stream| match connection {
        0 => Reply::Close(
            [goaway(stream, 0), head(stream, 200, &[], 0), data(stream, "last", END_STREAM)].concat(),
        ),
        _ => ok(stream, "next"),
    }))
    .await;
    let larder = http2(&raw.address);
    warm(&larder).await;
    assert_eq!(text(&larder, "/").await, "last");
    assert_eq!(text(&larder, "/").await, "next");
    assert_eq!(raw.stage.connections(), 2);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn leaving_early_ends_the_stream_and_nothing_else() {
    let raw = Raw::start(|_, stream| match stream {
        1 => Reply::Send([head(1, 200, &[], 0), data(1, "begun", 0)].concat()),
        3 => Reply::Send(Vec::new()),
        _ => ok(stream, "fine"),
    })
    .await;
    let larder = http2(&raw.address);
    let was_reset = |stream| {
        move |stage: &Stage| {
            stage.frames().iter().any(|frame| frame.kind == RST_STREAM && frame.stream == stream)
        }
    };
    // In the body.
    let response = larder.origin.send(get("/")).await.unwrap();
    let Body::Stream { mut stream, .. } = response.body else { panic!("content") };
    assert_eq!(stream.frame().await.unwrap().unwrap().into_data().unwrap(), "begun");
    // Before the head.
    let origin = larder.origin.clone();
    let waiting = tokio::spawn(async move { origin.send(get("/")).await });
    raw.stage.until(|stage| stage.streams() == 2).await;
    waiting.abort();
    raw.stage.until(was_reset(3)).await;
    drop(stream);
    raw.stage.until(was_reset(1)).await;
    assert_eq!(text(&larder, "/").await, "fine");
    assert_eq!((raw.stage.connections(), larder.state.counters().in_flight()), (1, 0));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn readers_that_do_not_read_stop_nobody_else() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        let mut content = stream.begin();
        send_all(&mut content, Bytes::from(vec![b'x'; 3 * 1024 * 1024]), true).await;
    })
    .await;
    let larder = http2(&peer.address);
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(larder.origin.send(get("/")).await.unwrap());
    }
    assert_eq!(text(&larder, "/").await.len(), 3 * 1024 * 1024);
    for response in unread {
        let (bytes, outcome) = read(response.body).await;
        assert_eq!((bytes.len(), outcome), (3 * 1024 * 1024, Ok(())));
    }
    assert_eq!(peer.stage.connections(), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn limits_of_time_hold_for_a_stream() {
    let raw = Raw::start(|_, stream| match stream {
        1 => Reply::Send(Vec::new()),
        _ => Reply::Send([head(stream, 200, &[], 0), data(stream, "ab", 0)].concat()),
    })
    .await;
    type Change = fn(&mut crate::Timeouts);
    let cases: [(Change, Result<(), &str>); 4] = [
        (|timeouts| timeouts.first_byte = Duration::from_millis(30), Err("first-byte-timeout")),
        (|timeouts| timeouts.total = Some(Duration::from_millis(30)), Err("total-timeout")),
        (|timeouts| timeouts.between_bytes = Duration::from_millis(30), Ok(())),
        (|timeouts| timeouts.total = Some(Duration::from_millis(200)), Ok(())),
    ];
    for (change, expected) in cases {
        let larder = Larder::new(&raw.address, |settings| {
            settings.protocol = Protocol::Http2;
            change(&mut settings.timeouts);
        });
        let (before, begun) = (raw.stage.streams(), Instant::now());
        let first = tokio::spawn({
            let origin = larder.origin.clone();
            async move { origin.send(get("/")).await.map(|_| ()) }
        });
        if let Err(token) = expected {
            assert_eq!(first.await.unwrap().unwrap_err().token(), token);
        } else {
            raw.stage.until(|stage| stage.streams() > before).await;
            let response = larder.origin.send(get("/")).await.unwrap();
            assert_eq!(read(response.body).await, (b"ab".to_vec(), Err(BodyError::Stalled)));
            first.abort();
        }
        // The other limits are longer than that.
        assert!(begun.elapsed() < Duration::from_secs(5), "{expected:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_connection_that_stays_silent_gets_no_further_requests() {
    let raw = Raw::start(warm_or(|connection, stream| match connection {
        0 => Reply::Send(Vec::new()),
        _ => ok(stream, "elsewhere"),
    }))
    .await;
    let larder = Larder::new(&raw.address, |settings| {
        settings.protocol = Protocol::Http2;
        settings.timeouts.first_byte = Duration::from_millis(50);
    });
    warm(&larder).await;
    assert_eq!(larder.origin.send(get("/")).await.unwrap_err().token(), "first-byte-timeout");
    assert_eq!(text(&larder, "/").await, "elsewhere");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_good_manner() {
    let raw = Raw::start(|_, stream| ok(stream, "fine")).await;
    let larder = Larder::new(&raw.address, |settings| {
        settings.protocol = Protocol::Http2;
        settings.idle = Duration::from_millis(20);
    });
    assert_eq!(text(&larder, "/").await, "fine");
    raw.stage.until(|stage| stage.notes() == ["connection 0 ended"]).await;
    assert_eq!(raw.stage.frames().last().map(|frame| frame.kind), Some(GOAWAY));
    larder.state.is_quiet().await;
    assert_eq!(text(&larder, "/").await, "fine");
    assert_eq!(raw.stage.connections(), 2);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn no_more_unused_connections_are_kept_than_may_be() {
    let manner = Manner { max_streams: Some(1), ..Manner::default() };
    let peer = Peer::start(manner, |mut stream| async move {
        let mut content = stream.begin();
        stream.stage.wait().await;
        content.send_data(Bytes::from_static(b"done"), true).unwrap();
    })
    .await;
    for (max_idle, kept) in [(2, 2), (0, 0)] {
        let larder = Larder::new(&peer.address, |settings| {
            settings.protocol = Protocol::Http2;
            settings.max_idle = max_idle;
            settings.idle = Duration::from_secs(60);
        });
        let mut responses = Vec::new();
        for _ in 0..4 {
            responses.push(larder.origin.send(get("/")).await.unwrap());
        }
        assert_eq!(larder.state.counters().connections_open(), 4);
        peer.stage.go(4);
        for response in responses {
            assert_eq!(read(response.body).await, (b"done".to_vec(), Ok(())));
        }
        let settled = async {
            while larder.state.counters().connections_open() > kept {
                tokio::task::yield_now().await;
            }
        };
        within(settled).await;
        assert_eq!(larder.state.counters().connections_open(), kept, "{max_idle}");
        larder.ends_without_leaks().await;
    }
}
