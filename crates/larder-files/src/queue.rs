//! What waits for the one thread that writes.
//!
//! In: pieces of bodies, ends of fills, new meta, removals, from any worker. Out: the same, in order, to the writing thread. Bounded in
//! bytes and in number: where it is full a fill is refused, and nobody ever waits for it. Ends of fills and removals are
//! always taken: each of the former belongs to one of a bounded number of fills, of the latter there may be as many as
//! [`REMOVALS_MAX`], and then whoever asks does it itself. Renewals have a bound of their own. Lock: the queue, for the length of
//! a push. Only whether the response of a fill is still in memory is asked under it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Condvar;

use super::closing::Closer;
use super::error::Refused;
use super::filling::{Done, Filling};
use super::meta::Meta;
use super::name::Name;
use super::place::{Spare, TakenOut};
use super::renewal::Renewal;
use larder_tier::backlog::{Backlog, Borrowing};
use larder_tier::rank::{Rank, RankedMutex};

/// Bytes of bodies that may wait without being borrowed of the store's memory.
pub(super) const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Pieces that may wait.
const PIECES_MAX: usize = 16 * 1024;
/// Renewals that may wait.
const RENEWALS_MAX: usize = 4096;
/// Removals that may wait.
const REMOVALS_MAX: usize = 64 * 1024;

/// Hears how a removal ended.
pub(super) type Removed = Box<dyn FnOnce(std::io::Result<TakenOut>) + Send>;

/// One thing to do.
pub(super) enum FileJob {
    Write(Arc<Filling>, Bytes),
    Finish(Arc<Filling>, Box<Meta>, Done),
    Abandon(Arc<Filling>),
    Renew(Box<Renewal>, Done),
    Remove(Name, Spare, Option<Removed>),
    /// Anything else that has to come after what was asked for before.
    Run(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<FileJob>,
    bytes: usize,
    pieces: usize,
    renewals: usize,
    removals: usize,
    borrowing: Borrowing,
    /// Those who wait for room for a piece.
    crowd: Vec<Waker>,
    is_closed: bool,
}

/// The queue.
pub(super) struct FileQueue {
    waiting: RankedMutex<Waiting>,
    filled: Condvar,
}

impl Default for FileQueue {
    fn default() -> Self {
        let waiting = RankedMutex::new(Rank::FilesQueue, Waiting::default());
        Self { waiting, filled: Condvar::new() }
    }
}

impl std::fmt::Debug for FileQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileQueue")
    }
}

impl FileQueue {
    /// Bytes of pieces that wait.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.lock().bytes
    }

    /// A piece of a body.
    pub(super) fn push_piece(&self, filling: &Arc<Filling>, bytes: Bytes) -> Result<(), Refused> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err(Refused::Closed);
        }
        let all = waiting.bytes + bytes.len();
        if waiting.pieces >= PIECES_MAX || !waiting.borrowing.allows(all as u64, QUEUE_BYTES_MAX as u64) {
            return Err(Refused::QueueFull);
        }
        waiting.bytes = all;
        waiting.pieces += 1;
        waiting.jobs.push_back(FileJob::Write(Arc::clone(filling), bytes));
        self.filled.notify_one();
        Ok(())
    }

    /// The end of a fill, unless `is_valid` says otherwise, which is asked under the lock: a removal that comes after
    /// that is done after it.
    pub(super) fn push_end(
        &self,
        job: FileJob,
        is_valid: impl FnOnce() -> bool,
    ) -> Result<(), (FileJob, Refused)> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err((job, Refused::Closed));
        }
        if !is_valid() {
            return Err((job, Refused::Invalidated));
        }
        waiting.jobs.push_back(job);
        self.filled.notify_one();
        Ok(())
    }

    /// New meta for a file, unless `is_valid` says otherwise, which is asked as for the end of a fill. `done` is given back
    /// where it cannot wait here.
    pub(super) fn push_renewal(
        &self,
        renewal: Box<Renewal>,
        is_valid: impl FnOnce() -> bool,
        done: Done,
    ) -> Result<(), (Done, Refused)> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err((done, Refused::Closed));
        }
        if waiting.renewals >= RENEWALS_MAX {
            return Err((done, Refused::QueueFull));
        }
        if !is_valid() {
            return Err((done, Refused::Invalidated));
        }
        waiting.renewals += 1;
        waiting.jobs.push_back(FileJob::Renew(renewal, done));
        self.filled.notify_one();
        Ok(())
    }

    /// A removal; given back where it cannot wait here.
    pub(super) fn push_removal(
        &self,
        name: Name,
        spare: Spare,
        done: Option<Removed>,
    ) -> Result<(), Option<Removed>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed || waiting.removals >= REMOVALS_MAX {
            return Err(done);
        }
        waiting.removals += 1;
        waiting.jobs.push_back(FileJob::Remove(name, spare, done));
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for something to do; `None` when the queue is closed and empty.
    pub(super) fn next(&self) -> Option<FileJob> {
        let job = self.take()?;
        if let FileJob::Write(..) = &job {
            self.room_came();
        }
        Some(job)
    }

    /// Wakes those who wait for room.
    fn room_came(&self) {
        let crowd = std::mem::take(&mut self.waiting.lock().crowd);
        crowd.into_iter().for_each(Waker::wake);
    }

    fn take(&self) -> Option<FileJob> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                match &job {
                    FileJob::Write(_, bytes) => {
                        waiting.bytes -= bytes.len();
                        waiting.pieces -= 1;
                        let left = waiting.bytes as u64;
                        waiting.borrowing.held(left, QUEUE_BYTES_MAX as u64);
                    }
                    FileJob::Renew(..) => waiting.renewals -= 1,
                    FileJob::Remove(..) => waiting.removals -= 1,
                    FileJob::Finish(..) | FileJob::Abandon(_) | FileJob::Run(_) => {}
                }
                return Some(job);
            }
            if waiting.is_closed {
                return None;
            }
            waiting.wait(&self.filled);
        }
    }

    /// From now on it may borrow there.
    pub(super) fn borrow_from(&self, backlog: &Arc<Backlog>) {
        self.waiting.lock().borrowing.begin(backlog);
    }

    /// What it borrows of.
    pub(super) fn backlog(&self) -> Option<Arc<Backlog>> {
        self.waiting.lock().borrowing.source()
    }

    /// Wakes `waker` once there may be room for a piece again, or never will.
    pub(super) fn await_room(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock();
        if !waiting.crowd.iter().any(|other| other.will_wake(waker)) {
            waiting.crowd.push(waker.clone());
        }
    }

    /// Takes nothing more; what waits is still done.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        drop(waiting);
        self.room_came();
        self.filled.notify_all();
    }
}

impl Closer for FileQueue {
    fn close_behind(&self, what: Box<dyn Send>) {
        // A closed queue drops it here.
        let _ = self.push_end(FileJob::Run(Box::new(move || drop(what))), || true);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Somebody who looks into the queue when it is woken.
    struct Woken(Arc<FileQueue>, AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            assert!(self.0.backlog().is_none());
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn nobody_is_woken_under_the_lock() {
        let queue = Arc::<FileQueue>::default();
        let woken = Arc::new(Woken(Arc::clone(&queue), AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        queue.await_room(&waker);
        queue.room_came();
        queue.await_room(&waker);
        queue.close();
        assert_eq!(woken.1.load(Ordering::Relaxed), 2);
    }
}
