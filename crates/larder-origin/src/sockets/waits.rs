//! Limits of time, and ways to an origin: names, refusals, several servers, Unix sockets, tunnels.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::front;
use crate::sockets::larder::{Larder, get};
use crate::sockets::origins::{address, ended, fine, in_turn, silent};
use crate::{Origin, OriginSettings, OriginState, ServerAddress, SetupError};
use http::HeaderValue;
use larder_http::body::{Body, BodyError};
use larder_http::message::Tunnel;
use larder_testkit::origin::Answer;

const SHORT: Duration = Duration::from_millis(60);

#[tokio::test]
async fn a_silent_origin_is_late() {
    for sent in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 102 Processing\r\n\r\n"] {
        let origin = in_turn([Answer::literal(sent).stay_silent()]);
        let larder = Larder::before(&origin, |settings| settings.timeouts.first_byte = SHORT);
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!((error.token(), error.status().as_u16()), ("first-byte-timeout", 504));
        assert!(error.is_dead());
        ended(&origin, 1).await;
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_body_that_stalls_breaks() {
    let stalls = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    let origin = in_turn([Answer::literal(stalls).stay_silent()]);
    let larder = Larder::before(&origin, |settings| settings.timeouts.between_bytes = SHORT);
    let response = larder.origin.send(get("/")).await.unwrap();
    assert_eq!(read(response.body).await, (b"abc".to_vec(), Err(BodyError::Stalled)));
    ended(&origin, 1).await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn event_streams_may_be_silent_for_longer() {
    let events = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\ndata: 1\n\n";
    let origin = in_turn([Answer::literal(events).wait_for("go").send("data: 2\n\n")]);
    let larder = Larder::before(&origin, |settings| {
        settings.timeouts.between_bytes = Duration::from_millis(1);
    });
    let response = larder.origin.send(get("/")).await.unwrap();
    let (body, ()) = tokio::join!(read(response.body), async {
        tokio::time::sleep(SHORT).await;
        origin.gates().release("go");
    });
    assert_eq!(body, (b"data: 1\n\ndata: 2\n\n".to_vec(), Ok(())));
}

#[tokio::test]
async fn a_slow_reader_is_not_a_slow_origin() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
    let origin = in_turn([Answer::literal(head).wait_for("go").send("abc").keep_open()]);
    let larder = Larder::before(&origin, |settings| settings.timeouts.between_bytes = SHORT);
    let response = larder.origin.send(get("/")).await.unwrap();
    origin.gates().release("go");
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(read(response.body).await, (b"abc".to_vec(), Ok(())));
}

#[tokio::test]
async fn a_dead_origin_says_how_it_is_dead() {
    let (_bound, port) = front::dead_port();
    let missing = ServerAddress::Unix("/nonexistent/larder.sock".into());
    let nowhere = ServerAddress::Http { host: "larder-test.invalid".into(), port: 80 };
    for (address, token) in
        [(front::http(port), "connect-refused"), (missing, "connect-failed"), (nowhere, "dns")]
    {
        let larder = Larder::new(&address, |_| ());
        let error = larder.origin.send(get("/")).await.unwrap_err();
        if token == "dns" && error.token() == "connect-timeout" {
            continue; // a machine whose resolver does not answer at all
        }
        assert_eq!((error.token(), error.status().as_u16(), error.is_dead()), (token, 502, true));
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_counts_as_connecting() {
    // It waits for the end of a head, which no handshake has.
    let origin = in_turn([silent()]);
    let at = origin.addr();
    let address = ServerAddress::Https { host: at.ip().to_string(), port: at.port() };
    let larder = Larder::new(&address, |settings| {
        settings.timeouts.connect = SHORT;
        settings.tls.verify = false;
    });
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.status().as_u16()), ("connect-timeout", 504));
    larder.ends_without_leaks().await;
    assert_eq!((origin.log().connections(), origin.log().count()), (1, 0));
}

#[tokio::test]
async fn probing_names_only_those_that_do_not_resolve() {
    let servers = ["http://127.0.0.1:1", "http://localhost:1", "unix:/x.sock", "http://larder-test.invalid"];
    let servers = servers.iter().map(|text| ServerAddress::parse(text).unwrap()).collect();
    let origin = Origin::new(Arc::new(OriginSettings::new("app", servers)), OriginState::new()).unwrap();
    let unresolved: Vec<_> = origin.probe().await.iter().map(|u| u.server.to_string()).collect();
    assert_eq!(unresolved, ["http://larder-test.invalid:80"]);
}

#[tokio::test]
async fn servers_take_turns_and_a_dead_one_is_passed_over() {
    let (one, two) = (in_turn([fine("one")]), in_turn([fine("two")]));
    let settings = OriginSettings::new("app", vec![address(&one), address(&two)]);
    let origin = Origin::new(Arc::new(settings), OriginState::new()).unwrap();
    for text in ["one", "two", "one", "two"] {
        let response = origin.send(get("/")).await.unwrap();
        assert_eq!(read(response.body).await.0, text.as_bytes());
    }
    assert_eq!((one.log().connections(), two.log().connections()), (1, 1));

    let (_bound, port) = front::dead_port();
    let live = in_turn([fine("live")]);
    let settings = OriginSettings::new("app", vec![front::http(port), address(&live)]);
    let origin = Origin::new(Arc::new(settings), OriginState::new()).unwrap();
    for _ in 0..2 {
        let response = origin.send(get("/")).await.unwrap();
        assert_eq!(*response.server, *address(&live).to_string());
        assert_eq!(read(response.body).await.0, b"live");
    }
    assert_eq!(live.log().connections(), 1);
}

#[tokio::test]
async fn an_origin_without_servers_is_refused() {
    let settings = Arc::new(OriginSettings::new("app", vec![]));
    assert!(matches!(Origin::new(settings, OriginState::new()), Err(SetupError::NoServers)));
}

#[tokio::test]
async fn times_that_no_clock_could_reach_are_refused() {
    let mut settings = OriginSettings::new("app", vec![front::http(1)]);
    settings.timeouts.first_byte = Duration::MAX;
    let outcome = Origin::new(Arc::new(settings), OriginState::new());
    assert!(matches!(outcome, Err(SetupError::Time(_))));
}

#[tokio::test]
async fn unix_sockets_serve_like_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let origin = in_turn([fine("one"), fine("two")]);
    let larder = Larder::new(&front::unix(&origin, &path), |_| ());
    for (text, reused) in [("one", false), ("two", true)] {
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(response.reused, reused);
        assert_eq!(read(response.body).await.0, text.as_bytes());
    }
    larder.ends_without_leaks().await;
}

