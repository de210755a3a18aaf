//! A stream of events as a larder writes it, read piece by piece (HTML, "Server-sent events").
//!
//! In: the bytes of a `text/event-stream`, cut anywhere. Out: its blocks, each with the name of the event and its data; the
//! same ones wherever the pieces were cut. Any bytes are read: what is no UTF-8 becomes U+FFFD, unknown fields are left out.
//! A line and a block have a largest size; what is longer is a fault, and ends the reading.
//! Deliberately absent: `id` and `retry`. Whoever reads decides when to connect again.

use bytes::{Buf as _, Bytes};

/// The most bytes of a line, and of the data of one block, where nothing else is said.
pub(in crate::cli) const STREAM_LINE_BYTES_MAX: usize = 64 * 1024;
/// What may stand before the first line.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The name of a block that gives none.
const UNNAMED: &str = "message";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct StreamBlock {
    pub(in crate::cli) name: String,
    pub(in crate::cli) data: String,
}

/// A line or a block beyond its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the stream is longer than {} KiB", .0 / 1024)]
pub(in crate::cli) struct LineTooLong(usize);

/// What was read so far.
#[derive(Debug)]
pub(in crate::cli) struct StreamReader {
    bytes_max: usize,
    /// Came, and is not looked at yet.
    ahead: Bytes,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed behind it belongs to it.
    is_after_return: bool,
    has_begun: bool,
    name: String,
    data: Option<String>,
    is_broken: bool,
}

impl Default for StreamReader {
    fn default() -> Self {
        Self::new(STREAM_LINE_BYTES_MAX)
    }
}

