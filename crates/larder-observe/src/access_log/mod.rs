//! The access log: one line per exchange, as JSON or in the combined format of Apache and nginx.
//!
//! In: a [`LogRecord`] that a worker fills when a response has its head and makes a [`LogLine`] of, and the [`Ending`]
//! that completes it. Out: lines on stdout or appended to a file, by one thread of its own. A worker never waits and
//! never makes a system call per line: it copies the line into its shard of a queue that is bounded in bytes, and where
//! there is no room the line is dropped and counted. Only whole chunks of lines change hands, since moving a record to
//! another thread costs more than to write it where it is.
//! The order of lines is only roughly that of the events.
//! What a peer sent is escaped so that no byte of it can end a line, leave its quotes or reach a terminal as a
//! control. Each text is cut at a length of its own, so a line's length is bounded.
//! Deliberately absent: rotation. An outside tool renames the file, [`AccessLog::reopen`] opens it anew.

mod calendar;
mod combined;
pub(crate) mod decimal;
pub(crate) mod escape;
mod format;
mod json;
mod line;
mod queue;
mod record;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;

use crate::diagnostics::Diagnostics;
use crate::error::ObserveError;
use crate::exposition::Exposition;
use crate::family;
use queue::Queue;
use writer::{LogWriter, Output};

pub use format::Format;
pub(crate) use json::FIELDS;
pub use line::LogLine;
pub use record::{Ending, LogRecord, LoggedRule, PageEnding, Text};
pub use writer::LogTarget;

/// The most bytes that one line can have, its line feed included.
pub const LINE_BYTES_MAX: usize = 128 * 1024;

/// How to log.
#[derive(Clone, Debug)]
pub struct AccessLogOptions {
    /// Default JSON.
    pub format: Format,
    /// No default.
    pub target: LogTarget,
    /// How many workers write; each gets a shard of the queue.
    pub workers: usize,
    /// The most bytes of lines that wait to be written, over all workers; at least 256 KiB per worker is given.
    /// 8 MiB is some 15 000 lines.
    pub queue_bytes: usize,
}

impl AccessLogOptions {
    /// JSON for one worker, with 8 MiB of lines that may wait.
    pub fn new(target: LogTarget) -> Self {
        Self { format: Format::Json, target, workers: 1, queue_bytes: 8 * 1024 * 1024 }
    }
}

/// A running access log. Clones share it; when the last is dropped, what waits is written and the thread ends.
#[derive(Clone, Debug)]
pub struct AccessLog {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    ended: Mutex<Receiver<()>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl AccessLog {
    /// Opens the target and starts the writing thread. What goes wrong later is said through `diagnostics`.
    ///
    /// # Errors
    /// The file cannot be opened, or no thread started.
    pub fn open(options: &AccessLogOptions, diagnostics: Diagnostics) -> Result<Self, ObserveError> {
        Self::start(Output::open(options.target.clone())?, options, diagnostics)
    }

    fn start(
        output: Output,
        options: &AccessLogOptions,
        diagnostics: Diagnostics,
    ) -> Result<Self, ObserveError> {
        let queue = Arc::new(Queue::new(options.workers, options.queue_bytes, options.format));
        let writer = LogWriter::new(Arc::clone(&queue), output, diagnostics);
        let (end, ended) = std::sync::mpsc::sync_channel(1);
        let body = move || {
            writer.run();
            let _ = end.send(());
        };
        let thread = std::thread::Builder::new().name("access-log".into()).spawn(body);
        let thread = thread.map_err(|source| ObserveError::Thread { name: "access-log", source })?;
        queue.set_writer(thread.thread().clone());
        Ok(Self { handle: Arc::new(Handle { queue, ended: Mutex::new(ended) }) })
    }

    /// How its lines look.
    pub fn format(&self) -> Format {
        self.handle.queue.format
    }

    /// Logs one exchange. Never waits: without room the line is dropped and counted, and so is one of another format,
    /// which was begun for a log before this one. `worker` selects the shard.
    #[inline]
    pub fn write(&self, worker: usize, line: LogLine, ending: &Ending) {
        self.handle.queue.push(worker, &line, ending);
        line.recycle();
    }

    /// Asks the writer to write what waits and then open its file anew, as after a rotation. Returns at once; where
    /// the file cannot be opened the old one is kept, and that is said. Nothing happens with stdout.
    pub fn reopen(&self) {
        self.handle.queue.request_reopen();
    }

    /// Lines dropped so far: no room in the queue, or a target that failed.
    pub fn dropped(&self) -> u64 {
        self.handle.queue.dropped.load(Ordering::Relaxed)
    }

    /// Lines written so far.
    pub fn written(&self) -> u64 {
        self.handle.queue.written.load(Ordering::Relaxed)
    }

    /// Adds the log's own families.
    pub fn expose(&self, out: &mut Exposition) {
        out.family(&family::LOG_LINES).value(&[], self.written());
        out.family(&family::LOG_DROPPED).value(&[], self.dropped());
    }

    /// Stops taking lines, and waits for at most `limit` until what was taken is written. Blocks the calling thread,
    /// so it is for the end of the process. True where everything was written in time.
    pub fn close(&self, limit: Duration) -> bool {
        self.handle.queue.close();
        !matches!(self.handle.ended.lock().recv_timeout(limit), Err(RecvTimeoutError::Timeout))
    }
}

#[cfg(test)]
mod tests;
