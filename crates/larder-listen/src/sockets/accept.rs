//! Sockets: a port in use is seen, workers share an address, slots bound what is open, a listener's protocols are chosen among.

use std::sync::Arc;
use std::time::Duration;

use crate::sockets::support::{Client, Listening, TestService, eventually, soon};
use crate::{
    Accepted, Drain, ListenError, Listener, Metrics, Protocol, Protocols, Settings, Slots, accept_loop, bind,
    serve_connection,
};
use arc_swap::ArcSwap;
use larder_http::message::Peer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

#[test]
fn a_port_in_use_is_seen_although_the_sockets_would_share_it() {
    let first = bind("127.0.0.1:0".parse().unwrap(), 3).unwrap();
    assert_eq!(first.sockets.len(), 3);
    assert_ne!(first.listener.address.port(), 0);
    assert!(first.sockets.iter().all(|socket| socket.local_addr().unwrap() == first.listener.address));
    assert!(
        matches!(bind(first.listener.address, 1), Err(ListenError::InUse(address)) if address == first.listener.address)
    );
    drop(first);
    let nowhere = bind("192.0.2.1:0".parse().unwrap(), 1);
    assert!(matches!(nowhere, Err(ListenError::Bind { .. })), "{nowhere:?}");
}

#[test]
fn any_address_of_ipv6_takes_ipv4_only_where_that_is_asked_for() {
    let any = std::net::SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    if bind(any, 1).is_err() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    for takes_ipv4 in [true, false] {
        let bound = Listener { takes_ipv4, ..any.into() }.bind(2).unwrap();
        let port = bound.listener.address.port();
        assert!(std::net::TcpStream::connect(("::1", port)).is_ok());
        assert_eq!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(), takes_ipv4);
        // An IPv4 address of its own stands beside it only where it leaves it the port.
        assert_eq!(bind(std::net::SocketAddr::from(([0, 0, 0, 0], port)), 1).is_ok(), !takes_ipv4);
        let other = Listener { takes_ipv4: !takes_ipv4, ..bound.listener };
        assert!(other.bind_beside_ours(2).is_ok(), "a reload changes what it takes");
    }
}

#[tokio::test]
async fn no_more_connections_are_open_than_there_are_slots() {
    let mut bound = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let (metrics, drain) = (Arc::new(Metrics::default()), Drain::new());
    tokio::spawn(accept_loop(
        bound.sockets.pop().unwrap(),
        Arc::new(ArcSwap::from_pointee(Settings::default())),
        TestService::default(),
        Slots::new(2),
        metrics.clone(),
        drain.signal(),
        Arc::default(),
    ));
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Client::connect(bound.listener.address).await);
    }
    eventually(|| metrics.accept_paused.value() == 1).await;
    assert_eq!(metrics.open.value(), 2);
    drop(clients.remove(0));
    let mut last = clients.pop().unwrap();
    last.write("GET /close HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(last.rest().await.ends_with("bye"));
}

#[tokio::test]
async fn connections_that_arrived_before_the_drain_are_served() {
    let listener = Listening::open();
    let mut clients = Vec::new();
    // The accept loop has not run since: this test has only one thread.
    for _ in 0..5 {
        let mut client = std::net::TcpStream::connect(listener.address).unwrap();
        std::io::Write::write_all(&mut client, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        client.set_nonblocking(true).unwrap();
        clients.push(TcpStream::from_std(client).unwrap());
    }
    listener.drain.start();
    for mut client in clients {
        let mut all = String::new();
        soon(client.read_to_string(&mut all)).await.unwrap();
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n") && all.contains("\r\nconnection: close\r\n"), "{all}");
    }
    soon(listener.drain.drained()).await;
    eventually(|| std::net::TcpStream::connect(listener.address).is_err()).await;
}

#[tokio::test]
async fn a_request_that_is_on_its_way_when_the_drain_begins_is_served() {
    let listener = Listening::open();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(listener.connect().await);
    }
    listener.drain.start();
    // So long is the way. The accept loop has heard of the drain meanwhile, and of none of them.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    for mut client in clients {
        client.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let all = client.rest().await;
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n") && all.contains("\r\nconnection: close\r\n"), "{all}");
    }
}

#[tokio::test]
async fn a_connection_comes_with_its_first_bytes_or_after_a_while() {
    let listener = Listening::open();
    let silent = listener.connect().await;
    assert!(listener.send("GET /close HTTP/1.1\r\nHost: a\r\n\r\n").await.ends_with("bye"));
    assert_eq!(listener.metrics.accepted.value(), 1, "the silent one is kept back");
    eventually(|| listener.metrics.accepted.value() == 2).await;
    drop(silent);
}

#[tokio::test]
async fn a_listener_speaks_its_protocols_only() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for (protocols, is_http2) in [
        (Protocols::only(Protocol::Http1).and(Protocol::Http2), true),
        (Protocols::only(Protocol::Http2), true),
        (Protocols::only(Protocol::Http1), false),
    ] {
        let any = Listener::from(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut bound = Listener { protocols, ..any }.bind(1).unwrap();
        tokio::spawn(accept_loop(
            bound.sockets.pop().unwrap(),
            Arc::new(ArcSwap::from_pointee(Settings::default())),
            TestService::default(),
            Slots::new(2),
            Arc::new(Metrics::default()),
            Drain::new().signal(),
            Arc::default(),
        ));
        let mut client = Client::connect(bound.listener.address).await;
        client.write([PREFACE, SETTINGS].concat()).await;
        let answer = client.connection.read_exact(5).await.unwrap();
        assert_eq!(answer != b"HTTP/", is_http2, "{protocols:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_may_become_a_preface_buy_no_time() {
    for (first, then) in [("P", "OST / HTTP/1.1\r\n"), ("PRI * HTTP/2.0\r\n", "\r\n")] {
        let (mut client, stream) = tokio::io::duplex(4096);
        let local = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
        let Listener { transport, protocols, .. } = local.into();
        let peer = Peer::clear(([127, 0, 0, 1], 40_000).into(), local);
        let (metrics, drain) = (Arc::new(Metrics::default()), Drain::new());
        tokio::spawn(serve_connection(
            Accepted { stream, peer, transport, protocols },
            Arc::new(Settings::default()),
            TestService::default(),
            metrics,
            drain.signal(),
        ));
        let start = Instant::now();
        client.write_all(first.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        client.write_all(then.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{first:?}: {answer}");
        assert_eq!(start.elapsed().as_secs(), 10, "{first:?}");
    }
}
