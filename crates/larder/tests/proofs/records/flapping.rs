//! A Redis that goes and comes back again and again, under the load of [`load`](super::load): nothing grows.
//!
//! `LARDER_FLAPS_SECONDS` says how long. The clients are as slow as beside other tests: what is counted here are connections that end and begin.

use std::time::Duration;

use tokio::time::Instant;

use super::load::{Load, loaded};
use super::{Larder, Scene, leased};

/// Without `LARDER_FLAPS_SECONDS`.
const SECONDS: u64 = 20;
/// What it does after one another, and how long that lasts: shorter and longer than a look-up, a pause between two tries to connect, and a lease.
const STEPS: [(Step, u64); 10] = [
    (Step::Hang, 100),
    (Step::Answer, 50),
    (Step::Hang, 700),
    (Step::Answer, 900),
    (Step::Away, 50),
    (Step::Answer, 100),
    (Step::Away, 900),
    (Step::Answer, 300),
    (Step::Hang, 3500),
    (Step::Answer, 1500),
];
/// Growth beside what is stored: buffers, tables that double, the allocator's slack.
const SLACK: u64 = 24 << 20;

#[derive(Clone, Copy)]
enum Step {
    Hang,
    Away,
    Answer,
}

/// What a larder has of the machine's memory, without what its store holds of that.
async fn beside_store(larder: &Larder) -> u64 {
    let held = larder.process.metrics().await.sum("larder_cache_bytes");
    larder.process.resident_bytes().saturating_sub(held * 13 / 10)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_and_goes_leaves_nothing_behind() {
    let mut scene = loaded(Scene::new());
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    let seconds = std::env::var("LARDER_FLAPS_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let (begun, mut flaps, mut before) = (Instant::now(), 0, None);
    while begun.elapsed() < length {
        let mut former = Step::Answer;
        for (step, millis) in STEPS {
            match (step, former) {
                (Step::Hang, _) => scene.redis.stop(),
                (Step::Away, _) => scene.redis.kill(),
                (Step::Answer, Step::Away) => scene.redis.restart(),
                (Step::Answer, _) => scene.redis.resume(),
            }
            former = step;
            flaps += 1;
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        load.line(&format!("comes and goes, {flaps} steps"), &scene).await;
        // Once everything has happened to it.
        if before.is_none() {
            before = Some((beside_store(&first).await, beside_store(&second).await));
        }
    }
    let before = before.unwrap();
    leased(&[&first, &second]).await;
    load.end(&scene, [&first, &second]).await;
    let after = (beside_store(&first).await, beside_store(&second).await);
    println!("bytes of memory beside what is stored: {before:?}, then {after:?}");
    assert!(after.0 <= before.0 + SLACK && after.1 <= before.1 + SLACK, "{before:?} became {after:?}");
}