const GRANTED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
                       Sec-WebSocket-Accept: x\r\n\r\n";

async fn read_exact(tunnel: &mut Tunnel, bytes: usize) -> Vec<u8> {
    let (mut buffer, mut at) = (vec![0; bytes], 0);
    while at < bytes {
        at += poll_fn(|cx| tunnel.0.as_mut().poll_read(cx, &mut buffer[at..])).await.unwrap();
    }
    buffer
}

#[tokio::test]
async fn websocket_becomes_a_tunnel_after_101_only() {
    let origin = in_turn([Answer { echo: true, ..Answer::literal(format!("{GRANTED}early")) }]);
    let larder = Larder::before(&origin, |_| ());
    let mut asked = get("/socket");
    asked.websocket = true;
    asked.fields.insert("sec-websocket-key", HeaderValue::from_static("k"));
    let response = larder.origin.send(asked).await.unwrap();
    assert_eq!(response.status, 101);
    assert_eq!(response.fields.get("sec-websocket-accept").unwrap(), "x");
    assert!(!response.fields.contains_key("upgrade") && matches!(response.body, Body::Empty));
    assert_eq!((larder.state.counters().connections_open(), larder.state.counters().in_flight()), (1, 1));

    let mut tunnel = response.tunnel.unwrap();
    assert_eq!(read_exact(&mut tunnel, 5).await, b"early");
    let written = poll_fn(|cx| tunnel.0.as_mut().poll_write(cx, b"from the client")).await.unwrap();
    assert_eq!(written, b"from the client".len());
    poll_fn(|cx| tunnel.0.as_mut().poll_flush(cx)).await.unwrap();
    assert_eq!(read_exact(&mut tunnel, written).await, b"from the client");
    drop(tunnel);
    let received = ended(&origin, 1).await;
    assert!(received.contains("connection: upgrade\r\nupgrade: websocket\r\n"), "{received}");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_websocket_answer_that_is_not_one_opens_no_tunnel() {
    let cases = [
        (GRANTED.replace("Sec-WebSocket-Accept: x\r\n", ""), Err("unexpected-upgrade")),
        (GRANTED.replace("Upgrade: WebSocket\r\n", ""), Err("unexpected-upgrade")),
        (GRANTED.replace("Connection: Upgrade\r\n", ""), Err("unexpected-upgrade")),
        (GRANTED.replace("WebSocket\r\n", "h2c\r\n"), Err("unexpected-upgrade")),
        (GRANTED.replace("101 Switching Protocols", "200 OK"), Ok(200)),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(), Ok(403)),
    ];
    for (raw, expected) in cases {
        let origin = in_turn([Answer::literal(&raw).keep_open()]);
        let larder = Larder::before(&origin, |_| ());
        let mut asked = get("/socket");
        asked.websocket = true;
        match (larder.origin.send(asked).await, expected) {
            (Ok(response), Ok(status)) => {
                assert!(response.tunnel.is_none(), "{raw}");
                assert_eq!(response.status.as_u16(), status);
            }
            (Err(error), Err(token)) => assert_eq!(error.token(), token, "{raw}"),
            (outcome, _) => panic!("{raw}: {outcome:?}"),
        }
        larder.ends_without_leaks().await;
    }
}
