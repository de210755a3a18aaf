//! larder's own messages on stderr: `larder: ...`, `larder: warning: ...`, `larder: error: ...`.
//!
//! In: a kind and a subject that say which messages are the same thing, and a text. Out: one line each, but the same
//! thing at most once per ten seconds, with the number of times it was left out; a flood of failures is a handful of
//! lines. Control characters are escaped and a line's length is bounded, since texts may quote what a peer sent.
//! Writing is done by a thread of its own behind a bounded queue, so that a stuck stderr never stops a worker. A line that
//! finds no room there, or that stderr does not take, is dropped and counted.
//! Deliberately absent: verbosity levels and targets. What belongs to one exchange is in the access log.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use larder_http::time::{Clock, Now};
use parking_lot::{Mutex, RwLock};

mod line;
mod panics;
mod said;
#[cfg(test)]
mod tests;
mod writer;

pub use line::Level;
use line::line;
pub use said::Said;
use writer::{DiagnosticsWriter, EVERY, Line};

use crate::error::ObserveError;
use crate::exposition::Exposition;
use crate::family;

/// Things remembered at once; beyond that new ones are only counted, together.
const THINGS_MAX: usize = 1024;
/// Lines that may wait for stderr.
const QUEUE_LINES: usize = 256;
/// The length in bytes of a text that has a form of its own; the rest is cut at the end of a line.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The messages' way out. Clones share it.
#[derive(Clone)]
pub struct Diagnostics {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    lines: Option<SyncSender<Line>>,
    things: Mutex<Things>,
    /// Hears what is said.
    hearer: RwLock<Option<Hearer>>,
    /// Messages that were not written, since the start.
    dropped: Arc<AtomicU64>,
}

/// What is called with each message, on the thread that writes it.
type Hearer = Box<dyn Fn(&Said) + Send + Sync>;

/// What was said lately; the lock is held for a look-up, never while writing.
#[derive(Default)]
struct Things {
    known: HashMap<(&'static str, Box<str>), Thing>,
    swept: Option<Now>,
    /// Left out because too many different things happened, or stderr was stuck.
    surplus: u64,
}

struct Thing {
    said: Now,
    left_out: u64,
}

impl Diagnostics {
    /// Messages to stderr.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn stderr(clock: Clock) -> Result<Self, ObserveError> {
        Self::to(clock, std::io::stderr())
    }

    /// Messages to `sink`.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn to(clock: Clock, sink: impl Write + Send + 'static) -> Result<Self, ObserveError> {
        let (lines, received) = sync_channel(QUEUE_LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = DiagnosticsWriter::new(received, sink, Arc::clone(&dropped));
        let shared = Arc::new(Shared {
            clock,
            lines: Some(lines),
            things: Mutex::default(),
            hearer: RwLock::default(),
            dropped,
        });
        let weak = Arc::downgrade(&shared);
        let body = move || {
            let overdue = || weak.upgrade().map_or_else(Vec::new, |shared| shared.overdue());
            let hear = |said: &Said| {
                if let Some(shared) = weak.upgrade()
                    && let Some(hearer) = &*shared.hearer.read()
                {
                    hearer(said);
                }
            };
            writer.run(overdue, hear);
        };
        match std::thread::Builder::new().name("diagnostics".into()).spawn(body) {
            Ok(_) => Ok(Self { shared }),
            Err(source) => Err(ObserveError::Thread { name: "diagnostics", source }),
        }
    }

    /// Messages to nowhere, for tests and tools.
    pub fn silent() -> Self {
        let (clock, dropped) = (Clock::default(), Arc::default());
        let (things, hearer) = (Mutex::default(), RwLock::default());
        Self { shared: Arc::new(Shared { clock, lines: None, things, hearer, dropped }) }
    }

    /// Calls `hearer` with each message from now on that [`Diagnostics::say`] does not leave out, in place of an earlier hearer. It is called
    /// on the thread that writes messages, before the message is written; with a stuck stderr it is not called any more.
    pub fn hear(&self, hearer: impl Fn(&Said) + Send + Sync + 'static) {
        *self.shared.hearer.write() = Some(Box::new(hearer));
    }

    /// News; see [`Diagnostics::say`].
    pub fn info(&self, kind: &'static str, subject: &str, message: impl Display) {
        self.say(Level::Info, kind, subject, message);
    }

    /// A warning; see [`Diagnostics::say`].
    pub fn warn(&self, kind: &'static str, subject: &str, message: impl Display) {
        self.say(Level::Warning, kind, subject, message);
    }

    /// An error; see [`Diagnostics::say`].
    pub fn error(&self, kind: &'static str, subject: &str, message: impl Display) {
        self.say(Level::Error, kind, subject, message);
    }

