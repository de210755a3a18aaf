//! What servers may send, and when, with scripted ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::super::scripted::{Connection, Scripted};
use super::super::setup::{TIMEOUT, found, look, sample, turns};
use super::{answering, command, settings, start, value};
use crate::{Failure, LookedUp};

#[tokio::test]
async fn rubbish_is_a_failed_look_up_and_the_end_of_its_connection() {
    for rubbish in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "*2\r\n$5\r\nother\r\n:1\r\n",
        "%1\r\n",
        "$5\r\nother-and-more\r\n:1\r\n",
        ":1\r\n$5\r\nother\r\n",
        "$5\r\nother\r\n$5\r\nother\r\n",
        "+OK\r\n:1\r\n",
        "$5\r\nother\r\n:-3\r\n",
    ] {
        let server = answering(move |number, key| match number {
            0 => rubbish.as_bytes().to_vec(),
            _ => value(key),
        })
        .await;
        let client = start(settings(server.address.clone()));
        assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Malformed), "{rubbish:?}");
        assert_eq!(look(&client, "/b").await, found("/b"), "{rubbish:?}");
        assert_eq!(sample(&client, &["lookups_total", "\"failed\""]), 1);
    }
}

#[tokio::test]
async fn replies_that_nobody_asked_for_reach_nobody() {
    let server = answering(move |number, key| match number {
        // One look-up has two replies: the second would be the next caller's.
        0 => [value(key), value("another's")].concat(),
        _ => value(key),
    })
    .await;
    let client = start(settings(server.address.clone()));
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Malformed));
    for name in ["/b", "/c"] {
        assert_eq!(look(&client, name).await, found(name));
    }
}

#[tokio::test]
async fn a_reply_that_comes_while_nothing_is_asked_ends_the_connection() {
    let (go, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let server = Scripted::start({
        let (go, gone) = (Arc::clone(&go), Arc::clone(&gone));
        move |mut connection: Connection| {
            let (go, gone) = (Arc::clone(&go), Arc::clone(&gone));
            async move {
                loop {
                    match command(&mut connection).await {
                        Some(command) if command[0] == "PING" => connection.send(b"+PONG\r\n").await,
                        Some(command) if command[0] == "GET" => {
                            connection.send(&value(&command[1])).await;
                            if connection.number == 0 {
                                go.notified().await;
                                connection.send(&value("another's")).await;
                            }
                        }
                        Some(_) => {}
                        None => break,
                    }
                }
                gone.notify_one();
            }
        }
    })
    .await;
    let client = start(settings(server.address.clone()));
    assert_eq!(look(&client, "/a").await, found("/a"));
    go.notify_one();
    tokio::time::timeout(Duration::from_secs(20), gone.notified()).await.expect("it is closed");
    assert_eq!(look(&client, "/b").await, found("/b"));
}

#[tokio::test]
async fn a_late_reply_is_dropped_and_the_next_caller_has_its_own() {
    let go = Arc::new(Notify::new());
    let server = Scripted::start({
        let go = Arc::clone(&go);
        move |mut connection: Connection| {
            let go = Arc::clone(&go);
            async move {
                while let Some(command) = command(&mut connection).await {
                    match command[0].as_str() {
                        "PING" => connection.send(b"+PONG\r\n").await,
                        "GET" => {
                            if command[1] == "/late" {
                                go.notified().await;
                            }
                            connection.send(&value(&command[1])).await;
                        }
                        _ => {}
                    }
                }
            }
        }
    })
    .await;
    let client = Arc::new(start(settings(server.address.clone())));
    assert_eq!(look(&client, "/late").await, LookedUp::Failed(Failure::TimedOut));
    let next = tokio::spawn({
        let client = Arc::clone(&client);
        async move { look(&client, "/next").await }
    });
    turns().await;
    go.notify_one();
    assert_eq!(next.await.unwrap(), found("/next"));
    assert_eq!(sample(&client, &["replies_late"]), 1);
    assert_eq!(sample(&client, &["lookups_total", "\"found\""]), 1);
}

#[tokio::test]
async fn a_connection_without_replies_is_closed_after_five_times_the_time_of_its_callers() {
    let server = Scripted::start(|mut connection: Connection| async move {
        while let Some(command) = command(&mut connection).await {
            match command[0].as_str() {
                "PING" => connection.send(b"+PONG\r\n").await,
                "GET" if connection.number > 0 => connection.send(&value(&command[1])).await,
                _ => {}
            }
        }
    })
    .await;
    let client = start(settings(server.address.clone()));
    let begun = std::time::Instant::now();
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::TimedOut));
    // Behind a reply that does not come, others do not either; the first one after it is closed does.
    loop {
        match look(&client, "/b").await {
            LookedUp::Found(body) => {
                assert_eq!(&body[..], b"/b");
                break;
            }
            LookedUp::Failed(Failure::TimedOut | Failure::Closed) | LookedUp::Skipped => {}
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begun.elapsed() >= TIMEOUT * 5 - Duration::from_millis(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_a_server_says_that_cannot_is_a_miss_and_it_is_asked_again() {
    for error in [
        "LOADING Redis is loading the dataset in memory",
        "MOVED 3999 127.0.0.1:6381",
        "NOAUTH Authentication required.",
        "MASTERDOWN Link with MASTER is down",
        "ERR unknown command 'GET'",
    ] {
        let server = answering(move |_, _| format!("-{error}\r\n-{error}\r\n").into_bytes()).await;
        let client = start(settings(server.address.clone()));
        for _ in 0..10 {
            assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Refused), "{error}");
        }
        assert_eq!(sample(&client, &["server_up"]), 1, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_says_so_at_once_is_left_alone() {
    for first in [
        "-LOADING Redis is loading\r\n",
        "-ERR max number of clients reached\r\n",
        "*0\r\n",
        "+OK\r\n",
        "+PONG\r\n+PONG\r\n",
    ] {
        let server = Scripted::start(move |mut connection: Connection| async move {
            while command(&mut connection).await.is_some() {
                connection.send(first.as_bytes()).await;
            }
        })
        .await;
        let client = start(settings(server.address.clone()));
        assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Connect), "{first:?}");
        assert_eq!(look(&client, "/a").await, LookedUp::Skipped, "{first:?}");
    }
}
