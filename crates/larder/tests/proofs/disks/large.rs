//! Large bodies on a disk that does not keep up: nobody waits for it, what it has of them is completed by ranges, also after a
//! kill, and whoever looks is told.
//!
//! The disk is held to a pace by the kernel, which takes root and cgroup v1; else the test says so and is done.

use std::path::PathBuf;
use std::time::Instant;

use larder_testkit::origin::{Answer, Origin};
use tempfile::TempDir;

use super::mounted::{Mounted, skip};
use super::throttle::{Throttle, Way};
use crate::support::{
    Process, Signal, answer_of, asking, assert_whole, cache_status, config, connect, get, script, until,
    within, written,
};

const BODY_BYTES: u64 = 24 << 20;
const WRITES_PER_S: u64 = 2_000_000;
const TARGET: &str = "/film";

/// What the origin was asked for: the Range of each request, and whether If-Range had its tag.
fn asked(origin: &Origin) -> Vec<(Option<String>, bool)> {
    let field = |seen: &larder_testkit::origin::Seen, name: &str| seen.fields.first(name).map(str::to_owned);
    let asked = origin.log().all().into_iter();
    asked.map(|seen| (field(&seen, "range"), field(&seen, "if-range").as_deref() == Some("\"v1\""))).collect()
}

/// Bytes in a `bytes=a-b` or `bytes=a-`.
fn length(range: &str) -> u64 {
    let (first, last) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).unwrap();
    let last = if last.is_empty() { BODY_BYTES - 1 } else { last.parse().unwrap() };
    last + 1 - first.parse::<u64>().unwrap()
}

/// An origin with one large body, and the config of a larder with a small memory and a disk.
struct Site {
    origin: Origin,
    config: PathBuf,
    log: PathBuf,
    _folders: [TempDir; 2],
}

impl Site {
    fn with_disk(disk: &Mounted) -> Self {
        let answer = Answer {
            ranges: true,
            ..answer_of(&["Cache-Control: max-age=3600", "ETag: \"v1\"", "Accept-Ranges: bytes"], BODY_BYTES)
        };
        let origin = Origin::simple(vec![script(TARGET, answer)]).unwrap();
        let (folder, _) = written("");
        let (log, path) = (folder.path().join("access.log"), disk.path().join("disk"));
        let text = config(
            &origin.url(),
            "workers = 1",
            &format!(
                "[stores.default]\nmemory = \"8MiB\"\nmax_object = \"32MiB\"\ndisks = [{{ path = {path:?}, size = \"40MiB\" }}]\n[log]\naccess = {log:?}\n"
            ),
        );
        let (config_folder, config) = written(&text);
        Self { origin, config, log, _folders: [folder, config_folder] }
    }
}

