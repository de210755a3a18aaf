//! A line that waits for its exchange's end.
//!
//! In: a record, when the head of the response is known; it only borrows what the request holds. Out: the line as text,
//! all but the few numbers that are known at the end, which stand in one place of it. So a peer's text is copied and
//! escaped once, no read buffer is kept alive by a response that takes long, and what is held is bounded.
//! Most responses leave before their worker does anything else: each thread keeps the buffer of the last line for the
//! next, and such a line allocates nothing. Nothing in it is shared with another worker: a count of references that two
//! of them write would cost more than the copy.

use std::cell::Cell;

use super::format::Format;
use super::record::{Ending, LogRecord};
use super::{combined, json};

/// Room that a buffer begins with; most lines are shorter.
const ROOM: usize = 640;
/// A buffer that has grown beyond this is not kept for the next line.
const KEPT_BYTES_MAX: usize = 4 * 1024;

thread_local! {
    static KEPT: Cell<Option<Box<Text>>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    /// Where the numbers are missing.
    gap: usize,
    format: Format,
}

/// What an exchange's line says that is known before its end. Made by [`LogRecord::line`]; to drop it is to log nothing.
#[derive(Debug)]
pub struct LogLine(Box<Text>);

impl LogRecord<'_> {
    /// What is known of the line, which is finished by [`AccessLog::write`](super::AccessLog::write).
    #[inline]
    pub fn line(&self, format: Format) -> LogLine {
        LogLine::new(self, format)
    }
}

impl LogLine {
    #[inline]
    pub(super) fn new(record: &LogRecord<'_>, format: Format) -> Self {
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        let mut text =
            kept.unwrap_or_else(|| Box::new(Text { bytes: Vec::with_capacity(ROOM), gap: 0, format }));
        text.bytes.clear();
        text.format = format;
        text.gap = match format {
            Format::Json => json::write(record, &mut text.bytes),
            Format::Combined => combined::write(record, &mut text.bytes),
        };
        Self(text)
    }

    pub(super) fn format(&self) -> Format {
        self.0.format
    }

    /// Appends the whole line, with its line feed.
    #[inline]
    pub(super) fn write(&self, ending: &Ending, out: &mut Vec<u8>) {
        let (front, back) = self.0.bytes.split_at_checked(self.0.gap).unwrap_or_default();
        out.extend_from_slice(front);
        match self.0.format {
            Format::Json => json::write_ending(ending, out),
            Format::Combined => combined::write_ending(ending, out),
        }
        out.extend_from_slice(back);
    }

    /// Leaves the buffer to the thread's next line.
    #[inline]
    pub(super) fn recycle(self) {
        if self.0.bytes.capacity() <= KEPT_BYTES_MAX {
            // A thread that ends has no next one.
            let _ = KEPT.try_with(|kept| kept.set(Some(self.0)));
        }
    }
}
