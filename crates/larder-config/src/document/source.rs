//! The text of a config, and which line and column a byte of it has.
//!
//! In: text and byte ranges. Out: positions from 1, columns in characters as editors count them, and short quotes.

use std::ops::Range;

/// The longest quote of the file in a message, in characters.
const QUOTE_CHARS_MAX: usize = 60;

/// A file's name and text.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let line_feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(line_feeds.map(|(index, _)| index + 1)).collect();
        Self { file, text, line_starts }
    }

    /// Line and column of a byte.
    pub(crate) fn position(&self, byte: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= byte).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let end = byte.min(self.text.len());
        // A span of the parser may end inside a character where the text is broken there.
        let before = self.text.as_bytes().get(start..end).unwrap_or_default();
        let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        (line, characters + 1)
    }

    /// The text of a range, on one line and shortened.
    pub(crate) fn quote(&self, range: Range<usize>) -> String {
        shorten(self.text.get(range).unwrap_or_default())
    }
}

/// `text` on one line, without controls, at most [`QUOTE_CHARS_MAX`] characters of it.
pub(crate) fn shorten(text: &str) -> String {
    let mut short = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == QUOTE_CHARS_MAX {
            short.push_str("...");
            break;
        }
        match character {
            character if character.is_control() => short.extend(character.escape_default()),
            character => short.push(character),
        }
    }
    short
}
