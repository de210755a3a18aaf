//! One fetch per key, and a bound on the wait: where the store has the response and does not give it.
//!
//! A response lies on a disk or in a file alone. Then reading takes far longer than a request waits for it: it is not in the page
//! cache, and each read waits. Sixty clients ask at once: each waits a second for the store and no more, and the origin is asked
//! once for all of them. Memory has no such fault; `collapse` has its herds.

use std::time::{Duration, Instant};

use larder_testkit::client::Progress;
use larder_testkit::origin::{Answer, Origin};

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::disks::injecting::Injecting;
use crate::support::{
    Signal, answer_of, asking, assert_whole, cache_status, connect, get, script, until, within,
};

const CLIENTS: u64 = 60;
/// Several pieces.
const BODY_BYTES: u64 = 600_000;
/// A second for the store, and what a busy machine adds.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Nothing is in the page cache, and each read takes six seconds.
const STALLED: [&str; 2] = ["preadv2:error=EAGAIN", "pread64:delay_enter=6000000"];

async fn a_herd_for_what_cannot_be_read(kind: Kind) {
    let stored = answer_of(&["Cache-Control: max-age=3600"], BODY_BYTES);
    let held = Answer { hold: Some("go".to_owned()), ..stored.clone() };
    let mut script = script("/page", stored);
    script.answer.push(held);
    let origin = Origin::simple(vec![script]).unwrap();
    let stand = Stand::new(kind, &origin.url());
    let mut larder = stand.start().await;
    assert_whole(&get(larder.addr, "/page").await, "/page", BODY_BYTES);
    stand.is_settled(&larder, 1).await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
    // It is there, but not in memory.
    let larder = stand.start().await;
    let list = get(larder.admin, "/objects").await;
    assert!(String::from_utf8_lossy(&list.body).contains("/page"), "{list}");
    let Some(injecting) = Injecting::attached(&larder, &STALLED).await else { return };
    let began = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = connect(larder.addr).await;
        client.write(&asking("/page").to_http1()).await.unwrap();
        clients.push(client);
    }
    let waiting = async || larder.metrics().await.sum("larder_flights_waiting");
    until("all wait for the origin", async || waiting().await == CLIENTS).await;
    let took = began.elapsed();
    assert!(took < WAIT_MAX, "they waited {took:?} for the store");
    assert_eq!(origin.log().count(), 2, "{}", origin.log());
    // Clients read a large body from where it is written; that is another promise's affair.
    drop(injecting);
    origin.gates().release("go");
    let mut collapsed = 0;
    for mut client in clients {
        let response = within("an answer", client.read_response("GET", &Progress::default())).await.unwrap();
        assert_whole(&response, "/page", BODY_BYTES);
        collapsed += u64::from(cache_status(&response).contains("; collapsed"));
    }
    println!("{kind:?}: {took:?}, {collapsed} joined");
    assert_eq!((collapsed, origin.log().count()), (CLIENTS - 1, 2), "{}", origin.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_waits_a_second_for_a_single_disk_and_asks_once() {
    a_herd_for_what_cannot_be_read(SINGLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_waits_a_second_for_mirrored_disks_and_asks_once() {
    a_herd_for_what_cannot_be_read(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_waits_a_second_for_striped_disks_and_asks_once() {
    a_herd_for_what_cannot_be_read(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_waits_a_second_for_hashed_disks_and_asks_once() {
    a_herd_for_what_cannot_be_read(HASH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_waits_a_second_for_plain_files_and_asks_once() {
    a_herd_for_what_cannot_be_read(Kind::Files).await;
}