async fn is_written(larder: &Process) -> bool {
    larder.metrics().await.sum("larder_disk_queued_bytes") == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_disk_has_of_a_large_body_is_completed_by_later_requests() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let Some(device) = disk.device_number() else { return skip("its device has no number") };
    let site = Site::with_disk(&disk);
    let mut larder = Process::run_config(&site.config).await;
    let Some(throttle) = Throttle::hold(&device, Way::Writes, WRITES_PER_S) else { return };
    let began = Instant::now();
    let first = within("the first answer", get(larder.addr, TARGET)).await;
    let took = began.elapsed();
    assert_whole(&first, TARGET, BODY_BYTES);
    let metrics = larder.metrics().await;
    drop(throttle);
    if metrics.sum("larder_disk_written_bytes_total") > BODY_BYTES / 2 {
        return skip("the throttle does not hold");
    }
    println!("{took:?} for the first");
    // It is said wherever somebody may look.
    assert_eq!(metrics.value("larder_not_stored_total{reason=\"queue-full\"}"), Some(1.0));
    larder.says("store default did not store").await;
    let stats = String::from_utf8(get(larder.admin, "/stats").await.body).unwrap();
    assert!(stats.contains("\"queue-full\""), "{stats}");
    let url = format!("/explain?url=http://localhost{TARGET}");
    let told = String::from_utf8(get(larder.admin, &url).await.body).unwrap();
    assert!(told.contains("did not keep up"), "{told}");
    until("the line is there", async || {
        let log = std::fs::read_to_string(&site.log).unwrap_or_default();
        log.contains(r#""larder.cache.stored":false,"larder.cache.not_stored":"queue-full""#)
    })
    .await;

    until("what the disk has is written", async || is_written(&larder).await).await;
    larder.signal(Signal::KILL);
    larder.gone().await;
    let larder = Process::run_config(&site.config).await;
    // A range of what is there, and then the rest.
    let range = asking(TARGET).field("Range", "bytes=1000-300000");
    let part = within("a range", connect(larder.addr).await.exchange(&range)).await.unwrap();
    assert_eq!((part.status, part.body.len()), (206, 299_001), "{part}");
    assert!(cache_status(&part).contains("; hit"), "{part}");
    let second = within("the second answer", get(larder.addr, TARGET)).await;
    assert_whole(&second, TARGET, BODY_BYTES);
    assert!(cache_status(&second).contains("fwd=partial"), "{second}");
    let third = within("the third answer", get(larder.addr, TARGET)).await;
    assert_whole(&third, TARGET, BODY_BYTES);
    assert!(cache_status(&third).contains("; hit"), "{third}");
    let asked = asked(&site.origin);
    let ranges: Vec<&str> = asked.iter().filter_map(|(range, _)| range.as_deref()).collect();
    assert!(asked[0].0.is_none() && asked.len() == 1 + ranges.len() && !ranges.is_empty(), "{asked:?}");
    assert!(asked[1..].iter().all(|(_, is_tagged)| *is_tagged), "{asked:?}");
    let fetched: u64 = ranges.iter().map(|range| length(range)).sum();
    assert!(fetched <= BODY_BYTES - (8 << 20), "{fetched} bytes again: {ranges:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_disk_lacks_of_a_body_that_is_asked_for_again_is_fetched_behind_it() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let Some(device) = disk.device_number() else { return skip("its device has no number") };
    let site = Site::with_disk(&disk);
    let larder = Process::run_config(&site.config).await;
    // Slower than the slowest machine gets the body from the origin, so that something is lacking after the second request too.
    let Some(throttle) = Throttle::hold(&device, Way::Writes, WRITES_PER_S / 4) else { return };
    let behind =
        async || larder.metrics().await.value("larder_refreshes_total{kind=\"gaps\"}").unwrap_or_default();
    let first = within("the first answer", get(larder.addr, TARGET)).await;
    assert_whole(&first, TARGET, BODY_BYTES);
    let metrics = larder.metrics().await;
    if metrics.sum("larder_disk_written_bytes_total") > BODY_BYTES / 2 {
        return skip("the throttle does not hold");
    }
    // The first request may have been the last.
    until("the origin has sent all", async || larder.metrics().await.sum("larder_origin_in_flight") == 0)
        .await;
    assert_eq!((behind().await, site.origin.log().all().len()), (0.0, 1));

    let second = within("the second answer", get(larder.addr, TARGET)).await;
    assert_whole(&second, TARGET, BODY_BYTES);
    assert!(cache_status(&second).contains("fwd=partial"), "{second}");
    until("the rest is fetched behind it", async || behind().await > 0.0).await;
    // Nobody waits for the disk but that fetch: at 4 MB/s it takes some seconds.
    throttle.set(2 * WRITES_PER_S);
    let began = Instant::now();
    until("nothing is under way", async || {
        larder.metrics().await.sum("larder_origin_in_flight") == 0 && is_written(&larder).await
    })
    .await;
    println!("{:?} for the rest", began.elapsed());
    let sent = site.origin.log().all().len();
    let third = within("the third answer", get(larder.addr, TARGET)).await;
    assert_whole(&third, TARGET, BODY_BYTES);
    assert!(cache_status(&third).contains("; hit"), "{third}");
    assert_eq!(
        (behind().await, site.origin.log().all().len()),
        (1.0, sent),
        "each client causes one at most"
    );
    drop(throttle);
    // What the disk had is not asked for again: the second asks for what it lacked, the fetch behind for what it still did.
    let asked = asked(&site.origin);
    let ranges: Vec<&str> = asked[1..].iter().filter_map(|(range, _)| range.as_deref()).collect();
    assert!(
        ranges.len() + 1 == asked.len() && asked[1..].iter().all(|(_, is_tagged)| *is_tagged),
        "{asked:?}"
    );
    let fetched: u64 = ranges.iter().map(|range| length(range)).sum();
    assert!(fetched <= 2 * (BODY_BYTES - (8 << 20)), "{fetched} bytes again: {ranges:?}");
}
