//! A message that was said, with what it was said about.
//!
//! In: a level, a kind with its subject, and a text. Out: the line for stderr, and the message alone for those who hear it.

use std::fmt::Display;

use larder_http::time::WallTime;

use super::line::{Level, line, prefix};

/// A message that was said, once for all of its like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How bad it is.
    pub level: Level,
    /// What kind of thing.
    pub kind: &'static str,
    /// What it is about, such as the name of an origin.
    pub subject: Box<str>,
    /// When.
    pub at: WallTime,
    line: String,
}

impl Said {
    /// A message, and how many of its like were left out before.
    pub(crate) fn new(
        (level, kind, subject): (Level, &'static str, &str),
        at: WallTime,
        message: &dyn Display,
        left_out: u64,
    ) -> Self {
        Self { level, kind, subject: subject.into(), at, line: line(level, message, left_out) }
    }

    /// The line with its line feed.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// The message without level and line feed. Its controls are escaped.
    pub fn message(&self) -> &str {
        let message = self.line.trim_end_matches('\n');
        message.strip_prefix(prefix(self.level)).unwrap_or(message)
    }
}
