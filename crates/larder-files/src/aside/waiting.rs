//! The directories that lie in `.larder/aside`, as far as they are still to be removed.
//!
//! In: what was put there, and what came of each try to remove it. Out: which is next. What cannot be removed rests for a while, and is
//! tried [`TRIES_MAX`] times. Then it stays until the next start, which is an event for the log.
//! Bounded: of one directory [`PASSED_OVER_MAX`] entries are known that stay, and [`RESTING_MAX`] directories rest. Lock: a leaf, for the
//! length of a move.
//! Deliberately absent: the file system.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use larder_tier::pause::next_pause;
use larder_tier::rank::RankedMutex;
use larder_tier::tier::CountRemoved;

use crate::sys::Status;
use crate::tree::ASIDE;
use crate::unreadable::is_of_the_device;

/// The longest path that anything is known by, in bytes.
const PATH_BYTES_MAX: usize = 4000;
/// Entries of one directory, and of those below it, that are passed over before the rest of it is left as well.
const PASSED_OVER_MAX: usize = 64;
/// How often the removal of a directory is tried: for two minutes in all.
const TRIES_MAX: u32 = 8;
/// Directories that wait for another try.
const RESTING_MAX: usize = 1024;
/// Events that are kept until they are taken.
const EVENTS_MAX: usize = 8;

/// A directory in [`ASIDE`].
pub(super) struct Aside {
    pub(super) name: String,
    /// Where it was, unless an earlier run has left it, or nothing can have had so long a path.
    pub(super) path: Option<Vec<u8>>,
    pub(super) removed: Option<Arc<CountRemoved>>,
    pub(super) passed_over: PassedOver,
    tries: u32,
    pause: Duration,
}

/// What could not be removed of a directory in this try.
#[derive(Default)]
pub(super) struct PassedOver {
    /// By device and inode.
    files: Vec<((u32, u32), u64)>,
    /// The first reason.
    pub(super) why: Option<io::Error>,
}

/// A directory that was purged and cannot be removed.
#[derive(Debug)]
pub(crate) struct LeftAside {
    /// Where it lies, beneath the store's directory.
    pub(crate) path: String,
    /// What the system said.
    pub(crate) why: String,
}

#[derive(Default)]
struct State {
    /// The last is the next.
    waiting: Vec<Aside>,
    /// Could not be removed, and when they are tried again.
    resting: Vec<(Instant, Aside)>,
    is_under_way: bool,
    events: VecDeque<LeftAside>,
}

/// The directories that lie aside, as far as they are still to be removed.
#[derive(Default)]
pub(crate) struct Asides(RankedMutex<State>);

impl Aside {
    /// That of a purge, which was at `path` and is now called `name`.
    pub(super) fn of_purge(name: String, path: Vec<u8>, removed: &Arc<CountRemoved>) -> Self {
        Self { path: Some(path), removed: Some(Arc::clone(removed)), ..Self::left_over(name) }
    }

    /// One of an earlier run.
    pub(super) fn left_over(name: String) -> Self {
        let passed_over = PassedOver::default();
        Self { name, path: None, removed: None, passed_over, tries: 0, pause: Duration::ZERO }
    }

    /// What lay so far below it and has been moved up.
    pub(super) fn deeper(&self, name: String, below: &[u8]) -> Self {
        let path = self.path.as_ref().map(|path| [path, below].join(&b'/'));
        let path = path.filter(|path| path.len() <= PATH_BYTES_MAX);
        Self { path, removed: self.removed.clone(), ..Self::left_over(name) }
    }
}

impl PassedOver {
    pub(super) fn has(&self, status: &Status) -> bool {
        self.files.contains(&(status.device, status.inode))
    }

    /// This stays.
    ///
    /// # Errors
    /// No other is likely to go either.
    pub(super) fn add(&mut self, status: &Status, error: io::Error) -> io::Result<()> {
        if concerns_all(&error) || self.files.len() >= PASSED_OVER_MAX {
            return Err(error);
        }
        self.files.push((status.device, status.inode));
        // That a directory is not empty has its reason below it.
        self.why.get_or_insert(error);
        Ok(())
    }
}

/// Whether an error says that the file system takes no change at all.
pub(super) fn concerns_all(error: &io::Error) -> bool {
    is_of_the_device(error) || matches!(Errno::from_io_error(error), Some(Errno::ROFS))
}

impl Asides {
    /// One more. It comes before the others: what was moved up is removed before more is, so that few wait.
    pub(super) fn add(&self, aside: Aside) {
        self.0.lock().waiting.push(aside);
    }

    /// Whether a job is to be begun: something waits, and none is under way.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.0.lock();
        let is_due = !state.is_under_way && !state.waiting.is_empty();
        state.is_under_way |= is_due;
        is_due
    }

    pub(super) fn end(&self) {
        self.0.lock().is_under_way = false;
    }

    pub(super) fn next(&self) -> Option<Aside> {
        self.0.lock().waiting.pop()
    }

    /// It could not be removed: it is tried again after a while, or not any more.
    pub(super) fn rest(&self, aside: Aside, error: &io::Error) {
        let mut state = self.0.lock();
        let (tries, pause) = (aside.tries + 1, next_pause(aside.pause));
        if tries < TRIES_MAX && state.resting.len() < RESTING_MAX {
            let rested = Aside { tries, pause, passed_over: PassedOver::default(), ..aside };
            return state.resting.push((Instant::now() + pause, rested));
        }
        while state.events.len() >= EVENTS_MAX {
            state.events.pop_front();
        }
        let path = format!("{ASIDE}/{}", aside.name);
        state.events.push_back(LeftAside { path, why: error.to_string() });
    }

    /// Those that have rested wait again.
    pub(super) fn wake(&self, now: Instant) {
        let mut state = self.0.lock();
        if state.resting.iter().all(|(due, _)| *due > now) {
            return;
        }
        let (due, resting) =
            std::mem::take(&mut state.resting).into_iter().partition::<Vec<_>, _>(|(due, _)| *due <= now);
        state.resting = resting;
        state.waiting.extend(due.into_iter().map(|(_, aside)| aside));
    }

    /// The oldest that is left as it is and was not told yet.
    pub(crate) fn take_event(&self) -> Option<LeftAside> {
        self.0.lock().events.pop_front()
    }
}
