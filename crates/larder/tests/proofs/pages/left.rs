//! Clients that leave an open page, at each of the moments at which it waits, fifty times each: nothing is left of them.
//!
//! The page waits for its first fragment before it has a head, for one behind text that was sent, for the rest of a fragment, for the rest
//! of its template, or for its client. What is for that client alone ends at the origin at once. What others may have is
//! fetched to its end. Clients close, reset, or reset one stream of a connection that goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use larder_testkit::client::{Connection, Progress};
use larder_testkit::origin::{Answer, Hold, Log, Origin, PathScript};
use tokio::net::TcpStream;

use super::{esi, part, stored_bytes, template};
use crate::support::{
    BOUND, Process, answer_of, asking, cache_status, cacheable, config, get, script, until, within, written,
};

const TIMES: u64 = 50;
const BODY_BYTES: u64 = 200_000;
const HALF: u64 = 100_000;
const LARGE_BYTES: u64 = 8_000_000;
/// What the heads of templates, and marks, may have added to the store.
const SMALL_BYTES: u64 = 64 * 1024;

/// Where a client leaves.
#[derive(Clone, Copy, Debug)]
struct Moment {
    name: &'static str,
    /// Bytes of the page after which it leaves; before the head where `None`.
    after: Option<u64>,
    /// The fragment that the page waits for then, if it is to be seen at the origin.
    asks: Option<&'static str>,
    /// Whether the origin gets rid of it without doing anything.
    ends_at_once: bool,
}

const MOMENTS: [Moment; 7] = [
    // Whether others may have it is not known before its head.
    Moment { name: "begins", after: None, asks: Some("/held/begins"), ends_at_once: false },
    Moment { name: "waits", after: Some(1), asks: Some("/held/waits"), ends_at_once: false },
    // Of its fragment there is a head, and too little to begin with.
    Moment { name: "ahead", after: Some(1), asks: Some("/little/ahead"), ends_at_once: true },
    Moment { name: "own", after: Some(HALF - 20_000), asks: Some("/half/own"), ends_at_once: true },
    Moment { name: "shared", after: Some(HALF - 20_000), asks: Some("/half/shared"), ends_at_once: false },
    Moment { name: "template", after: Some(HALF - 20_000), asks: None, ends_at_once: true },
    Moment { name: "reads", after: Some(10), asks: None, ends_at_once: false },
];

/// Each page has a fragment of its own: its number is in a field of the request.
fn scripts() -> Vec<PathScript> {
    let held = |fields: &str| Answer { hold: Some("go".to_owned()), ..part(&[fields], "held") };
    let half = |answer: Answer| Answer { holds: vec![Hold { at: HALF, gate: "go".to_owned() }], ..answer };
    let little = Answer {
        holds: vec![Hold { at: 1000, gate: "go".to_owned() }],
        ..answer_of(&["Cache-Control: no-store"], BODY_BYTES)
    };
    let rest = "x".repeat(BODY_BYTES as usize);
    let no_store = "Cache-Control: no-store";
    vec![
        script("/begins", esi("<esi:include src=\"/held/begins/$(HTTP_X_N)\"/>z")),
        script("/waits", esi("a<esi:include src=\"/held/waits/$(HTTP_X_N)\"/>z")),
        script("/own", esi("a<esi:include src=\"/half/own/$(HTTP_X_N)\"/>z")),
        script("/shared", esi("a<esi:include src=\"/half/shared/$(HTTP_X_N)\"/>z")),
        script(
            "/template",
            half(template("ESI", &[no_store], &format!("a<esi:include src=\"/plain\"/>{rest}"))),
        ),
        script("/reads", esi("<esi:include src=\"/large\"/><esi:include src=\"/held/reads/$(HTTP_X_N)\"/>z")),
        script("/ahead", esi("a<esi:include src=\"/little/ahead/$(HTTP_X_N)\"/>z")),
        script("/little/*", little),
        script("/held/*", held(no_store)),
        script("/half/own/*", half(answer_of(&[no_store], BODY_BYTES))),
        script("/half/shared/*", half(answer_of(&["Cache-Control: max-age=60"], BODY_BYTES))),
        cacheable("/plain", 10),
        cacheable("/large", LARGE_BYTES),
    ]
}

/// A larder with what the pages of one moment need, and how it is before they come.
struct Setup {
    larder: Process,
    origin: Origin,
    before: BTreeMap<&'static str, u64>,
    stored: u64,
    _directory: tempfile::TempDir,
}

