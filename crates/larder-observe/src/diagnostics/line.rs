//! A message as a line: its level in words, its controls escaped, its length bounded.
//!
//! In: a level, a message, and how often it was left out. Out: the line with its line feed.

use std::fmt::{self, Display, Write as _};

/// A message's length in bytes before escaping; the rest is cut.
pub(super) const MESSAGE_BYTES_MAX: usize = 2048;

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

/// In front of each message.
pub(super) const fn prefix(level: Level) -> &'static str {
    match level {
        Level::Info => "larder: ",
        Level::Warning => "larder: warning: ",
        Level::Error => "larder: error: ",
    }
}

/// A message as a line.
pub(super) fn line(level: Level, message: &dyn Display, left_out: u64) -> String {
    let mut text = Bounded(prefix(level).to_owned());
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
