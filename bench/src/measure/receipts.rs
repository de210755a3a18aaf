//! Purges at a steady rate, at each member in turn, and when each is complete.
//!
//! In: larders, a rate, a length. Out: how long each purge took from the moment when it was due to its receipt, in the order in which they
//! were due; and how far the members were apart meanwhile, and after the last one.
//! A purge that is not complete in time is answered with 503, and refuses the measurement.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::load::on_load_core;
use super::metric;
use super::purges::ask::{Purge, Purger};
use super::sharing::{Larder, until};
use super::turns::wait;

/// Of each larder: more than are under way at any rate here, while no purge waits for the last resort.
const CONNECTIONS: usize = 16;
/// Between two looks at the members.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Before the first purge is due: all connections are made.
const BEFORE: Duration = Duration::from_millis(200);
/// The longest wait for members that are behind after the last receipt.
const EQUAL_MAX: Duration = Duration::from_secs(20);

/// What came of one rate.
pub(super) struct Receipts {
    pub(super) rate: u32,
    pub(super) length: Duration,
    /// Of each purge, in the order in which they were due.
    pub(super) waits: Vec<Duration>,
    /// The most entries between the first member and the last one.
    pub(super) lag_max: u64,
    /// From the last receipt to the moment at which all members said the same position.
    pub(super) equal_after: Duration,
}

/// Waits until the members know that they are all: before that no purge is complete.
fn until_complete(larders: &[Larder]) -> Result<()> {
    for larder in larders {
        until("no purge is complete", || {
            let purged = on_load_core(async {
                Purger::connect(larder.address).await?.purge(&Purge::hard("before")).await
            })?;
            Ok(purged?.0 == 200)
        })?;
    }
    Ok(())
}

/// Sends them.
pub(super) fn send(larders: &[Larder], (rate, length): (u32, Duration)) -> Result<Receipts> {
    until_complete(larders)?;
    let addresses = larders.iter().map(|larder| larder.address).collect();
    let is_over = AtomicBool::new(false);
    let (waits, lag_max) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| -> Result<u64> {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(lag(larders)?);
                wait(LOOK_EVERY);
            }
            Ok(most)
        });
        let waits = on_load_core(all(addresses, rate, length));
        is_over.store(true, Ordering::Relaxed);
        let lag_max = looking.join().map_err(|_| anyhow!("the one that looks has panicked"))?;
        anyhow::Ok((waits??, lag_max?))
    })?;
    let ended = Instant::now();
    while lag(larders)? > 0 {
        ensure!(ended.elapsed() < EQUAL_MAX, "the members are apart {EQUAL_MAX:?} after the last receipt");
    }
    let equal_after = ended.elapsed();
    for larder in larders {
        let incomplete = metric::told(larder.admin, "larder_fleet_incomplete_purges")?;
        ensure!(incomplete == 0, "{incomplete} purges are not complete");
    }
    Ok(Receipts { rate, length, waits, lag_max, equal_after })
}

/// The entries between the first member and the last one.
fn lag(larders: &[Larder]) -> Result<u64> {
    let mut positions = Vec::with_capacity(larders.len());
    for larder in larders {
        positions.push(metric::told(larder.admin, "larder_fleet_position")?);
    }
    let (least, most) = (positions.iter().min(), positions.iter().max());
    Ok(most.copied().unwrap_or_default().saturating_sub(least.copied().unwrap_or_default()))
}

async fn all(addresses: Vec<SocketAddr>, rate: u32, length: Duration) -> Result<Vec<Duration>> {
    let senders = CONNECTIONS * addresses.len();
    let count = (f64::from(rate) * length.as_secs_f64()) as usize;
    let (mut tasks, mut turns) = (Vec::with_capacity(senders), Vec::with_capacity(senders));
    // One after the other, so that neighbours are of other members.
    for address in addresses.iter().cycle().take(senders) {
        let (turn, its_turns) = unbounded_channel();
        turns.push(turn);
        tasks.push(tokio::spawn(send_some(Purger::connect(*address).await?, its_turns, rate)));
    }
    let beat = tokio::task::spawn_blocking(move || beat(&turns, rate, count));
    let mut waits = vec![Duration::ZERO; count];
    for task in tasks {
        for (number, wait) in task.await?? {
            if let Some(place) = waits.get_mut(number) {
                *place = wait;
            }
        }
    }
    beat.await?;
    Ok(waits)
}

/// The number of a purge, and when it was due.
type Turn = (usize, Instant);

/// Says when each purge is due. A thread of its own: timers of the runtime are late by up to two milliseconds, about as long as a purge
/// takes.
fn beat(turns: &[UnboundedSender<Turn>], rate: u32, count: usize) {
    let start = Instant::now() + BEFORE;
    for (number, turn) in turns.iter().cycle().enumerate().take(count) {
        let due = start + Duration::from_secs(number as u64) / rate;
        wait(due.saturating_duration_since(Instant::now()));
        // Its sender has failed, and says why.
        let _ = turn.send((number, due));
    }
}

async fn send_some(
    mut purger: Purger,
    mut turns: UnboundedReceiver<Turn>,
    rate: u32,
) -> Result<Vec<(usize, Duration)>> {
    let mut waits = Vec::new();
    while let Some((number, due)) = turns.recv().await {
        let (status, _) = purger.purge(&Purge::hard(format!("tag-{rate}-{number}"))).await?;
        ensure!(status == 200, "purge {number} at {rate} a second: status {status}");
        waits.push((number, due.elapsed()));
    }
    Ok(waits)
}
