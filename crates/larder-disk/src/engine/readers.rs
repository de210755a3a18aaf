//! The threads that wait for a disk, so that event loops need not.
//!
//! In: what waits in the pool. Out: answers to whoever still waits for them.

use std::io;
use std::sync::Arc;
use std::thread;

use super::error::ReadError;
use super::pool::{Answer, PoolJob};
use super::reads::Waiting;
use super::state::DiskState;

/// Threads per disk: enough to keep a disk's own queue busy.
const THREADS: usize = 4;

/// Starts the threads.
pub(super) fn start(shared: &Arc<DiskState>) -> io::Result<Vec<thread::JoinHandle<()>>> {
    let spawn = |_| {
        let shared = Arc::clone(shared);
        thread::Builder::new().name("larder-read".to_owned()).spawn(move || run(&shared))
    };
    (0..THREADS).map(spawn).collect()
}

fn run(shared: &DiskState) {
    while let Some(job) = shared.pool.next() {
        match job {
            PoolJob::Record(place, answer) if !answer.is_closed() => {
                let read = shared.read_record(place, Waiting::Yes).unwrap_or(Err(ReadError::Busy));
                tell(shared, answer, read);
            }
            PoolJob::Piece(piece, answer) if !answer.is_closed() => {
                let read = shared.read_piece(&piece, Waiting::Yes).unwrap_or(Err(ReadError::Busy));
                tell(shared, answer, read);
            }
            PoolJob::Record(..) | PoolJob::Piece(..) => {}
            PoolJob::SyncJournal => sync_journal(shared),
        }
    }
}

fn tell<T>(shared: &DiskState, answer: Answer<T>, read: Result<T, ReadError>) {
    if read.is_ok() {
        shared.health.read_well();
    }
    // Who does not wait any more has no use for it.
    let _ = answer.send(read);
}

fn sync_journal(shared: &DiskState) {
    while let Some(waiting) = shared.pool.take_syncs() {
        let result = shared.journal.sync(&shared.space, &shared.health);
        if result.is_err() {
            // Compaction makes good for what the journal lacks.
            shared.queue.call();
        }
        for answer in waiting {
            let again = result.as_ref().copied().map_err(|error| io::Error::from(error.kind()));
            let _ = answer.send(again);
        }
    }
}
