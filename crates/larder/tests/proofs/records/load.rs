//! A steady load on two larders that share, and a table of what it has seen.
//!
//! In: two larders. Out: a line for each fault, and a failed test where a promise is broken.
//!
//! 64 clients ask at a fixed rate, whatever becomes of their answers (an open loop). A wait counts from the moment at which its request was due.
//! So a larder that stands still cannot hide it.
//! Of eight requests five are for what lies in memory. One is for what is purged all the time, one for a new URL, and one for what the other larder has
//! fetched a moment before: it lies in Redis alone. A purger changes the application and purges, and tells the clients of each complete receipt.
//!
//! What is asserted of each line, and the last of it at the end:
//! - No answer has another status than 200, and none breaks off.
//! - Each body is the one of its URL, byte for byte, in a state that the application has had, and not older than a purge that was complete before
//!   the request.
//! - No wait is longer than [`longest_wait`] says.
//! - The origin has no more requests than there were answers that are no hits.
//!
//! A larder without a Redis is asked at the same time: it shows what the machine has to do with waits.
//! At the end purges are complete again, the larders share again, and each has no more connections, tasks and descriptors than before.
//! `LARDER_SECONDS` says how long each fault lasts. Where it is set, the clients are faster too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::clients::{CLIENTS, Shared, Tally, client, client_beside, purger};
use super::{Larder, Scene, shares};
use crate::support::{BOUND, Process, until, within};

/// Requests in a second by all of them: several tests run at once in CI, on two cores. Alone they may be more.
const RATE: u64 = 96;
const RATE_ALONE: u64 = 1000;
/// The load before a fault and after it.
const PEACE: Duration = Duration::from_millis(500);

/// An idle larder has fewer descriptors where one of its connections was just made anew.
const MADE_ANEW: u64 = 3;
/// The longest that a larder needs to be warm.
const WARM_MAX: Duration = Duration::from_secs(60);

/// The limit of look-ups: the default, and more where other tests run.
fn look_up_limit() -> Duration {
    Duration::from_millis(if asked_seconds().is_some() { 200 } else { 500 })
}

/// How long a fault lasts, where that was asked for.
pub(super) fn asked_seconds() -> Option<u64> {
    std::env::var("LARDER_SECONDS").ok().and_then(|text| text.parse().ok())
}

/// With that limit, and purges that do not wait for long.
pub(super) fn loaded(scene: Scene) -> Scene {
    let timeout = if look_up_limit() < Duration::from_millis(500) { "200ms" } else { "500ms" };
    Scene { timeout, wait: "500ms", ..scene }
}

/// Waits for as long as a fault lasts.
pub(super) async fn lasts() {
    tokio::time::sleep(asked_seconds().map_or(Duration::from_millis(1000), Duration::from_secs)).await;
}

/// The longest that a request may wait. A fetch takes the limit of its look-up and that of the question who fetches, then what is left of the claim of a
/// larder that could not give it back (two seconds), and its origin, which answers at once. A request may have to wait for the end of a fetch that has
/// begun before what it has to see, such as the end of a lease, and then for its own. What is added is for a busy machine: a larder that has no Redis is
/// asked at the same time, as often, and a few times its longest wait is allowed. Clients, origin and larders share two cores with other tests.
fn longest_wait(beside: Duration) -> Duration {
    let (look_ups, claim, origin) = (2 * look_up_limit(), Duration::from_secs(2), Duration::ZERO);
    2 * (look_ups + claim + origin) + Duration::from_millis(500) + 4 * beside
}

/// The load, from [`Load::begin`] to [`Load::end`].
pub(super) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    /// It has no Redis, and is asked for what the others are.
    beside: Process,
    before: [BTreeMap<&'static str, u64>; 2],
    /// Requests of the origin up to the beginning, and up to the last line.
    asked_before: u64,
    asked: u64,
    /// What the origin may have been asked for since the beginning, up to the last line.
    may_be_asked: u64,
}

