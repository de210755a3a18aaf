//! A few clients that read large objects slowly do not take the store from what is in use; and they get all of it, where the
//! origin can be asked for the rest.

use larder_testkit::client::{End, Progress};
use larder_testkit::origin::{Answer, Origin};
use larder_testkit::seeded::bytes_of;

use crate::support::{
    Process, answer_of, asking, assert_whole, cache_status, cacheable, connect, script, until, within,
};

const LARGE_BYTES: u64 = 8 << 20;
const LARGE: usize = 8;
const PAGES: usize = 200;
const PAGE_BYTES: u64 = 16 * 1024;

/// How many of all pages are hits, each asked for once.
async fn hits(larder: &Process) -> usize {
    let mut connection = connect(larder.addr).await;
    let mut hits = 0;
    for number in 0..PAGES {
        let target = format!("/page/{number}");
        let response = within("a page", connection.exchange(&asking(&target))).await.unwrap();
        assert_whole(&response, &target, PAGE_BYTES);
        hits += usize::from(cache_status(&response).contains("; hit"));
    }
    hits
}

async fn eight_slow_readers(tag: Option<&'static str>) {
    let fields: Vec<&str> = ["Cache-Control: max-age=3600"].into_iter().chain(tag).collect();
    let large = Answer { ranges: true, ..answer_of(&fields, LARGE_BYTES) };
    let origin = Origin::simple(vec![script("/large/*", large), cacheable("/page/*", PAGE_BYTES)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--memory", "32MiB", "--workers", "2"]).await;
    for _ in 0..4 {
        hits(&larder).await;
    }
    assert_eq!(hits(&larder).await, PAGES);
    let mut slow = Vec::new();
    let mut found = 0;
    for number in 0..LARGE {
        let progress = Progress::default().pause_at(65_536);
        let (watched, target) = (progress.clone(), format!("/large/{number}"));
        let mut connection = connect(larder.addr).await;
        connection.write(&asking(&target).to_http1()).await.unwrap();
        let reading = tokio::spawn(async move { connection.read_response("GET", &watched).await });
        within("its first bytes", progress.until(65_536)).await;
        until("it has come", async || larder.metrics().await.sum("larder_flights") == 0).await;
        slow.push((target, progress, reading));
        found += hits(&larder).await;
    }
    assert!(found * 10 >= LARGE * PAGES * 9, "{found} hits of {}", LARGE * PAGES);
    let (mut whole, mut cut) = (0, 0);
    for (target, progress, reading) in slow {
        progress.resume();
        let response = within("a slow one", reading).await.unwrap().unwrap();
        assert!(response.body == bytes_of(&target, 0, response.body.len() as u64), "{target}");
        match response.end {
            End::Complete => {
                assert_eq!(response.body.len() as u64, LARGE_BYTES);
                whole += 1;
            }
            _ => cut += 1,
        }
    }
    let metrics = larder.metrics().await;
    let outcome = |outcome: &str| metrics.value(&format!("larder_slow_readers_total{{outcome={outcome:?}}}"));
    println!("{found} hits, {whole} whole, {cut} cut, resumed {:?}", outcome("resumed"));
    match tag {
        Some(_) => assert!(cut == 0 && outcome("resumed") > Some(0.0)),
        None => assert!(cut > 0 && outcome("cut") == Some(f64::from(cut))),
    }
    assert!(metrics.sum("larder_cache_high_water_bytes") <= 32 << 20);
}

#[tokio::test]
async fn eight_slow_readers_of_large_objects_leave_the_store_to_what_is_in_use_and_get_all_of_it() {
    eight_slow_readers(Some("ETag: \"v1\"")).await;
}

#[tokio::test]
async fn where_the_rest_cannot_be_asked_for_the_slowest_are_cut() {
    eight_slow_readers(None).await;
}
