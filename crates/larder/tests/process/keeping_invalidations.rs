//! Invalidations and stores that come and go with reloads and starts: one that is brought back serves nothing that was invalidated
//! meanwhile, and one that is taken out is reached as long as it is open.

use std::path::Path;

use larder_testkit::client::{Progress, Request};
use larder_testkit::origin::{Answer, Origin};

use crate::support::{
    Process, Signal, answer_of, asking, cache_status, cacheable, config, connect, get, script, until, within,
    written,
};

/// What a store may lie in, and the file that says whether one is open.
const PLACES: [(&str, &str); 2] = [
    ("files = \"kept\"", "kept/.larder/lock"),
    ("disks = [{ path = \"kept\", size = \"64MiB\" }]", "kept/larder"),
];

/// With a second store, which keeps what lies below `/kept`; or without it.
fn storing(origin: &Origin, place: Option<&str>) -> String {
    let site = place.map_or_else(String::new, |place| {
        format!(
            "\n[[site.rule]]\npath = \"/kept/*\"\nstore = \"kept\"\n[stores.kept]\nmemory = \"8MiB\"\n{place}\n"
        )
    });
    config(&origin.url(), "", &site)
}

async fn reload(larder: &Process, path: &Path, text: &str) {
    let count = || larder.stderr().iter().filter(|line| line.contains("larder: reloaded")).count();
    let before = count();
    std::fs::write(path, text).unwrap();
    larder.signal(Signal::HUP);
    until("it is reloaded", async || count() > before).await;
}

/// Nobody has it open any more.
async fn closed(lock: &Path) {
    let is_free = || {
        let file = std::fs::File::open(lock).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    until("the store is closed", async || is_free()).await;
}

async fn stored(larder: &Process, place: &str, targets: &[&str]) {
    for target in targets {
        until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
    }
    // On the way from memory to where it outlives the store.
    until("it is written", async || {
        let metrics = larder.metrics().await;
        let written = match place.starts_with("files") {
            true => metrics.sum("larder_files_stored_total"),
            false if metrics.sum("larder_disk_queued_bytes") == 0 => metrics.sum("larder_disk_objects"),
            false => 0,
        };
        written >= targets.len() as u64
    })
    .await;
}

async fn post(larder: &Process, target: &str) {
    let request = Request::new("POST", target, "localhost");
    let answer =
        within("a POST", async { connect(larder.addr).await.exchange(&request).await.unwrap() }).await;
    assert_eq!(answer.status, 200, "{answer}");
}

async fn purge(larder: &Process, target: &str) {
    let url = format!("http%3A%2F%2Flocalhost{}", target.replace('/', "%2F"));
    let request = Request::new("DELETE", &format!("/object?url={url}"), "localhost");
    let answer =
        within("a purge", async { connect(larder.admin).await.exchange(&request).await.unwrap() }).await;
    assert_eq!(answer.status, 200, "{answer}");
}

fn origin() -> Origin {
    let slow = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 1000) };
    let pages = ["/kept/a", "/kept/b", "/other"].map(|target| cacheable(target, 700));
    Origin::simple(pages.into_iter().chain([script("/kept/slow", slow)]).collect()).unwrap()
}

#[tokio::test]
async fn a_store_that_is_brought_back_has_not_missed_an_invalidation() {
    for (place, lock) in PLACES {
        for is_purged in [false, true] {
            let origin = origin();
            let with = storing(&origin, Some(place));
            let without = storing(&origin, None);
            let (directory, path) = written(&with);
            let lock = directory.path().join(lock);
            let mut larder = Process::run_config(&path).await;
            // What is invalidated before counts for nothing afterwards.
            post(&larder, "/other").await;
            stored(&larder, place, &["/kept/a", "/kept/b"]).await;
            let before = origin.log().count();
            reload(&larder, &path, &without).await;
            closed(&lock).await;
            reload(&larder, &path, &with).await;
            for target in ["/kept/a", "/kept/b"] {
                assert!(cache_status(&get(larder.addr, target).await).contains("; hit"), "{place}: {target}");
            }
            assert_eq!(origin.log().count(), before, "{place}: nothing was invalidated meanwhile");
            reload(&larder, &path, &without).await;
            closed(&lock).await;
            match is_purged {
                true => purge(&larder, "/kept/a").await,
                false => post(&larder, "/kept/a").await,
            }
            let before = origin.log().count();
            reload(&larder, &path, &with).await;
            let answer = get(larder.addr, "/kept/a").await;
            assert!(cache_status(&answer).contains("fwd="), "{place}: the old page is back: {answer}");
            assert_eq!(origin.log().count(), before + 1, "{place}");
            larder.says("of what was invalidated meanwhile").await;
            // Nor is it for the next process.
            larder.signal(Signal::KILL);
            larder.gone().await;
            let larder = Process::run_config(&path).await;
            let before = origin.log().count();
            assert!(cache_status(&get(larder.addr, "/kept/b").await).contains("fwd="), "{place}");
            assert_eq!(origin.log().count(), before + 1, "{place}");
        }
    }
}

