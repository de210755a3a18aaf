//! Whether a disk can be used: it is left alone for a while after a failure, longer each time.
//!
//! In: failures, and what went well. Out: whether to try, whether what lies there can be read, and an event for the operator at each change, of which the
//! owner takes notice when it likes. A disk that was pulled fails at once whatever is asked of it; without the
//! pause the writer would spin. What fails is one `io::Error`; the first is kept for the log.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use larder_tier::pause::next_pause;
use larder_tier::rank::RankedMutex;

/// On a disk that others keep full there is room now and then, as soon as larder itself has given something up. It is over when
/// there was room for so long.
const ROOM_FOR: Duration = Duration::from_secs(60);
/// Events nobody took; older ones go.
const EVENTS_MAX: usize = 32;

/// A change that the operator should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskEvent {
    /// The disk is left alone for this long.
    Failing {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        why: String,
        /// Until it is tried again.
        pause: Duration,
    },
    /// It works again.
    Recovered,
    /// The file system is full although the cap is not reached: others fill it.
    NoRoom,
    /// There was room again, for a while.
    RoomAgain,
}

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    pause: Duration,
    /// When there was no room last, until it is said that there is.
    without_room: Option<Instant>,
    events: VecDeque<DiskEvent>,
}

/// A disk's state of health; told by the writer and the readers, asked by everybody.
#[derive(Debug, Default)]
pub(super) struct Health {
    is_failing: AtomicBool,
    is_without_room: AtomicBool,
    is_in_doubt: AtomicBool,
    state: RankedMutex<State>,
}

impl Health {
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    pub(super) fn is_without_room(&self) -> bool {
        self.is_without_room.load(Ordering::Relaxed)
    }

    /// Whether it is likely that nothing can be read but what the page cache has.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Relaxed)
    }

    /// Something was read that had to be waited for.
    pub(super) fn read_well(&self) {
        // Written only where it changes: readers share the line.
        if self.is_in_doubt() {
            self.is_in_doubt.store(false, Ordering::Relaxed);
        }
    }

    /// Says whether room can be had; tells the operator when that ends, and when it has been so again for a while.
    pub(super) fn note_room(&self, is_to_be_had: bool) {
        self.is_without_room.store(!is_to_be_had, Ordering::Relaxed);
        self.look_at_room(Instant::now());
    }

    /// To be called every second.
    pub(super) fn look_at_room(&self, now: Instant) {
        let is_without = self.is_without_room();
        let mut state = self.state.lock();
        match state.without_room {
            None if is_without => state.push(DiskEvent::NoRoom),
            Some(last) if !is_without && now.saturating_duration_since(last) >= ROOM_FOR => {
                state.without_room = None;
                state.push(DiskEvent::RoomAgain);
            }
            _ => {}
        }
        if is_without {
            state.without_room = Some(now);
        }
    }

    /// A call failed: the disk is out for a while, twice as long as the last time.
    pub(super) fn failed(&self, what: &'static str, error: &io::Error) {
        if concerns_reads(error) {
            self.is_in_doubt.store(true, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.until.is_some_and(|until| now < until) {
            return;
        }
        state.pause = next_pause(state.pause);
        state.until = Some(now + state.pause);
        let is_first = !self.is_failing.swap(true, Ordering::Relaxed);
        if is_first {
            let pause = state.pause;
            state.push(DiskEvent::Failing { what, why: error.to_string(), pause });
        }
    }

    /// A write went well.
    pub(super) fn worked(&self) {
        if self.is_failing() {
            let mut state = self.state.lock();
            state.until = None;
            state.pause = Duration::ZERO;
            self.is_failing.store(false, Ordering::Relaxed);
            self.is_in_doubt.store(false, Ordering::Relaxed);
            state.push(DiskEvent::Recovered);
        }
    }

    /// How long the disk is still to be left alone; `None` where it may be tried.
    pub(super) fn pause(&self) -> Option<Duration> {
        let until = self.state.lock().until?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// The oldest event that was not taken yet.
    pub(super) fn take_event(&self) -> Option<DiskEvent> {
        self.state.lock().events.pop_front()
    }
}

/// Whether who cannot write for this reason may not be able to read either: it says more than that nothing is to be written.
fn concerns_reads(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    !matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

impl State {
    fn push(&mut self, event: DiskEvent) {
        self.events.truncate(EVENTS_MAX - 1);
        self.events.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_no_room_is_told_once_until_there_was_room_for_a_minute() {
        let health = Health::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        // Now and then a segment can be had.
        for _ in 0..10 {
            health.note_room(false);
            health.note_room(true);
        }
        assert_eq!(health.take_event(), Some(DiskEvent::NoRoom));
        for second in 0..59 {
            health.look_at_room(at(second));
        }
        assert_eq!(health.take_event(), None);
        health.is_without_room.store(true, Ordering::Relaxed);
        health.look_at_room(at(59));
        health.is_without_room.store(false, Ordering::Relaxed);
        health.look_at_room(at(118));
        assert_eq!(health.take_event(), None, "there was none a minute ago");
        (119..200).for_each(|second| health.look_at_room(at(second)));
        assert_eq!(health.take_event(), Some(DiskEvent::RoomAgain));
        assert_eq!(health.take_event(), None);
        health.note_room(false);
        assert_eq!(health.take_event(), Some(DiskEvent::NoRoom));
    }

    #[test]
    fn whether_it_can_be_read_is_in_doubt_until_something_went_well() {
        for (kind, doubts) in [
            (io::ErrorKind::Other, true),
            (io::ErrorKind::NotFound, true),
            (io::ErrorKind::StorageFull, false),
            (io::ErrorKind::ReadOnlyFilesystem, false),
        ] {
            let health = Health::default();
            for went_well in [Health::read_well, Health::worked] {
                health.failed("write", &kind.into());
                assert_eq!(health.is_in_doubt(), doubts, "{kind}");
                went_well(&health);
                assert!(!health.is_in_doubt());
            }
        }
    }

    #[test]
    fn pauses_double_and_are_told_once() {
        let health = Health::default();
        let error = io::Error::from(io::ErrorKind::StorageFull);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            health.failed("write", &error);
            let pause = health.pause().expect("out");
            assert!(pause <= Duration::from_secs(seconds) && pause > Duration::from_secs(seconds / 2));
            // The pause is over.
            health.state.lock().until = Some(Instant::now());
            assert_eq!(health.pause(), None);
            assert!(health.is_failing());
        }
        health.worked();
        assert!(matches!(health.take_event(), Some(DiskEvent::Failing { .. })));
        assert_eq!(health.take_event(), Some(DiskEvent::Recovered));
        assert_eq!(health.take_event(), None);
        health.failed("write", &error);
        assert!(health.pause().expect("out") <= Duration::from_secs(1));
    }
}
