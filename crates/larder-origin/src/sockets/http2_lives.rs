//! HTTP/2 towards an origin: what one exchange may do to the connection that others share, over its whole life.

use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::larder::{Larder, get, request};
use crate::sockets::patience::within;
use crate::sockets::peer::{
    DATA, END_STREAM, INITIAL_WINDOW_SIZE, Manner, Peer, RST_STREAM, Raw, Reply, Stage, Stream,
    WINDOW_UPDATE, data, frame, head,
};
use crate::sockets::trust::Trust;
use larder_tls::TlsSettings;

use crate::{OriginResponse, Protocol, ServerAddress};
use bytes::Bytes;
use http::{Method, Response};
use larder_http::body::Body;

fn http2(address: &ServerAddress) -> Larder {
    Larder::new(address, |settings| settings.protocol = Protocol::Http2)
}

async fn respond(larder: &Larder, target: &'static str) -> OriginResponse {
    *larder.origin.send(get(target)).await.unwrap()
}

/// Content that ends when the test says so.
async fn hold(mut stream: Stream) {
    let mut content = stream.begin();
    stream.stage.wait().await;
    content.send_data(Bytes::from_static(b"held"), true).unwrap();
}

#[tokio::test]
async fn what_comes_late_for_those_who_left_ends_nobody_elses_exchange() {
    const LEFT: u32 = 90;
    const ALL: u32 = 100;
    // What comes in one piece counts once, so it comes in ten.
    const LATE: u32 = 10;
    let raw = Raw::start(|_, stream| match stream {
        ..=199 => Reply::Send(head(stream, 200, &[], 0)),
        _ => {
            let id = |number: u32| 2 * number + 1;
            let mut bytes: Vec<u8> = (0..LEFT).flat_map(|number| data(id(number), "late", 0)).collect();
            if stream == id(ALL + LATE - 1) {
                bytes.extend((LEFT..ALL).flat_map(|number| data(id(number), "end", END_STREAM)));
            }
            bytes.extend(head(stream, 200, &[], END_STREAM));
            Reply::Send(bytes)
        }
    })
    .await;
    let larder = http2(&raw.address);
    let mut responses = Vec::new();
    for _ in 0..ALL {
        responses.push(respond(&larder, "/").await);
    }
    responses.drain(..LEFT as usize);
    let resets = |stage: &Stage| stage.frames().iter().filter(|frame| frame.kind == RST_STREAM).count();
    raw.stage.until(|stage| resets(stage) == LEFT as usize).await;
    for _ in 0..LATE {
        respond(&larder, "/").await;
    }
    for response in responses {
        assert_eq!(read(response.body).await, (b"end".to_vec(), Ok(())));
    }
    assert_eq!(raw.stage.connections(), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn answers_that_are_broken_end_nobody_elses_exchange_however_many() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        if stream.request.uri().path() == "/held" {
            return hold(stream).await;
        }
        let short = Response::builder().header("content-length", 5).body(()).unwrap();
        stream.respond.send_response(short, true).unwrap();
    })
    .await;
    let larder = http2(&peer.address);
    let held = respond(&larder, "/held").await;
    for _ in 0..220 {
        assert_eq!(larder.origin.send(get("/")).await.unwrap_err().token(), "bad-response");
    }
    peer.stage.go(1);
    assert_eq!(read(held.body).await, (b"held".to_vec(), Ok(())));
    assert_eq!(peer.stage.connections(), 5);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_connection_is_left_before_its_peer_minds_the_clients_that_leave() {
    let peer = Peer::start(Manner::default(), |mut stream| async move {
        if stream.request.uri().path() == "/held" {
            return hold(stream).await;
        }
        let mut content = stream.begin();
        let _ = std::future::poll_fn(|cx| content.poll_reset(cx)).await;
    })
    .await;
    let larder = http2(&peer.address);
    let held = respond(&larder, "/held").await;
    for _ in 0..250 {
        drop(respond(&larder, "/").await);
    }
    assert_eq!(peer.stage.connections(), 3);
    peer.stage.go(1);
    assert_eq!(read(held.body).await, (b"held".to_vec(), Ok(())));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_upload_that_was_answered_early_keeps_nothing_of_the_connections_window() {
    // The streams' own windows are wide; what all share is the 65535 bytes that a connection begins with.
    let raw = Raw::with(&[(INITIAL_WINDOW_SIZE, 1 << 20)], |_, stream| {
        Reply::Send(match stream {
            5 => [head(1, 413, &[], 0), head(3, 413, &[], 0), head(5, 200, &[], END_STREAM)].concat(),
            7 => {
                let update = frame(WINDOW_UPDATE, 0, 0, &65_535_u32.to_be_bytes());
                [update, head(7, 200, &[], END_STREAM)].concat()
            }
            _ => Vec::new(),
        })
    })
    .await;
    let larder = http2(&raw.address);
    let sent = |stage: &Stage, stream| {
        let frames = stage.frames();
        let data = frames.iter().filter(|frame| frame.kind == DATA && frame.stream == stream);
        data.map(|frame| frame.payload.len()).sum::<usize>()
    };
    let put = |bytes| {
        let (origin, body) = (larder.origin.clone(), Body::from(Bytes::from(vec![b'x'; bytes])));
        tokio::spawn(async move { origin.send(request(Method::PUT, "/", body)).await })
    };
    let one = put(200_000);
    raw.stage.until(|stage| sent(stage, 1) == 65_535).await;
    let two = put(200_000);
    raw.stage.until(|stage| stage.streams() == 2).await;
    respond(&larder, "/").await;
    // Both answers go on.
    let answers = [one.await.unwrap().unwrap(), two.await.unwrap().unwrap()];
    respond(&larder, "/").await;
    let three = put(60_000);
    raw.stage.until(|stage| sent(stage, 9) == 60_000).await;
    three.abort();
    let _ = three.await;
    drop(answers);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_connection_that_one_answer_breaks_was_not_broken_by_the_others() {
    let raw = Raw::start(|connection, stream| match (connection, stream) {
        (0, 3) => Reply::Send(Vec::new()),
        // Content of no stream at all.
        (0, 5) => Reply::Send(data(0, "x", 0)),
        _ => Reply::Send([head(stream, 200, &[], 0), data(stream, "fine", END_STREAM)].concat()),
    })
    .await;
    let larder = http2(&raw.address);
    assert_eq!(read(respond(&larder, "/").await.body).await.0, b"fine");
    let origin = larder.origin.clone();
    let innocent = tokio::spawn(async move { origin.send(get("/")).await });
    raw.stage.until(|stage| stage.streams() == 2).await;
    assert_eq!(read(respond(&larder, "/").await.body).await.0, b"fine");
    assert_eq!(read(innocent.await.unwrap().unwrap().body).await.0, b"fine");
    assert_eq!(raw.stage.connections(), 2);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_place_that_becomes_free_is_taken_while_another_connection_does_not_come() {
    let trust = Trust::new();
    let manner = Manner {
        max_streams: Some(1),
        tls: Some(trust.acceptor(&["h2"])),
        answered: Some(1),
        ..Manner::default()
    };
    let peer = Peer::start(manner, |stream| async move {
        match stream.request.uri().path() {
            "/held" => hold(stream).await,
            _ => stream.answer("fine"),
        }
    })
    .await;
    let larder = Larder::new(&peer.address, |settings| {
        settings.protocol = Protocol::Auto;
        settings.tls = TlsSettings { ca_file: Some(trust.file("ca.pem")), ..TlsSettings::default() };
        settings.timeouts.connect = Duration::from_secs(3600);
    });
    let held = respond(&larder, "/held").await;
    let send = || {
        let origin = larder.origin.clone();
        tokio::spawn(async move { read(origin.send(get("/")).await.unwrap().body).await.0 })
    };
    let opening = send();
    peer.stage.until(|stage| stage.notes() == ["connection 1 hangs"]).await;
    let waiting = [send(), send()];
    // So that they wait, and do not find the place free when they begin.
    tokio::task::yield_now().await;
    peer.stage.go(1);
    assert_eq!(read(held.body).await, (b"held".to_vec(), Ok(())));
    for waiting in waiting {
        assert_eq!(within(waiting).await.unwrap(), b"fine", "there is a place");
    }
    opening.abort();
    let _ = opening.await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn who_cannot_open_a_connection_takes_a_place_that_has_become_free() {
    let trust = Trust::new();
    let manner = Manner {
        max_streams: Some(1),
        tls: Some(trust.acceptor(&["h2"])),
        answered: Some(1),
        ..Manner::default()
    };
    let peer = Peer::start(manner, |stream| async move { stream.answer("fine") }).await;
    let larder = Larder::new(&peer.address, |settings| {
        settings.protocol = Protocol::Auto;
        settings.tls = TlsSettings { ca_file: Some(trust.file("ca.pem")), ..TlsSettings::default() };
        settings.timeouts.connect = Duration::from_millis(500);
    });
    let unread = respond(&larder, "/").await;
    let origin = larder.origin.clone();
    let opening = tokio::spawn(async move { read(origin.send(get("/")).await.unwrap().body).await.0 });
    peer.stage.until(|stage| stage.notes() == ["connection 1 hangs"]).await;
    assert_eq!(read(unread.body).await.0, b"fine");
    assert_eq!(opening.await.unwrap(), b"fine");
    larder.ends_without_leaks().await;
}
