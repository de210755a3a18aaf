//! More purges at once than may be under way: each is either carried out or told to come again, and hits go on meanwhile.
//!
//! The store has a disk, so that a purge waits for its note, and others come while it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::Origin;

use crate::support::{Process, cache_status, cacheable, config, connect, get, until, within, written};

const CLIENTS: u64 = 100;
const PURGES_OF_EACH: u64 = 20;

fn purge(target: &str) -> Request {
    let mut request = Request::new("PURGE", target, "localhost");
    request.fields.push(("X-Invalidate-Token".to_owned(), "a-long-secret-of-ours".to_owned()));
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purges_beyond_the_bound_are_told_to_come_again_and_hits_are_unharmed() {
    let origin = Origin::simple(vec![cacheable("/*", 100)]).unwrap();
    let site = "purge = { token = \"a-long-secret-of-ours\" }\n[limits]\npurges = 2\n\
                [stores.default]\nmemory = \"8MiB\"\ndisks = [{ path = \"disk\", size = \"64MiB\" }]\n";
    let (_folder, path) = written(&config(&origin.url(), "", site));
    let larder = Process::run_config(&path).await;
    until("it is stored", async || cache_status(&get(larder.addr, "/hot").await).contains("; hit")).await;
    let asked = origin.log().count();
    let (addr, is_over) = (larder.addr, Arc::new(AtomicBool::new(false)));
    let (held, busy) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let purgers = (0..CLIENTS).map(|client| {
        let (held, busy) = (Arc::clone(&held), Arc::clone(&busy));
        tokio::spawn(async move {
            let mut connection = connect(addr).await;
            for number in 0..PURGES_OF_EACH {
                let answer = connection.exchange(&purge(&format!("/{client}/{number}"))).await.unwrap();
                judge(&answer, &held, &busy);
            }
        })
    });
    let purgers: Vec<_> = purgers.collect();
    let over = Arc::clone(&is_over);
    let hits = tokio::spawn(async move {
        let (mut connection, mut hits) = (connect(addr).await, 0);
        while !over.load(Ordering::Acquire) {
            let request = Request::new("GET", "/hot", "localhost");
            let answer = connection.exchange(&request).await.unwrap();
            assert!(answer.status == 200 && cache_status(&answer).contains("; hit"), "{answer}");
            hits += 1;
        }
        hits
    });
    for purger in purgers {
        within("the purges", purger).await.unwrap();
    }
    is_over.store(true, Ordering::Release);
    assert!(within("the hits", hits).await.unwrap() > 0);
    assert_eq!(origin.log().count(), asked, "a hit asks nobody");
    let (held, busy) = (held.load(Ordering::Acquire), busy.load(Ordering::Acquire));
    assert_eq!(held + busy, CLIENTS * PURGES_OF_EACH);
    assert!(held > 0 && busy > 0, "{held} held, {busy} told to come again");
    let answer = connect(addr).await.exchange(&purge("/hot")).await.unwrap();
    assert_eq!(answer.status, 200, "places are free again: {answer}");
    assert!(cache_status(&get(addr, "/hot").await).contains("fwd=uri-miss"));
}

fn judge(answer: &Response, held: &AtomicU64, busy: &AtomicU64) {
    match answer.status {
        200 => held.fetch_add(1, Ordering::AcqRel),
        429 => {
            assert_eq!(answer.fields.first("retry-after"), Some("60"), "{answer}");
            busy.fetch_add(1, Ordering::AcqRel)
        }
        _ => panic!("{answer}"),
    };
}
