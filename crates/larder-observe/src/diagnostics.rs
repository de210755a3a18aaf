//! larder's own messages on stderr: `larder: ...`, `larder: warning: ...`, `larder: error: ...`.
//!
//! In: a kind and a subject that say which messages are the same thing, and a text. Out: one line each, but the same
//! thing at most once per ten seconds, with the number of times it was left out; a flood of failures is a handful of
//! lines. Control characters are escaped and a line's length is bounded, since texts may quote what a peer sent.
//! Writing is done by a thread of its own behind a bounded queue, so that a stuck stderr never stops a worker.
//! Deliberately absent: verbosity levels and targets. What belongs to one exchange is in the access log.

use std::collections::HashMap;
use std::fmt::{self, Display, Write as _};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use larder_http::time::{Clock, Now};
use parking_lot::Mutex;

use crate::error::ObserveError;

/// The same thing is said at most once per this time.
const EVERY: Duration = Duration::from_secs(10);
/// Things remembered at once; beyond that new ones are only counted, together.
const THINGS_MAX: usize = 1024;
/// Lines that may wait for stderr.
const QUEUE_LINES: usize = 256;
/// A message's length in bytes before escaping; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 2048;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// News.
    Info,
    /// Something is not as it should be; larder goes on.
    Warning,
    /// Something that was asked for does not work.
    Error,
}

/// The messages' way out. Clones share it.
#[derive(Clone)]
pub struct Diagnostics {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    lines: Option<SyncSender<Line>>,
    things: Mutex<Things>,
}

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

enum Line {
    Text(String),
    Flush(SyncSender<()>),
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
        let shared = Arc::new(Shared { clock, lines: Some(lines), things: Mutex::default() });
        let weak = Arc::downgrade(&shared);
        let body = move || {
            write_lines(&received, sink, || match weak.upgrade() {
                Some(shared) => shared.overdue(),
                None => Vec::new(),
            });
        };
        match std::thread::Builder::new().name("diagnostics".into()).spawn(body) {
            Ok(_) => Ok(Self { shared }),
            Err(source) => Err(ObserveError::Thread { name: "diagnostics", source }),
        }
    }

    /// Messages to nowhere, for tests and tools.
    pub fn silent() -> Self {
        Self { shared: Arc::new(Shared { clock: Clock::default(), lines: None, things: Mutex::default() }) }
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
        self.shared.send(line(level, &message, left_out));
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

    fn send(&self, line: String) {
        let sent = self.lines.as_ref().is_none_or(|lines| lines.try_send(Line::Text(line)).is_ok());
        if !sent {
            self.things.lock().surplus += 1;
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
            lines.push(line(Level::Info, &format_args!("{surplus} other messages were left out"), 0));
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

fn line(level: Level, message: &dyn Display, left_out: u64) -> String {
    let mut text = Bounded(String::from("larder: "));
    text.0.push_str(match level {
        Level::Info => "",
        Level::Warning => "warning: ",
        Level::Error => "error: ",
    });
    let cut = write!(text, "{message}").is_err();
    let mut text = text.0;
    if cut {
        text.push_str("...");
    }
    if left_out > 0 {
        let _ = write!(text, " ({left_out} more since it was last said)");
    }
    text.push('\n');
    text
}

/// Takes text up to the limit, with controls escaped.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.0.len() >= MESSAGE_BYTES_MAX {
                return Err(fmt::Error);
            }
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                write!(self.0, "\\u{{{:x}}}", u32::from(c))?;
            } else {
                self.0.push(c);
            }
        }
        Ok(())
    }
}

/// Writes until all senders are gone; what cannot be written is lost, there is nowhere to say so.
fn write_lines(lines: &Receiver<Line>, mut sink: impl Write, overdue: impl Fn() -> Vec<String>) {
    let mut checked = Instant::now();
    loop {
        let next = lines.recv_timeout(EVERY.saturating_sub(checked.elapsed()));
        if let Ok(Line::Text(text)) = &next {
            let _ = sink.write_all(text.as_bytes());
        }
        if !matches!(next, Ok(Line::Text(_))) || checked.elapsed() >= EVERY {
            checked = Instant::now();
            overdue().iter().for_each(|text| drop(sink.write_all(text.as_bytes())));
        }
        match next {
            Ok(Line::Flush(done)) => {
                let _ = sink.flush();
                let _ = done.send(());
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(Line::Text(_)) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    const LIMIT: Duration = Duration::from_secs(10);

    fn said(act: impl FnOnce(&Diagnostics, &Clock)) -> String {
        let (sink, clock) = (Sink::default(), Clock::default());
        let diagnostics = Diagnostics::to(clock.clone(), sink.clone()).unwrap();
        act(&diagnostics, &clock);
        assert!(diagnostics.flush(LIMIT));
        let bytes = sink.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn levels_are_words_before_the_message() {
        let text = said(|d, _| {
            d.info("a", "", "ready");
            d.warn("b", "", "odd");
            d.error("c", "", "bad");
        });
        assert_eq!(text, "larder: ready\nlarder: warning: odd\nlarder: error: bad\n");
    }

    #[test]
    fn the_same_thing_is_said_once_in_ten_seconds_with_a_count() {
        let text = said(|d, clock| {
            for _ in 0..1000 {
                d.warn("origin", "app refused", "app: refused");
            }
            d.warn("origin", "app timeout", "app: timeout");
            clock.advance(EVERY);
            d.warn("origin", "app refused", "app: refused");
        });
        let expected = "larder: warning: app: refused\nlarder: warning: app: timeout\n\
                        larder: warning: app: refused (999 more since it was last said)\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_was_left_out_is_told_even_if_it_never_happens_again() {
        let text = said(|d, clock| {
            (0..3).for_each(|_| d.warn("origin", "app", "down"));
            clock.advance(EVERY);
        });
        assert_eq!(text, "larder: warning: down\nlarder: origin: app: 2 more\n");
    }

    #[test]
    fn a_flood_of_different_things_is_bounded() {
        let text = said(|d, _| (0..5000).for_each(|i| d.warn("k", &i.to_string(), "x")));
        assert!(text.lines().count() <= THINGS_MAX + 1);
        assert!(text.contains("other messages were left out"), "{text}");
    }

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        let text =
            said(|d, _| d.error("k", "", format!("a\nlarder: fake\x1b[2J\u{85}{}", "y".repeat(10_000))));
        assert_eq!(text.lines().count(), 1);
        assert!(text.starts_with("larder: error: a\\u{a}larder: fake\\u{1b}[2J\\u{85}yyy"), "{text}");
        assert!(text.len() < MESSAGE_BYTES_MAX + 100);
    }

    #[test]
    fn nothing_is_written_by_the_silent_one() {
        let silent = Diagnostics::silent();
        silent.error("k", "", "x");
        assert!(silent.flush(Duration::ZERO));
    }
}
