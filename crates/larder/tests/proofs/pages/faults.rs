//! The application is killed while pages are open: each of them ends as its template says, or is cut.
//!
//! A cut shows in every version of HTTP: no last chunk, a reset stream, a reset connection. So nobody takes a torn page for a whole one. Stale
//! fragments stand in, and so does what the template has in place of a failed one. Afterwards nothing is left of all these
//! pages, and with the application back they are whole.

use larder_testkit::client::{Connection, End, Progress, Request, Response, exchange_http2};
use larder_testkit::origin::{Answer, Hold, Origin, PathScript};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{esi, part, ssi, stored_bytes};
use crate::support::{
    BOUND, Process, answer_of, asking, config, connect, get, script, until, within, written,
};

/// Pages of each kind and each version of HTTP.
const PAGES: usize = 8;
const BODY_BYTES: u64 = 200_000;
const HALF: u64 = 100_000;
/// What marks, which say that something cannot be shared, may have added.
const MARKS_BYTES: u64 = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
    Http2,
}

/// What becomes of a page whose fragment the application does not finish.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// It is cut.
    Cut,
    /// It ends so.
    Ends(&'static str),
}

/// A kind of page.
#[derive(Clone, Copy, Debug)]
struct Case {
    target: &'static str,
    /// Bytes of the page that come before the application is killed.
    before: u64,
    then: Then,
}

const ERROR: &str = "a[an error occurred while processing the directive]z";
const CASES: [Case; 8] = [
    // A fragment that nothing stands in for has not begun.
    Case { target: "/waits", before: 1, then: Then::Cut },
    // One is half there: its bytes are on their way, so nothing can stand in for it any more.
    Case { target: "/half-own", before: HALF - 20_000, then: Then::Cut },
    Case { target: "/half-shared", before: HALF - 20_000, then: Then::Cut },
    Case { target: "/half-ssi", before: HALF - 20_000, then: Then::Cut },
    Case { target: "/goes-on", before: 1, then: Then::Ends("az") },
    Case { target: "/except", before: 1, then: Then::Ends("aEz") },
    Case { target: "/ssi", before: 1, then: Then::Ends(ERROR) },
    Case { target: "/stands-in", before: 1, then: Then::Ends("aoldz") },
];

fn scripts() -> Vec<PathScript> {
    let held = |answer: Answer| Answer { hold: Some("never".to_owned()), ..answer };
    let half = |fields: &str| Answer {
        holds: vec![Hold { at: HALF, gate: "never".to_owned() }],
        ..answer_of(&[fields], BODY_BYTES)
    };
    let shared = "Cache-Control: max-age=3600";
    let old = PathScript::new(
        "/old",
        [part(&[shared, "ETag: \"1\""], "old"), held(part(&[shared, "ETag: \"2\""], "new"))],
    );
    vec![
        script("/waits", esi("a<esi:include src=\"/held\"/>z")),
        script("/half-own", esi("a<esi:include src=\"/own\"/>z")),
        script("/half-shared", esi("a<esi:include src=\"/shared\"/>z")),
        script("/half-ssi", ssi("a<!--#include virtual=\"/own\" -->z")),
        script("/goes-on", esi("a<esi:include src=\"/held\" onerror=\"continue\"/>z")),
        script(
            "/except",
            esi(
                "a<esi:try><esi:attempt>b<esi:include src=\"/held\"/></esi:attempt><esi:except>E</esi:except>\
                 </esi:try>z",
            ),
        ),
        script("/ssi", ssi("a<!--#include virtual=\"/held\" -->z")),
        script("/stands-in", esi("a<esi:include src=\"/old\"/>z")),
        script("/held", held(part(&["Cache-Control: no-store"], "held"))),
        script("/own", half("Cache-Control: no-store")),
        script("/shared", half(shared)),
        old,
    ]
}

/// A page that is being read.
struct Reading {
    case: Case,
    version: Version,
    progress: Progress,
    page: JoinHandle<Response>,
}

