//! A config swap is atomic, and a bad file changes nothing: with each kind of store, under load.
//!
//! Good files, files with an error, and files whose error shows only when everything has been prepared (an address that is taken,
//! beside a new store) follow each other. Each answer is of one config as a whole and of the one in force, the store keeps its
//! content and its size, and what a refused file would have opened is closed again.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::origin::Origin;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::support::{
    Process, Signal, asking, assert_whole, cache_status, cacheable, connect, get, until, within,
};

const PAGES: u64 = 8;
const PAGE_BYTES: u64 = 20_000;
const CLIENTS: usize = 3;
/// Of each sort.
const RELOADS: u64 = 8;

/// A config of which each answer shows the mark twice, by the site and by a rule alike. The store's memory is `mebibytes`.
fn text(stand: &Stand, origin: &Origin, mark: u64, mebibytes: u64, more: &str) -> String {
    let marked = format!("response = {{ set = {{ X-One = \"{mark}\", X-Two = \"{mark}\" }} }}\n");
    let site = format!("{marked}[[site.rule]]\npath = \"/p/1*\"\n{marked}");
    let store = stand.kind.table("default", &format!("{mebibytes}MiB"), &stand.places);
    crate::support::config(&origin.url(), "workers = 2", &format!("{site}{store}{more}"))
}

/// The mark of the config that an answer is of.
async fn mark(addr: SocketAddr, number: u64) -> u64 {
    let target = format!("/p/{number}");
    let answer = within("an answer", get(addr, &target)).await;
    assert_whole(&answer, &target, PAGE_BYTES);
    let [one, two] = ["x-one", "x-two"].map(|name| answer.fields.first(name).unwrap().to_owned());
    assert_eq!(one, two, "of two configs: {answer}");
    one.parse().unwrap()
}

async fn reloads(larder: &Process, result: &str) -> u64 {
    let series = format!("larder_config_reloads_total{{result=\"{result}\"}}");
    larder.metrics().await.value(&series).unwrap_or(0.0) as u64
}

async fn reload(larder: &Process, stand: &Stand, text: &str, result: &str) {
    let before = reloads(larder, result).await;
    std::fs::write(&stand.config, text).unwrap();
    larder.signal(Signal::HUP);
    until("the reload is over", async || reloads(larder, result).await > before).await;
}

async fn swaps_with(kind: Kind) {
    let origin = Origin::simple(vec![cacheable("/p/*", PAGE_BYTES)]).unwrap();
    let stand = Stand::new(kind, &origin.url());
    std::fs::write(&stand.config, text(&stand, &origin, 0, 8, "")).unwrap();
    let larder = stand.start().await;
    for number in 0..PAGES {
        until("it is stored", async || {
            cache_status(&get(larder.addr, &format!("/p/{number}")).await).contains("; hit")
        })
        .await;
    }
    stand.is_settled(&larder, PAGES).await;
    assert_eq!(origin.log().count(), PAGES);

    let (is_over, newest) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (is_over, newest, addr) = (Arc::clone(&is_over), Arc::clone(&newest), larder.addr);
            tokio::spawn(async move {
                let mut asked = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let in_force = newest.load(Ordering::SeqCst);
                    let mark = mark(addr, asked % PAGES).await;
                    assert!(mark >= in_force, "of config {mark} when {in_force} was in force");
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("\"127.0.0.1:0\", \"{}\"", taken.local_addr().unwrap());
    // Where a refused config would have another store.
    let extra: Vec<PathBuf> = match kind {
        // There is one server.
        Kind::Redis => stand.places.clone(),
        _ => stand.places.iter().map(|place| place.with_extension("extra")).collect(),
    };
    let more = kind.table("extra", "8MiB", &extra);
    for number in 1..=RELOADS {
        let mebibytes = 8 + number;
        reload(&larder, &stand, &text(&stand, &origin, number, mebibytes, ""), "ok").await;
        newest.store(number, Ordering::SeqCst);
        let wrong = text(&stand, &origin, 1000 + number, 64, "unknown = 1\n");
        reload(&larder, &stand, &wrong, "error").await;
        let late = text(&stand, &origin, 1000 + number, 64, &more).replacen("\"127.0.0.1:0\"", &taken, 1);
        reload(&larder, &stand, &late, "error").await;
        for page in 0..PAGES {
            assert_eq!(mark(larder.addr, page).await, number);
        }
        let metrics = larder.metrics().await;
        assert_eq!(metrics.sum("larder_cache_max_bytes"), mebibytes << 20, "{:?}", larder.stderr());
        assert_eq!(get(larder.admin, "/healthz").await.body, b"ok", "{:?}", larder.stderr());
    }
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
    let said = larder.stderr().join("\n");
    assert!(said.contains("unknown key \"unknown\"") && said.contains("is in use"), "{said}");
    // Nothing was asked for again, and what was refused is free for another larder.
    let mut connection = connect(larder.addr).await;
    for number in 0..PAGES {
        let hit = connection.exchange(&asking(&format!("/p/{number}"))).await.unwrap();
        assert!(cache_status(&hit).contains("; hit"), "{hit}");
    }
    assert_eq!(origin.log().count(), PAGES, "{}", origin.log());
    if kind.is_durable() {
        std::fs::write(&stand.config, crate::support::config(&origin.url(), "", &more)).unwrap();
        let other = stand.start().await;
        assert_eq!(get(other.admin, "/healthz").await.body, b"ok", "{:?}", other.stderr());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_memory() {
    swaps_with(Kind::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_a_single_disk() {
    swaps_with(SINGLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_mirrored_disks() {
    swaps_with(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_striped_disks() {
    swaps_with(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_hashed_disks() {
    swaps_with(HASH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_plain_files() {
    swaps_with(Kind::Files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_is_swapped_as_a_whole_or_not_at_all_with_redis() {
    swaps_with(Kind::Redis).await;
}
