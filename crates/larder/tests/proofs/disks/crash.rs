//! A larder with disks is killed at random moments of its life and started again on what it left behind.
//!
//! After each start every byte that it serves is right: of the version that was acknowledged last or a later one, never
//! torn, and what lay whole on its disks is a hit. POSTs acknowledge versions, and purges by URL and by tag, hard and soft. The seed is printed; LARDER_SEED repeats it (the schedule of threads is
//! the machine's). LARDER_KILLS says how often, in all layouts together; `make torture` asks for 500.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::catalogue::{Catalogue, Draws};
use super::load::{Load, find_all, read_all};
use super::origin::Origin;
use super::{Site, seed};
use crate::support::{Process, Signal};

/// Killed so often, all layouts together.
const KILLS: u64 = 16;
/// From exec to the greeting, of a build for tests on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// Some 33 MB: more than two disks have room for, so that segments are given up all the time.
const RESOURCES: usize = 60;
/// Some 7 MB, which fit on one.
const FEW_RESOURCES: usize = 12;
const CLIENTS: u64 = 6;

fn kills() -> u64 {
    let asked = std::env::var("LARDER_KILLS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(KILLS).div_ceil(super::LAYOUTS.len() as u64)
}

async fn started(site: &Site) -> Process {
    let since = Instant::now();
    let larder = Process::run_config(&site.config).await;
    let took = since.elapsed();
    assert!(took < READY_WITHIN, "ready after {took:?}");
    larder
}

async fn kills_of(layout: &str) {
    let seed = seed();
    println!("{layout}: LARDER_SEED={seed}");
    let mut draws = Draws::new(format_args!("{seed} {layout}"));
    let origin = Origin::start(Catalogue::new(RESOURCES));
    let site = Site::new(&origin.url(), layout);
    let mut larder = started(&site).await;
    let (mut answers, mut posts, mut purges, mut found, mut fewest) = (0, 0, 0, 0, usize::MAX);
    for kill in 0..kills() {
        let load = Load { has_purges: true, ..Load::new(&larder, &origin.catalogue) };
        let clients = load.begin(CLIENTS, &format!("{seed} {layout} {kill}"));
        tokio::time::sleep(Duration::from_millis(100 + draws.below(900))).await;
        load.is_dying.store(true, Ordering::SeqCst);
        larder.signal(Signal::KILL);
        larder.gone().await;
        for client in clients {
            client.await.unwrap();
        }
        larder = started(&site).await;
        let before = origin.gets();
        let hits = find_all(larder.addr, &origin.catalogue).await.len();
        assert_eq!(origin.gets(), before, "the origin was asked");
        assert!(hits > 0, "kill {kill}: nothing was found again; {:?}", larder.stderr());
        (found, fewest) = (found + hits, fewest.min(hits));
        answers += load.tally.answers.load(Ordering::Relaxed);
        posts += load.tally.posts.load(Ordering::Relaxed);
        purges += load.tally.purges.load(Ordering::Relaxed);
    }
    let kills = kills();
    println!(
        "{layout}: {kills} kills, {answers} answers, {posts} POSTs and {purges} purges before them; of {RESOURCES} resources \
         {} found again on average, {fewest} at least",
        found as u64 / kills
    );
    assert!(purges > 0, "nothing was purged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_a_single_disk() {
    kills_of("single").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_mirrored_disks() {
    kills_of("mirror").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_striped_disks() {
    kills_of("stripe").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wrong_after_kills_with_hashed_disks() {
    kills_of("hash").await;
}

/// Nothing is replaced and nothing pushed out here, so each record that lies on a disk is a response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lay_there_whole_is_found_again() {
    for layout in super::LAYOUTS {
        let origin = Origin::start(Catalogue::new(FEW_RESOURCES));
        let site = Site::new(&origin.url(), layout);
        let mut larder = started(&site).await;
        read_all(larder.addr, &origin.catalogue).await;
        larder.signal(Signal::KILL);
        larder.gone().await;
        let there = site.objects();
        larder = started(&site).await;
        let hits = find_all(larder.addr, &origin.catalogue).await;
        println!("{layout}: {there:?} records were there, {} were hits", hits.len());
        // The copies of a mirror are records each.
        let there = if layout == "mirror" { there.into_iter().max() } else { Some(there.into_iter().sum()) };
        assert!(there > Some(FEW_RESOURCES as u64 / 2), "{layout}: only {there:?} were written in time");
        assert!(Some(hits.len() as u64) >= there, "{layout}: {hits:?}");
    }
}
