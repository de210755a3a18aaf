//! No response from before an acknowledged purge is served after it, by any path, while many clients ask and several purge.
//!
//! Each resource has a version at the origin, and each body is of one. Purgers change what they are about to name, then purge it by each
//! kind and in the words of plugins and of the admin address, hard and soft. Once a purge is answered, a client that asks gets that
//! version or a later one: a hit, a response that is shared with others, one that a 304 confirms, a part, or what lies behind
//! memory. Only a soft purge of what may be used stale leaves an older one, for as long as a refresh takes.
//! `LARDER_SECONDS` says how long each run takes, and `LARDER_SEED` repeats its choices. Stores with several disks run only where it is
//! set, as `make torture` does: all three would take as long again. What proves nothing fails: each path and each kind has to occur.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_testkit::client::Connection;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::disks::catalogue::{Catalogue, Draws};
use crate::disks::load::{Load, Path};
use crate::disks::mounted::skip;
use crate::disks::origin::Origin;
use crate::disks::purging::{AskedAt, Purge, PurgeKind};
use crate::disks::seed;
use crate::support::{connect, until, within};

const SECONDS: u64 = 4;
const CLIENTS: u64 = 64;
const PURGERS: u64 = 4;
/// More than memory has room for: some is found behind it alone, and the largest bodies always.
const RESOURCES: usize = 48;
const MEMORY: &str = "2MiB";
/// Up to more than one piece.
const SIZES: [u64; 12] =
    [134, 1_000, 4_096, 20_000, 60_000, 300_000, 134, 500, 2_000, 10_000, 30_000, 100_000];
/// A purger asks fewer than so many times between two of its purges, as a client does. So purges per answer are the same on a
/// slow machine and on a fast one.
const REQUESTS_BETWEEN: u64 = 12;
/// Of a hundred answers, at least so many are hits: a cache that has nothing proves nothing.
const HITS_PERCENT: u64 = 10;

/// How often each kind is drawn.
const WEIGHTS: [(PurgeKind, u64); 7] = [
    (PurgeKind::Url, 40),
    (PurgeKind::Tag, 20),
    (PurgeKind::Group, 10),
    (PurgeKind::Prefix, 8),
    (PurgeKind::Host, 6),
    (PurgeKind::Pattern, 10),
    (PurgeKind::All, 6),
];

/// Where it was asked for.
fn asked_seconds() -> Option<u64> {
    std::env::var("LARDER_SECONDS").ok().and_then(|text| text.parse().ok())
}

fn seconds() -> Duration {
    Duration::from_secs(asked_seconds().unwrap_or(SECONDS))
}

/// How many purges of each kind there were, hard and soft.
type Purged = BTreeMap<(PurgeKind, bool), u64>;

struct Purger {
    catalogue: Arc<Catalogue>,
    listener: Connection,
    admin: Connection,
    draws: Draws,
    purged: Purged,
}

impl Purger {
    async fn new(load: &Load, admin: SocketAddr, seed: &str) -> Self {
        Self {
            catalogue: Arc::clone(&load.catalogue),
            listener: connect(load.addr).await,
            admin: connect(admin).await,
            draws: Draws::new(seed),
            purged: Purged::default(),
        }
    }

    fn kind(&mut self) -> PurgeKind {
        let mut drawn = self.draws.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
        let mut below = |weight: u64| {
            let is_it = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            is_it
        };
        WEIGHTS.into_iter().find(|(_, weight)| below(*weight)).unwrap().0
    }

    /// The first purges of each purger are one of each kind, hard and soft.
    async fn one(&mut self, number: usize) {
        let (kind, is_soft) = match PurgeKind::ALL.get(number / 2) {
            Some(kind) => (*kind, number.is_multiple_of(2)),
            None => (self.kind(), self.draws.below(3) == 0),
        };
        let purge = Purge { kind, like: self.draws.one_of(&self.catalogue.resources), is_soft };
        let at = purge.at(&mut self.draws);
        let connection = match at {
            AskedAt::Listener => &mut self.listener,
            AskedAt::Admin => &mut self.admin,
        };
        let changed = purge.change(&self.catalogue);
        let answer = within("a purge", connection.exchange(&purge.request(at))).await.unwrap();
        assert_eq!(answer.status, 200, "{purge:?} {at:?}: {answer}");
        changed.acknowledge(&self.catalogue, |resource| purge.is_soft && resource.has_window());
        *self.purged.entry((kind, purge.is_soft)).or_default() += 1;
    }

