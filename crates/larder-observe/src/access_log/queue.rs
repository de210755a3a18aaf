//! Between the workers and the writer: one shard per worker, each under its own lock.
//!
//! ```text
//! worker: line, ending -> open --64 KiB--> full ...   writer: full, then open -> one write each -> spare
//! ```
//!
//! A worker writes a finished line at the end of its shard's open chunk. One that has grown to its size becomes full,
//! and when there are some of them the writer is woken; otherwise it comes by itself within a moment and takes what is
//! there. So a busy log costs one wake-up per some chunks and one write per chunk, and the few chunks that go around
//! stay in the processor's caches.
//!
//! A worker only tries the lock, since the writer holds it just long enough to move chunks; where that fails it uses
//! the next shard. The bound is in bytes, and counts what the writer has taken until that is written.
//!
//! No wake-up is lost: the writer sets `asleep` and then looks into each shard once more under its lock. A line added
//! after that look was added by a worker that took the lock later, and so sees `asleep`. No line is lost uncounted
//! either: the writer's last look closes each shard under its lock, and what comes later is dropped.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use parking_lot::Mutex;

use super::format::Format;
use super::line::LogLine;
use super::record::Ending;

/// A chunk is handed to the writer when it has grown to this.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Room for the line that makes it full; a longer one makes it grow.
const LAST_LINE_BYTES: usize = 4 * 1024;
/// Two of the longest lines; and what a worker logs while the writer writes a chunk.
const SHARD_BYTES_MIN: usize = 4 * CHUNK_BYTES;
/// So many full chunks wake the writer, or what fills a quarter of the room. Where it shares a core with the worker, a
/// wake-up and what is cold after it cost as much as the write of several chunks.
const WAKING: usize = 4;

/// Whole lines.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) text: Vec<u8>,
    pub(super) lines: u64,
}

/// What waits in one shard; on lines of its own, like everything that a worker writes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    open: Chunk,
    full: Vec<Chunk>,
    spare: Vec<Chunk>,
    /// In `open`, in `full`, and in the chunks that the writer has taken and not yet given back.
    bytes: usize,
    is_closed: bool,
}

impl Waiting {
    /// Adds a line; `None` where there is no room for it, else how many full chunks wait where that has made another.
    fn add(&mut self, line: &LogLine, ending: &Ending, bytes_max: usize) -> Option<usize> {
        if self.is_closed || self.bytes >= bytes_max {
            return None;
        }
        let text = &mut self.open.text;
        if text.capacity() == 0 {
            text.reserve_exact(CHUNK_BYTES + LAST_LINE_BYTES);
        }
        let before = text.len();
        line.write(ending, text);
        let after = self.bytes + (text.len() - before);
        if after > bytes_max {
            text.truncate(before);
            return None;
        }
        self.bytes = after;
        self.open.lines += 1;
        let is_full = text.len() >= CHUNK_BYTES;
        if is_full {
            let chunk = self.take_open();
            self.full.push(chunk);
        }
        Some(if is_full { self.full.len() } else { 0 })
    }

    fn take_open(&mut self) -> Chunk {
        let next = self.spare.pop().unwrap_or_default();
        std::mem::replace(&mut self.open, next)
    }

    fn is_empty(&self) -> bool {
        self.open.lines == 0 && self.full.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    shards: Box<[Shard]>,
    shard_bytes_max: usize,
    /// Full chunks of a shard that wake the writer.
    waking: usize,
    pub(super) format: Format,
    asleep: AtomicBool,
    closing: AtomicBool,
    reopen: AtomicBool,
    writer: OnceLock<Thread>,
    pub(super) dropped: AtomicU64,
    pub(super) written: AtomicU64,
}

impl Queue {
    /// Two shards at least, so that a worker that finds its own taken has another.
    pub(super) fn new(workers: usize, bytes: usize, format: Format) -> Self {
        let shards = workers.max(2);
        let shard_bytes_max = (bytes / shards).max(SHARD_BYTES_MIN);
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            shard_bytes_max,
            waking: (shard_bytes_max / SHARD_BYTES_MIN).min(WAKING),
            format,
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

    /// Adds a line or drops it; never waits.
    pub(super) fn push(&self, worker: usize, line: &LogLine, ending: &Ending) {
        let Some(full) = self.put(worker, line, ending) else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let is_due = full >= self.waking;
        if is_due || (self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel)) {
            self.wake();
        }
    }

