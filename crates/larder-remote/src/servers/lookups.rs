//! Look-ups and writes while all is well, with the real server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Address, Addresses, Client, Failure, Found, LookedUp, Offered, RemoteSettings, RemoteStore, Resolve, Ttl,
    Unfit,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use larder_http::time::Clock;
use larder_observe::Diagnostics;

use super::real::{Listens as _, ListensAt as _, Server, TcpServer};
use super::setup::{
    MAX_OBJECT, client, confirmed, eventually, found, key, look, sample, settings, start, until,
};

#[tokio::test]
async fn a_value_is_found_with_the_time_that_it_has_left_and_another_key_is_absent() {
    let server = Server::start();
    let client = client(&server.address());
    let mut raw = server.raw();
    raw.set("/page?x=1", 5, 100, b"a\r\nbody\r\n");
    raw.set("/ever", 0, 0, b"");
    let page = client.look_up(&key("/page?x=1"), Ok::<Found, Unfit>).await;
    let LookedUp::Found(Found { body, flags, ttl: Ttl::Left(left) }) = page else { panic!("{page:?}") };
    assert_eq!((&body[..], flags), (&b"a\r\nbody\r\n"[..], 5));
    assert!((98..=100).contains(&left.as_secs()), "{left:?}");
    let ever = client.look_up(&key("/ever"), Ok::<Found, Unfit>).await;
    assert!(matches!(ever, LookedUp::Found(Found { ttl: Ttl::Unlimited, .. })), "{ever:?}");
    assert_eq!(look(&client, "/page?x=2").await, LookedUp::Absent);
    for (result, count) in [("found", 2), ("absent", 1), ("failed", 0)] {
        assert_eq!(sample(&client, &["lookups_total", &format!("result=\"{result}\"")]), count, "{result}");
    }
    assert_eq!(sample(&client, &["lookup_seconds_count"]), 3);
    assert_eq!(raw.others(), 1, "one connection for all of it");
}

#[tokio::test]
async fn a_value_is_set_for_its_lifetime_and_deleted_when_that_is_confirmed() {
    let server = Server::start();
    let client = client(&server.address());
    let store = client.shared();
    assert_eq!(store.set(&key("/a"), "body".into(), Duration::from_secs(50)), Offered::Queued);
    until(&client, "/a", &found("body")).await;
    let ttl = client.look_up(&key("/a"), |found| Ok(found.ttl)).await;
    assert!(
        matches!(ttl, LookedUp::Found(Ttl::Left(left)) if (45..=50).contains(&left.as_secs())),
        "{ttl:?}"
    );
    confirmed(store.delete(&key("/a")).unwrap()).await;
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
    confirmed(store.delete(&key("/never")).unwrap()).await;
    assert_eq!(store.set(&key("/a"), "body".into(), Duration::from_millis(900)), Offered::TooShort);
    assert_eq!(
        store.set(&key("/a"), vec![0; MAX_OBJECT + 1].into(), Duration::from_secs(1)),
        Offered::TooLarge
    );
    assert_eq!(sample(&client, &["writes_total", "\"written\""]), 1);
    assert_eq!(sample(&client, &["writes_total", "\"deleted\""]), 2);
    eventually("the queue is empty", || sample(&client, &["queue_bytes"]) == 0).await;
}

#[tokio::test]
async fn a_lifetime_of_more_than_thirty_days_is_no_date_of_1970() {
    let server = Server::start();
    let client = client(&server.address());
    let days = Duration::from_secs(40 * 24 * 3600);
    assert_eq!(client.shared().set(&key("/long"), "body".into(), days), Offered::Queued);
    until(&client, "/long", &found("body")).await;
    let mut ttl = LookedUp::Absent;
    // A busy machine may let one of them come too late.
    for _ in 0..100 {
        ttl = client.look_up(&key("/long"), |found| Ok(found.ttl)).await;
        if !matches!(ttl, LookedUp::Failed(_)) {
            break;
        }
    }
    let LookedUp::Found(Ttl::Left(left)) = ttl else { panic!("{ttl:?}") };
    assert!(days.as_secs() - left.as_secs() < 10, "{left:?}");
}