impl Reading {
    fn begin(larder: &Process, case: Case, version: Version) -> Self {
        let (addr, progress) = (larder.addr, Progress::default());
        let read = progress.clone();
        let mut request = asking(case.target);
        let page = tokio::spawn(async move {
            if version == Version::Http2 {
                return exchange_http2(addr, &request, &read, BOUND).await.unwrap();
            }
            if version == Version::Http10 {
                request.version = "1.0".to_owned();
            }
            let mut client = Connection::open(addr, BOUND).await.unwrap();
            client.write(&request.to_http1()).await.unwrap();
            client.read_response("GET", &read).await.unwrap()
        });
        Self { case, version, progress, page }
    }

    async fn has_begun(&self) {
        within(self.case.target, self.progress.until(self.case.before)).await;
    }

    async fn ends(self) {
        let Self { case, version, page, .. } = self;
        let page = within(case.target, page).await.unwrap();
        match case.then {
            Then::Cut => {
                assert!(matches!(page.end, End::Broken(_)), "{case:?} {version:?}: {page}");
                let whole = if case.before == 1 { 2 } else { 2 + BODY_BYTES };
                let is_torn = page.body.starts_with(b"a") && (page.body.len() as u64) < whole;
                assert!(is_torn, "{case:?} {version:?}: {page}");
            }
            Then::Ends(text) => {
                assert_eq!(page.end, End::Complete, "{case:?} {version:?}: {page}");
                assert_eq!(String::from_utf8_lossy(&page.body), text, "{case:?} {version:?}");
            }
        }
        assert!(
            !page.fields.has("content-length") && !page.fields.has("etag"),
            "{case:?} {version:?}: {page}"
        );
    }
}

async fn purge_softly(larder: &Process, target: &str) {
    let what = json!({ "urls": [format!("http://localhost{target}")], "soft": true });
    let request = Request::new("POST", "/api/v1/purges", "localhost")
        .field("Content-Type", "application/json")
        .body(what.to_string());
    let answer = within("a purge", connect(larder.admin).await.exchange(&request)).await.unwrap();
    assert_eq!(answer.status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_that_is_torn_ends_cleanly_when_its_origin_is_killed() {
    let mut origin = Origin::simple(scripts()).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "workers = 2", ""));
    let larder = Process::run_config(&path).await;
    let before = larder.idle_usage().await;
    // Templates are stored, and what stands in is stale.
    for case in CASES {
        let head = Request::new("HEAD", case.target, "localhost");
        let answer = within("a template", connect(larder.addr).await.exchange(&head)).await;
        assert_eq!(answer.unwrap().status, 200, "{case:?}");
    }
    assert_eq!(get(larder.addr, "/old").await.body, b"old");
    purge_softly(&larder, "/old").await;
    until("all of it is stored", async || larder.metrics().await.sum("larder_flights") == 0).await;
    let stored = stored_bytes(&larder).await;

    let mut pages = Vec::new();
    for case in CASES {
        for version in [Version::Http10, Version::Http11, Version::Http2] {
            pages.extend((0..PAGES).map(|_| Reading::begin(&larder, case, version)));
        }
    }
    for page in &pages {
        page.has_begun().await;
    }
    within("the end of the origin", origin.stop()).await;
    for page in pages {
        page.ends().await;
    }
    larder.comes_back_to(&before).await;
    until("the stores are as before", async || stored_bytes(&larder).await <= stored + MARKS_BYTES).await;

    origin.gates().release_all();
    origin.resume().unwrap();
    for (target, bytes) in [("/waits", 6), ("/half-own", 2 + BODY_BYTES), ("/half-shared", 2 + BODY_BYTES)] {
        // It was found to be down, and is asked again a moment later.
        let is_whole = async || {
            let page = get(larder.addr, target).await;
            page.end == End::Complete && page.status == 200 && page.body.len() as u64 == bytes
        };
        until(target, is_whole).await;
    }
    assert!(origin.log().complaints().is_empty(), "{:?}", origin.log().complaints());
}
