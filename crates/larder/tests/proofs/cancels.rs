//! Clients that leave, at every stage, fifty times each: nothing is left of them, and nobody else notices.

use std::time::Duration;

use larder_testkit::client::{Connection, Progress, Request};
use larder_testkit::origin::{Answer, BodyFraming, Hold, Origin};

use crate::support::{
    BOUND, Process, answer_of, asking, assert_whole, cacheable, config, connect, get, script, within, written,
};

const TIMES: u64 = 50;
const BODY_BYTES: u64 = 200_000;
const HALF: u64 = 100_000;

/// Where a client leaves.
#[derive(Clone, Copy, Debug)]
struct Stage {
    name: &'static str,
    method: &'static str,
    /// Body bytes after which it leaves; before the head where `None`.
    after: Option<u64>,
    /// Whether larder lets the origin's connection go at once, without the origin doing anything.
    ends_at_once: bool,
}

const STAGES: [Stage; 8] = [
    Stage { name: "head", method: "GET", after: None, ends_at_once: false },
    // Its answer decides what is invalidated, so it is waited for although nobody else does.
    Stage { name: "post", method: "POST", after: None, ends_at_once: false },
    Stage { name: "bypass", method: "GET", after: None, ends_at_once: true },
    Stage { name: "upload", method: "PUT", after: None, ends_at_once: true },
    Stage { name: "stored", method: "GET", after: Some(HALF), ends_at_once: false },
    Stage { name: "private", method: "GET", after: Some(HALF), ends_at_once: true },
    Stage { name: "chunked", method: "GET", after: Some(HALF), ends_at_once: true },
    Stage { name: "hit", method: "GET", after: Some(10), ends_at_once: true },
];

fn scripts() -> Vec<larder_testkit::origin::PathScript> {
    let hold = |answer: Answer| Answer { hold: Some("go".to_owned()), ..answer };
    let half = |answer: Answer| Answer { holds: vec![Hold { at: HALF, gate: "go".to_owned() }], ..answer };
    let cached = || answer_of(&["Cache-Control: max-age=60"], BODY_BYTES);
    let private = || answer_of(&["Cache-Control: private"], BODY_BYTES);
    vec![
        script("/head/*", hold(cached())),
        script("/post/*", hold(private())),
        script("/bypass/*", hold(private())),
        script("/upload/*", private()),
        script("/stored/*", half(cached())),
        script("/private/*", half(private())),
        script("/chunked/*", half(Answer { framing: Some(BodyFraming::Chunked), ..private() })),
        cacheable("/hit/*", 8_000_000),
    ]
}

/// Sends the stage's request as far as it goes and waits until it has got where the client is to leave.
async fn until_it_is_there(larder: &Process, origin: &Origin, stage: Stage, n: u64) -> Connection {
    let target = format!("/{}/{n}", stage.name);
    let mut client = Connection::open(larder.addr, BOUND).await.unwrap();
    let request = match stage.name {
        "upload" => {
            let head = format!("PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
            Request::raw([head.as_bytes(), &[b'x'; 500]].concat())
        }
        "post" | "bypass" => Request::new(stage.method, &target, "localhost").body("whole"),
        "hit" => asking("/hit/one"),
        _ => asking(&target),
    };
    client.write(&request.to_http1()).await.unwrap();
    let asked = |log: &larder_testkit::origin::Log| log.all().iter().any(|seen| seen.target == target);
    match stage.after {
        None => within("the origin's request", origin.log().until(asked)).await,
        Some(bytes) => {
            let progress = Progress::default().pause_at(bytes);
            let reading = client.read_response(stage.method, &progress);
            tokio::select! {
                ended = reading => panic!("{stage:?}: it ended: {ended:?}"),
                () = within("a part of the body", progress.until(bytes)) => {}
            }
        }
    }
    client
}

#[tokio::test]
async fn clients_that_leave_at_any_stage_leave_nothing() {
    for stage in STAGES {
        let origin = Origin::simple(scripts()).unwrap();
        let text = config(&origin.url(), "workers = 2", "");
        let (_directory, path) = written(&text);
        let larder = Process::run_config(&path).await;
        let before = larder.idle_usage().await;
        if stage.name == "hit" {
            assert_whole(&get(larder.addr, "/hit/one").await, "/hit/one", 8_000_000);
        }
        for n in 0..TIMES {
            let client = until_it_is_there(&larder, &origin, stage, n).await;
            if n % 2 == 0 {
                drop(client);
            } else {
                client.abort();
            }
        }
        if stage.ends_at_once {
            let idle = |log: &larder_testkit::origin::Log| log.in_flight() == 0;
            let ended = tokio::time::timeout(Duration::from_secs(5), origin.log().until(idle)).await;
            let running = origin.log().in_flight();
            assert!(ended.is_ok(), "{stage:?}: {running} exchanges run on at the origin for nobody");
        }
        // What somebody may still use ends by itself, once the origin says the rest.
        origin.gates().release("go");
        larder.comes_back_to(&before).await;
        let complaints = origin.log().complaints();
        assert!(complaints.is_empty(), "{stage:?}: {complaints:?}");
        if stage.name == "upload" {
            assert!(origin.log().all().iter().all(|seen| !seen.body_complete), "{}", origin.log());
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_does_not_disturb_one_that_stays() {
    let origin = Origin::simple(scripts()).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    let mut staying = connect(larder.addr).await;
    staying.write(&asking("/stored/0").to_http1()).await.unwrap();
    for _ in 0..TIMES {
        let stage = Stage { name: "stored", method: "GET", after: Some(HALF), ends_at_once: false };
        drop(until_it_is_there(&larder, &origin, stage, 0).await);
    }
    origin.gates().release("go");
    let response = staying.read_response("GET", &Progress::default()).await.unwrap();
    assert_whole(&response, "/stored/0", BODY_BYTES);
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
}
