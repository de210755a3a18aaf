//! What waits to be written to one disk: bounded in bytes, first in first out.
//!
//! In: records and pieces from event loops, which never wait; a full queue refuses, and wakes whoever asked for that when there
//! is room again. Out: batches for the disk's writer. Beyond what a queue has of its own it borrows of its store's memory.
//! Bytes are counted from the moment they are put in until they are on the disk or lost, so that the bound is one on
//! memory. A record whose pieces are not all written has its bytes counted while it waits outside of the queue, and
//! enters it when they are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use parking_lot::Condvar;

use super::address::Location;
use super::address::Owner;
use super::error::Refused;
use super::object::Object;
use super::piece::Piece;
use larder_tier::backlog::{Backlog, Borrowing};
use larder_tier::rank::RankedMutex;

/// Bytes that may wait without being borrowed.
const OWN_BYTES: u64 = 8 << 20;
/// Bytes beyond those of records that are written again: a disk that is written to much must not lose what is in use.
const AGAIN_BYTES_MAX: u64 = 1 << 20;
/// Bytes beyond those of records whose pieces were taken: the last piece must not be what keeps the body out.
const LISTS_BYTES_MAX: u64 = 2 << 20;
/// What a job takes beside its bytes: key and handles.
pub(super) const JOB_BYTES: u64 = 512;

/// One thing to write.
pub(super) enum WriteJob {
    Record(Box<RecordJob>),
    Piece { owner: Owner, piece: Piece, cost: u64 },
}

/// A record to write, and what its entry in the index looks like meanwhile.
pub(super) struct RecordJob {
    pub(super) object: Object,
    pub(super) base: u64,
    pub(super) tag: u32,
    pub(super) pending: Location,
    /// Something was there before it: [`super::replaced`] may know of it.
    pub(super) replaces: bool,
    /// It is written already, at `pending`, and is written again with its pieces in other places. Held until that is done.
    pub(super) again: Option<Arc<()>>,
    pub(super) cost: u64,
}

impl WriteJob {
    pub(super) fn cost(&self) -> u64 {
        match self {
            Self::Record(record) => record.cost,
            Self::Piece { cost, .. } => *cost,
        }
    }
}

/// What the writer is to do next.
pub(super) enum Next {
    Write(Vec<WriteJob>),
    /// Nothing came for a while.
    Rest,
    /// Nothing more will come: finish in good order.
    Finish,
    /// Stop where you are.
    Stop,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<WriteJob>,
    bytes: u64,
    borrowing: Borrowing,
    /// Those who wait for room.
    waiting: Vec<Waker>,
    is_closed: bool,
    is_stopped: bool,
    /// Nothing is taken out any more.
    is_over: bool,
    is_called: bool,
    #[cfg(any(test, feature = "testing"))]
    is_held_back: bool,
}

/// The queue of a disk.
#[derive(Default)]
pub(super) struct WriteQueue {
    state: RankedMutex<State>,
    wake: Condvar,
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteQueue").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// From now on it may borrow there.
    pub(super) fn borrow_from(&self, backlog: &Arc<Backlog>) {
        self.state.lock().borrowing.begin(backlog);
    }

    /// Counts `cost` bytes in, or refuses.
    pub(super) fn admit(&self, cost: u64) -> Result<(), Refused> {
        self.admit_beyond(cost, 0)
    }

    /// The same for a record that is written again.
    pub(super) fn admit_again(&self, cost: u64) -> Result<(), Refused> {
        self.admit_beyond(cost, AGAIN_BYTES_MAX)
    }

    /// The same for a record whose pieces were taken.
    pub(super) fn admit_list(&self, cost: u64) -> Result<(), Refused> {
        self.admit_beyond(cost, LISTS_BYTES_MAX)
    }

    fn admit_beyond(&self, cost: u64, more: u64) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let bytes = state.bytes.saturating_add(cost);
        if !state.borrowing.allows(bytes, OWN_BYTES + more) {
            return Err(Refused::QueueFull);
        }
        state.bytes = bytes;
        Ok(())
    }

    /// Wakes `waker` once there may be room again, or never will.
    pub(super) fn await_room(&self, waker: &Waker) {
        let mut state = self.state.lock();
        if !state.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
    }

    /// Whether what waits is no more than one of so many parts of what may.
    pub(super) fn is_drained(&self, parts: u64) -> bool {
        let state = self.state.lock();
        state.bytes <= state.borrowing.max_bytes(OWN_BYTES) / parts.max(1)
    }

    /// Puts in what was admitted; gives it back where nobody takes it out any more.
    pub(super) fn push(&self, job: WriteJob) -> Option<WriteJob> {
        let mut state = self.state.lock();
        if state.is_over {
            return Some(job);
        }
        state.jobs.push_back(job);
        drop(state);
        self.wake.notify_one();
        None
    }

    /// Counts bytes out that are on the disk, or lost.
    pub(super) fn release(&self, cost: u64) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_sub(cost);
        let bytes = state.bytes;
        state.borrowing.held(bytes, OWN_BYTES);
        if state.is_closed {
            self.wake.notify_one();
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Counts bytes out that were admitted for nothing. Nobody hears of it: who gave them back may be who waits.
    pub(super) fn give_back(&self, cost: u64) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_sub(cost);
        let bytes = state.bytes;
        state.borrowing.held(bytes, OWN_BYTES);
    }

    /// Jobs of about `most` bytes, waiting for the first of them up to `patience`. A queue that was closed has ended when
    /// nothing is counted in any more: a record may still wait for its pieces on other disks.
    pub(super) fn take(&self, most: u64, patience: Duration) -> Next {
        let mut state = self.state.lock();
        let has_ended = |state: &State| state.is_stopped || (state.is_closed && state.bytes == 0);
        if state.jobs.is_empty() && !has_ended(&state) && !state.is_called {
            state.wait_for(&self.wake, patience);
        }
        state.is_called = false;
        if state.is_stopped {
            return Next::Stop;
        }
        #[cfg(any(test, feature = "testing"))]
        if state.is_held_back {
            state.wait_for(&self.wake, Duration::from_millis(10));
            return Next::Rest;
        }
        if state.jobs.is_empty() {
            if !has_ended(&state) {
                return Next::Rest;
            }
            state.is_over = true;
            return Next::Finish;
        }
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        while bytes < most
            && let Some(job) = state.jobs.pop_front()
        {
            bytes += job.cost();
            jobs.push(job);
        }
        Next::Write(jobs)
    }

    /// Makes the writer look round at once.
    pub(super) fn call(&self) {
        self.state.lock().is_called = true;
        self.wake.notify_one();
    }

    /// Takes nothing more in; what is there is still written.
    pub(super) fn close(&self) {
        self.shut(|_| ());
    }

    /// Takes nothing more in, and nothing more is written.
    pub(super) fn stop(&self) {
        self.shut(|state| state.is_stopped = true);
    }

    fn shut(&self, also: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        state.is_closed = true;
        also(&mut state);
        self.wake.notify_one();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Nothing is taken out any more.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
    }

    /// Whether nothing more is taken in.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Gives nothing out; or again.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn hold_back(&self, is_held: bool) {
        self.state.lock().is_held_back = is_held;
        self.wake.notify_one();
    }

    /// As if so much waited that nothing more goes in; or no longer so.
    #[cfg(feature = "testing")]
    pub(super) fn crowd(&self, is_full: bool) {
        const CROWD_BYTES: u64 = 1 << 40;
        if is_full {
            self.state.lock().bytes += CROWD_BYTES;
        } else {
            self.release(CROWD_BYTES);
        }
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }
}
