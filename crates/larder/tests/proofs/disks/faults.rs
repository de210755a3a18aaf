//! Disks that are full, that fail, and that are slow, under load: every answer is right and none waits for the disk.
//!
//! Each fault is a real one, made as root: a small tmpfs, an ext4 on a loop device, system calls that strace lets fail or
//! delays. Where the means are missing the test says so and is done. In each, a line of the log and a metric tell the operator,
//! and where the fault can end, the disk is used again without anybody's doing. A disk that cannot be read any more may cut each
//! large body once, stored or arriving; every other fault cuts nobody.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Site;
use super::injecting::Injecting;
use super::mounted::{Mounted, fill, skip};
use super::running::{RESOURCES, Running};
use crate::support::until;

/// Answers before a fault, during it, and after it.
const ANSWERS: u64 = 60;

/// A larder with one disk at `disk`.
async fn start(disk: &Path, name: &str) -> Running {
    let origin = Running::origin();
    let site = Site::at(&origin.url(), disk);
    Running::start(&site.config.clone(), origin, site, name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_others_fill_costs_nobody_an_answer() {
    let Some(disk) = Mounted::tmpfs("20M") else { return skip("a tmpfs cannot be mounted") };
    let running = start(&disk.path().join("disk"), "full").await;
    running.writes().await;
    // Until nothing is left, also of what larder gives up meanwhile.
    let filler = disk.path().join("filler");
    let filled = fill(&filler);
    running.larder.says("is full before").await;
    running.serves(ANSWERS).await;
    running.counts("larder_disk_refused_total", 0).await;
    drop(filled);
    std::fs::remove_file(filler).unwrap();
    running.writes().await;
    running.serves(ANSWERS).await;
    // Room came and went many times.
    let told = running.larder.stderr().into_iter().filter(|line| line.contains("is full before")).count();
    assert_eq!(told, 1, "{:?}", running.larder.stderr());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_shut_down_costs_nobody_an_answer() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let running = start(&disk.path().join("disk"), "shut down").await;
    running.writes().await;
    running.load.may_cut_hits.store(true, Ordering::SeqCst);
    // A body that is still arriving is read back from the disk too, by those who joined it late.
    running.load.may_cut_fills.store(true, Ordering::SeqCst);
    if !disk.shut_down() {
        skip("the file system cannot be shut down");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(10 * ANSWERS).await;
    assert_eq!(running.sum("larder_disk_failing").await, 1);
    // Whoever was cut told the others: nothing is begun twice that cannot be read.
    let cut = running.load.tally.cut.load(Ordering::Relaxed);
    assert!(cut <= RESOURCES as u64, "{cut} were cut");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_becomes_read_only_costs_nobody_an_answer() {
    let Some(disk) = Mounted::ext4("errors=remount-ro") else { return skip("an ext4 cannot be mounted") };
    let running = start(&disk.path().join("disk"), "read-only").await;
    running.writes().await;
    if !disk.make_read_only() {
        skip("the file system cannot be told of an error");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(5 * ANSWERS).await;
    assert!(running.sum("larder_disk_write_errors_total").await > 0);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_whose_writes_fail_now_and_then_costs_nobody_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("disk"), "failing writes").await;
    running.writes().await;
    let Some(mut injecting) = Injecting::into(&running.larder, "pwrite64:error=EIO:when=3+5") else {
        skip("there is no strace");
        return running.end().await;
    };
    let failed = async || injecting.has_ended() || running.sum("larder_disk_write_errors_total").await > 0;
    until_mut("writes fail", failed).await;
    if injecting.has_ended() {
        skip("strace cannot attach");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(ANSWERS).await;
    drop(injecting);
    until("the disk is used again", async || running.sum("larder_disk_failing").await == 0).await;
    running.writes().await;
    running.serves(ANSWERS).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_slow_slows_nobody_down() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("disk"), "slow writes").await;
    running.writes().await;
    // A third of a second for each write and sync: some 3 MB/s at most.
    let what = "pwrite64,fdatasync:delay_enter=300000";
    let Some(mut injecting) = Injecting::into(&running.larder, what) else {
        skip("there is no strace");
        return running.end().await;
    };
    running.serves(3 * ANSWERS).await;
    if injecting.has_ended() {
        skip("strace cannot attach");
        return running.end().await;
    }
    let queued = running.sum("larder_disk_queued_bytes").await;
    assert!(queued <= super::QUEUED_BYTES_MAX, "{queued} bytes wait");
    drop(injecting);
    running.writes().await;
    running.serves(ANSWERS).await;
    running.end().await;
}

async fn until_mut(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = std::time::Instant::now();
    while !holds().await {
        assert!(started.elapsed() < crate::support::BOUND, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