impl StreamReader {
    /// Has read nothing yet, and takes no line and no block beyond so many bytes.
    pub(in crate::cli) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            ahead: Bytes::new(),
            line: Vec::new(),
            is_after_return: false,
            has_begun: false,
            name: String::new(),
            data: None,
            is_broken: false,
        }
    }

    /// Takes the next bytes. [`Self::next`] has to have come to its end before.
    pub(in crate::cli) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.is_broken || self.ahead.is_empty(), "blocks were left behind");
        self.ahead = bytes;
    }

    /// The next block of what came; `None` where more has to come.
    ///
    /// # Errors
    /// There was a line that is too long; from then on there is nothing else.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<StreamBlock>, LineTooLong> {
        while !self.is_broken && !self.ahead.is_empty() {
            if std::mem::take(&mut self.is_after_return) && self.ahead.first() == Some(&b'\n') {
                self.ahead.advance(1);
                continue;
            }
            let end = self.ahead.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = self.ahead.split_to(end.unwrap_or(self.ahead.len()));
            if self.line.len() + part.len() > self.bytes_max {
                self.is_broken = true;
                break;
            }
            self.line.extend_from_slice(&part);
            if end.is_none() {
                break;
            }
            self.is_after_return = self.ahead.first() == Some(&b'\r');
            self.ahead.advance(1);
            let line = std::mem::take(&mut self.line);
            if let Some(block) = self.line_ended(&line) {
                return Ok(Some(block));
            }
        }
        match self.is_broken {
            true => Err(LineTooLong(self.bytes_max)),
            false => Ok(None),
        }
    }

    fn line_ended(&mut self, line: &[u8]) -> Option<StreamBlock> {
        let line = String::from_utf8_lossy(line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let name = if name.is_empty() { UNNAMED.to_owned() } else { name };
            return self.data.take().map(|data| StreamBlock { name, data });
        }
        // A comment is a field without a name.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.more_data(value),
            _ => {}
        }
        None
    }

    fn more_data(&mut self, value: &str) {
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) if data.len() + value.len() >= self.bytes_max => self.is_broken = true,
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_testkit::dice::Dice;

    use super::*;

    /// All blocks as "name=data", and whether it ended with a fault.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let (mut reader, mut blocks) = (StreamReader::default(), Vec::new());
        for piece in pieces {
            reader.push(Bytes::copy_from_slice(piece));
            loop {
                match reader.next() {
                    Ok(Some(StreamBlock { name, data })) => blocks.push(format!("{name}={data}")),
                    Ok(None) => break,
                    Err(LineTooLong(_)) => return (blocks, true),
                }
            }
        }
        (blocks, false)
    }

    fn check(text: &str, expected: &[&str]) {
        let (blocks, is_broken) = read(&[text.as_bytes()]);
        assert_eq!(blocks, expected, "{text:?}");
        assert!(!is_broken, "{text:?}");
    }

    #[test]
    fn a_block_ends_with_an_empty_line_and_comments_are_left_out() {
        check("event: request\ndata: {\"a\":1}\n\n", &["request={\"a\":1}"]);
        check(": hello\n\nevent: a\ndata: 1\n: between\ndata: 2\n\n:\n\n", &["a=1\n2"]);
        check("event:a\rdata:1\r\rdata: 2\r\n\r\n", &["a=1", "message=2"]);
        check("event: a\r\ndata: 1\r\ndata: 2\r\n\r\n", &["a=1\n2"]);
        check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &["message=1"]);
        // A name without data is no event, and is not the next one's; unknown fields are left out.
        check("event: a\n\ndata: 1\n\n", &["message=1"]);
        check("id: 7\nretry: 1\nrubbish\ndata\n\n", &["message="]);
        check("data: not yet", &[]);
        check("data: not yet\n", &[]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(read(&[b"data: a\xff\xc3\n\n"]).0, ["message=a\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn what_is_too_long_ends_the_reading_and_takes_no_memory() {
        let long = "x".repeat(STREAM_LINE_BYTES_MAX);
        let (blocks, is_broken) = read(&[b"data: 1\n\ndata: ", long.as_bytes(), b"\n\ndata: 2\n\n"]);
        assert_eq!((blocks, is_broken), (vec!["message=1".to_owned()], true));
        // As many short lines as one likes are too long as well.
        let lines = "data: 0123456789\n".repeat(STREAM_LINE_BYTES_MAX / 10);
        assert_eq!(read(&[lines.as_bytes(), b"\n"]), (Vec::new(), true));
        let most = "x".repeat(STREAM_LINE_BYTES_MAX - "data:".len());
        let (blocks, is_broken) = read(&[b"data:", most.as_bytes(), b"\n\n"]);
        assert_eq!((blocks.len(), is_broken), (1, false));
        let mut reader = StreamReader::default();
        for _ in 0..100 {
            reader.push(Bytes::from(long.clone()));
            while let Ok(Some(_)) = reader.next() {}
            assert!(reader.line.len() <= STREAM_LINE_BYTES_MAX);
        }
    }

    /// Bytes of which much is nearly a stream of events.
    fn drawn(dice: &mut Dice) -> Vec<u8> {
        let words: [&[u8]; 14] = [
            b"event",
            b"data",
            b":",
            b": ",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b" ",
            b"{}",
            b"\xef\xbb\xbf",
            b"\xff",
            b"id: 1\n",
            b"data: x\n\n",
        ];
        let mut bytes = Vec::new();
        for _ in 0..dice.below(40) {
            match usize::try_from(dice.below(words.len() as u64 + 1)).ok().and_then(|at| words.get(at)) {
                Some(word) => bytes.extend_from_slice(word),
                None if dice.percent(3) => bytes.resize(bytes.len() + STREAM_LINE_BYTES_MAX - 3, b'y'),
                None => bytes.push(dice.draw() as u8),
            }
        }
        bytes
    }

    #[test]
    fn any_bytes_are_read_and_give_the_same_wherever_they_are_cut() {
        let mut dice = Dice::new(1);
        let mut found = 0;
        for _ in 0..4000 {
            let bytes = drawn(&mut dice);
            let whole = read(&[&bytes]);
            found += whole.0.len();
            let mut pieces = Vec::new();
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(dice.below(rest.len().min(9) as u64 + 1) as usize);
                pieces.push(piece);
                rest = behind;
            }
            assert_eq!(read(&pieces), whole, "{:?}", String::from_utf8_lossy(&bytes));
            if bytes.len() < 500 {
                assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), whole);
            }
        }
        assert!(found > 1000, "{found} blocks are too few to say anything");
    }
}