impl Load {
    /// The larders are warm, and the load runs.
    pub(super) async fn begin(scene: &Scene, larders: [&Larder; 2]) -> Self {
        let beside = Process::run(&["--origin", &scene.origin.url()]).await;
        let mut load = Self::start(scene, larders, beside);
        let shared = Arc::clone(&load.shared);
        let is_warm = || {
            let tally = shared.tally.lock();
            tally.complete > 0 && tally.from_redis > 0 && !tally.in_memory.is_empty() && tally.fetched > 0
        };
        let begun = Instant::now();
        while !is_warm() {
            assert!(begun.elapsed() < WARM_MAX, "no complete purge, or no answers from everywhere");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.over().await;
        assert_eq!(load.shared.tally.lock().wrong, Vec::<String>::new());
        let mut before: [BTreeMap<_, _>; 2] = Default::default();
        for (before, larder) in before.iter_mut().zip(larders) {
            until("the connections of the clients are closed", async || {
                larder.process.metrics().await.sum("larder_connections_open") == 0
            })
            .await;
            *before = larder.process.usage().await;
            *before.get_mut("descriptors").unwrap() += MADE_ANEW;
        }
        let mut load = Self::start(scene, larders, load.beside);
        load.before = before;
        tokio::time::sleep(PEACE).await;
        load
    }

    fn start(scene: &Scene, larders: [&Larder; 2], beside: Process) -> Self {
        let shared = Arc::new(Shared {
            larders: larders.map(|larder| larder.process.addr),
            beside: beside.addr,
            admins: larders.map(|larder| larder.process.admin),
            begun: Instant::now(),
            rate: asked_seconds().map_or(RATE, |_| RATE_ALONE),
            state: Arc::clone(&scene.state),
            least: AtomicU64::new(1),
            is_left: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            tally: Mutex::default(),
        });
        let asked = scene.origin.log().count();
        let clients = (0..CLIENTS).map(|number| tokio::spawn(client(Arc::clone(&shared), number)));
        let others =
            [tokio::spawn(purger(Arc::clone(&shared))), tokio::spawn(client_beside(Arc::clone(&shared)))];
        let tasks = clients.chain(others).collect();
        Self {
            shared,
            tasks,
            beside,
            before: Default::default(),
            asked_before: asked,
            asked,
            may_be_asked: 0,
        }
    }

    /// From now on half of the clients leave in the middle of their requests; or no longer.
    pub(super) fn clients_leave(&self, is_left: bool) {
        self.shared.is_left.store(is_left, Ordering::SeqCst);
    }

    /// From now on the larders know one node more: each of their two workers has a task for it.
    pub(super) fn one_node_more(&mut self) {
        for before in &mut self.before {
            *before.get_mut("larder_tasks").unwrap() += 2;
        }
    }

    /// How many purges are complete since the last line.
    pub(super) fn complete(&self) -> u64 {
        self.shared.tally.lock().complete
    }

    /// A fault is over: a line of the table, and what is asserted of it.
    pub(super) async fn line(&mut self, fault: &str, scene: &Scene) {
        tokio::time::sleep(PEACE).await;
        let mut tally = std::mem::take(&mut *self.shared.tally.lock());
        let asked = scene.origin.log().count();
        let origin = asked - std::mem::replace(&mut self.asked, asked);
        tally.waits.sort();
        tally.in_memory.sort();
        println!("{HEAD}\n{}", line(fault, &tally, origin));
        assess(fault, &tally);
        assert!(!tally.in_memory.is_empty(), "{fault}: no hit in memory proves nothing");
        self.may_be_asked += tally.may_be_asked();
    }

    async fn over(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        for task in self.tasks.drain(..) {
            within("a client", task).await.unwrap();
        }
    }

    /// The load ends, and all is as before.
    pub(super) async fn end(mut self, scene: &Scene, larders: [&Larder; 2]) {
        self.over().await;
        // What was still waited for at the last line.
        {
            let tally = self.shared.tally.lock();
            assess("the end", &tally);
            let (origin, may_be) =
                (scene.origin.log().count() - self.asked_before, self.may_be_asked + tally.may_be_asked());
            assert!(origin <= may_be * 21 / 20 + 10, "{origin} requests at the origin, of {may_be}");
        }
        until("a purge is complete", async || larders[0].purge(r#"{"tags": ["nothing"]}"#).await.0 == 200)
            .await;
        shares(scene, (larders[0], larders[1])).await;
        for (before, larder) in self.before.iter().zip(larders) {
            assert!(larder.process.is_running());
            let begun = Instant::now();
            loop {
                let now = larder.process.usage().await;
                if now.iter().all(|(what, count)| count <= &before[what]) {
                    break;
                }
                assert!(begun.elapsed() < BOUND, "left open: {before:?} became {now:?}");
            }
        }
    }
}

/// What holds of all answers.
fn assess(fault: &str, tally: &Tally) {
    assert_eq!(tally.wrong, Vec::<String>::new(), "{fault}");
    assert_eq!(tally.failed, 0, "{fault}");
    let (longest, (beside, _)) = (tally.waits.iter().max().copied().unwrap_or_default(), tally.beside);
    assert!(longest <= longest_wait(beside), "{fault}: {longest:?}, and {beside:?} without a Redis");
}

const HEAD: &str = "fault                        requests  5xx  left  p50 ms  p99 ms  longest ms  without Redis  p99 ms of hits in memory  in memory  from Redis  origin  purges";

fn line(fault: &str, tally: &Tally, origin: u64) -> String {
    let at = |waits: &[Duration], hundredth: usize| {
        let wait = waits.get((waits.len() * hundredth / 100).min(waits.len().saturating_sub(1)));
        wait.copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    format!(
        "{fault:<28} {:>8} {:>4} {:>5} {:>7.1} {:>7.1} {:>11.1} {:>14.1} {:>25.1} {:>10} {:>11} {origin:>7} {:>7}",
        tally.waits.len(),
        tally.failed,
        tally.left,
        at(&tally.waits, 50),
        at(&tally.waits, 99),
        at(&tally.waits, 100),
        at(&[tally.beside.0], 100),
        at(&tally.in_memory, 99),
        tally.in_memory.len(),
        tally.from_redis,
        tally.complete,
    )
}
