//! What waits to be read from a disk.
//!
//! In: reads, up to a bound; beyond it they are refused, and the request goes on as a miss. Out: answers to whoever still
//! waits for them; a read that nobody waits for any more is not done. Syncs of the journal are done together: all that
//! asked while one was under way are answered by the next.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use parking_lot::Condvar;
use tokio::sync::oneshot;

use super::address::Location;
use super::error::ReadError;
use super::object::FoundRecord;
use super::piece::Piece;
use larder_tier::rank::RankedMutex;

/// Reads that may wait.
const READS_MAX: usize = 1024;

pub(super) type Answer<T> = oneshot::Sender<Result<T, ReadError>>;

/// What a thread of the pool does next.
pub(super) enum PoolJob {
    Record(Location, Answer<FoundRecord>),
    Piece(Piece, Answer<Bytes>),
    SyncJournal,
}

#[derive(Default)]
struct State {
    asked: VecDeque<PoolJob>,
    /// Those who wait for the journal to be synced.
    syncs: Syncs,
    is_syncing: bool,
    is_closed: bool,
}

/// Hear how a sync of the journal went.
pub(super) type Syncs = Vec<oneshot::Sender<io::Result<()>>>;

/// What waits to be read from a disk.
#[derive(Default)]
pub(super) struct Pool {
    state: RankedMutex<State>,
    wake: Condvar,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("waiting", &self.state.lock().asked.len()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Puts a read in, or refuses.
    pub(super) fn ask(&self, job: PoolJob) -> Result<(), ReadError> {
        let mut state = self.state.lock();
        if state.is_closed || state.asked.len() >= READS_MAX {
            return Err(ReadError::Busy);
        }
        state.asked.push_back(job);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Reads that wait.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().asked.len()
    }

    /// Asks for the journal to be synced; the answer covers everything that was appended before. Once the pool is closed there
    /// is none.
    pub(super) fn ask_sync(&self) -> oneshot::Receiver<io::Result<()>> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_closed {
            // Dropped, the answer says so.
            return answered;
        }
        state.syncs.push(answer);
        if !std::mem::replace(&mut state.is_syncing, true) {
            // In front of the reads, and beyond their bound: there is one of these at most.
            state.asked.push_front(PoolJob::SyncJournal);
            self.wake.notify_one();
        }
        answered
    }

    /// Those who wait for the journal to be synced; nothing, and the sync has ended, where nobody does.
    pub(super) fn take_syncs(&self) -> Option<Syncs> {
        let mut state = self.state.lock();
        state.is_syncing = !state.syncs.is_empty();
        state.is_syncing.then(|| std::mem::take(&mut state.syncs))
    }

    pub(super) fn next(&self) -> Option<PoolJob> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(job) = state.asked.pop_front() {
                return Some(job);
            }
            state.wait(&self.wake);
        }
    }

    /// Lets the threads end; who waits gets no answer.
    pub(super) fn close(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.is_closed = true;
            (std::mem::take(&mut state.asked), std::mem::take(&mut state.syncs))
        };
        self.wake.notify_all();
        drop(dropped);
    }
}
