//! A kill in the middle of a large body that a disk does not keep up with: after it nothing torn is served, in any layout.
//!
//! Each write waits, so that pieces of the body are left out while it arrives, and larder is killed while more of it is to come, or
//! when its client has all. After the start each byte is right, of ranges and of the whole, nothing counts as damaged,
//! and what the disks have of it is used.

use larder_testkit::client::{End, Progress};
use larder_testkit::origin::{Answer, Hold, Origin};
use larder_testkit::seeded::bytes_of;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE};
use crate::disks::injecting::Injecting;
use crate::support::{
    Process, Signal, answer_of, asking, assert_whole, config, connect, get, script, until, within,
};

const BODY_BYTES: u64 = 24 << 20;
/// When it is killed: once the client has so many bytes.
const KILLED_AT: [u64; 3] = [14 << 20, 20 << 20, BODY_BYTES];
/// So that a disk takes a batch in a second or so.
const SLOW: &str = "pwrite64:delay_enter=250000";
/// First and last bytes; across pieces, and over most of it.
const RANGES: [(u64, u64); 3] = [(0, 99_999), (200_000, 700_000), (1_000_000, 18_000_000)];

async fn is_written(larder: &Process) {
    until("it is written", async || larder.metrics().await.sum("larder_disk_queued_bytes") == 0).await;
}

/// How many of the ranges are stored, without a request to the origin; each is right.
async fn check_stored(larder: &Process, target: &str) -> usize {
    let mut found = 0;
    for (first, last) in RANGES {
        let request = asking(target).field("Cache-Control", "only-if-cached");
        let request = request.field("Range", &format!("bytes={first}-{last}"));
        let answer = within("a range", connect(larder.addr).await.exchange(&request)).await.unwrap();
        if answer.status == 504 {
            continue;
        }
        assert_eq!((answer.status, &answer.end), (206, &End::Complete), "{answer}");
        assert!(
            answer.body == bytes_of(target, first, last + 1 - first),
            "{target} {first}-{last}: {answer}"
        );
        found += 1;
    }
    found
}

async fn killed_in_a_spill(layout: Kind) {
    let answer = |number: usize, at: u64| {
        let holds = vec![Hold { at, gate: format!("rest-{number}") }];
        let fields = ["Cache-Control: max-age=3600", "ETag: \"v1\"", "Accept-Ranges: bytes"];
        let holds = if at < BODY_BYTES { holds } else { Vec::new() };
        script(&format!("/film/{number}"), Answer { ranges: true, holds, ..answer_of(&fields, BODY_BYTES) })
    };
    let scripts = KILLED_AT.iter().enumerate().map(|(number, at)| answer(number, *at));
    let origin = Origin::simple(scripts.collect()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let places = [0, 1].map(|number| folder.path().join(format!("place-{number}")));
    let table = layout.table("default", "8MiB", &places).replace(super::SIZE, "96MiB");
    let path = folder.path().join("larder.toml");
    std::fs::write(&path, config(&origin.url(), "workers = 1", &format!("{table}max_object = \"32MiB\"\n")))
        .unwrap();
    let mut larder = Process::run_config(&path).await;
    for (number, at) in KILLED_AT.into_iter().enumerate() {
        let target = format!("/film/{number}");
        let Some(injecting) = Injecting::attached(&larder, &[SLOW]).await else { return };
        let progress = Progress::default();
        let (watched, mut client) = (progress.clone(), connect(larder.addr).await);
        client.write(&asking(&target).to_http1()).await.unwrap();
        let reading = tokio::spawn(async move { client.read_response("GET", &watched).await });
        within("most of the body", progress.until(at)).await;
        let mut injecting = Some(injecting);
        if at < BODY_BYTES {
            until("some of it is written", async || {
                larder.metrics().await.sum("larder_disk_written_bytes_total") > 0
            })
            .await;
        } else {
            // What has gaps is kept as a part, and is on the disks once they are quick again.
            until("the fetch is over", async || larder.metrics().await.sum("larder_flights") == 0).await;
            let left_out = larder.metrics().await.sum("larder_disk_refused_total");
            println!("{layout:?}: {left_out} pieces were left out");
            injecting = None;
            is_written(&larder).await;
        }
        larder.signal(Signal::KILL);
        larder.gone().await;
        drop(injecting);
        // What came of it is right as far as it came.
        if let Ok(cut) = within("the end of the answer", reading).await.unwrap() {
            assert!(cut.body == bytes_of(&target, 0, cut.body.len() as u64), "{cut}");
        }
        origin.gates().release(&format!("rest-{number}"));
        larder = Process::run_config(&path).await;
        for number in 0..=number {
            check_stored(&larder, &format!("/film/{number}")).await;
        }
        if at == BODY_BYTES {
            assert!(check_stored(&larder, &target).await > 0, "nothing of it is found");
        }
        for _ in 0..2 {
            let whole = within("the whole", get(larder.addr, &target)).await;
            assert_whole(&whole, &target, BODY_BYTES);
        }
        is_written(&larder).await;
        assert_eq!(check_stored(&larder, &target).await, RANGES.len(), "{target} is not stored");
        assert_eq!(larder.metrics().await.sum("larder_disk_damaged_total"), 0, "{:?}", larder.stderr());
        assert!(larder.stderr().iter().all(|line| !line.contains("damaged")), "{:?}", larder.stderr());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_torn_after_a_kill_in_a_spill_with_a_single_disk() {
    killed_in_a_spill(SINGLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_torn_after_a_kill_in_a_spill_with_mirrored_disks() {
    killed_in_a_spill(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_torn_after_a_kill_in_a_spill_with_striped_disks() {
    killed_in_a_spill(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_torn_after_a_kill_in_a_spill_with_hashed_disks() {
    killed_in_a_spill(HASH).await;
}
