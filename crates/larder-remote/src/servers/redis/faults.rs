//! Servers that hang, end and return.

use std::time::{Duration, Instant};

use super::super::setup::{TIMEOUT, eventually, found, key, look, sample, turns, until};
use super::{Server, client, settings, start};
use crate::{Address, Failure, LookedUp};

/// What a machine with other work may add to a time limit.
const SLACK: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_server_that_hangs_delays_a_few_look_ups_and_is_asked_again_when_it_is_well() {
    let server = Server::start();
    server.raw().set("/a", b"body");
    let client = client(&server);
    assert_eq!(look(&client, "/a").await, found("body"));
    server.stop();
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::TimedOut));
        assert!(begun.elapsed() < TIMEOUT + SLACK, "{:?}", begun.elapsed());
    }
    assert!(!client.shared().is_asked(&key("/a")));
    let begun = Instant::now();
    for _ in 0..1000 {
        assert_eq!(look(&client, "/a").await, LookedUp::Skipped);
    }
    assert!(begun.elapsed() < TIMEOUT, "no request is the probe");
    assert_eq!(sample(&client, &["server_up"]), 0);
    server.resume();
    eventually("the server is asked again", || client.shared().is_asked(&key("/a"))).await;
    until(&client, "/a", &found("body")).await;
    assert_eq!(sample(&client, &["breaker_opens"]), 1);
    assert!(sample(&client, &["replies_late"]) <= 5);
}

#[tokio::test]
async fn a_server_that_ends_delays_nobody_and_is_asked_again_when_it_is_back() {
    let mut server = Server::start();
    server.raw().set("/a", b"body");
    let client = client(&server);
    assert_eq!(look(&client, "/a").await, found("body"));
    server.kill();
    let begun = Instant::now();
    until(&client, "/a", &LookedUp::Skipped).await;
    assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
    server.restart();
    server.raw().set("/a", b"anew");
    until(&client, "/a", &found("anew")).await;
}

#[tokio::test]
async fn a_server_that_restarts_while_nothing_is_asked_fails_no_look_up() {
    let mut server = Server::start();
    let client = client(&server);
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
    server.kill();
    server.restart();
    server.raw().set("/a", b"body");
    // The end of the connection has arrived; its task sees it.
    turns().await;
    assert_eq!(look(&client, "/a").await, found("body"));
    assert_eq!(sample(&client, &["breaker_opens"]), 0);
}

#[tokio::test]
async fn where_nobody_listens_one_look_up_fails_and_no_other_asks() {
    let client = start(settings(Address::Unix("/nonexistent/socket".into())));
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Connect));
    for _ in 0..100 {
        assert_eq!(look(&client, "/a").await, LookedUp::Skipped);
    }
    assert_eq!(sample(&client, &["lookup_seconds_count"]), 1);
}
