//! A purge that was acknowledged holds after a crash; where that is not sure, the purge fails: with each kind of store.
//!
//! The machine crashes by the file system of the store: from one moment on nothing of it can be written, and what was not
//! on its device by then is lost. Memory is lost with the process. What lies in Redis stays there, and larder is killed.

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::Origin;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::disks::mounted::{Mounted, skip};
use crate::support::{
    Process, Signal, asking, assert_whole, cache_status, cacheable, connect, get, until, within,
};

/// Within a record, and in pieces.
const SIZES: [u64; 2] = [2_000, 600_000];
/// Of each size.
const PAGES: u64 = 3;

fn targets() -> Vec<(String, u64)> {
    let page =
        |number: u64| (format!("/{}/{number}", SIZES[(number % 2) as usize]), SIZES[(number % 2) as usize]);
    (0..2 * PAGES).map(page).collect()
}

async fn purge(larder: &Process, target: &str) -> Response {
    let url = format!("http%3A%2F%2Flocalhost{}", target.replace('/', "%2F"));
    let request = Request::new("DELETE", &format!("/object?url={url}"), "localhost");
    within("a purge", async { connect(larder.admin).await.exchange(&request).await.unwrap() }).await
}

/// What is stored, without a request to the origin.
async fn found(larder: &Process) -> Vec<String> {
    let mut found = Vec::new();
    for (target, bytes) in targets() {
        let request = asking(&target).field("Cache-Control", "only-if-cached");
        let answer = within("an answer", connect(larder.addr).await.exchange(&request)).await.unwrap();
        if answer.status != 504 {
            assert_whole(&answer, &target, bytes);
            found.push(target);
        }
    }
    found
}

/// With one more purge that cannot be written down, where `is_unsure`.
async fn purged_stays_away(kind: Kind, is_unsure: bool) {
    let disk = match kind {
        Kind::Memory | Kind::Redis => None,
        // It writes nothing down by itself meanwhile.
        _ => match Mounted::ext4("errors=continue,commit=600") {
            Some(disk) => Some(disk),
            None => return skip("an ext4 cannot be mounted"),
        },
    };
    let origin =
        Origin::simple(SIZES.map(|bytes| cacheable(&format!("/{bytes}/*"), bytes)).to_vec()).unwrap();
    let stand = match &disk {
        Some(disk) => Stand::within(kind, &origin.url(), disk.path(), disk.path()),
        None => Stand::new(kind, &origin.url()),
    };
    let mut larder = stand.start().await;
    let targets = targets();
    for (target, _) in &targets {
        until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
    }
    stand.is_settled(&larder, 2 * PAGES).await;
    // Everything is on the device, so that what is gone after the crash was purged.
    if let Some(disk) = &disk {
        disk.sync();
    }
    let (purged, kept) = targets.split_at(2);
    for (target, _) in purged {
        let answer = purge(&larder, target).await;
        assert_eq!(answer.status, 200, "{answer}");
        assert!(String::from_utf8_lossy(&answer.body).contains("\"removed\": 1"), "{answer}");
    }
    let (unsure, kept) = kept.split_first().unwrap();
    if let Some(disk) = &disk {
        if !disk.shut_down() {
            return skip("the file system cannot be shut down");
        }
        if is_unsure {
            let answer = purge(&larder, &unsure.0).await;
            assert_eq!(answer.status, 500, "{answer}");
        }
    }
    larder.signal(Signal::KILL);
    larder.gone().await;
    if let Some(disk) = &disk {
        disk.mount_again();
    }
    let larder = stand.start().await;
    let found = found(&larder).await;
    let is_found = |(target, _): &(String, u64)| found.contains(target);
    assert!(!purged.iter().any(is_found), "a purged response is back: {found:?}");
    assert!(kept.iter().all(|page| is_found(page) == kind.is_durable()), "{found:?}");
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_kill_with_memory() {
    purged_stays_away(Kind::Memory, true).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_with_a_single_disk() {
    purged_stays_away(SINGLE, true).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_with_mirrored_disks() {
    purged_stays_away(MIRROR, true).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_with_striped_disks() {
    purged_stays_away(STRIPE, true).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_with_hashed_disks() {
    purged_stays_away(HASH, true).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_with_plain_files() {
    purged_stays_away(Kind::Files, true).await;
}

#[tokio::test]
async fn what_was_not_purged_is_kept_over_a_crash_with_plain_files() {
    purged_stays_away(Kind::Files, false).await;
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_kill_with_redis() {
    purged_stays_away(Kind::Redis, true).await;
}
