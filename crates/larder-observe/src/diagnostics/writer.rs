//! The thread that writes messages. It may block as long as stderr does: only the end of the process waits for it, and that with a
//! limit.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use super::said::Said;

/// The same thing is said at most once per this time.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// What waits to be written.
pub(super) enum Line {
    Text(String),
    /// Somebody may want to hear it.
    Said(Said),
    /// Asks for a sign once all before it is written.
    Flush(SyncSender<()>),
}

pub(super) struct DiagnosticsWriter<W> {
    lines: Receiver<Line>,
    sink: W,
    /// A write failed, maybe inside a line; the next one starts on a line of its own.
    is_torn: bool,
    dropped: Arc<AtomicU64>,
}

impl<W: Write> DiagnosticsWriter<W> {
    pub(super) fn new(lines: Receiver<Line>, sink: W, dropped: Arc<AtomicU64>) -> Self {
        Self { lines, sink, is_torn: false, dropped }
    }

    /// Writes until all senders are gone.
    pub(super) fn run(mut self, overdue: impl Fn() -> Vec<String>, hear: impl Fn(&Said)) {
        let mut checked = Instant::now();
        loop {
            let next = self.lines.recv_timeout(EVERY.saturating_sub(checked.elapsed()));
            match &next {
                Ok(Line::Text(text)) => self.write(text),
                Ok(Line::Said(said)) => {
                    hear(said);
                    self.write(said.line());
                }
                Ok(Line::Flush(_)) | Err(_) => {}
            }
            if !matches!(next, Ok(Line::Text(_) | Line::Said(_))) || checked.elapsed() >= EVERY {
                checked = Instant::now();
                overdue().iter().for_each(|text| self.write(text));
            }
            match next {
                Ok(Line::Flush(done)) => {
                    let _ = self.sink.flush();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(Line::Text(_) | Line::Said(_)) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// What cannot be written is lost and counted, there is nowhere to say so.
    fn write(&mut self, text: &str) {
        let separated = if self.is_torn { self.sink.write_all(b"\n") } else { Ok(()) };
        self.is_torn = separated.and_then(|()| self.sink.write_all(text.as_bytes())).is_err();
        if self.is_torn {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
