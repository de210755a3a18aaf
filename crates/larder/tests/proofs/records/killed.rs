//! A larder of several is killed in the middle of its work: while it purges, while it writes records, and while it holds leases.
//!
//! A complete receipt holds. No record is used of which a part is missing. The one that was killed is named until its lease is over. That a larder which
//! dies while it fetches for all costs one more fetch is in [`led`](super::led).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::client::Request;

use super::clients::checked;
use super::{Larder, Scene, is_hit, members, together};
use crate::support::{Signal, asking, connect, until, within};

/// How often it is killed.
const KILLS: u64 = 3;
const PURGE: &str = r#"{"urls": ["http://localhost/purged-400"]}"#;

/// A connection, and what is sent over it. What comes of it is cut off by the kill.
async fn tries(addr: std::net::SocketAddr, request: Request) -> Option<u16> {
    let asked = async { connect(addr).await.exchange(&request).await.ok() };
    Some(within("an answer or an end", asked).await?.status)
}

/// It purges, and has much to write, until it is gone.
async fn works(victim: &Larder, scene: &Scene, least: &AtomicU64, (kill, is_gone): (u64, &AtomicBool)) {
    let purges = async {
        while !is_gone.load(Ordering::SeqCst) {
            let now = scene.change();
            let request = Request::new("POST", "/api/v1/purges", "localhost")
                .field("Content-Type", "application/json")
                .body(PURGE.to_owned());
            match tries(victim.process.admin, request).await {
                Some(200) => least.fetch_max(now, Ordering::SeqCst),
                Some(status) => panic!("{status}"),
                None => break,
            };
        }
    };
    let fetches = async {
        for number in 0.. {
            let target = format!("/put-{kill}-{number}-900000");
            if is_gone.load(Ordering::SeqCst) || tries(victim.process.addr, asking(&target)).await.is_none() {
                break;
            }
        }
    };
    tokio::join!(purges, fetches);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_purges_and_writes_it_leaves_nothing_half_done() {
    let mut scene = Scene::new();
    scene.wait = "1s";
    let (first, second) = scene.two().await;
    let (least, mut found) = (AtomicU64::new(1), 0);
    for kill in 0..KILLS {
        let mut victim = scene.larder("web-3").await;
        together(&[&first, &second, &victim]).await;
        let is_gone = AtomicBool::new(false);
        let death = async {
            // At another moment each time.
            tokio::time::sleep(Duration::from_millis(150 + kill * 37)).await;
            victim.process.signal(Signal::KILL);
            is_gone.store(true, Ordering::SeqCst);
        };
        tokio::join!(works(&victim, &scene, &least, (kill, &is_gone)), death);
        victim.process.gone().await;
        // Until its lease is over it is named, and then no more.
        let now = scene.change();
        let (status, receipt) = first.purge(PURGE).await;
        assert_eq!(
            (status, members(&receipt)),
            (503, vec![("web-2", "applied"), ("web-3", "silent")]),
            "{receipt}"
        );
        until("it is complete", async || first.receipt(&receipt).await["fleet"]["complete"] == true).await;
        let receipt = first.receipt(&receipt).await;
        assert_eq!(members(&receipt), [("web-2", "applied"), ("web-3", "away")], "{receipt}");
        for larder in [&first, &second] {
            assert!(larder.state("/purged-400").await >= now.max(least.load(Ordering::SeqCst)));
        }
        // What it has written in whole or in part.
        for number in 0..12 {
            let target = format!("/put-{kill}-{number}-900000");
            let answer = second.get(&target).await;
            assert!(checked(&target, &answer).is_some(), "{target}: {answer}");
            found += u64::from(is_hit(&answer));
        }
    }
    println!("{KILLS} kills; {found} of {} records were whole", KILLS * 12);
    assert!(found > 0);
    until("no claim is left", async || scene.claims().is_empty()).await;
    assert!(first.process.is_running() && second.process.is_running());
}