#[tokio::test]
async fn keys_that_servers_do_not_take_are_replaced_and_found_again() {
    let server = Server::start();
    let client = client(&server.address());
    for text in ["/with a blank", "/\r\ndelete /a", &"/long".repeat(60), ""] {
        assert_eq!(
            client.shared().set(&key(text), text.to_owned().into(), Duration::from_secs(9)),
            Offered::Queued
        );
        until(&client, text, &found(text)).await;
    }
}

#[tokio::test]
async fn compressed_values_are_decoded_where_their_flags_say_so() {
    let server = Server::start();
    let client = client(&server.address());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"body").unwrap();
    let gzip = encoder.finish().unwrap();
    let mut raw = server.raw();
    raw.set("/gzip", 2, 0, &gzip);
    raw.set("/plain", 1, 0, &gzip);
    raw.set("/broken", 2, 0, b"body");
    assert_eq!(look(&client, "/gzip").await, found("body"));
    assert_eq!(look(&client, "/plain").await, LookedUp::Found(gzip.into()));
    assert_eq!(look(&client, "/broken").await, LookedUp::Unfit(Unfit::Malformed));
    let refused = client.look_up::<()>(&key("/gzip"), |_| Err(Unfit::OtherVariant)).await;
    assert_eq!(refused, LookedUp::Unfit(Unfit::OtherVariant));
    assert_eq!(sample(&client, &["lookups_total", "\"malformed\""]), 1);
    assert_eq!(sample(&client, &["lookups_total", "\"other-variant\""]), 1);
}

#[tokio::test]
async fn what_an_application_has_marked_stale_or_only_reserved_is_absent() {
    let server = Server::start();
    let client = client(&server.address());
    let mut raw = server.raw();
    raw.set("/stale", 0, 0, b"old");
    assert_eq!(raw.ask("md /stale I T30\r\n"), "HD\r\n");
    assert_eq!(look(&client, "/stale").await, LookedUp::Absent);
    assert_eq!(look(&client, "/stale").await, LookedUp::Absent);
    // The first to ask makes the entry, and is to fill it.
    raw.ask("mg /reserved N30 v\r\nget /x\r\n");
    assert_eq!(look(&client, "/reserved").await, LookedUp::Absent);
}

#[tokio::test]
async fn a_value_beyond_the_limit_is_a_miss_that_takes_its_server_from_nobody() {
    let server = Server::start();
    let mut small = settings(&[server.address()]);
    small.max_object = 1000;
    let client = start(small);
    let mut raw = server.raw();
    raw.set("/large", 0, 0, &[b'x'; 1001]);
    raw.set("/small", 0, 0, b"body");
    for _ in 0..10 {
        assert_eq!(look(&client, "/large").await, LookedUp::Failed(Failure::TooLarge));
    }
    assert_eq!(look(&client, "/small").await, found("body"));
    assert_eq!(sample(&client, &["breaker_opens"]), 0);
}

#[tokio::test]
async fn the_limit_of_values_can_be_another_while_it_runs() {
    let server = Server::start();
    let mut small = settings(&[server.address()]);
    small.max_object = 1000;
    let client = start(small);
    let (store, large) = (client.shared(), "x".repeat(1001));
    let set = || store.set(&key("/large"), large.clone().into(), Duration::from_secs(60));
    assert_eq!(set(), Offered::TooLarge);
    server.raw().set("/large", 0, 0, large.as_bytes());
    assert_eq!(look(&client, "/large").await, LookedUp::Failed(Failure::TooLarge));
    store.resize(1001);
    // A connection that was made before may be there still, and ends with this.
    until(&client, "/large", &found(&large)).await;
    assert_eq!(set(), Offered::Queued);
    store.resize(1000);
    assert_eq!(set(), Offered::TooLarge);
}

