//! The one thread that writes. It may block as long as its target does; nobody waits for it but a shutdown, and that
//! with a limit.
//!
//! While lines come it lets them gather for a moment or until some chunks are full, so that a busy log costs one write
//! per chunk and fewer wake-ups; a line that comes after a pause is written at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::queue::{Chunk, Drain, Queue};
use crate::diagnostics::Diagnostics;
use crate::error::ObserveError;

/// How long lines are gathered while the log is busy. One that finds full chunks before its own waits once more.
const GATHER: Duration = Duration::from_millis(50);

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Appended to this file, which is made if missing (mode 0640).
    File(PathBuf),
}

pub(super) enum Output {
    Stdout,
    File {
        path: PathBuf,
        file: File,
    },
    #[cfg(test)]
    Any(Box<dyn Write + Send>),
}

impl Output {
    pub(super) fn open(target: LogTarget) -> Result<Self, ObserveError> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => match open(&path) {
                Ok(file) => Ok(Self::File { path, file }),
                Err(source) => Err(ObserveError::OpenLog { path, source }),
            },
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            Self::File { file, .. } => file.write_all(bytes),
            #[cfg(test)]
            Self::Any(sink) => sink.write_all(bytes),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

pub(super) struct LogWriter {
    queue: Arc<Queue>,
    output: Output,
    diagnostics: Diagnostics,
    /// A write failed somewhere inside a line; the next one starts on a line of its own.
    torn: bool,
}

impl LogWriter {
    pub(super) fn new(queue: Arc<Queue>, output: Output, diagnostics: Diagnostics) -> Self {
        Self { queue, output, diagnostics, torn: false }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        loop {
            // Both are read before the queue: what was pushed before the asking is written before the answer.
            let closing = queue.is_closing();
            let reopen = queue.take_reopen();
            let what = match (closing, reopen) {
                (true, _) => Drain::Last,
                (false, true) => Drain::All,
                (false, false) => Drain::Due,
            };
            let any = queue.drain(what, |chunk| self.write(chunk));
            if reopen {
                self.reopen();
            }
            if closing {
                return;
            }
            if any {
                std::thread::park_timeout(GATHER);
            } else if queue.may_sleep() {
                std::thread::park();
            }
        }
    }

    fn write(&mut self, chunk: &Chunk) {
        let separated = if self.torn { self.output.write_all(b"\n") } else { Ok(()) };
        let count = match separated.and_then(|()| self.output.write_all(&chunk.text)) {
            Ok(()) => {
                self.torn = false;
                &self.queue.written
            }
            Err(error) => {
                self.torn = true;
                self.diagnostics.error(
                    "access-log",
                    "write",
                    format_args!("access log: lines dropped: {error}"),
                );
                &self.queue.dropped
            }
        };
        count.fetch_add(chunk.lines, Ordering::Relaxed);
    }

    fn reopen(&mut self) {
        if let Output::File { path, file } = &mut self.output {
            match open(path) {
                Ok(new) => {
                    *file = new;
                    self.torn = false;
                }
                Err(error) => {
                    let path = path.display();
                    let message =
                        format_args!("access log: cannot reopen {path}, the old file is kept: {error}");
                    self.diagnostics.error("access-log", "reopen", message);
                }
            }
        }
    }
}
