//! Between the workers and the writer: one shard per worker, each a short list under its own lock.
//!
//! A worker only tries the lock, since the writer holds it just long enough to take the whole list; where that fails
//! it uses the next shard. The bound is in bytes. Waking a thread is a system call, so it happens only when the
//! writer has said that it sleeps without a limit, or when a shard is half full.
//!
//! No wake-up is lost: the writer sets `asleep` and then looks into each shard once more under its lock. A record
//! pushed after that look was pushed by a worker that took the lock later, and so sees `asleep`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use parking_lot::Mutex;

use super::record::LogRecord;

const SHARD_BYTES_MIN: usize = 64 * 1024;

/// What waits in one shard; on lines of its own, like everything that a worker writes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    records: Vec<LogRecord>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    shards: Box<[Shard]>,
    shard_bytes_max: usize,
    asleep: AtomicBool,
    closing: AtomicBool,
    reopen: AtomicBool,
    writer: OnceLock<Thread>,
    pub(super) dropped: AtomicU64,
    pub(super) written: AtomicU64,
}

impl Queue {
    /// Two shards at least, so that a worker that finds its own taken has another.
    pub(super) fn new(workers: usize, bytes: usize) -> Self {
        let shards = workers.max(2);
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            shard_bytes_max: (bytes / shards).max(SHARD_BYTES_MIN),
            asleep: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            reopen: AtomicBool::new(false),
            writer: OnceLock::new(),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    pub(super) fn set_writer(&self, writer: Thread) {
        writer.unpark();
        let _ = self.writer.set(writer);
    }

    /// Adds a record or drops it; never waits.
    pub(super) fn push(&self, worker: usize, record: LogRecord) {
        let weight = record.weight();
        if self.closing.load(Ordering::Acquire) || !self.put(worker, record, weight) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put(&self, worker: usize, record: LogRecord, weight: usize) -> bool {
        let n = self.shards.len();
        for step in 0..n {
            let Some(mut waiting) = self.shards[worker.wrapping_add(step) % n].0.try_lock() else {
                continue;
            };
            let before = waiting.bytes;
            let after = before.saturating_add(weight);
            if after > self.shard_bytes_max {
                return false;
            }
            waiting.bytes = after;
            waiting.records.push(record);
            drop(waiting);
            let half = self.shard_bytes_max / 2;
            let filled_half = before < half && after >= half;
            if filled_half
                || (self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel))
            {
                self.wake();
            }
            return true;
        }
        false
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn request_reopen(&self) {
        self.reopen.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether a reopening was asked for since the last call.
    pub(super) fn take_reopen(&self) -> bool {
        self.reopen.swap(false, Ordering::AcqRel)
    }

    /// Takes all records of each shard in turn; `spare` is an empty list that the shard goes on with, so that its
    /// room is used again.
    pub(super) fn drain(&self, spare: &mut Vec<LogRecord>, mut each: impl FnMut(LogRecord)) {
        for Shard(waiting) in &self.shards {
            {
                let mut waiting = waiting.lock();
                std::mem::swap(&mut waiting.records, spare);
                waiting.bytes = 0;
            }
            spare.drain(..).for_each(&mut each);
        }
    }

    /// Says that the writer is about to sleep without a limit. False where something came meanwhile.
    pub(super) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let idle = !self.is_closing()
            && !self.reopen.load(Ordering::Acquire)
            && self.shards.iter().all(|Shard(waiting)| waiting.lock().records.is_empty());
        if !idle {
            self.asleep.store(false, Ordering::Release);
        }
        idle
    }
}