    async fn until_over(mut self, load: Load) -> Purged {
        for number in 0.. {
            if load.is_over.load(Ordering::SeqCst) {
                break;
            }
            self.one(number).await;
            load.tally.purges.fetch_add(1, Ordering::Relaxed);
            for _ in 0..self.draws.below(REQUESTS_BETWEEN) {
                assert!(load.one_request(&mut self.listener, &mut self.draws).await, "a purger was cut off");
            }
        }
        self.purged
    }
}

async fn nothing_from_before_a_purge(kind: Kind) {
    let seed = seed();
    println!("{kind:?}: LARDER_SEED={seed}");
    let origin = Origin::with_short_lifetimes(Catalogue::of_sizes(RESOURCES, &SIZES));
    let stand = Stand::with_memory(kind, &origin.url(), MEMORY);
    let larder = stand.start().await;
    let load = Load { posts_percent: 1, ..Load::new(&larder, &origin.catalogue) };
    let clients = load.begin(CLIENTS, &format!("{seed} {kind:?}"));
    let mut purgers = Vec::new();
    for number in 0..PURGERS {
        let purger = Purger::new(&load, larder.admin, &format!("{seed} {kind:?} purger {number}")).await;
        purgers.push(tokio::spawn(purger.until_over(load.clone())));
    }
    tokio::time::sleep(seconds()).await;
    // On a machine that is busy, until one of them has done each kind and each path was taken.
    let enough = PURGERS * PurgeKind::ALL.len() as u64 * 2;
    until("all kinds are purged", async || load.tally.purges.load(Ordering::Relaxed) >= enough).await;
    let is_taken = |path: &Path| load.tally.paths.lock().contains_key(path);
    until("all paths are taken", async || Path::ALL.iter().all(is_taken)).await;
    load.is_over.store(true, Ordering::SeqCst);
    let mut purged = Purged::default();
    for purger in purgers {
        for (kind, count) in purger.await.unwrap() {
            *purged.entry(kind).or_default() += count;
        }
    }
    for client in clients {
        client.await.unwrap();
    }
    assert!(larder.is_running());
    let paths = load.tally.paths.lock().clone();
    println!("{kind:?}: {purged:?}\n{paths:?}, {} requests at the origin", origin.gets());
    for (kind, is_soft) in PurgeKind::ALL.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        assert!(purged.contains_key(&(kind, is_soft)), "no purge by {kind:?}, soft: {is_soft}");
    }
    let count = |path: Path| paths.get(&path).copied().unwrap_or(0);
    for path in Path::ALL {
        assert!(count(path) > 0, "{path:?} did not occur");
    }
    let answers = load.tally.answers.load(Ordering::Relaxed);
    let hits = load.tally.hits.load(Ordering::Relaxed);
    assert!(hits * 100 > answers * HITS_PERCENT, "{hits} hits among {answers}");
    // Each answer that was no hit and was not shared had a request of its own; refreshes come behind hits.
    let own = count(Path::Fetched) + count(Path::Confirmed);
    let most = 2 * own + count(Path::Shared) + count(Path::Behind);
    assert!((own..=most).contains(&origin.gets()), "{own} to {most} requests are plausible");
    let behind_memory = match kind {
        Kind::Memory => None,
        Kind::Disks(_) => Some("larder_disk_written_objects_total"),
        Kind::Files => Some("larder_files_stored_total"),
        Kind::Redis => Some("larder_remote_writes_total"),
    };
    if let Some(family) = behind_memory {
        assert!(larder.metrics().await.sum(family) > 0, "{family}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_memory() {
    nothing_from_before_a_purge(Kind::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_a_single_disk() {
    nothing_from_before_a_purge(SINGLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_plain_files() {
    nothing_from_before_a_purge(Kind::Files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_redis() {
    nothing_from_before_a_purge(Kind::Redis).await;
}

async fn where_it_is_asked_for(kind: Kind) {
    match asked_seconds() {
        Some(_) => nothing_from_before_a_purge(kind).await,
        None => skip("LARDER_SECONDS does not say how long"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_mirrored_disks() {
    where_it_is_asked_for(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_striped_disks() {
    where_it_is_asked_for(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_from_before_a_purge_is_served_with_hashed_disks() {
    where_it_is_asked_for(HASH).await;
}