impl Setup {
    async fn new(moment: Moment) -> Self {
        let origin = Origin::simple(scripts()).unwrap();
        let (directory, path) = written(&config(&origin.url(), "workers = 2", ""));
        let larder = Process::run_config(&path).await;
        let before = larder.idle_usage().await;
        if moment.name == "reads" {
            assert_eq!(get(larder.addr, "/large").await.body.len() as u64, LARGE_BYTES);
        }
        let stored = stored_bytes(&larder).await;
        Self { larder, origin, before, stored, _directory: directory }
    }

    /// All clients have left.
    async fn ends_as_before(self, moment: Moment) {
        let Self { larder, origin, before, stored, _directory } = self;
        if moment.ends_at_once {
            let idle = |log: &Log| log.in_flight() == 0;
            let ended = tokio::time::timeout(Duration::from_secs(5), origin.log().until(idle)).await;
            let running = origin.log().in_flight();
            assert!(ended.is_ok(), "{moment:?}: {running} exchanges run on at the origin for nobody");
        }
        origin.gates().release("go");
        larder.comes_back_to(&before).await;
        if moment.name == "shared" {
            // What others may have was fetched to its end.
            let found = get(larder.addr, "/half/shared/0").await;
            assert_eq!(found.body.len() as u64, BODY_BYTES, "{found}");
            assert!(cache_status(&found).contains("; hit"), "{found}");
        } else {
            let is_left = async || stored_bytes(&larder).await <= stored + SMALL_BYTES;
            until("the store is as before", is_left).await;
        }
        if let Some(asks) = moment.asks {
            let all = origin.log().all();
            let asked = all.iter().filter(|seen| seen.target.starts_with(asks)).count() as u64;
            // A body that passes through is let go of out of its turn, and asked for again.
            let most = if moment.ends_at_once { 2 * TIMES } else { TIMES };
            assert!((TIMES..=most).contains(&asked), "{moment:?}: {asked} requests");
        }
        let complaints = origin.log().complaints();
        assert!(complaints.is_empty(), "{moment:?}: {complaints:?}");
    }
}

/// Waits until the page waits where its client is to leave.
async fn until_it_waits(origin: &Origin, moment: Moment, number: u64) {
    if let Some(asks) = moment.asks {
        let target = format!("{asks}/{number}");
        let asked = |log: &Log| log.all().iter().any(|seen| seen.target == target);
        within("the origin's request", origin.log().until(asked)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_an_open_page_leave_nothing() {
    for moment in MOMENTS {
        let setup = Setup::new(moment).await;
        for number in 0..TIMES {
            let mut client = Connection::open(setup.larder.addr, BOUND).await.unwrap();
            let request = asking(&format!("/{}", moment.name)).field("X-N", &number.to_string());
            client.write(&request.to_http1()).await.unwrap();
            if let Some(bytes) = moment.after {
                let progress = Progress::default().pause_at(bytes);
                tokio::select! {
                    ended = client.read_response("GET", &progress) => panic!("{moment:?}: it ended: {ended:?}"),
                    () = within("a part of the page", progress.until(bytes)) => {}
                }
            }
            until_it_waits(&setup.origin, moment, number).await;
            if number % 2 == 0 {
                drop(client);
            } else {
                client.abort();
            }
        }
        setup.ends_as_before(moment).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_open_pages_that_are_reset_leave_nothing() {
    for moment in MOMENTS {
        let setup = Setup::new(moment).await;
        let stream = TcpStream::connect(setup.larder.addr).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        for number in 0..TIMES {
            client = within("a free stream", client.ready()).await.unwrap();
            let request = http::Request::get(format!("http://localhost/{}", moment.name));
            let request = request.header("x-n", number.to_string()).body(()).unwrap();
            let (response, mut sent) = client.send_request(request, true).unwrap();
            // It is dropped with its stream, behind the reset.
            let mut body = None;
            if moment.after.is_some() {
                let mut begun = within("a head", response).await.unwrap().into_body();
                let first = within("a part of the page", begun.data()).await.unwrap().unwrap();
                assert!(!first.is_empty());
                body = Some(begun);
                until_it_waits(&setup.origin, moment, number).await;
            } else {
                until_it_waits(&setup.origin, moment, number).await;
                drop(response);
            }
            sent.send_reset(h2::Reason::CANCEL);
            drop(body);
        }
        // The connection has outlived all of them.
        client = within("a free stream", client.ready()).await.unwrap();
        let request = http::Request::get("http://localhost/plain").body(()).unwrap();
        let (response, _) = client.send_request(request, true).unwrap();
        assert_eq!(within("an answer", response).await.unwrap().status(), 200);
        drop(client);
        connection.abort();
        setup.ends_as_before(moment).await;
    }
}
