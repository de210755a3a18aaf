//! Whether an exchange is sampled, and for how many it then stands.
//!
//! In: exchanges of one worker, told apart only as hits and others; and, at each drain, by how much to thin them out. Out: a
//! [`Weight`] for those that are sampled, which is one over the probability of that.
//! Exchanges of a kind are taken in blocks of a power of two, and one of each block is drawn by chance. So each has the same
//! probability whatever the order of requests is: a page with 64 images would always show the same one to a plain count.
//! A worker has no clock. The drain counts for it what came in a second; and where much comes between two drains, the worker thins out
//! by itself, so that its buffer need not drop what has a weight. The size of a block depends on counts alone and never on what was drawn,
//! so sums of weights stay unbiased.
//! As in the counters' cells, an add is a load and a store: one thread weighs for a worker.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// For how many exchanges a sample stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// A sample that stands for itself.
    pub const ONE: Self = Self(1);

    /// The number.
    pub const fn count(self) -> u64 {
        self.0 as u64
    }
}

/// No block is larger than two to the power of this.
const SHIFT_MAX: u32 = 20;
/// Beyond its burst a worker doubles its blocks after so many samples.
const STEP: u32 = 12;
/// The odd number of splitmix64: what its state grows by.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How a kind of exchanges is thinned out.
struct Pace {
    /// The least block, as a power of two.
    shift_min: u32,
    /// So many samples are taken between two drains before blocks grow.
    burst: u32,
    /// A new order of the drain ends a block. Blocks that are always short may wait for their end instead, which is cheaper.
    is_prompt: bool,
}

const HITS: Pace = Pace { shift_min: 6, burst: 128, is_prompt: false };
const OTHERS: Pace = Pace { shift_min: 0, burst: 160, is_prompt: true };
const EVERY: Pace = Pace { shift_min: 0, burst: EVERY_BURST, is_prompt: true };
/// While all is asked for, so many exchanges between two drains have a sample of their own.
pub(super) const EVERY_BURST: u32 = 264;

/// Samples per second and worker of what is no hit.
const OTHERS_PER_SECOND: u32 = 1000;
/// The same of everything, while all is asked for.
const EVERY_PER_SECOND: u32 = 20_000;

/// Where a worker stands with one kind of exchanges.
#[derive(Debug, Default)]
struct Blocks {
    /// How many of the block are still to come.
    left: AtomicU32,
    /// The one that is sampled has so many behind it.
    pick: AtomicU32,
    size: AtomicU32,
    /// Samples since the last drain.
    taken: AtomicU32,
    /// What the drain had ordered when the block began.
    order: AtomicU64,
    /// Exchanges in earlier blocks.
    seen: AtomicU64,
}

/// One worker's choice; on lines of its own, like everything that a worker writes.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Chance {
    hits: Blocks,
    others: Blocks,
    every: Blocks,
    seed: AtomicU64,
    /// A number of the drain, and how much to thin out others and everything.
    order: AtomicU64,
}

impl Chance {
    pub(super) fn new(worker: usize) -> Self {
        Self {
            hits: Blocks::default(),
            others: Blocks::default(),
            every: Blocks::default(),
            seed: AtomicU64::new(GOLDEN.wrapping_mul(worker as u64 + 1)),
            order: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn weigh(&self, is_hit: bool) -> Option<Weight> {
        match is_hit {
            true => self.next(&self.hits, &HITS, |_| 0),
            false => self.next(&self.others, &OTHERS, |order| order >> 8),
        }
    }

    /// While all is asked for, hits and others are of one kind.
    #[inline(always)]
    pub(super) fn weigh_for_all(&self) -> Option<Weight> {
        self.next(&self.every, &EVERY, |order| order)
    }

    #[inline(always)]
    fn next(&self, blocks: &Blocks, pace: &Pace, ordered: fn(u64) -> u64) -> Option<Weight> {
        let mut left = blocks.left.load(Ordering::Relaxed);
        let is_ordered =
            pace.is_prompt && blocks.order.load(Ordering::Relaxed) != self.order.load(Ordering::Relaxed);
        if left == 0 || is_ordered {
            left = self.begin(blocks, pace, ordered);
        }
        let left = left.wrapping_sub(1);
        blocks.left.store(left, Ordering::Relaxed);
        let is_picked = left == blocks.pick.load(Ordering::Relaxed);
        is_picked.then(|| Weight(blocks.size.load(Ordering::Relaxed)))
    }

    /// Begins a block and returns its size.
    #[inline(never)]
    fn begin(&self, blocks: &Blocks, pace: &Pace, ordered: fn(u64) -> u64) -> u32 {
        let passed = blocks.size.load(Ordering::Relaxed).wrapping_sub(blocks.left.load(Ordering::Relaxed));
        let seen = blocks.seen.load(Ordering::Relaxed).wrapping_add(u64::from(passed));
        blocks.seen.store(seen, Ordering::Relaxed);

        let order = self.order.load(Ordering::Relaxed);
        let is_same = order == blocks.order.load(Ordering::Relaxed);
        let taken = if is_same { blocks.taken.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        let more = taken.checked_sub(pace.burst).map_or(0, |beyond| 1 + beyond / STEP);
        let base = pace.shift_min.max((ordered(order) & 0xff) as u32);
        let size = 1_u32 << base.saturating_add(more).min(SHIFT_MAX);
        blocks.order.store(order, Ordering::Relaxed);
        blocks.taken.store(taken, Ordering::Relaxed);
        blocks.size.store(size, Ordering::Relaxed);
        blocks.pick.store(self.draw() & (size - 1), Ordering::Relaxed);
        size
    }

    /// The next number of splitmix64.
    fn draw(&self) -> u32 {
        let seed = self.seed.load(Ordering::Relaxed).wrapping_add(GOLDEN);
        self.seed.store(seed, Ordering::Relaxed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}

/// What the drain knows of one worker's rates.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// When they were last worked out.
    since: Option<Duration>,
    drains: u32,
    others: Rate,
    every: Rate,
}

#[derive(Debug, Default)]
struct Rate {
    seen: u64,
    shift: u32,
}

impl Rate {
    /// The least power of two that brings what came in `time` below the limit.
    fn update(&mut self, seen: u64, time: Duration, per_second: u32) {
        let came = seen.wrapping_sub(std::mem::replace(&mut self.seen, seen));
        let allowed = f64::from(per_second) * time.as_secs_f64();
        let times = came as f64 / allowed;
        self.shift = (0..SHIFT_MAX).find(|shift| times <= f64::from(1_u32 << shift)).unwrap_or(SHIFT_MAX);
    }
}

impl Rates {
    /// Once a second works out the rates anew; at each drain gives the worker its order.
    pub(super) fn order(&mut self, chance: &Chance, now: Duration) {
        const SECOND: Duration = Duration::from_secs(1);
        let seen = [&chance.others, &chance.every].map(|blocks| blocks.seen.load(Ordering::Relaxed));
        match self.since.map(|since| now.saturating_sub(since)) {
            None => {
                self.since = Some(now);
                [self.others.seen, self.every.seen] = seen;
            }
            Some(time) if time >= SECOND => {
                self.since = Some(now);
                self.others.update(seen[0], time, OTHERS_PER_SECOND);
                self.every.update(seen[1], time, EVERY_PER_SECOND);
            }
            Some(_) => {}
        }
        self.drains = self.drains.wrapping_add(1);
        let order =
            u64::from(self.drains) << 16 | u64::from(self.others.shift) << 8 | u64::from(self.every.shift);
        chance.order.store(order, Ordering::Relaxed);
    }
}
