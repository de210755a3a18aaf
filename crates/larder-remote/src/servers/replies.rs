//! What servers may send, and when, with scripted ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::{Failure, Found, LookedUp, Ttl};
use tokio::sync::{Notify, mpsc};

use super::scripted::{Connection, Scripted, key_of, value};
use super::setup::{client, confirmed, found, key, look, sample, settings, start, turns};

#[tokio::test]
async fn a_server_without_meta_commands_is_asked_in_classic_ones() {
    let server = Scripted::start(|mut connection| async move {
        assert_eq!(connection.line().await.as_deref(), Some("mn"));
        connection.send(b"ERROR\r\n").await;
        while let Some(line) = connection.line().await {
            match line.as_str() {
                "get /there" => connection.send(b"VALUE /there 5 4\r\nbody\r\nEND\r\n").await,
                "get /absent" => connection.send(b"END\r\n").await,
                "delete /there" => connection.send(b"DELETED\r\n").await,
                other => panic!("{other}"),
            }
        }
    })
    .await;
    let client = client(&server.address);
    let there = client.look_up(&key("/there"), Ok).await;
    let expected = Found { body: "body".into(), flags: 5, ttl: Ttl::Unknown };
    assert_eq!(there, LookedUp::Found(expected));
    assert_eq!(look(&client, "/absent").await, LookedUp::Absent);
    confirmed(client.shared().delete(&key("/there")).unwrap()).await;
}

#[tokio::test]
async fn replies_that_are_cut_at_any_byte_are_a_miss_and_never_a_part() {
    const BODY: &str = "a body\r\nof two lines";
    let whole = value("mg /cut", BODY).len();
    let next = Arc::new(AtomicUsize::new(0));
    let server = Scripted::start({
        let next = Arc::clone(&next);
        move |mut connection| {
            let next = Arc::clone(&next);
            async move {
                connection.greet().await;
                while let Some(line) = connection.line().await {
                    let reply = value(&line, BODY);
                    // The key says whether this one is cut.
                    if key_of(&line) == "/cut" {
                        connection.send(&reply[..next.fetch_add(1, Ordering::Relaxed)]).await;
                        return;
                    }
                    connection.send(&reply).await;
                }
            }
        }
    })
    .await;
    let client = client(&server.address);
    for cut in 0..whole {
        assert_eq!(next.load(Ordering::Relaxed), cut);
        assert_eq!(look(&client, "/cut").await, LookedUp::Failed(Failure::Closed), "{cut}");
        // A reply between them, so that the breaker stays closed; it comes on a new connection.
        assert_eq!(look(&client, "/whole").await, found(BODY), "{cut}");
    }
    assert_eq!(look(&client, "/cut").await, found(BODY));
}

#[tokio::test]
async fn replies_in_two_packets_are_the_same_wherever_they_are_cut() {
    let server = Scripted::start(|mut connection| async move {
        connection.greet().await;
        let mut cut = 0;
        while let Some(line) = connection.line().await {
            let reply = value(&line, "body");
            let (first, second) = reply.split_at(cut % reply.len());
            connection.send(first).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
            connection.send(second).await;
            cut += 1;
        }
    })
    .await;
    let client = client(&server.address);
    for _ in 0..value("mg /a", "body").len() {
        assert_eq!(look(&client, "/a").await, found("body"));
    }
}

async fn refused(first: &'static [u8], expected: Failure) {
    let server = Scripted::start(move |mut connection| async move {
        connection.greet().await;
        while let Some(line) = connection.line().await {
            match connection.number {
                0 => connection.send(first).await,
                _ => connection.send(&value(&line, "body")).await,
            }
        }
    })
    .await;
    let client = client(&server.address);
    let text = first.escape_ascii();
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(expected), "{text}");
    assert_eq!(look(&client, "/a").await, found("body"), "{text}: on a new connection");
}

#[tokio::test]
async fn what_is_no_reply_to_the_request_closes_the_connection_and_is_given_to_nobody() {
    refused(b"rubbish\r\n", Failure::Malformed).await;
    refused(b"VA -4 k/a f0 t1\r\nbody\r\n", Failure::Malformed).await;
    refused(b"VA 3 k/a f0 t1\r\nbody\r\n", Failure::Malformed).await;
    refused(b"STORED\r\n", Failure::Malformed).await;
    refused(b"ERROR\r\n", Failure::Malformed).await;
    // Another one's value, and a value that does not say whose it is.
    refused(b"VA 4 k/b f0 t1\r\nbody\r\n", Failure::Malformed).await;
    refused(b"VA 4 f0 t1\r\nbody\r\n", Failure::Malformed).await;
    refused(b"EN k/b\r\n", Failure::Malformed).await;
    refused(b"VA 99999999 k/a f0 t1\r\n", Failure::TooLarge).await;
}

