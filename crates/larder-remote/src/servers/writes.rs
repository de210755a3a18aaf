//! What is written and deleted: its order, its bounds, and what outlives a failing server.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::{LookedUp, MadeValue, Offered};
use parking_lot::Mutex;

use super::real::{Listens as _, Server};
use super::scripted::{Connection, Scripted};
use super::setup::{Chance, client, confirmed, eventually, found, key, look, sample, settings, start, until};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn what_is_queued_for_a_key_is_carried_out_in_its_order() {
    let server = Server::start();
    let client = client(&server.address());
    let store = client.shared();
    let mut chance = Chance(7);
    let mut last: Vec<Option<String>> = vec![None; 20];
    for n in 0..4000 {
        let at = chance.below(20) as usize;
        let name = format!("/{at}");
        if chance.below(3) == 0 {
            drop(store.delete(&key(&name)).unwrap());
            last[at] = None;
        } else {
            let body = format!("{n} {}", "x".repeat(chance.below(200) as usize));
            assert_eq!(store.set(&key(&name), body.clone().into(), HOUR), Offered::Queued);
            last[at] = Some(body);
        }
    }
    confirmed(store.delete(&key("/end")).unwrap()).await;
    for (at, last) in last.into_iter().enumerate() {
        let expected = last.map_or(LookedUp::Absent, |body| found(&body));
        assert_eq!(look(&client, &format!("/{at}")).await, expected, "/{at}");
    }
    eventually("the queue is empty", || sample(&client, &["queue_bytes"]) == 0).await;
}

#[tokio::test]
async fn a_full_queue_takes_no_value_and_still_takes_deletions() {
    let server = Server::start();
    let client = client(&server.address());
    let store = client.shared();
    confirmed(store.delete(&key("/first")).unwrap()).await;
    server.stop();
    let value = bytes::Bytes::from(vec![0; 512 * 1024]);
    let begun = Instant::now();
    let queued =
        (0..100).take_while(|_| store.set(&key("/a"), value.clone(), HOUR) == Offered::Queued).count();
    assert_eq!(store.set(&key("/a"), value, HOUR), Offered::Full);
    assert!((20..=24).contains(&queued), "{queued} of half a mebibyte");
    let deletion = store.delete(&key("/a")).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(500), "nobody waits");
    assert!(sample(&client, &["queue_bytes"]) <= 16 << 20);
    assert_eq!(sample(&client, &["writes_total", "\"full\""]), 2, "the one that ended the row, and this one");
    server.resume();
    confirmed(deletion).await;
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
}

#[tokio::test]
async fn a_deletion_outlives_its_server_and_values_do_not() {
    let mut server = Server::start();
    let client = client(&server.address());
    let store = client.shared();
    assert_eq!(store.set(&key("/a"), "old".into(), HOUR), Offered::Queued);
    until(&client, "/a", &found("old")).await;
    server.kill();
    let mut deletion = Box::pin(confirmed(store.delete(&key("/a")).unwrap()));
    eventually("the server is left alone", || !store.is_asked(&key("/a"))).await;
    assert_eq!(store.set(&key("/b"), "body".into(), HOUR), Offered::Failing);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut deletion).await.is_err(), "not confirmed");
    server.restart();
    // As if it had been away, and not ended.
    server.raw().set("/a", 0, 0, b"old");
    deletion.await;
    until(&client, "/a", &LookedUp::Absent).await;
    assert_eq!(look(&client, "/b").await, LookedUp::Absent);
    assert_eq!(sample(&client, &["writes_total", "\"deleted\""]), 1);
    assert_eq!(sample(&client, &["writes_total", "\"failing\""]), 1);
}

#[tokio::test]
async fn values_that_wait_for_a_server_that_fails_are_dropped() {
    let server = Server::start();
    let client = client(&server.address());
    let store = client.shared();
    confirmed(store.delete(&key("/first")).unwrap()).await;
    server.stop();
    for n in 0..200 {
        assert_eq!(store.set(&key(&format!("/{n}")), "body".into(), HOUR), Offered::Queued);
    }
    eventually("the queue is empty", || sample(&client, &["queue_bytes"]) == 0).await;
    assert!(!store.is_asked(&key("/0")));
    server.resume();
    eventually("the server is asked again", || store.is_asked(&key("/0"))).await;
    // What was on its way may be there; what waited is not.
    until(&client, "/199", &LookedUp::Absent).await;
    let of = |result| sample(&client, &["writes_total", result]);
    assert!(of("\"failing\"") >= 100 && of("\"lost\"") >= 1);
    assert_eq!(of("\"failing\"") + of("\"lost\""), 200);
}