#[tokio::test]
async fn a_server_that_refuses_a_value_is_asked_for_others() {
    let server = Server::start();
    let mut large = settings(&[server.address()]);
    large.max_object = 8 << 20;
    let client = start(large);
    // Its own limit is 1 MiB.
    assert_eq!(
        client.shared().set(&key("/large"), vec![0; 4 << 20].into(), Duration::from_secs(9)),
        Offered::Queued
    );
    assert_eq!(client.shared().set(&key("/a"), "body".into(), Duration::from_secs(9)), Offered::Queued);
    until(&client, "/a", &found("body")).await;
    assert_eq!(sample(&client, &["writes_total", "\"refused\""]), 1);
    assert_eq!(look(&client, "/large").await, LookedUp::Absent);
}

#[tokio::test]
async fn servers_on_ports_have_their_share_of_the_keys() {
    let servers = [TcpServer::start(), TcpServer::start(), TcpServer::start()];
    let client = start(settings(&servers.each_ref().map(|server| server.address("127.0.0.1"))));
    for n in 0..60 {
        let name = format!("/{n}");
        assert_eq!(
            client.shared().set(&key(&name), name.clone().into(), Duration::from_secs(60)),
            Offered::Queued
        );
    }
    for n in 0..60 {
        let name = format!("/{n}");
        until(&client, &name, &found(&name)).await;
    }
    for server in &servers {
        let label = format!("server=\"127.0.0.1:{}\"", server.port);
        assert!(sample(&client, &["writes_total", "\"written\"", &label]) > 5, "{label}");
    }
}

/// A name with one address where nobody listens, and one where a server does.
struct Two(SocketAddr);

impl Resolve for Two {
    fn addresses<'a>(&'a self, host: &'a str, port: u16) -> Addresses<'a> {
        let dead = SocketAddr::from(([127, 0, 0, 9], port));
        Box::pin(async move { if host == "cache" { Ok(vec![dead, self.0]) } else { Ok(vec![]) } })
    }
}

#[tokio::test]
async fn all_addresses_of_a_name_are_tried() {
    let server = TcpServer::start();
    let names = Arc::new(Two(SocketAddr::from(([127, 0, 0, 1], server.port))));
    let with = |host: &str| {
        let settings = settings(&[server.address(host)]);
        let clock = Clock::default();
        Client::new(
            RemoteStore::start(
                RemoteSettings::Memcached(settings),
                Arc::clone(&names) as _,
                clock,
                &Diagnostics::silent(),
            )
            .unwrap(),
        )
    };
    assert_eq!(look(&with("cache"), "/a").await, LookedUp::Absent);
    assert_eq!(look(&with("nowhere"), "/a").await, LookedUp::Failed(Failure::Connect));
    // The system's resolver.
    assert_eq!(look(&client(&server.address("localhost")), "/a").await, LookedUp::Absent);
}

#[tokio::test]
async fn connections_and_threads_end_with_the_last_handle() {
    let server = Server::start();
    let client = client(&server.address());
    client.shared().set(&key("/a"), "body".into(), Duration::from_secs(60));
    until(&client, "/a", &found("body")).await;
    let mut raw = server.raw();
    assert_eq!(raw.others(), 2, "the worker's and the writer's");
    // What is queued is still written.
    let deletion = client.shared().delete(&key("/a")).unwrap();
    drop(client);
    confirmed(deletion).await;
    eventually("no connection is left", || raw.others() == 0).await;
}

#[test]
fn settings_have_their_bounds() {
    let address = Address::parse("127.0.0.1").unwrap();
    let check = |count: usize, weight: u32, is_fit: bool| {
        let mut settings = settings(&vec![address.clone(); count]);
        settings.servers.iter_mut().for_each(|server| server.weight = weight);
        let names = Arc::new(crate::SystemNames);
        let settings = RemoteSettings::Memcached(settings);
        let started = RemoteStore::start(settings, names, Clock::default(), &Diagnostics::silent());
        assert_eq!(started.is_ok(), is_fit, "{count} servers of weight {weight}");
    };
    check(0, 1, false);
    check(1, 1, true);
    check(1, 0, false);
    check(16, 256, true);
    check(17, 256, false);
    check(1, 257, false);
    check(257, 1, false);
}
