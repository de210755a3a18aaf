//! Look-ups and writes while all is well.

use std::time::Duration;

use super::super::setup::{MAX_OBJECT, confirmed, eventually, found, key, look, sample, until};
use super::{Server, client, settings, start};
use crate::redis::Password;
use crate::{Address, Failure, Found, LookedUp, Offered, RemoteKey, Ttl, Unfit};
use larder_testkit::redis::RedisOnPort;
use larder_testkit::seeded::bytes_of;

#[tokio::test]
async fn a_value_is_found_with_the_time_that_it_has_left_and_another_key_is_absent() {
    let server = Server::start();
    let client = client(&server);
    let mut raw = server.raw();
    raw.set_for("/page?x=1", 100_000, b"a\r\nbody\r\n");
    raw.set("/ever", b"");
    let page = client.look_up(&key("/page?x=1"), Ok::<Found, Unfit>).await;
    let LookedUp::Found(Found { body, flags, ttl: Ttl::Left(left) }) = page else { panic!("{page:?}") };
    assert_eq!((&body[..], flags), (&b"a\r\nbody\r\n"[..], 0));
    assert!((90_000..=100_000).contains(&left.as_millis()), "{left:?}");
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
    let client = client(&server);
    let (store, mut raw) = (client.shared(), server.raw());
    assert_eq!(store.set(&key("/a"), "body".into(), Duration::from_millis(50_500)), Offered::Queued);
    until(&client, "/a", &found("body")).await;
    assert!((45_000..=50_500).contains(&raw.left("/a")));
    confirmed(store.delete(&key("/a")).unwrap()).await;
    assert_eq!((look(&client, "/a").await, raw.left("/a")), (LookedUp::Absent, -2));
    confirmed(store.delete(&key("/never")).unwrap()).await;
    assert_eq!(store.set(&key("/a"), "body".into(), Duration::from_millis(900)), Offered::TooShort);
    let large = vec![0; MAX_OBJECT + 1];
    assert_eq!(store.set(&key("/a"), large.into(), Duration::from_secs(1)), Offered::TooLarge);
    assert_eq!(store.set(&key("/long"), "body".into(), Duration::MAX), Offered::Queued);
    until(&client, "/long", &found("body")).await;
    // A value can be found a moment before its writer counts it.
    eventually("both are counted", || sample(&client, &["writes_total", "\"written\""]) == 2).await;
    assert_eq!(sample(&client, &["writes_total", "\"deleted\""]), 2);
    eventually("the queue is empty", || sample(&client, &["queue_bytes"]) == 0).await;
}

#[tokio::test]
async fn any_name_is_a_key_and_any_bytes_are_a_value() {
    let server = Server::start();
    let client = client(&server);
    let long = "/long".repeat(200);
    for name in ["/with a blank", "/\r\n*1\r\n$8\r\nFLUSHALL\r\n", &long, ""] {
        let key = client.shared().key(name.to_owned().into());
        assert_eq!(key, RemoteKey::of_redis(name.to_owned()));
        let value = bytes_of(name, 0, 70_000);
        assert_eq!(client.shared().set(&key, value.clone(), Duration::from_secs(9)), Offered::Queued);
        confirmed(client.shared().delete(&RemoteKey::of_redis("/behind it")).unwrap()).await;
        let looked_up = client.look_up(&key, |found| Ok(found.body)).await;
        assert!(looked_up == LookedUp::Found(value), "{name:?}");
    }
}

#[tokio::test]
async fn a_value_beyond_the_limit_is_none_and_the_server_is_asked_for_others() {
    let server = Server::start();
    let client = client(&server);
    server.raw().set("/large", &vec![b'a'; MAX_OBJECT + 1]);
    server.raw().set("/fits", &vec![b'a'; MAX_OBJECT]);
    for _ in 0..10 {
        assert_eq!(look(&client, "/large").await, LookedUp::Failed(Failure::TooLarge));
        assert!(matches!(look(&client, "/fits").await, LookedUp::Found(body) if body.len() == MAX_OBJECT));
    }
    assert_eq!(sample(&client, &["breaker_opens"]), 0);
}

#[tokio::test]
async fn what_is_no_string_is_malformed() {
    let server = Server::start();
    let client = client(&server);
    server.raw().ask(&[b"RPUSH", b"/list", b"a"]);
    assert_eq!(look(&client, "/list").await, LookedUp::Unfit(Unfit::Malformed));
    assert_eq!(sample(&client, &["lookups_total", "\"malformed\""]), 1);
    // The same connection goes on.
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
    assert_eq!(server.raw().others(), 1);
}

#[tokio::test]
async fn user_password_and_database_are_those_of_the_settings() {
    let server = Server::start_with(&["--requirepass", "s3cret"]);
    let mut raw = server.raw();
    raw.ask(&[b"AUTH", b"s3cret"]);
    raw.ask(&[b"ACL", b"SETUSER", b"larder", b"on", b">pass:word@1", b"~page:*", b"+@all"]);
    raw.ask(&[b"SELECT", b"3"]);
    raw.set("page:/a", b"third");
    let of = |user: Option<&str>, password: Option<&str>, database| {
        let (user, password) =
            (user.map(str::to_owned), password.map(|text: &str| Password::Text(text.to_owned())));
        start(crate::redis::RedisSettings {
            user,
            password,
            database,
            ..settings(Address::Unix(server.socket()))
        })
    };
    assert_eq!(look(&of(None, Some("s3cret"), 3), "page:/a").await, found("third"));
    assert_eq!(look(&of(None, Some("s3cret"), 0), "page:/a").await, LookedUp::Absent);
    let by_user = of(Some("larder"), Some("pass:word@1"), 3);
    assert_eq!(look(&by_user, "page:/a").await, found("third"));
    // No right to other keys.
    assert_eq!(look(&by_user, "/a").await, LookedUp::Failed(Failure::Refused));
    assert_eq!(look(&by_user, "page:/a").await, found("third"));
    for (user, password, database) in [
        (None, None, 3),
        (None, Some("wrong"), 3),
        (Some("larder"), Some("s3cret"), 3),
        (Some("nobody"), Some("s3cret"), 3),
        (None, Some("s3cret"), 99),
    ] {
        let refused = of(user, password, database);
        assert_eq!(look(&refused, "page:/a").await, LookedUp::Failed(Failure::Connect), "{user:?}");
        assert_eq!(look(&refused, "page:/a").await, LookedUp::Skipped, "{user:?}");
    }
}

#[tokio::test]
async fn a_server_on_a_port_is_reached_by_name() {
    let server = RedisOnPort::start();
    let client = start(settings(Address::Tcp { host: "localhost".into(), port: server.port }));
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
    assert_eq!(client.shared().told(), [format!("redis localhost:{}", server.port)]);
}

#[tokio::test]
async fn connections_and_threads_end_with_the_last_handle() {
    let server = Server::start();
    let client = client(&server);
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
