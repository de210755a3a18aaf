//! A killed process never serves a torn or foreign response afterwards: with memory alone, with plain files, and with Redis.
//!
//! The kills of `disks::crash`, with the same load and the same look at each byte. What lay in memory alone is a miss; of
//! what lay in files or in Redis at least something is found again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_testkit::client::Request;
use larder_testkit::origin;

use super::{Kind, Stand};
use crate::disks::catalogue::{Catalogue, Draws};
use crate::disks::load::{Load, find_all};
use crate::disks::origin::Origin;
use crate::disks::seed;
use crate::support::{Signal, asking, cache_status, cacheable, connect, get, until, within};

const KILLS: u64 = 6;
const RESOURCES: usize = 40;
const CLIENTS: u64 = 6;

async fn kills_of(kind: Kind) {
    let seed = seed();
    println!("{kind:?}: LARDER_SEED={seed}");
    let mut draws = Draws::new(format_args!("{seed} {kind:?}"));
    let origin = Origin::start(Catalogue::new(RESOURCES));
    let stand = Stand::new(kind, &origin.url());
    let (mut larder, mut found) = (stand.start().await, 0);
    for kill in 0..KILLS {
        let load = Load { has_purges: true, ..Load::new(&larder, &origin.catalogue) };
        let clients = load.begin(CLIENTS, &format!("{seed} {kind:?} {kill}"));
        tokio::time::sleep(Duration::from_millis(200 + draws.below(600))).await;
        load.is_dying.store(true, Ordering::SeqCst);
        larder.signal(Signal::KILL);
        larder.gone().await;
        for client in clients {
            client.await.unwrap();
        }
        larder = stand.start().await;
        let before = origin.gets();
        let hits = find_all(larder.addr, &origin.catalogue).await.len();
        println!("{hits} found again; {:?}", load.tally);
        assert_eq!(origin.gets(), before, "the origin was asked");
        // A purge of everything may have been the last thing that came, and of Redis it is heard again.
        assert!(
            (hits > 0) == kind.is_durable() || kind == Kind::Redis,
            "kill {kill}: {hits} were found again"
        );
        found += hits;
    }
    assert_eq!(found > 0, kind.is_durable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_after_kills_with_memory() {
    kills_of(Kind::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_plain_files() {
    kills_of(Kind::Files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_redis() {
    kills_of(Kind::Redis).await;
}

/// The server takes its time for what is written to it, and larder is killed as soon as the client has its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_post_was_answered_for_is_invalidated_after_a_kill_with_redis() {
    let origin = origin::Origin::simple(vec![cacheable("/page", 2_000)]).unwrap();
    let stand = Stand::new(Kind::Redis, &origin.url());
    let mut larder = stand.start().await;
    until("it is stored", async || cache_status(&get(larder.addr, "/page").await).contains("; hit")).await;
    stand.is_settled(&larder, 1).await;
    let redis = stand.redis.as_ref().unwrap();
    assert_eq!(redis.raw().ask(&[b"CLIENT", b"PAUSE", b"300", b"WRITE"]).unwrap(), b"+OK");
    let post = Request::new("POST", "/page", "localhost").body("");
    let answer = within("an answer", connect(larder.addr).await.exchange(&post)).await.unwrap();
    larder.signal(Signal::KILL);
    larder.gone().await;
    assert!(answer.status < 300, "{answer}");
    let larder = stand.start().await;
    let stored = asking("/page").field("Cache-Control", "only-if-cached");
    let answer = within("an answer", connect(larder.addr).await.exchange(&stored)).await.unwrap();
    assert_eq!(answer.status, 504, "{answer}");
}