#[tokio::test]
async fn where_a_store_could_not_move_to_nobody_has_heard_what_it_heard() {
    for (place, lock) in PLACES {
        let origin = origin();
        let elsewhere = place.replace("kept", "elsewhere");
        let (with, without) = (storing(&origin, Some(place)), storing(&origin, None));
        let (directory, path) = written(&with);
        let lock = |folder: &str| directory.path().join(lock.replace("kept", folder));
        let larder = Process::run_config(&path).await;
        stored(&larder, place, &["/kept/a"]).await;
        reload(&larder, &path, &without).await;
        closed(&lock("kept")).await;
        reload(&larder, &path, &storing(&origin, Some(&elsewhere))).await;
        // It stays where it is, and so does what it hears from now on.
        reload(&larder, &path, &with).await;
        larder.says("needs a restart: stores.kept").await;
        purge(&larder, "/kept/a").await;
        reload(&larder, &path, &without).await;
        closed(&lock("elsewhere")).await;
        reload(&larder, &path, &with).await;
        let before = origin.log().count();
        let answer = get(larder.addr, "/kept/a").await;
        assert!(cache_status(&answer).contains("fwd="), "{place}: the old page is back: {answer}");
        assert_eq!(origin.log().count(), before + 1, "{place}");
    }
}

/// One disk for what lies below `/stays`.
const STAYS: &str = "\n[[site.rule]]\npath = \"/stays/*\"\nstore = \"stays\"\n[stores.stays]\nmemory = \"8MiB\"\n\
                     disks = [{ path = \"stays\", size = \"64MiB\" }]\n";

#[tokio::test]
async fn a_store_that_comes_back_with_a_start_has_not_missed_an_invalidation() {
    for (place, lock) in PLACES {
        for is_reloaded in [true, false] {
            for is_purged in [true, false] {
                let origin = origin();
                let with = storing(&origin, Some(place)) + STAYS;
                let without = storing(&origin, None) + STAYS;
                let (directory, path) = written(&with);
                let lock = directory.path().join(lock);
                let mut larder = Process::run_config(&path).await;
                // What is invalidated before counts for nothing afterwards.
                post(&larder, "/other").await;
                stored(&larder, place, &["/kept/a", "/kept/b"]).await;
                match is_reloaded {
                    true => {
                        reload(&larder, &path, &without).await;
                        closed(&lock).await;
                    }
                    false => {
                        larder.signal(Signal::TERM);
                        assert_eq!(larder.end().await, 0);
                        std::fs::write(&path, &without).unwrap();
                        larder = Process::run_config(&path).await;
                    }
                }
                if is_purged {
                    purge(&larder, "/kept/a").await;
                }
                larder.signal(Signal::KILL);
                larder.gone().await;
                std::fs::write(&path, &with).unwrap();
                let larder = Process::run_config(&path).await;
                let before = origin.log().count();
                let answer = get(larder.addr, "/kept/a").await;
                assert_eq!(cache_status(&answer).contains("; hit"), !is_purged, "{place}: {answer}");
                assert_eq!(origin.log().count() - before, u64::from(is_purged), "{place}");
                if is_purged {
                    larder.says("of what was invalidated meanwhile").await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_purge_reaches_a_store_that_was_taken_out_and_is_still_open() {
    for (place, _) in PLACES {
        let origin = origin();
        let with = storing(&origin, Some(place));
        let (_directory, path) = written(&with);
        let larder = Process::run_config(&path).await;
        stored(&larder, place, &["/kept/a", "/kept/b"]).await;
        let mut busy = connect(larder.addr).await;
        busy.write(&asking("/kept/slow").to_http1()).await.unwrap();
        within("the origin's request", origin.log().until(|log| log.in_flight() == 1)).await;
        reload(&larder, &path, &storing(&origin, None)).await;
        purge(&larder, "/kept/a").await;
        post(&larder, "/kept/b").await;
        reload(&larder, &path, &with).await;
        let before = origin.log().count();
        for target in ["/kept/a", "/kept/b"] {
            let answer = get(larder.addr, target).await;
            assert!(cache_status(&answer).contains("fwd="), "{place}: {answer}");
        }
        assert_eq!(origin.log().count(), before + 2, "{place}: {}", origin.log());
        origin.gates().release("go");
        assert_eq!(busy.read_response("GET", &Progress::default()).await.unwrap().status, 200);
    }
}
