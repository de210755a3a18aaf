//! Where a directive or a tag ends: at its terminator, outside of quoted values.
//!
//! In: the bytes of a directive, as many as there are, and again with more of them. Out: its length, once it is known. A quote
//! opens a value only behind `=`: an apostrophe in a comment opens nothing. No byte is looked at twice.

/// The search for an end. It goes on where it stopped when there were no more bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndSearch {
    seen: usize,
    quote: Option<u8>,
    is_value_next: bool,
}

/// What ends it, and how values are quoted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) terminator: &'static [u8],
    pub(super) quotes: &'static [u8],
    /// Whether a backslash takes the meaning from a quote.
    pub(super) escapes: bool,
}

impl EndSearch {
    /// The length up to and with the terminator; `None` where it is not there yet. `start` is how long the marker is.
    pub(super) fn end(&mut self, text: &[u8], start: usize, ending: Ending, ended: bool) -> Option<usize> {
        self.seen = self.seen.max(start);
        while let Some(byte) = text.get(self.seen) {
            let mut step = 1;
            match self.quote {
                Some(_) if *byte == b'\\' && ending.escapes => {
                    if text.len() < self.seen + 2 && !ended {
                        return None;
                    }
                    step = 2;
                }
                Some(quote) => {
                    if *byte == quote {
                        self.quote = None;
                    }
                }
                None => {
                    let rest = text.get(self.seen..).unwrap_or_default();
                    if rest.starts_with(ending.terminator) {
                        return Some(self.seen + ending.terminator.len());
                    }
                    if ending.terminator.starts_with(rest) && !ended {
                        return None;
                    }
                    if self.is_value_next && ending.quotes.contains(byte) {
                        self.quote = Some(*byte);
                    }
                    if !byte.is_ascii_whitespace() {
                        self.is_value_next = *byte == b'=';
                    }
                }
            }
            self.seen += step;
        }
        None
    }
}
