//! What is written and deleted: its order, what outlives a failing server, and what one refuses.

use std::time::Duration;

use bytes::Bytes;

use super::super::setup::{Chance, confirmed, eventually, found, key, look, sample, until};
use super::{Server, client};
use crate::{Claimed, LookedUp, MadeValue, Offered};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn what_is_queued_for_a_key_is_carried_out_in_its_order() {
    let server = Server::start();
    let client = client(&server);
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
            let queued = match chance.below(2) {
                0 => store.set(&key(&name), body.clone().into(), HOUR),
                // Two values of which the later one stays, made when it is their turn.
                _ => {
                    let made = [Bytes::from_static(b"former"), body.clone().into()];
                    let made =
                        made.map(|value| MadeValue { name: name.clone().into(), value, lifetime: HOUR });
                    store.set_made(&key(&name), body.len(), || made.into())
                }
            };
            assert_eq!(queued, Offered::Queued);
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
async fn a_deletion_outlives_its_server_and_values_do_not() {
    let mut server = Server::start();
    let client = client(&server);
    let store = client.shared();
    assert_eq!(store.set(&key("/a"), "old".into(), HOUR), Offered::Queued);
    until(&client, "/a", &found("old")).await;
    server.kill();
    let mut deletion = Box::pin(confirmed(store.delete(&key("/a")).unwrap()));
    eventually("the server is left alone", || !store.is_asked(&key("/a"))).await;
    assert_eq!(store.set(&key("/b"), "body".into(), HOUR), Offered::Failing);
    assert_eq!(store.set_made(&key("/b"), 9, || panic!("it is not to be made")), Offered::Failing);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut deletion).await.is_err(), "not confirmed");
    server.restart();
    // As if it had been away, and not ended.
    server.raw().set("/a", b"old");
    deletion.await;
    until(&client, "/a", &LookedUp::Absent).await;
    assert_eq!(look(&client, "/b").await, LookedUp::Absent);
    assert_eq!(sample(&client, &["writes_total", "\"deleted\""]), 1);
    assert_eq!(sample(&client, &["writes_total", "\"failing\""]), 2);
}

#[tokio::test]
async fn a_server_that_may_only_be_read_refuses_values_and_confirms_deletions_when_it_may_be_written() {
    let server = Server::start();
    let client = client(&server);
    let (store, mut raw) = (client.shared(), server.raw());
    raw.set("/a", b"old");
    // Of a master that is not there.
    raw.ask(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    assert_eq!(store.set(&key("/b"), "body".into(), HOUR), Offered::Queued);
    eventually("it is refused", || sample(&client, &["writes_total", "\"refused\""]) == 1).await;
    let mut deletion = Box::pin(confirmed(store.delete(&key("/a")).unwrap()));
    eventually("it is not confirmed", || sample(&client, &["writes_total", "\"unconfirmed\""]) >= 1).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut deletion).await.is_err());
    assert_eq!(look(&client, "/a").await, found("old"), "it is read all the same");
    raw.ask(&[b"REPLICAOF", b"NO", b"ONE"]);
    deletion.await;
    assert_eq!((look(&client, "/a").await, look(&client, "/b").await), (LookedUp::Absent, LookedUp::Absent));
}

/// It goes the way of deletions, and they wait: who has claimed a name could not give it back.
#[tokio::test]
async fn nothing_is_claimed_while_deletions_are_not_confirmed() {
    let server = Server::start();
    let client = client(&server);
    let (store, mut raw) = (client.shared(), server.raw());
    let claim = async |name: &str| client.claim(&key(name), "larder".into(), HOUR).await;
    assert_eq!(claim("/a").await, Claimed::Mine);
    raw.ask(&[b"ACL", b"SETUSER", b"default", b"-del", b"-unlink"]);
    let deletion = store.delete(&key("/a")).unwrap();
    eventually("it is not confirmed", || sample(&client, &["writes_total", "\"unconfirmed\""]) >= 1).await;
    assert_eq!(claim("/b").await, Claimed::Unknown);
    assert_eq!(look(&client, "/a").await, found("larder"), "the server is well");
    raw.ask(&[b"ACL", b"SETUSER", b"default", b"+del", b"+unlink"]);
    confirmed(deletion).await;
    assert_eq!(claim("/a").await, Claimed::Mine);
}