    fn put(&self, worker: usize, line: &LogLine, ending: &Ending) -> Option<usize> {
        if line.format() != self.format {
            return None;
        }
        // A worker's number is nearly always that of a shard, and its shard free.
        let own = if worker < self.shards.len() { worker } else { worker % self.shards.len() };
        if let Some(mut waiting) = self.shards.get(own)?.0.try_lock() {
            return waiting.add(line, ending, self.shard_bytes_max);
        }
        let (before, from_own) = self.shards.split_at_checked(own)?;
        let mut free = from_own.iter().chain(before).filter_map(|Shard(waiting)| waiting.try_lock());
        free.next()?.add(line, ending, self.shard_bytes_max)
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

    /// Hands the chunks of each shard to `write`, oldest first. An open one is left to grow where there are full ones,
    /// unless `what` is more than what is due; a call later it is the oldest. Returns whether there was any.
    pub(super) fn drain(&self, what: Drain, mut write: impl FnMut(&Chunk)) -> bool {
        let mut any = false;
        let mut taken = Vec::new();
        for Shard(shard) in &self.shards {
            {
                let mut waiting = shard.lock();
                std::mem::swap(&mut taken, &mut waiting.full);
                if waiting.open.lines > 0 && (taken.is_empty() || what != Drain::Due) {
                    taken.push(waiting.take_open());
                }
                waiting.is_closed = what == Drain::Last;
            }
            for mut chunk in taken.drain(..) {
                any = true;
                write(&chunk);
                let bytes = chunk.text.len();
                chunk.text.clear();
                chunk.lines = 0;
                let mut waiting = shard.lock();
                waiting.bytes -= bytes;
                // As many as go around with the open one; one that a long line made grow is not kept.
                if waiting.spare.len() <= self.waking && chunk.text.capacity() <= 2 * CHUNK_BYTES {
                    waiting.spare.push(chunk);
                }
            }
        }
        any
    }

    /// Says that the writer is about to sleep without a limit. False where something came meanwhile.
    pub(super) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let idle = !self.is_closing()
            && !self.reopen.load(Ordering::Acquire)
            && self.shards.iter().all(|Shard(waiting)| waiting.lock().is_empty());
        if !idle {
            self.asleep.store(false, Ordering::Release);
        }
        idle
    }
}

/// What the writer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// What fills whole writes, and what has waited since the last time.
    Due,
    /// Everything.
    All,
    /// Everything, and nothing is accepted any more.
    Last,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use larder_http::time::WallTime;

    use super::super::record::LogRecord;

    use super::*;

    const ENDING: &Ending = &Ending {
        body_bytes: 0,
        complete: true,
        request_time: Duration::ZERO,
        stored: false,
        not_stored: None,
        page: None,
    };

    fn queue() -> (Queue, LogLine) {
        (Queue::new(1, 0, Format::Combined), line(Format::Combined))
    }

    fn line(format: Format) -> LogLine {
        LogRecord::new(WallTime(0), Ipv4Addr::LOCALHOST.into()).line(format)
    }

    fn dropped(queue: &Queue) -> u64 {
        queue.dropped.load(Ordering::Relaxed)
    }

    #[test]
    fn the_bound_counts_what_is_being_written() {
        let (queue, line) = queue();
        while dropped(&queue) == 0 {
            queue.push(0, &line, ENDING);
        }
        let mut bytes = 0;
        queue.drain(Drain::All, |chunk| {
            if bytes == 0 {
                queue.push(0, &line, ENDING);
                assert_eq!(dropped(&queue), 2, "room was given before it was free");
            }
            bytes += chunk.text.len();
        });
        assert!(bytes <= SHARD_BYTES_MIN && bytes > SHARD_BYTES_MIN - 1024, "{bytes}");
        queue.push(0, &line, ENDING);
        assert_eq!(dropped(&queue), 2);
    }

    #[test]
    fn the_writer_is_woken_before_much_of_the_room_is_used() {
        let line = line(Format::Combined);
        for (bytes, waking) in [(0, 1), (2 << 20, 4), (8 << 20, 4)] {
            let queue = Queue::new(1, bytes, Format::Combined);
            while queue.put(0, &line, ENDING).unwrap() < queue.waking {}
            let waiting = queue.shards[0].0.lock();
            assert_eq!(waiting.full.len(), waking);
            assert!(waiting.bytes <= queue.shard_bytes_max / 4 + waking * 1024, "{}", waiting.bytes);
        }
    }

    #[test]
    fn an_open_chunk_grows_until_there_is_no_full_one_before_it() {
        let (queue, line) = queue();
        let mut pushed = 0;
        while queue.put(0, &line, ENDING) == Some(0) {
            pushed += 1;
        }
        queue.push(0, &line, ENDING);
        let take = |what| {
            let mut lines = Vec::new();
            queue.drain(what, |chunk| lines.push(chunk.lines));
            lines
        };
        assert_eq!(take(Drain::Due), [pushed + 1]);
        assert!(!queue.may_sleep());
        assert_eq!(take(Drain::Due), [1]);
        assert!(queue.may_sleep());
        assert!(take(Drain::All).is_empty());
    }

    #[test]
    fn what_comes_after_the_last_look_is_dropped() {
        let (queue, line) = queue();
        queue.drain(Drain::Last, |_| {});
        queue.push(0, &line, ENDING);
        assert_eq!(dropped(&queue), 1);
        assert!(!queue.drain(Drain::All, |_| {}));
    }

    #[test]
    fn a_line_of_another_format_is_dropped() {
        let (queue, _) = queue();
        queue.push(0, &line(Format::Json), ENDING);
        assert_eq!(dropped(&queue), 1);
        assert!(!queue.drain(Drain::All, |_| {}));
    }
}
