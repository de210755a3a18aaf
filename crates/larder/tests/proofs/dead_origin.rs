//! The origin is killed under load: what is fresh goes on, what is not there is told at once, nothing leaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::client::{Progress, Response};
use larder_testkit::origin::{Answer, Hold, Origin};
use tokio::sync::watch;

use crate::support::{
    Process, answer_of, asking, assert_whole, cache_status, cacheable, config, connect, get, script, until,
    within, written,
};

const CLIENTS: u64 = 16;
const FRESH: u64 = 10;
const BODY_BYTES: u64 = 20_000;

/// Where the world is, as far as the load must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origins {
    Alive,
    Dying,
    Dead,
    Over,
}

/// What one round of load has seen.
#[derive(Default)]
struct Tally {
    hits: AtomicU64,
    fetched: AtomicU64,
    refused: AtomicU64,
    longest_refusal_ms: AtomicU64,
}

async fn exchange(addr: std::net::SocketAddr, target: &str) -> (Response, Duration) {
    let mut client = connect(addr).await;
    let started = Instant::now();
    let response = client.exchange(&asking(target)).await.unwrap();
    (response, started.elapsed())
}

async fn load(addr: std::net::SocketAddr, client: u64, origins: watch::Receiver<Origins>, tally: Arc<Tally>) {
    for n in 0.. {
        let before = *origins.borrow();
        if before == Origins::Over {
            return;
        }
        let fresh = format!("/fresh/{}", n % FRESH);
        let (response, _) = exchange(addr, &fresh).await;
        assert_whole(&response, &fresh, BODY_BYTES);
        assert!(cache_status(&response).contains("; hit"), "{response}");
        tally.hits.fetch_add(1, Ordering::Relaxed);

        let before = *origins.borrow();
        let cold = format!("/cold/{client}/{n}");
        let (response, took) = exchange(addr, &cold).await;
        match (before, response.status, *origins.borrow()) {
            (_, 502, Origins::Dying | Origins::Dead | Origins::Over) => {
                let detail = cache_status(&response);
                let known = ["connect-refused", "closed", "connect-failed"];
                assert!(known.iter().any(|token| detail.contains(&format!("detail={token}"))), "{response}");
                assert!(response.body.len() < 100, "{response}");
                if before == Origins::Dead {
                    let took = u64::try_from(took.as_millis()).unwrap();
                    tally.longest_refusal_ms.fetch_max(took, Ordering::Relaxed);
                    tally.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Its body may have been cut together with its connection.
            (_, 200, Origins::Dying | Origins::Dead) if before != Origins::Dead => {}
            (Origins::Alive, 200, _) => {
                assert_whole(&response, &cold, BODY_BYTES);
                tally.fetched.fetch_add(1, Ordering::Relaxed);
            }
            (before, _, after) => panic!("{before:?} to {after:?}: {response}"),
        }
    }
}

#[tokio::test]
async fn fresh_content_goes_on_and_misses_are_refused_at_once() {
    let held = Answer { hold: Some("never".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 10) };
    let half = Answer {
        holds: vec![Hold { at: 10_000, gate: "never".to_owned() }],
        ..answer_of(&["Cache-Control: max-age=60"], BODY_BYTES)
    };
    let scripts = vec![
        cacheable("/fresh/*", BODY_BYTES),
        cacheable("/cold/*", BODY_BYTES),
        script("/held", held),
        script("/half", half),
    ];
    let mut origin = Origin::simple(scripts).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "workers = 2", ""));
    let larder = Process::run_config(&path).await;
    let before = larder.idle_usage().await;
    for n in 0..FRESH {
        let target = format!("/fresh/{n}");
        until("it is stored", async || cache_status(&get(larder.addr, &target).await).contains("; hit"))
            .await;
    }

    // What is in flight when the origin dies: a head and a body that will not come.
    let mut stuck = Vec::new();
    for target in ["/held", "/half"] {
        let mut client = connect(larder.addr).await;
        client.write(&asking(target).to_http1()).await.unwrap();
        stuck.push(client);
    }
    within("both in flight", origin.log().until(|log| log.in_flight() >= 2)).await;

    let (world, origins) = watch::channel(Origins::Alive);
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(load(larder.addr, client, origins.clone(), Arc::clone(&tally))))
        .collect();
    until("the load runs", async || tally.fetched.load(Ordering::Relaxed) >= 20 * CLIENTS).await;
    world.send_replace(Origins::Dying);
    within("the end of the origin", origin.stop()).await;
    world.send_replace(Origins::Dead);
    let killed = Instant::now();
    let refused = stuck[0].read_response("GET", &Progress::default()).await.unwrap();
    assert_eq!(refused.status, 502, "{refused}");
    let cut = stuck[1].read_response("GET", &Progress::default()).await.unwrap();
    assert!(matches!(cut.end, larder_testkit::client::End::Broken(_)), "{cut}");
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    let hits = tally.hits.load(Ordering::Relaxed);
    until("the load goes on", async || {
        let refused = tally.refused.load(Ordering::Relaxed);
        refused >= 20 * CLIENTS && tally.hits.load(Ordering::Relaxed) >= hits + 20 * CLIENTS
    })
    .await;
    world.send_replace(Origins::Over);
    for client in clients {
        within("the end of the load", client).await.unwrap();
    }
    let longest = tally.longest_refusal_ms.load(Ordering::Relaxed);
    assert!(longest < 1000, "a 502 took {longest} ms");
    assert!(cache_status(&get(larder.addr, "/half").await).contains("fwd="), "what broke is not stored");
    drop(stuck);
    larder.comes_back_to(&before).await;
    println!(
        "killed after {} fetches; then {} refusals, the longest after {longest} ms; {} hits in all",
        tally.fetched.load(Ordering::Relaxed),
        tally.refused.load(Ordering::Relaxed),
        tally.hits.load(Ordering::Relaxed),
    );

    origin.resume().unwrap();
    let again = get(larder.addr, "/cold/again").await;
    assert_whole(&again, "/cold/again", BODY_BYTES);
}
