//! Members of a fleet on a real server.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use larder_fleet::{Effect, MemberState};
use larder_testkit::redis::RedisServer;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::*;
use crate::clock;
use crate::redis::{RedisPlace, RedisSettings};
use crate::{Address, SystemNames};

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(3);

type Effects = Arc<Mutex<Vec<Effect<Purge>>>>;

/// Keeps what it is told, as soon as it may.
struct Notes(Effects, Arc<Semaphore>);

impl Carrier for Notes {
    async fn carry_out(&mut self, effect: &Effect<Purge>) -> u64 {
        drop(self.1.acquire().await);
        let mut told = self.0.lock();
        told.push(effect.clone());
        told.len() as u64
    }

    fn last_invalidation(&self) -> u64 {
        self.0.lock().len() as u64
    }
}

/// A member, and what it was told to do.
struct Sample {
    fleet: Fleet,
    told: Effects,
    /// Nothing is carried out while there is none.
    may: Arc<Semaphore>,
}

impl Sample {
    fn start(name: &str, server: &RedisServer) -> Self {
        Self::with(name, server, LEASE)
    }

    fn with(name: &str, server: &RedisServer, lease: Duration) -> Self {
        let settings = FleetSettings {
            name: name.into(),
            lease: Some(lease),
            server: RedisSettings {
                place: RedisPlace::Server(Address::Unix(server.socket())),
                tls: None,
                user: None,
                password: None,
                database: 0,
                timeout: Duration::from_millis(500),
                max_object: 1 << 20,
            },
            prefix: "larder".into(),
            shares_responses: true,
        };
        let told = Effects::default();
        let may = Arc::new(Semaphore::new(1));
        let carrier = Notes(Arc::clone(&told), Arc::clone(&may));
        let fleet = Fleet::start(settings, Arc::new(SystemNames), Diagnostics::silent(), carrier).unwrap();
        Self { fleet, told, may }
    }

    /// The purges of others that it has entered.
    fn applied(&self) -> Vec<String> {
        let text = |what: &Purge| String::from_utf8(what.to_vec()).unwrap();
        let told = self.told.lock();
        let applied = told.iter().filter_map(|effect| match effect {
            Effect::Apply { what, .. } => Some(text(what)),
            _ => None,
        });
        applied.collect()
    }

    fn purge(&self, what: &str) -> EntryId {
        let number = self.told.lock().len() as u64;
        self.fleet.announce(number).share(Arc::from(what.as_bytes())).unwrap().unwrap()
    }
}

/// Waits until a purge is complete, and gives the names of those who have applied it.
async fn completes(member: &Sample, id: EntryId) -> Vec<String> {
    match member.fleet.wait(id, PATIENCE).await {
        PurgeOutcome::Complete(receipt) => {
            let applied = |(name, standing): &(Arc<str>, MemberState)| {
                (*standing == MemberState::Applied).then(|| name.to_string())
            };
            let mut names: Vec<_> = receipt.unwrap().members.iter().filter_map(applied).collect();
            names.sort();
            names
        }
        PurgeOutcome::Incomplete(receipt) => panic!("{receipt:?}"),
    }
}

/// Looks again and again until that is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not so: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn attached(members: &[&Sample]) {
    for member in members {
        until("all members see each other", || {
            member.fleet.may_use() && member.fleet.report().others.len() == members.len() - 1
        });
    }
}

#[tokio::test]
async fn a_purge_is_complete_when_every_member_has_applied_it() {
    let server = RedisServer::start();
    let [first, second, third] = ["web-1", "web-2", "web-3"].map(|name| Sample::start(name, &server));
    attached(&[&first, &second, &third]);
    // Until a lease after the log began, a member of a former one might be left.
    let early = first.purge("early");
    let PurgeOutcome::Incomplete(receipt) = first.fleet.outcome(early) else { panic!("too early") };
    assert!(!receipt.knows_all);
    assert_eq!(completes(&first, early).await, ["web-2", "web-3"]);
    for member in [&second, &third] {
        assert_eq!(member.applied(), ["early"]);
    }
    let ids: Vec<_> = (0..200).map(|number| second.purge(&number.to_string())).collect();
    for id in ids {
        completes(&second, id).await;
    }
    let all: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(first.applied(), all);
    assert_eq!(third.applied()[1..], all);
    assert_eq!((second.fleet.report().incomplete, second.applied()), (0, vec!["early".to_owned()]));
    assert_eq!(first.fleet.position(), third.fleet.position());
}

#[tokio::test]
async fn who_is_cut_off_is_waited_for_until_its_lease_is_over() {
    let server = RedisServer::start();
    let [first, second] = ["web-1", "web-2"].map(|name| Sample::start(name, &server));
    attached(&[&first, &second]);
    until("all are known", || first.fleet.shared.member().knows_all(clock::now()));
    // The server stands still for longer than a lease: nobody may use anything.
    server.stop();
    let id = first.purge("while it hangs");
    until("the leases are over", || !first.fleet.may_use() && !second.fleet.may_use());
    let PurgeOutcome::Incomplete(receipt) = first.fleet.outcome(id) else { panic!("nobody was told") };
    assert!(!receipt.is_shared);
    let silent = |(name, standing): &(Arc<str>, MemberState)| match standing {
        MemberState::Silent { .. } => Some(name.to_string()),
        MemberState::Applied | MemberState::Away => None,
    };
    assert_eq!(receipt.members.iter().filter_map(silent).collect::<Vec<_>>(), ["web-2"], "{receipt:?}");
    assert!(first.fleet.report().failure.is_some());
    server.resume();
    completes(&first, id).await;
    // A call without an answer may have been carried out, and is repeated.
    until("it is applied", || !second.applied().is_empty());
    assert!(second.applied().iter().all(|what| what == "while it hangs"));
    until("the leases are back", || first.fleet.may_use() && second.fleet.may_use());
    assert_eq!(first.fleet.report().failure, None);
}

