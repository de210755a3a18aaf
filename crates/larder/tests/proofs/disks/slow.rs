//! Disks that are slow: devices that the kernel holds to a pace.
//!
//! What is to be written beyond that is served and not stored; what is read from such a disk keeps only those waiting who
//! asked for it. The bounds on time are far above what is usual: what is proved is counted. Takes root and cgroup v1;
//! else the tests say so and are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::client::End;

use super::Site;
use super::catalogue::{Asked, Catalogue, Resource};
use super::load::{is_hit, read_all};
use super::mounted::{Mounted, skip};
use super::origin::Origin;
use super::throttle::{Throttle, Way};
use crate::support::{Process, connect, until, within};

/// Some 33 MB.
const RESOURCES: usize = 60;
const CLIENTS: usize = 6;
/// What the disk takes, and gives.
const WRITES_PER_S: u64 = 1_000_000;
const READS_PER_S: u64 = 400_000;
/// What an answer may take at most.
const LONGEST: Duration = Duration::from_secs(4);
/// Of a small object, while large ones are read, which takes some ten seconds.
const HITS_MIN: u64 = 100;
const HITS_FOR: Duration = Duration::from_secs(2);

/// Whole and right; whether it was a hit, and how long it took.
async fn fetch(larder: std::net::SocketAddr, catalogue: &Catalogue, resource: Resource) -> (bool, Duration) {
    let asked = Asked::whole(catalogue, resource, "plain");
    let mut connection = connect(larder).await;
    let began = Instant::now();
    let response = within("an answer", connection.exchange(&asked.request())).await.unwrap();
    let took = began.elapsed();
    if let Err(wrong) = asked.check(catalogue, &response) {
        panic!("{wrong}");
    }
    assert_eq!(response.end, End::Complete, "{response}");
    (is_hit(&response), took)
}

/// Whether so many bytes came faster than they can have come at this pace.
fn is_too_fast(bytes: u64, took: Duration, bytes_per_s: u64) -> bool {
    bytes as f64 > took.as_secs_f64() * (2 * bytes_per_s) as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_disk_does_not_take_is_served_and_not_stored() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let Some(device) = disk.device_number() else { return skip("its device has no number") };
    let origin = Origin::start(Catalogue::new(RESOURCES));
    let site = Site::at(&origin.url(), &disk.path().join("disk"));
    let larder = Process::run_config(&site.config).await;
    let Some(throttle) = Throttle::hold(&device, Way::Writes, WRITES_PER_S) else { return };
    let (next, began) = (Arc::<AtomicU64>::default(), Instant::now());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (next, catalogue, addr) = (Arc::clone(&next), Arc::clone(&origin.catalogue), larder.addr);
            tokio::spawn(async move {
                let (mut longest, mut hits) = (Duration::ZERO, 0);
                while let Some(resource) =
                    catalogue.resources.get(next.fetch_add(1, Ordering::Relaxed) as usize)
                {
                    let (was_hit, took) = fetch(addr, &catalogue, *resource).await;
                    (longest, hits) = (longest.max(took), hits + u64::from(was_hit));
                }
                (longest, hits)
            })
        })
        .collect();
    for client in clients {
        let (longest, hits) = client.await.unwrap();
        assert!(longest < LONGEST && hits == 0, "an answer took {longest:?}, {hits} were hits");
    }
    let took = began.elapsed();
    let metrics = larder.metrics().await;
    drop(throttle);
    let bytes: u64 = origin.catalogue.resources.iter().map(|resource| resource.bytes).sum();
    let series =
        |name: &str, more: &str| format!("{name}{{store=\"default\",disk={:?}{more}}}", site.disks[0]);
    let value = |series: String| metrics.value(&series).unwrap() as u64;
    let refused = value(series("larder_disk_refused_total", ",reason=\"queue-full\""));
    let queued = value(series("larder_disk_queued_bytes", ""));
    let written = value(series("larder_disk_written_bytes_total", ""));
    println!("{bytes} B in {took:?}; {refused} refused, {queued} B wait, {written} B written");
    if refused == 0 && is_too_fast(written, took, WRITES_PER_S) {
        return skip("the throttle does not hold");
    }
    assert!(refused > 0 && queued <= super::QUEUED_BYTES_MAX);
    assert_eq!(metrics.sum("larder_disk_failing"), 0, "slow is not broken");
    // Each was asked for once, and came at the clients' pace.
    assert_eq!(origin.gets(), RESOURCES as u64);
    assert!(
        is_too_fast(bytes, took, WRITES_PER_S),
        "{bytes} B took {took:?}, as if clients waited for the disk"
    );
    // What was not stored is asked for again, and all of it is right.
    let is_written = async || larder.metrics().await.sum("larder_disk_queued_bytes") == 0;
    until("the disk has caught up", is_written).await;
    read_all(larder.addr, &origin.catalogue).await;
    assert!(origin.gets() > RESOURCES as u64 && larder.is_running());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_from_a_slow_disk_keep_nobody_else_waiting() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let Some(device) = disk.device_number() else { return skip("its device has no number") };
    let origin = Origin::start(Catalogue::new(12));
    let site = Site::at(&origin.url(), &disk.path().join("disk"));
    // Whoever waits for the disk in a worker keeps everybody waiting.
    let config = std::fs::read_to_string(&site.config).unwrap().replace("workers = 2", "workers = 1");
    std::fs::write(&site.config, config).unwrap();
    let larder = Process::run_config(&site.config).await;
    let catalogue = &origin.catalogue;
    read_all(larder.addr, catalogue).await;
    let is_written = async || larder.metrics().await.sum("larder_disk_queued_bytes") == 0;
    until("all of it is written", is_written).await;
    if !disk.forget(&site.disks[0]) {
        return skip("the page cache cannot be emptied");
    }
    let Some(throttle) = Throttle::hold(&device, Way::Reads, READS_PER_S) else { return };
    // The largest two are read from the disk, the smallest is in memory.
    let (hot, large) = (catalogue.resources[0], &catalogue.resources[10..]);
    let (before, began) = (origin.gets(), Instant::now());
    let slow: Vec<_> = large
        .iter()
        .map(|resource| {
            let (catalogue, addr, resource) = (Arc::clone(catalogue), larder.addr, *resource);
            tokio::spawn(async move { fetch(addr, &catalogue, resource).await })
        })
        .collect();
    let (mut hits, mut longest) = (0, Duration::ZERO);
    while began.elapsed() < HITS_FOR && !slow.iter().all(tokio::task::JoinHandle::is_finished) {
        let (was_hit, took) = fetch(larder.addr, catalogue, hot).await;
        assert!(was_hit);
        (hits, longest) = (hits + 1, longest.max(took));
    }
    let (took, has_ended) = (began.elapsed(), slow.iter().all(tokio::task::JoinHandle::is_finished));
    drop(throttle);
    for slow in slow {
        assert!(slow.await.unwrap().0, "it was on the disk");
    }
    println!("{hits} hits from memory in {took:?}, the longest {longest:?}");
    assert_eq!(origin.gets(), before);
    let bytes = large.iter().map(|resource| resource.bytes).sum();
    if has_ended && is_too_fast(bytes, took, READS_PER_S) {
        return skip("the throttle does not hold");
    }
    assert!(hits >= HITS_MIN && longest < LONGEST, "{hits} hits, the longest took {longest:?}");
}
