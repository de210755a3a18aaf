//! Clients that ask at a steady rate, whatever they get: hits of two kinds whose waits are counted, and misses beside them.
//!
//! In: an address, rates, a length of time. Out: the wait of every hit, and how many answers were something else. Each
//! connection has its own timetable, and all of them are spread over the time between two requests of one. A request
//! that is due while its connection still waits counts from when it was due. So a server that stops for a moment has
//! that counted by all who would have asked meanwhile. Others count from when they are sent, because the timer of
//! this program wakes it up to a millisecond late.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{OBJECT_BYTES, Target};
use crate::measure::asker::{Asker, Was};
use crate::measure::load::on_load_core;

const HIT_CONNECTIONS: u32 = 32;
const MISS_CONNECTIONS: u32 = 16;
/// For filling a store, each asking as soon as it has its answer.
const FILL_CONNECTIONS: usize = 32;

/// How fast.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    /// Of either kind, per second.
    pub(super) hits_per_s: u32,
    pub(super) misses_per_s: u32,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Waits {
    /// Of what is in memory, in order of length.
    pub(super) memory: Vec<Duration>,
    /// Of what lies on the disk.
    pub(super) disk: Vec<Duration>,
    /// Requests for what should be there that were no hits.
    pub(super) not_there: u64,
    pub(super) stored: u64,
}

/// Asks for so long. `next` is the number of the next object that nobody has asked for.
///
/// # Errors
/// Any answer that is not 200 with the whole object.
pub(super) fn ask(
    address: SocketAddr,
    rates: Rates,
    length: Duration,
    next: &Arc<AtomicU64>,
) -> Result<Waits> {
    on_load_core(async move {
        let start = Instant::now() + Duration::from_millis(10);
        let end = start + length;
        let mut hits = Vec::new();
        for number in 0..HIT_CONNECTIONS {
            let timetable = Timetable::new(start, 2 * rates.hits_per_s, number, HIT_CONNECTIONS);
            let asker = Asker::connect_for(address, OBJECT_BYTES).await?;
            hits.push(tokio::spawn(ask_for_hits(asker, timetable, end, u64::from(number))));
        }
        let mut misses = Vec::new();
        for number in 0..MISS_CONNECTIONS {
            let timetable = Timetable::new(start, rates.misses_per_s, number, MISS_CONNECTIONS);
            let asker = Asker::connect_for(address, OBJECT_BYTES).await?;
            misses.push(tokio::spawn(ask_for_misses(asker, timetable, end, Arc::clone(next))));
        }
        let mut all = Waits::default();
        for task in hits {
            let mut waits = task.await??;
            all.memory.append(&mut waits.memory);
            all.disk.append(&mut waits.disk);
            all.not_there += waits.not_there;
        }
        for task in misses {
            all.stored += task.await??;
        }
        all.memory.sort_unstable();
        all.disk.sort_unstable();
        Ok(all)
    })?
}

/// When a connection asks.
struct Timetable {
    due: Instant,
    every: Duration,
}

impl Timetable {
    /// That of the connection `number` of so many, which together ask so often per second.
    fn new(start: Instant, per_s: u32, number: u32, connections: u32) -> Self {
        let every = Duration::from_secs(1) * connections / per_s.max(1);
        Self { due: start + every * number / connections, every }
    }

    /// Waits until the next request is due; from when its wait counts. `None` where that is not before `end`.
    async fn next(&mut self, end: Instant) -> Option<Instant> {
        let due = self.due;
        self.due += self.every;
        if due >= end {
            return None;
        }
        if Instant::now() >= due {
            return Some(due);
        }
        tokio::time::sleep_until(due.into()).await;
        Some(Instant::now())
    }
}

async fn ask_for_hits(mut asker: Asker, mut timetable: Timetable, end: Instant, seed: u64) -> Result<Waits> {
    let (mut waits, mut asked) = (Waits::default(), 0);
    while let Some(since) = timetable.next(end).await {
        let target = Target::hit(seed, asked);
        let was = asker.ask(&target.path()).await?;
        let wait = since.elapsed();
        match target {
            Target::InMemory(_) => waits.memory.push(wait),
            Target::Used(_) | Target::Once(_) => waits.disk.push(wait),
        }
        waits.not_there += u64::from(was != Was::Hit);
        asked += 1;
    }
    Ok(waits)
}

async fn ask_for_misses(
    mut asker: Asker,
    mut timetable: Timetable,
    end: Instant,
    next: Arc<AtomicU64>,
) -> Result<u64> {
    let mut asked = 0;
    while timetable.next(end).await.is_some() {
        asker.ask(&Target::Once(next.fetch_add(1, Ordering::Relaxed)).path()).await?;
        asked += 1;
    }
    Ok(asked)
}

/// Asks for these as fast as they come; how many were hits.
pub(super) fn ask_once(address: SocketAddr, targets: Vec<Target>) -> Result<u64> {
    on_load_core(async move {
        let (next, hits) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let targets: Arc<[Target]> = targets.into();
        let mut tasks = Vec::with_capacity(FILL_CONNECTIONS);
        for _ in 0..FILL_CONNECTIONS {
            let mut asker = Asker::connect_for(address, OBJECT_BYTES).await?;
            let (next, hits, targets) = (Arc::clone(&next), Arc::clone(&hits), Arc::clone(&targets));
            tasks.push(tokio::spawn(async move {
                while let Some(target) = usize::try_from(next.fetch_add(1, Ordering::Relaxed))
                    .ok()
                    .and_then(|number| targets.get(number))
                {
                    let was = asker.ask(&target.path()).await?;
                    hits.fetch_add(u64::from(was == Was::Hit), Ordering::Relaxed);
                }
                anyhow::Ok(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(hits.load(Ordering::Relaxed))
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_a_rate_and_take_turns() {
        let start = Instant::now();
        let first = |number| Timetable::new(start, 1000, number, 16).due - start;
        assert_eq!([0, 1, 15].map(first), [0, 1, 15].map(Duration::from_millis));
        assert_eq!(Timetable::new(start, 1000, 3, 16).every, Duration::from_millis(16));
    }

    #[tokio::test]
    async fn a_request_that_was_due_while_its_connection_waited_counts_from_then() {
        let start = Instant::now() - Duration::from_millis(10);
        let mut timetable = Timetable::new(start, 500, 0, 1);
        let end = start + Duration::from_millis(7);
        let mut due = Vec::new();
        while let Some(since) = timetable.next(end).await {
            due.push(since - start);
        }
        assert_eq!(due, [0, 2, 4, 6].map(Duration::from_millis));
    }
}
