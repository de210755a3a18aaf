//! Two hundred clients ask for one URL that is not stored: the origin is asked once, and everybody gets all of it.

use larder_testkit::client::{Connection, Progress, Response};
use larder_testkit::origin::{Answer, Hold, Origin};
use tokio::task::JoinHandle;

use crate::support::{
    Process, answer_of, asking, assert_whole, cache_status, config, connect, get, script, until, within,
    written,
};

const CLIENTS: u64 = 200;
const BODY_BYTES: u64 = 256 * 1024;
const HALF: u64 = 128 * 1024;

/// When the client that caused the fetch leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstLeaves {
    Never,
    BeforeTheHead,
    InTheBody,
}

struct Reader {
    progress: Progress,
    response: JoinHandle<Response>,
}

async fn ask(larder: &Process) -> Connection {
    let mut client = connect(larder.addr).await;
    client.write(&asking("/cold").to_http1()).await.unwrap();
    client
}

fn read(mut client: Connection) -> Reader {
    let progress = Progress::default();
    let watched = progress.clone();
    let response = tokio::spawn(async move { client.read_response("GET", &watched).await.unwrap() });
    Reader { progress, response }
}

async fn until_waiting(larder: &Process, count: u64) {
    let what = format!("{count} clients wait");
    until(&what, async || larder.metrics().await.sum("larder_flights_waiting") == count).await;
}

async fn one_request_for_all(workers: &str, leaves: FirstLeaves) {
    let slow = Answer {
        hold: Some("head".to_owned()),
        holds: vec![Hold { at: HALF, gate: "rest".to_owned() }],
        ..answer_of(&["Cache-Control: max-age=3600"], BODY_BYTES)
    };
    let origin = Origin::simple(vec![script("/cold", slow)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), &format!("workers = {workers}"), ""));
    let larder = Process::run_config(&path).await;
    let before = larder.idle_usage().await;

    let first = ask(&larder).await;
    within("the one request", origin.log().until(|log| log.count() == 1)).await;
    let mut others = Vec::new();
    for _ in 1..CLIENTS {
        others.push(ask(&larder).await);
    }
    until_waiting(&larder, CLIENTS).await;
    let mut first = Some(first);
    if leaves == FirstLeaves::BeforeTheHead {
        drop(first.take());
        until_waiting(&larder, CLIENTS - 1).await;
    }
    origin.gates().release("head");
    let mut readers: Vec<Reader> = others.into_iter().map(read).collect();
    let first = first.map(read);
    for reader in readers.iter().chain(&first) {
        within("half of the body", reader.progress.until(HALF)).await;
    }
    match first {
        Some(first) if leaves == FirstLeaves::InTheBody => {
            first.response.abort();
            // It has left when its connection is closed, which the end of its task does.
            assert!(first.response.await.is_err());
        }
        first => readers.extend(first),
    }
    origin.gates().release("rest");
    let mut collapsed = 0;
    for reader in readers {
        let response = within("a response", reader.response).await.unwrap();
        assert_whole(&response, "/cold", BODY_BYTES);
        collapsed += u64::from(cache_status(&response).contains("; collapsed"));
    }
    assert_eq!(collapsed, CLIENTS - 1, "all but the first have joined");
    until("it is stored", async || cache_status(&get(larder.addr, "/cold").await).contains("; hit")).await;
    assert_eq!(origin.log().count(), 1, "workers: {workers}, {leaves:?}: {}", origin.log());
    assert!(origin.log().complaints().is_empty(), "{:?}", origin.log().complaints());
    larder.comes_back_to(&before).await;
}

#[tokio::test]
async fn one_request_for_two_hundred_clients() {
    for workers in ["1", "2"] {
        one_request_for_all(workers, FirstLeaves::Never).await;
    }
}

#[tokio::test]
async fn one_request_although_the_first_client_leaves_before_the_head() {
    for workers in ["1", "2"] {
        one_request_for_all(workers, FirstLeaves::BeforeTheHead).await;
    }
}

#[tokio::test]
async fn one_request_although_the_first_client_leaves_in_the_middle_of_the_body() {
    for workers in ["1", "2"] {
        one_request_for_all(workers, FirstLeaves::InTheBody).await;
    }
}

#[tokio::test]
async fn a_fetch_that_everybody_left_ends_by_itself_and_is_stored() {
    let slow =
        Answer { hold: Some("head".to_owned()), ..answer_of(&["Cache-Control: max-age=3600"], BODY_BYTES) };
    let origin = Origin::simple(vec![script("/cold", slow)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    let clients = [ask(&larder).await, ask(&larder).await];
    until_waiting(&larder, 2).await;
    drop(clients);
    until_waiting(&larder, 0).await;
    origin.gates().release("head");
    until("the fetch has ended", async || larder.metrics().await.sum("larder_flights") == 0).await;
    let stored = get(larder.addr, "/cold").await;
    assert_whole(&stored, "/cold", BODY_BYTES);
    assert!(cache_status(&stored).contains("; hit"), "{stored}");
    assert_eq!(origin.log().count(), 1);
}
