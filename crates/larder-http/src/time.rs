//! Time as a value. Nothing above reads the system's clocks directly: a [`Clock`] is handed in, and tests move it.
//!
//! Two clocks are needed at once. Dates in fields and on disk are wall time; how long something has been in memory
//! is monotonic, so that a jump of the wall clock can never make a stale response fresh again.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z, leap seconds ignored. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// The instant `seconds` after the epoch; saturates.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn secs(self) -> u64 {
        self.0 / 1000
    }

    /// How long after `earlier` this is; zero where it is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For dates in fields, logs and on disk.
    pub wall: WallTime,
    /// For lifetimes and residence in memory. It begins with what the wall clock said when the clock was made, so that
    /// what a disk has from before has a place in it, and goes on evenly whatever becomes of the wall clock.
    pub monotonic: Duration,
}

impl Now {
    /// Time that passed since `earlier` by the monotonic clock; zero where it is not later.
    pub fn since(&self, earlier: &Self) -> Duration {
        self.monotonic.saturating_sub(earlier.monotonic)
    }

    /// This moment of the wall clock, which another process may have noted, on both clocks; as far as the wall clock has
    /// been right since. `None` where it lies ahead: nobody knows how long ago that was.
    pub fn at_wall(&self, wall: WallTime) -> Option<Self> {
        let ago = Duration::from_millis(self.wall.0.checked_sub(wall.0)?);
        Some(Self { wall, monotonic: self.monotonic.checked_sub(ago)? })
    }

    /// What both clocks will have read `time` later.
    #[must_use]
    pub fn later(self, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            wall: WallTime(self.wall.0.saturating_add(ms)),
            monotonic: self.monotonic.saturating_add(time),
        }
    }
}

/// For so long the wall clock is told from the monotonic one. A jump of it is noticed that much later.
const WALL_KEPT: Duration = Duration::from_millis(10);

/// A moment on both clocks of the machine.
#[derive(Clone, Copy)]
struct Anchor {
    /// Whose clock it is.
    origin: Instant,
    monotonic: Duration,
    /// Since 1970.
    wall: Duration,
}

thread_local! {
    static ANCHOR: Cell<Option<Anchor>> = const { Cell::new(None) };
}

/// The time since 1970 at `monotonic` after `origin`, which has just been read. Two readings of clocks would cost every
/// request twice.
fn wall_at(origin: Instant, monotonic: Duration) -> Duration {
    if let Some(anchor) = ANCHOR.get().filter(|anchor| anchor.origin == origin) {
        let since = monotonic.saturating_sub(anchor.monotonic);
        if since < WALL_KEPT {
            return anchor.wall + since;
        }
    }
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ANCHOR.set(Some(Anchor { origin, monotonic, wall }));
    wall
}

/// Where [`Now`] comes from. Clones share one offset, so a test that advances one advances all.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    /// What the wall clock said then.
    began: Duration,
    offset_ms: Arc<AtomicU64>,
}

impl Default for Clock {
    fn default() -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: Instant::now(), began, offset_ms: Arc::new(AtomicU64::new(0)) }
    }
}

impl Clock {
    /// Reads both clocks. A jump of the wall clock may be noticed 10 ms late.
    pub fn now(&self) -> Now {
        let offset_ms = self.offset_ms.load(Ordering::Relaxed);
        let read = self.origin.elapsed();
        let wall = wall_at(self.origin, read);
        let wall_ms = wall.as_secs().saturating_mul(1000).saturating_add(u64::from(wall.subsec_millis()));
        Now {
            wall: WallTime(wall_ms.saturating_add(offset_ms)),
            monotonic: self.began + read + Duration::from_millis(offset_ms),
        }
    }

    /// Time that passed from `earlier`, which is a reading of this clock, to `instant`, which was read elsewhere.
    pub fn until(&self, instant: Instant, earlier: &Now) -> Duration {
        let offset = Duration::from_millis(self.offset_ms.load(Ordering::Relaxed));
        let since = self.began + instant.saturating_duration_since(self.origin) + offset;
        since.saturating_sub(earlier.monotonic)
    }

    /// Moves both clocks forward for every holder of this clock. Sockets and timers stay in real time.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.offset_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_moves_both_clocks_of_every_clone() {
        let clock = Clock::default();
        let other = clock.clone();
        let before = clock.now();
        other.advance(Duration::from_secs(3));
        let after = clock.now();
        assert!(after.since(&before) >= Duration::from_secs(3));
        assert!(after.wall.since(before.wall) >= Duration::from_secs(3));
    }

    #[test]
    fn what_was_noted_before_the_process_began_has_its_place() {
        let now = Clock::default().now();
        let hour = Duration::from_secs(3600);
        let noted = now.at_wall(WallTime(now.wall.0 - 3_600_000)).expect("an hour ago");
        assert_eq!(now.since(&noted), hour);
        assert_eq!(now.at_wall(WallTime(now.wall.0 + 1)), None, "ahead of the clock");
    }

    #[test]
    fn a_wall_clock_that_went_back_gives_zero() {
        assert_eq!(WallTime(5).since(WallTime(9)), Duration::ZERO);
    }
}
