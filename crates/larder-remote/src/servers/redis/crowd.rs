//! Many look-ups at once, of which half lose their callers: each body is the one of its key.

use std::sync::Arc;
use std::time::Duration;

use larder_testkit::seeded::bytes_of;

use super::super::setup::{Chance, eventually, key, look, sample};
use super::{Server, client};
use crate::{Failure, LookedUp};

const KEYS: u64 = 500;
const ROUNDS: usize = 8;

fn length(n: u64) -> u64 {
    // Most are small, some take many packets.
    if n.is_multiple_of(50) { 100_000 } else { n % 400 }
}

async fn crowd(stops: bool) {
    let server = Server::start();
    let mut raw = server.raw();
    for n in 0..KEYS {
        let name = format!("/{n}");
        raw.set(&name, &bytes_of(&name, 0, length(n)));
    }
    let client = Arc::new(client(&server));
    assert_eq!(look(&client, "/0").await, LookedUp::Found(bytes_of("/0", 0, length(0))));
    let mut chance = Chance(1);
    let mut found = 0;
    for round in 0..ROUNDS {
        let asking: Vec<_> = (0..KEYS)
            .map(|_| {
                let (client, n) = (Arc::clone(&client), chance.below(KEYS));
                // Half of the callers leave: some before they have asked, most while replies come.
                let leaves = (chance.below(2) == 0).then(|| Duration::from_micros(chance.below(8000)));
                let name = format!("/{n}");
                tokio::spawn(async move {
                    let asked = look(&client, &name);
                    match leaves {
                        Some(after) => tokio::time::timeout(after, asked).await.ok().map(|got| (n, got)),
                        None => Some((n, asked.await)),
                    }
                })
            })
            .collect();
        if stops && round % 2 == 0 {
            // Callers leave with all replies outstanding. In some rounds replies are late as well.
            tokio::time::sleep(Duration::from_millis(1)).await;
            server.stop();
            tokio::time::sleep(Duration::from_millis(if round % 4 == 0 { 250 } else { 150 })).await;
            server.resume();
        }
        for task in asking {
            match task.await.unwrap() {
                Some((n, LookedUp::Found(body))) => {
                    assert!(body == bytes_of(&format!("/{n}"), 0, length(n)), "/{n} has another body");
                    found += 1;
                }
                None | Some((_, LookedUp::Failed(Failure::Busy))) => {}
                Some((_, LookedUp::Failed(Failure::TimedOut) | LookedUp::Skipped)) if stops => {}
                Some((n, other)) => panic!("/{n}: {other:?}"),
            }
        }
        eventually("the server is asked again", || client.shared().is_asked(&key("/0"))).await;
    }
    assert!(found > KEYS, "{found}");
    assert!(!stops || sample(&client, &["result=\"failed\""]) > 0);
}

#[tokio::test]
async fn many_look_ups_of_which_half_lose_their_callers() {
    crowd(false).await;
}

#[tokio::test]
async fn and_with_a_server_that_stops_for_longer_than_they_wait() {
    crowd(true).await;
}
