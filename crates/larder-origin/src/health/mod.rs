//! Asking servers how they are, beside the requests they get.
//!
//! In: the endpoints of a fleet, which come and go. Out: each endpoint's condition is told when it turns healthy or
//! unhealthy, and counters. One task per endpoint asks it again and again (`check`), and `streak` says when the answers
//! add up to a change; it goes on from what was found before a reload. Checks are spread in time: the first comes within
//! a tenth of `every`, each later one up to a tenth earlier or later, so that neither many servers nor many larders ask
//! at the same moment. A server is never asked twice at once. Until one of the servers has been found healthy they are
//! asked more often, because an application that starts together with larder is wanted as soon as it listens.
//!
//! An unhealthy endpoint goes on being asked; one that has vanished is not. The future that does all this is awaited once
//! per process; dropping it ends every check, in mid-question too.
//! Deliberately absent: what unhealthy means for requests, which the fleet says.

mod check;
mod streak;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use self::streak::Streak;
pub(crate) use self::streak::Verdict;
use crate::fleet::{Endpoint, Members};
use crate::resources::OriginResources;
use crate::settings::{HealthCheck, OriginSettings, SentHost};

/// The longest time between two checks while no server has ever been healthy.
const STARTING_INTERVAL: Duration = Duration::from_secs(1);

/// However short `every` is.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Asks all `members` again and again, those that come later too. Never ends but with their fleet; without checks in
/// the settings it only waits.
///
/// # Cancel safety
/// Dropping the future ends every check.
pub(crate) async fn keep_checking(
    mut members: watch::Receiver<Members>,
    settings: Arc<OriginSettings>,
    resources: Arc<OriginResources>,
) {
    let Some(health) = settings.health.clone() else {
        return forget(members).await;
    };
    // Dropped with the future, and the tasks with it.
    let mut tasks = JoinSet::new();
    let mut running: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        let present = members.borrow_and_update().clone();
        running.retain(|id, task| {
            let is_present = present.iter().any(|endpoint| endpoint.id() == *id);
            if !is_present {
                task.abort();
            }
            // One that has finished has panicked, and is begun again.
            is_present && !task.is_finished()
        });
        for endpoint in present.iter() {
            running.entry(endpoint.id()).or_insert_with(|| {
                let (health, settings, resources) = (health.clone(), settings.clone(), resources.clone());
                tasks.spawn(keep_asking(endpoint.clone(), members.clone(), health, settings, resources))
            });
        }
        drop(present);
        tokio::select! {
            changed = members.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

/// Nobody is asked: what was found while somebody was holds no longer. As long as the fleet lives.
async fn forget(mut members: watch::Receiver<Members>) {
    loop {
        let present = members.borrow_and_update().clone();
        present.iter().for_each(|endpoint| endpoint.forget_checks());
        drop(present);
        if members.changed().await.is_err() {
            return;
        }
    }
}

async fn keep_asking(
    endpoint: Arc<Endpoint>,
    members: watch::Receiver<Members>,
    health: HealthCheck,
    settings: Arc<OriginSettings>,
    resources: Arc<OriginResources>,
) {
    let of_requests = match &settings.host {
        SentHost::Name(name) => Some(name.clone()),
        SentHost::Client | SentHost::Upstream => None,
    };
    let host = health.host.clone().or(of_requests).unwrap_or_else(|| endpoint.own_name());
    let counters = &resources.counters.health;
    let mut streak = Streak::new(endpoint.checks(), health.healthy, health.unhealthy);
    let mut rhythm = Rhythm::new(health.every);
    loop {
        rhythm.beat().await;
        let (dial, place) = (endpoint.dial(), endpoint.place());
        let verdict = check::check(dial, place, &host, &health, &settings, &resources).await;
        counters.checked(verdict);
        endpoint.checked(verdict);
        if let Some(is_healthy) = streak.note(verdict)
            && endpoint.set_healthy(is_healthy)
        {
            counters.changed(is_healthy);
        }
        let is_starting = !members.borrow().iter().any(|endpoint| endpoint.checks().were_good());
        rhythm.next_after(if is_starting { health.every.min(STARTING_INTERVAL) } else { health.every });
    }
}

/// When one endpoint is asked.
struct Rhythm {
    latest: Instant,
    next: Instant,
}

impl Rhythm {
    /// The first time is within a tenth of `every`.
    fn new(every: Duration) -> Self {
        let now = Instant::now();
        Self { latest: now, next: now + every.mul_f64(0.1 * random()) }
    }

    /// Waits for the next time.
    async fn beat(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.latest = Instant::now();
    }

    /// The next time is `every` after the latest, however long the check took; one that took longer is followed by
    /// the next at once.
    fn next_after(&mut self, every: Duration) {
        self.next = self.latest + interval(every, random());
    }
}

/// From one check to the next: `every`, a tenth more or less. Never so short that a worker does nothing else.
fn interval(every: Duration, random: f64) -> Duration {
    every.mul_f64(0.9 + 0.2 * random).max(INTERVAL_MIN)
}

/// In 0..1. Spreading checks needs no better randomness than the keys of a hash map have.
fn random() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_check_comes_soon_and_the_others_from_start_to_start() {
        let every = Duration::from_secs(10);
        let begun = Instant::now();
        let mut rhythm = Rhythm::new(every);
        let mut times = Vec::new();
        for _ in 0..10 {
            rhythm.beat().await;
            times.push(begun.elapsed().as_secs_f64());
            // A check that takes its time.
            tokio::time::sleep(Duration::from_secs(8)).await;
            rhythm.next_after(every);
        }
        assert!((0.0..=1.01).contains(&times[0]), "{times:?}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (8.99..=11.01).contains(gap)), "{gaps:?}");
        assert!(gaps.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.01), "all alike: {gaps:?}");
    }

    #[test]
    fn intervals_stay_within_a_tenth_and_are_never_nothing() {
        let every = Duration::from_secs(10);
        assert_eq!(interval(every, 0.0), Duration::from_secs(9));
        assert_eq!(interval(every, 1.0), Duration::from_secs(11));
        assert_eq!(interval(Duration::ZERO, 0.5), INTERVAL_MIN);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random())));
    }
}