#[tokio::test]
async fn a_server_that_was_killed_begins_a_new_log_and_the_purge_comes_again() {
    let mut server = RedisServer::start();
    let [first, second] = ["web-1", "web-2"].map(|name| Sample::start(name, &server));
    attached(&[&first, &second]);
    let before = first.fleet.position().unwrap().epoch;
    server.kill();
    let id = first.purge("nobody hears it");
    until("it notices", || first.fleet.report().failure.is_some());
    server.restart();
    completes(&first, id).await;
    assert_ne!(first.fleet.position().unwrap().epoch, before);
    assert_eq!(second.applied(), ["nobody hears it"]);
}

#[tokio::test]
async fn what_is_told_is_waited_for_until_it_lies_in_the_log_or_the_log_is_away() {
    let mut server = RedisServer::start();
    let member = Sample::start("web-1", &server);
    attached(&[&member]);
    let tell = |what: &str| member.fleet.announce(0).tell(Arc::from(what.as_bytes())).unwrap().unwrap();
    let entries = || server.raw().ask(&[b"XLEN", b"larder:1:{fleet}:log"]).unwrap();
    tell("first").await;
    assert_eq!(entries(), b":1");
    // Half of the limit of a call: it is answered late.
    assert_eq!(server.raw().ask(&[b"CLIENT", b"PAUSE", b"250", b"WRITE"]).unwrap(), b"+OK");
    tell("second").await;
    assert_eq!(entries(), b":2");
    server.kill();
    tell("third").await;
    assert!(member.fleet.shared.member().has_unplaced(), "it is kept for a log that is there again");
    until("it is known that the log is away", || member.fleet.report().failure.is_some());
    tell("fourth").await;
}

#[tokio::test]
async fn who_leaves_is_not_waited_for() {
    let server = RedisServer::start();
    let long = 30 * PATIENCE;
    let [first, second, third] = ["web-1", "web-2", "web-3"].map(|name| Sample::with(name, &server, long));
    attached(&[&first, &second, &third]);
    second.fleet.leave().await;
    assert!(!second.fleet.may_use());
    until("it is known that one has left", || first.fleet.report().others.len() == 1);
    drop(third);
    until("both have left", || first.fleet.report().others.is_empty());
    // One of the same name takes the place of who was killed.
    let killed = Sample::with("web-2", &server, long);
    until("it is there", || first.fleet.report().others.len() == 1);
    let other = Sample::with("web-2", &server, long);
    until("it is the only one", || other.fleet.may_use() && first.fleet.report().others.len() == 1);
    drop(killed);
}

#[tokio::test]
async fn who_is_behind_what_was_cut_for_its_bytes_proves_what_it_has_and_reads_on() {
    // A sixteenth of it is 1 MiB.
    let server = RedisServer::start_with(&["--maxmemory", "16mb"]);
    let long = 30 * PATIENCE;
    let [first, second] = ["web-1", "web-2"].map(|name| Sample::with(name, &server, long));
    attached(&[&first, &second]);
    // The second stands still in the middle of its first purge.
    let held = second.may.acquire().await.unwrap();
    let purge = |number: u64| format!("{number} {}", "x".repeat(60_000));
    (1..=40).for_each(|number| _ = first.purge(&purge(number)));
    let last = || server.raw().ask(&[b"HGET", b"larder:1:{fleet}", b"last"]);
    until("all are in the log", || last().as_deref() == Some(b"40"));
    let kept = server.raw().ask(&[b"XLEN", b"larder:1:{fleet}:log"]).unwrap();
    let kept: u64 = String::from_utf8(kept).unwrap()[1..].parse().unwrap();
    assert!((8..=17).contains(&kept), "{kept} entries");
    drop(held);
    for member in [&first, &second] {
        until("it has read all", || member.fleet.position().is_some_and(|position| position.sequence == 40));
    }
    // What it has read is carried out a moment later.
    until("it has applied all", || second.applied().last() == Some(&purge(40)));
    let unproven = second.told.lock().iter().rev().find_map(|effect| match effect {
        Effect::Unproven { position } => Some(position.sequence),
        _ => None,
    });
    assert!(unproven.is_some_and(|floor| floor >= 40 - 17), "{unproven:?}");
    let applied = second.applied();
    assert!(applied.len() < 40, "{} were applied", applied.len());
    // One that comes now begins behind the cut.
    let third = Sample::with("web-3", &server, long);
    attached(&[&first, &second, &third]);
    let begun = third.applied();
    assert!((8..=17).contains(&begun.len()) && begun.last() == Some(&purge(40)), "{}", begun.len());
}
