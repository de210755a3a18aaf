//! Servers that hang, end and return under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Address, Client, Failure, LookedUp};
use bytes::Bytes;
use tokio::task::JoinHandle;

use super::real::{Listens as _, Server};
use super::scripted::Scripted;
use super::setup::{TIMEOUT, client, eventually, found, key, look, sample, turns, until};

/// What a machine with other work may add to a time limit.
const SLACK: Duration = Duration::from_millis(500);
const CALLERS: usize = 64;

/// What look-ups came to, and how long they took.
type Seen = Vec<(LookedUp<Bytes>, Duration)>;

/// Callers that ask with hardly a pause.
struct Load {
    ends: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Seen>>,
}

impl Load {
    fn start(client: &Arc<Client>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let caller = |n: usize| {
            let (client, ends) = (Arc::clone(client), Arc::clone(&ends));
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !ends.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let looked_up = look(&client, "/a").await;
                    seen.push((looked_up, begun.elapsed()));
                    // A skipped one never waits.
                    tokio::time::sleep(Duration::from_millis(1 + n as u64 % 3)).await;
                }
                seen
            })
        };
        let callers = (0..CALLERS).map(caller).collect();
        Self { ends, callers }
    }

    async fn end(self) -> Seen {
        self.ends.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        for caller in self.callers {
            seen.extend(caller.await.unwrap());
        }
        seen
    }
}

fn count(seen: &[(LookedUp<Bytes>, Duration)], is_so: impl Fn(&LookedUp<Bytes>) -> bool) -> usize {
    seen.iter().filter(|(looked_up, _)| is_so(looked_up)).count()
}

#[tokio::test]
async fn a_server_that_hangs_delays_the_look_ups_of_its_first_moment_and_is_asked_again_when_it_is_well() {
    let server = Server::start();
    server.raw().set("/a", 0, 0, b"body");
    let client = Arc::new(client(&server.address()));
    assert_eq!(look(&client, "/a").await, found("body"));
    let load = Load::start(&client);
    server.stop();
    eventually("the server is left alone", || !client.shared().is_asked(&key("/a"))).await;
    assert_eq!(sample(&client, &["server_up"]), 0);
    // Its first probe hangs like all else, and fails.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert!(!client.shared().is_asked(&key("/a")));
    let begun = Instant::now();
    assert_eq!(look(&client, "/a").await, LookedUp::Skipped);
    assert!(begun.elapsed() < TIMEOUT, "no request is the probe");
    server.resume();
    eventually("the server is asked again", || client.shared().is_asked(&key("/a"))).await;
    until(&client, "/a", &found("body")).await;
    let seen = load.end().await;
    let longest = seen.iter().map(|(_, took)| *took).max().unwrap();
    assert!(longest < TIMEOUT + SLACK, "{longest:?}");
    let failed = count(&seen, |looked_up| matches!(looked_up, LookedUp::Failed(_)));
    // Those of the first 200 ms: one for each caller, or two where a reply was on its way.
    assert!((5..=2 * CALLERS).contains(&failed), "{failed} failed");
    assert!(count(&seen, |looked_up| *looked_up == LookedUp::Skipped) > 10 * CALLERS);
    assert!(seen.iter().all(|(looked_up, _)| match looked_up {
        LookedUp::Found(body) => &body[..] == b"body",
        LookedUp::Failed(failure) => *failure == Failure::TimedOut,
        other => *other == LookedUp::Skipped,
    }));
    assert_eq!(sample(&client, &["breaker_opens"]), 1);
}

#[tokio::test]
async fn a_server_that_ends_delays_nobody_and_is_asked_again_when_it_is_back() {
    let mut server = Server::start();
    server.raw().set("/a", 0, 0, b"body");
    let client = Arc::new(client(&server.address()));
    assert_eq!(look(&client, "/a").await, found("body"));
    let load = Load::start(&client);
    server.kill();
    eventually("the server is left alone", || !client.shared().is_asked(&key("/a"))).await;
    server.restart();
    server.raw().set("/a", 0, 0, b"anew");
    until(&client, "/a", &found("anew")).await;
    let seen = load.end().await;
    let longest = seen.iter().map(|(_, took)| *took).max().unwrap();
    assert!(longest < SLACK, "{longest:?}");
    assert!(count(&seen, |looked_up| *looked_up == LookedUp::Skipped) > CALLERS);
    for (looked_up, _) in &seen {
        let is_expected = matches!(
            looked_up,
            LookedUp::Found(_)
                | LookedUp::Absent
                | LookedUp::Skipped
                | LookedUp::Failed(Failure::Closed | Failure::Connect)
        );
        assert!(is_expected, "{looked_up:?}");
    }
}

#[tokio::test]
async fn a_server_that_restarts_while_nothing_is_asked_fails_no_look_up() {
    let mut server = Server::start();
    let client = client(&server.address());
    assert_eq!(look(&client, "/a").await, LookedUp::Absent);
    server.kill();
    server.restart();
    server.raw().set("/a", 0, 0, b"body");
    // The end of the connection has arrived; its task sees it.
    turns().await;
    assert_eq!(look(&client, "/a").await, found("body"));
    assert_eq!(sample(&client, &["breaker_opens"]), 0);
}

#[tokio::test]
async fn where_nobody_listens_one_look_up_fails_and_no_other_asks() {
    let client = client(&Address::Unix("/nonexistent/socket".into()));
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Connect));
    for _ in 0..100 {
        assert_eq!(look(&client, "/a").await, LookedUp::Skipped);
    }
    assert_eq!(sample(&client, &["lookup_seconds_count"]), 1);
    assert_eq!(sample(&client, &["lookups_total", "\"skipped\""]), 100);
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_takes_one_time_limit() {
    let server =
        Scripted::start(|mut connection| async move { while connection.line().await.is_some() {} }).await;
    let client = client(&server.address);
    let begun = Instant::now();
    assert_eq!(look(&client, "/a").await, LookedUp::Failed(Failure::Connect));
    let took = begun.elapsed();
    assert!(took >= TIMEOUT && took < TIMEOUT + SLACK, "{took:?}");
    assert_eq!(look(&client, "/a").await, LookedUp::Skipped);
}
