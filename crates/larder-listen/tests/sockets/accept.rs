//! Sockets: a port in use is seen, workers share an address, slots bound what is open.

use std::sync::Arc;

use crate::support::{Listening, TestService, eventually, soon};
use arc_swap::ArcSwap;
use larder_listen::{Drain, ListenError, Metrics, Opening, Settings, Slots, accept_loop, bind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[test]
fn a_port_in_use_is_seen_although_the_sockets_would_share_it() {
    let first = bind("127.0.0.1:0".parse().unwrap(), 3).unwrap();
    assert_eq!(first.sockets.len(), 3);
    assert_ne!(first.address.port(), 0);
    assert!(first.sockets.iter().all(|socket| socket.local_addr().unwrap() == first.address));
    assert!(matches!(bind(first.address, 1), Err(ListenError::InUse(address)) if address == first.address));
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
        let bound = Opening { takes_ipv4, ..any.into() }.bind(2).unwrap();
        let port = bound.address.port();
        assert!(std::net::TcpStream::connect(("::1", port)).is_ok());
        assert_eq!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(), takes_ipv4);
        // An IPv4 address of its own stands beside it only where it leaves it the port.
        assert_eq!(bind(std::net::SocketAddr::from(([0, 0, 0, 0], port)), 1).is_ok(), !takes_ipv4);
        let beside = Opening { is_beside_ours: true, takes_ipv4: !takes_ipv4, address: bound.address };
        assert!(beside.bind(2).is_ok(), "a reload changes what it takes");
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
    ));
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(bound.address).await.unwrap());
    }
    eventually(|| metrics.accept_paused.value() == 1).await;
    assert_eq!(metrics.open.value(), 2);
    drop(clients.remove(0));
    let mut last = clients.pop().unwrap();
    last.write_all(b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut all = String::new();
    soon(last.read_to_string(&mut all)).await.unwrap();
    assert!(all.ends_with("bye"));
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
        clients.push(TcpStream::connect(listener.address).await.unwrap());
    }
    listener.drain.start();
    // So long is the way. The accept loop has heard of the drain meanwhile, and of none of them.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    for mut client in clients {
        client.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut all = String::new();
        soon(client.read_to_string(&mut all)).await.unwrap();
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n") && all.contains("\r\nconnection: close\r\n"), "{all}");
    }
}

#[tokio::test]
async fn a_connection_comes_with_its_first_bytes_or_after_a_while() {
    let listener = Listening::open();
    let silent = TcpStream::connect(listener.address).await.unwrap();
    let mut client = TcpStream::connect(listener.address).await.unwrap();
    client.write_all(b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    soon(client.read_to_string(&mut String::new())).await.unwrap();
    assert_eq!(listener.metrics.accepted.value(), 1, "the silent one is kept back");
    eventually(|| listener.metrics.accepted.value() == 2).await;
    drop(silent);
}