#[tokio::test]
async fn after_a_value_whose_reply_was_lost_a_deletion_waits_until_the_server_has_had_a_second() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = Scripted::start({
        let seen = Arc::clone(&seen);
        move |mut connection: Connection| {
            let seen = Arc::clone(&seen);
            async move {
                while let Some(line) = connection.line().await {
                    seen.lock().push((connection.number, line.clone(), Instant::now()));
                    match (connection.number, line.as_str()) {
                        (_, "mn") => connection.send(b"MN\r\n").await,
                        // Both are read, and neither has a reply.
                        (0, "delete /a") => return,
                        (_, "delete /a") => connection.send(b"DELETED\r\n").await,
                        _ => {}
                    }
                }
            }
        }
    })
    .await;
    let client = client(&server.address);
    assert_eq!(client.shared().set(&key("/a"), "body".into(), HOUR), Offered::Queued);
    confirmed(client.shared().delete(&key("/a")).unwrap()).await;
    let seen = seen.lock().clone();
    let lines: Vec<_> = seen.iter().map(|(number, line, _)| (*number, line.as_str())).collect();
    let expected = [
        (0, "mn"),
        (0, "set /a 0 3600 4"),
        (0, "body"),
        (0, "delete /a"),
        (1, "mn"),
        (1, "mn"),
        (1, "delete /a"),
    ];
    // The deletion may have been in a batch of its own; then it was sent when the value's reply had failed.
    assert_eq!(lines, expected);
    assert!(seen[6].2 - seen[5].2 >= Duration::from_millis(950), "the value has come before it");
}

/// More than sockets hold, so that what comes behind it waits for a connection.
const LARGE_BYTES: usize = 32 << 20;

#[tokio::test]
async fn a_deletion_confirmed_over_a_newer_connection_than_that_of_a_lost_value_is_sent_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = Scripted::start({
        let seen = Arc::clone(&seen);
        move |mut connection: Connection| {
            let seen = Arc::clone(&seen);
            async move {
                while let Some(line) = connection.line().await {
                    let is_large = line.starts_with("set ");
                    seen.lock().push((connection.number, line.clone(), Instant::now()));
                    match line.as_str() {
                        "mn" => connection.send(b"MN\r\n").await,
                        "delete /a" => connection.send(b"DELETED\r\n").await,
                        // Ends amid the value, of which the deletion knows nothing.
                        _ if is_large => return,
                        _ => {}
                    }
                }
            }
        }
    })
    .await;
    let mut large = settings(std::slice::from_ref(&server.address));
    large.max_object = LARGE_BYTES;
    let client = start(large);
    let store = client.shared();
    // Holds the writer up, so that it takes all that follows at once.
    let ((held, is_held), (go, may_go)) = (channel::<()>(), channel::<()>());
    let made = move || {
        let _ = (held.send(()), may_go.recv_timeout(HOUR));
        Vec::new()
    };
    assert_eq!(store.set_made(&key("/held"), 1, made), Offered::Queued);
    is_held.recv_timeout(HOUR).unwrap();
    let value =
        || vec![MadeValue { name: "/a".into(), value: vec![b'x'; LARGE_BYTES].into(), lifetime: HOUR }];
    assert_eq!(store.set_made(&key("/a"), 1, value), Offered::Queued);
    let deletion = store.delete(&key("/a")).unwrap();
    go.send(()).unwrap();
    confirmed(deletion).await;
    let seen = seen.lock().clone();
    let lines: Vec<_> = seen.iter().map(|(number, line, _)| (*number, line.as_str())).collect();
    let set = format!("set /a 0 3600 {LARGE_BYTES}");
    let expected = [(0, "mn"), (0, set.as_str()), (1, "mn"), (1, "delete /a"), (1, "mn"), (1, "delete /a")];
    assert_eq!(lines, expected);
    assert!(seen[5].2 - seen[4].2 >= Duration::from_millis(950), "the value has come before it");
    let of = |result| sample(&client, &["writes_total", result]);
    assert_eq!((of("\"lost\""), of("\"unconfirmed\""), of("\"deleted\"")), (1, 1, 1));
}
