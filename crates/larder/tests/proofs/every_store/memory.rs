//! Memory stays under the formula of the page on operating: with each kind of store behind it, that does not keep up.
//!
//! Ten times the store's memory is asked for at once, in bodies within a record and in pieces, while each write to a disk, or
//! each new file, waits; a Redis stands still. What the store holds, what waits for its disks, and what the process has are watched all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::origin::Origin;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::disks::injecting::Injecting;
use crate::support::{Metrics, Process, asking, assert_whole, cacheable, connect, within};

/// As [`Stand`] has it.
const MEMORY_BYTES: u64 = 8 << 20;
/// Of the formula: what each disk, and each directory of files, may have in its queue, and the files that are kept open.
const QUEUE_BYTES: u64 = 8 << 20;
/// Of the formula: the queue of a server.
const SERVER_BYTES: u64 = 16 << 20;
/// Beyond that, the records of bodies whose pieces are in the queue already.
const LISTS_BYTES: u64 = 2 << 20;
const FILES_BYTES: u64 = 2 * (16 << 20);
/// The program, of a build for tests, with its connections and what its allocator rounds up.
const BESIDE_BYTES: u64 = 64 << 20;
const CLIENTS: u64 = 6;
/// Of each client: some 80 MB in all.
const EACH: u64 = 30;
const SIZES: [u64; 3] = [30_000, 500_000, 800_000];

fn resident_bytes(larder: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", larder.pid)).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// What has to wait for so slow a store was refused.
fn refused(metrics: &Metrics) -> u64 {
    let is_it = |series: &str| {
        let is_full = series.contains("_refused_total{") && series.contains("\"queue-full\"");
        is_full || series.starts_with("larder_records_not_shared_total{")
    };
    metrics.samples().into_iter().filter(|(series, _)| is_it(series)).map(|(_, value)| value as u64).sum()
}

async fn flood(kind: Kind) {
    let scripts = SIZES.map(|bytes| cacheable(&format!("/{bytes}/*"), bytes));
    let origin = Origin::simple(scripts.to_vec()).unwrap();
    let stand = Stand::new(kind, &origin.url());
    let larder = stand.start().await;
    let slow: &[&str] = match kind {
        Kind::Memory | Kind::Redis => &[],
        Kind::Disks(_) => &["pwrite64:delay_enter=100000"],
        Kind::Files => &["fsetxattr:delay_enter=300000"],
    };
    let mut injecting = None;
    if !slow.is_empty() {
        injecting = Injecting::attached(&larder, slow).await;
        if injecting.is_none() {
            return;
        }
    }
    if let Some(redis) = &stand.redis {
        redis.stop();
    }
    let (is_over, served) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let flood: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (addr, served) = (larder.addr, Arc::clone(&served));
            tokio::spawn(async move {
                let mut connection = connect(addr).await;
                for number in 0..EACH {
                    let bytes = SIZES[(number % 3) as usize];
                    let target = format!("/{bytes}/{client}-{number}");
                    let response = within("an answer", connection.exchange(&asking(&target))).await.unwrap();
                    assert_whole(&response, &target, bytes);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let places = kind.places() as u64;
    let waiting_max = places * (QUEUE_BYTES + LISTS_BYTES) + MEMORY_BYTES / 4;
    let beside = match kind {
        Kind::Files => FILES_BYTES,
        Kind::Redis => SERVER_BYTES,
        Kind::Memory | Kind::Disks(_) => places * QUEUE_BYTES,
    };
    let allowed = MEMORY_BYTES + beside + BESIDE_BYTES;
    let watched = Arc::clone(&is_over);
    let watching = async {
        let (mut samples, mut most_resident, mut most_waits) = (0, 0, 0);
        loop {
            let is_last = watched.load(Ordering::Relaxed);
            let (metrics, resident) = (larder.metrics().await, resident_bytes(&larder));
            assert!(metrics.sum("larder_cache_bytes") <= MEMORY_BYTES);
            assert!(resident <= allowed, "{resident} bytes are resident, {allowed} allowed");
            if matches!(kind, Kind::Disks(_)) {
                let waits = metrics.sum("larder_disk_queued_bytes");
                assert!(waits <= waiting_max, "{waits} bytes wait, {waiting_max} may");
                most_waits = waits.max(most_waits);
            }
            if kind == Kind::Redis {
                let waits = metrics.sum("larder_remote_queue_bytes");
                assert!(waits <= SERVER_BYTES, "{waits} bytes wait");
                most_waits = waits.max(most_waits);
            }
            (samples, most_resident) = (samples + 1, resident.max(most_resident));
            if is_last {
                assert!(samples > 10, "{samples} samples");
                println!("{kind:?}: at most {most_resident} bytes resident, {most_waits} waited");
                return metrics;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let flooding = async {
        for client in flood {
            client.await.unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let (metrics, ()) = tokio::join!(watching, flooding);
    drop(injecting);
    assert_eq!(served.load(Ordering::Relaxed), CLIENTS * EACH);
    assert!(metrics.sum("larder_cache_high_water_bytes") <= MEMORY_BYTES);
    match kind {
        Kind::Memory => assert!(metrics.sum("larder_cache_evictions_total") > CLIENTS * EACH / 2),
        _ => assert!(refused(&metrics) > 0, "the store has kept up"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_memory() {
    flood(Kind::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_a_single_disk_that_is_slow() {
    flood(SINGLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_mirrored_disks_that_are_slow() {
    flood(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_striped_disks_that_are_slow() {
    flood(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_hashed_disks_that_are_slow() {
    flood(HASH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_plain_files_that_are_slow() {
    flood(Kind::Files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_stays_under_the_formula_with_a_redis_that_stands_still() {
    flood(Kind::Redis).await;
}