    /// Says `message` unless the same kind was said about the same subject within the last ten seconds; then it is
    /// counted. `subject` tells apart what should be said apart (an origin's name and the reason, not a URL).
    /// Never waits; the text is not made where it is not said.
    pub fn say(&self, level: Level, kind: &'static str, subject: &str, message: impl Display) {
        let Some(left_out) = self.shared.may_say(kind, subject) else {
            return;
        };
        let at = self.shared.clock.now().wall;
        self.shared.send(Line::Said(Said::new((level, kind, subject), at, &message, left_out)));
    }

    /// Says `message` each time, however soon it comes again: the answer to what an operator did.
    pub fn tell(&self, level: Level, message: impl Display) {
        self.shared.send(Line::Text(line(level, &message, 0)));
    }

    /// Prints a text of larder's own as it is: of several lines, or in a form of its own. What peers or files say in it has
    /// to be escaped already.
    pub fn print(&self, text: impl Display) {
        let mut text = text.to_string();
        if text.len() > TEXT_BYTES_MAX {
            let end = text.floor_char_boundary(TEXT_BYTES_MAX);
            let end = text.get(..end).and_then(|kept| kept.rfind('\n')).unwrap_or(end);
            text.truncate(end);
            text.push_str("\n...");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.shared.send(Line::Text(text));
    }

    /// Messages that were not written: there was no room in the queue, or stderr failed.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Adds the family of the messages.
    pub fn expose(&self, out: &mut Exposition) {
        out.family(&family::MESSAGES_DROPPED).value(&[], self.dropped());
    }

    /// Waits for at most `limit` until what was said is written. Blocks the calling thread, so it is for the end of
    /// the process. False where the time did not suffice.
    pub fn flush(&self, limit: Duration) -> bool {
        let Some(lines) = &self.shared.lines else {
            return true;
        };
        let (done, written) = sync_channel(1);
        let mut request = Line::Flush(done);
        let started = Instant::now();
        loop {
            match lines.try_send(request) {
                Ok(()) => {
                    return written.recv_timeout(limit.saturating_sub(started.elapsed())).is_ok();
                }
                Err(TrySendError::Disconnected(_)) => return true,
                Err(TrySendError::Full(back)) => request = back,
            }
            if started.elapsed() >= limit {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Diagnostics")
    }
}

impl Shared {
    /// How many times the same was left out before, or `None` where it is to be left out now.
    fn may_say(&self, kind: &'static str, subject: &str) -> Option<u64> {
        let now = self.clock.now();
        let mut things = self.things.lock();
        if things.known.len() >= THINGS_MAX {
            things.sweep(now);
        }
        let full = things.known.len() >= THINGS_MAX;
        match things.known.get_mut(&(kind, Box::from(subject)) as &(&'static str, Box<str>)) {
            Some(thing) if now.since(&thing.said) < EVERY => {
                thing.left_out += 1;
                None
            }
            Some(thing) => {
                thing.said = now;
                Some(std::mem::take(&mut thing.left_out))
            }
            None if full => {
                things.surplus += 1;
                None
            }
            None => {
                things.known.insert((kind, subject.into()), Thing { said: now, left_out: 0 });
                Some(0)
            }
        }
    }

    fn send(&self, line: Line) {
        let sent = self.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_ok());
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            // A panic may be told from within the lock.
            if let Some(mut things) = self.things.try_lock() {
                things.surplus += 1;
            }
        }
    }

    /// Lines about what was left out and has not been said since.
    fn overdue(&self) -> Vec<String> {
        let now = self.clock.now();
        let mut things = self.things.lock();
        let mut lines = Vec::new();
        for ((kind, subject), thing) in &mut things.known {
            if thing.left_out > 0 && now.since(&thing.said) >= EVERY {
                let times = std::mem::take(&mut thing.left_out);
                let message = format_args!("{kind}: {subject}: {times} more");
                lines.push(line(Level::Info, &message, 0));
                thing.said = now;
            }
        }
        if things.surplus > 0 {
            let surplus = std::mem::take(&mut things.surplus);
            let messages = if surplus == 1 { "message was" } else { "messages were" };
            lines.push(line(Level::Info, &format_args!("{surplus} other {messages} left out"), 0));
        }
        things.sweep(now);
        lines
    }
}

impl Things {
    /// Forgets what is over, at most once a second, so that a flood of new things does not make each of them costly.
    fn sweep(&mut self, now: Now) {
        if self.swept.is_none_or(|swept| now.since(&swept) >= Duration::from_secs(1)) {
            self.swept = Some(now);
            self.known.retain(|_, thing| thing.left_out > 0 || now.since(&thing.said) < EVERY);
        }
    }
}
