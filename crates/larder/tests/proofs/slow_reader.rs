//! A client that reads slowly, or not at all, does not slow another one down on the same object.

use larder_testkit::client::Progress;
use larder_testkit::origin::{Answer, BodyFraming, Origin};

use crate::support::{
    Process, answer_of, asking, assert_whole, cache_status, cacheable, connect, get, script, until, within,
};

/// More than sockets and windows hold, so that a reader that pauses is felt.
const BODY_BYTES: u64 = 24 * 1024 * 1024;

/// The fast one gets everything while the slow one has stopped reading; then the slow one gets everything too.
async fn fast_beside_slow(workers: &str, target: &str, stored_first: bool) {
    let chunked = Answer {
        framing: Some(BodyFraming::Chunked),
        ..answer_of(&["Cache-Control: max-age=3600"], BODY_BYTES)
    };
    let origin = Origin::simple(vec![cacheable("/known", BODY_BYTES), script("/chunked", chunked)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", workers]).await;
    if stored_first {
        let is_hit = async || cache_status(&get(larder.addr, target).await).contains("; hit");
        until("it is stored", is_hit).await;
    }
    let progress = Progress::default().pause_at(65_536);
    let watched = progress.clone();
    let mut slow = connect(larder.addr).await;
    slow.write(&asking(target).to_http1()).await.unwrap();
    let slow = tokio::spawn(async move { slow.read_response("GET", &watched).await.unwrap() });
    within("the slow one's first bytes", progress.until(65_536)).await;
    for _ in 0..2 {
        let fast = within("the fast one", get(larder.addr, target)).await;
        assert_whole(&fast, target, BODY_BYTES);
    }
    assert!(!slow.is_finished());
    progress.resume();
    let slow = within("the slow one", slow).await.unwrap();
    assert_whole(&slow, target, BODY_BYTES);
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
}

#[tokio::test]
async fn a_slow_reader_of_a_body_that_is_being_stored_slows_nobody() {
    for workers in ["1", "2"] {
        fast_beside_slow(workers, "/known", false).await;
    }
}

#[tokio::test]
async fn a_slow_reader_of_a_chunked_body_that_is_being_stored_slows_nobody() {
    fast_beside_slow("2", "/chunked", false).await;
}

#[tokio::test]
async fn a_slow_reader_of_a_stored_body_slows_nobody() {
    for workers in ["1", "2"] {
        fast_beside_slow(workers, "/known", true).await;
    }
}