#[tokio::test]
async fn more_replies_than_were_asked_for_close_the_connection() {
    let server = Scripted::start(|mut connection| async move {
        connection.greet().await;
        while let Some(line) = connection.line().await {
            let mut reply = value(&line, "body");
            if connection.number == 0 {
                reply.extend(value(&line, "another"));
            }
            connection.send(&reply).await;
        }
    })
    .await;
    let client = client(&server.address);
    assert_eq!(look(&client, "/a").await, found("body"));
    // What was sent in advance answers nothing, whether it has been seen before this or comes now.
    for _ in 0..3 {
        let looked_up = look(&client, "/a").await;
        assert!(
            looked_up == found("body") || looked_up == LookedUp::Failed(Failure::Malformed),
            "{looked_up:?}"
        );
    }
    assert_eq!(look(&client, "/a").await, found("body"));
}

/// A server whose look-up of `/late` waits until it is told, and all behind it.
async fn late(go: Arc<Notify>, timeout: Duration) -> (Scripted, crate::Client) {
    let server = Scripted::start(move |mut connection: Connection| {
        let go = Arc::clone(&go);
        async move {
            connection.greet().await;
            while let Some(line) = connection.line().await {
                if key_of(&line) == "/late" {
                    go.notified().await;
                }
                connection.send(&value(&line, key_of(&line))).await;
            }
        }
    })
    .await;
    let mut quick = settings(std::slice::from_ref(&server.address));
    quick.timeout = timeout;
    (server, start(quick))
}

#[tokio::test]
async fn a_late_reply_goes_to_nobody_and_the_next_one_to_its_caller() {
    let go = Arc::new(Notify::new());
    let (_server, client) = late(Arc::clone(&go), Duration::from_millis(300)).await;
    assert_eq!(look(&client, "/first").await, found("/first"));
    assert_eq!(look(&client, "/late").await, LookedUp::Failed(Failure::TimedOut));
    let (next, ()) = tokio::join!(biased; look(&client, "/next"), async { go.notify_one() });
    assert_eq!(next, found("/next"));
    assert_eq!(sample(&client, &["replies_late_total"]), 1);
}

#[tokio::test]
async fn a_reply_that_does_not_come_in_five_times_the_time_closes_the_connection() {
    let (closed, mut was_closed) = mpsc::unbounded_channel();
    let server = Scripted::start(move |mut connection: Connection| {
        let closed = closed.clone();
        async move {
            connection.greet().await;
            while connection.line().await.is_some() {}
            let _ = closed.send(Instant::now());
        }
    })
    .await;
    let mut quick = settings(std::slice::from_ref(&server.address));
    quick.timeout = Duration::from_millis(60);
    let client = start(quick);
    let begun = Instant::now();
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::TimedOut));
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(60) && waited < Duration::from_millis(290), "{waited:?}");
    let end = tokio::time::timeout(Duration::from_secs(20), was_closed.recv()).await.expect("it is closed");
    let lived = end.unwrap() - begun;
    assert!(lived >= Duration::from_millis(290), "{lived:?}");
}

#[tokio::test]
async fn at_most_1024_replies_are_outstanding_and_callers_that_left_count() {
    let go = Arc::new(Notify::new());
    let (_server, client) = late(Arc::clone(&go), Duration::from_secs(5)).await;
    let client = Arc::new(client);
    let asking: Vec<_> = (0..1024)
        .map(|n| {
            let client = Arc::clone(&client);
            let name = if n == 0 { "/late".to_owned() } else { format!("/{n}") };
            tokio::spawn(async move { look(&client, &name).await })
        })
        .collect();
    turns().await;
    assert_eq!(look(&client, "/more").await, LookedUp::Failed(Failure::Busy));
    asking.iter().step_by(2).for_each(|task| task.abort());
    turns().await;
    assert_eq!(look(&client, "/more").await, LookedUp::Failed(Failure::Busy));
    go.notify_one();
    for (n, task) in asking.into_iter().enumerate().skip(1).step_by(2) {
        assert_eq!(task.await.unwrap(), found(&format!("/{n}")));
    }
    assert_eq!(look(&client, "/more").await, found("/more"));
}
