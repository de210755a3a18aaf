//! The tap: samples of exchanges, from the workers to the one place that looks at them.
//!
//! In: at the end of each exchange, whether it was a hit; and of those that are sampled, what is known of them. Out: the samples, each with the
//! number of exchanges that it stands for. They are handed out when something drains the tap.
//! Without larder's admin address there is no tap, and to ask costs one load. With it, whether an exchange is sampled costs some ten
//! instructions, and one that is not costs nothing more. A sample is copied into a buffer of its worker that was made at the start.
//! A worker only tries the lock of that buffer, which the drain holds while it swaps it for the empty one. Where that fails, or where there
//! is no room, the sample is dropped and counted.
//! Deliberately absent: a clock, what becomes of samples, and what of them may be kept.

mod chance;
mod pending;
mod record;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;

use chance::{Chance, Rates};
use record::{Buffer, Put};

pub use chance::Weight;
pub use pending::{PendingSample, SampleEnd};
pub use record::{SampleHead, SampleTexts};

/// Values of [`Tap::mode`]; above `ON`, so many ask for all.
const OFF: u32 = 0;
const ON: u32 = 1;

/// One buffer per worker, and whether its exchanges are sampled.
#[derive(Debug)]
pub struct Tap {
    mode: AtomicU32,
    shards: Box<[TapShard]>,
    drained_by: OnceLock<Thread>,
}

#[derive(Debug)]
struct TapShard {
    chance: Chance,
    filling: Mutex<Buffer>,
    /// Held through a whole drain; the worker never asks for it.
    draining: Mutex<Draining>,
    dropped: [AtomicU64; DropReason::ALL.len()],
}

#[derive(Debug)]
struct Draining {
    buffer: Buffer,
    rates: Rates,
}

/// Why a sample was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Too many came between two drains.
    Full,
    /// The drain was taking the buffer.
    Held,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Full, Self::Held];

    /// The word in the metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Held => "held",
        }
    }
}

impl TapShard {
    fn new(worker: usize) -> Self {
        let draining = Draining { buffer: Buffer::new(), rates: Rates::default() };
        Self {
            chance: Chance::new(worker),
            filling: Mutex::new(Buffer::new()),
            draining: Mutex::new(draining),
            dropped: Default::default(),
        }
    }

    /// A sample that waits for the end of storing may be dropped on another thread; then a count may be lost.
    fn drop_one(&self, reason: DropReason) {
        let count = &self.dropped[reason as usize];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl Tap {
    /// A tap for so many workers, each with 256 KiB.
    pub fn new(workers: usize) -> Self {
        let shards = (0..workers).map(TapShard::new).collect();
        Self { mode: AtomicU32::new(ON), shards, drained_by: OnceLock::new() }
    }

    /// A tap that samples nothing and has no buffers.
    pub fn off() -> Self {
        Self { mode: AtomicU32::new(OFF), shards: Box::default(), drained_by: OnceLock::new() }
    }

    /// Decides at the end of an exchange whether it is sampled, and for how many it then stands. Of what is no hit it takes all, up to some 1000
    /// per second; of hits one in 64. Where more comes between two drains than a buffer holds, it takes fewer, and each stands for more.
    /// Only for the thread of that worker.
    #[inline]
    pub fn weigh(&self, worker: usize, is_hit: bool) -> Option<Weight> {
        match self.mode.load(Ordering::Relaxed) {
            OFF => None,
            ON => self.shards.get(worker)?.chance.weigh(is_hit),
            _ => self.shards.get(worker)?.chance.weigh_for_all(),
        }
    }

    /// Hands over a sample, or drops and counts it; never waits. Only for the thread of that worker.
    pub fn put(&self, worker: usize, head: SampleHead, texts: &SampleTexts<'_>) {
        let Some(shard) = self.shards.get(worker) else { return };
        // The lock is free again before the drain is woken for it.
        match shard.filling.try_lock().map(|mut buffer| buffer.put(head, texts)) {
            Some(Put::Kept) => {}
            Some(Put::Due) if self.takes_all() => self.drained_by.get().into_iter().for_each(Thread::unpark),
            Some(Put::Due) => {}
            Some(Put::NoRoom) => shard.drop_one(DropReason::Full),
            None => shard.drop_one(DropReason::Held),
        }
    }

    /// The thread that drains, which parks in between. While every exchange is asked for, a worker wakes it as soon as its buffer is a
    /// quarter full. The first that says so stays it.
    pub fn drained_here(&self) {
        let _ = self.drained_by.set(std::thread::current());
    }

    /// From now on every exchange is sampled, up to 20 000 per second and worker, until what is returned is dropped.
    pub fn take_all(self: &Arc<Self>) -> TakeAll {
        if !self.shards.is_empty() {
            self.mode.fetch_add(1, Ordering::Relaxed);
        }
        TakeAll(Arc::clone(self))
    }

    /// Whether something asks for every exchange.
    pub fn takes_all(&self) -> bool {
        self.mode.load(Ordering::Relaxed) > ON
    }

    /// Samples that were dropped so far.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.shards.iter().map(|shard| shard.dropped[reason as usize].load(Ordering::Relaxed)).sum()
    }

    /// Hands out what waits, by worker, and tells the workers how much to thin out from now on. `now` is of a monotonic clock.
    pub fn drain(&self, now: Duration, mut each: impl FnMut(&SampleHead, SampleTexts<'_>)) {
        for shard in &self.shards {
            let Draining { buffer, rates } = &mut *shard.draining.lock();
            std::mem::swap(buffer, &mut *shard.filling.lock());
            rates.order(&shard.chance, now);
            buffer.take(&mut each);
        }
    }
}

/// As long as it lives, every exchange is sampled.
#[derive(Debug)]
pub struct TakeAll(Arc<Tap>);

impl Drop for TakeAll {
    fn drop(&mut self) {
        if !self.0.shards.is_empty() {
            self.0.mode.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
