//! What servers reply, and how it is read.
//!
//! In: bytes, cut anywhere. Out: whole [`Reply`]s in their order, or [`Malformed`], after which nothing on that connection can be
//! believed. Whatever is sent, a line takes at most [`LINE_MAX`] bytes of memory, and a value at most the limit of its reader. A length
//! that is announced reserves little; the rest follows what has arrived. A length is digits and nothing else: nginx 1.19.1 once
//! took a malformed one for a negative size.
//! Replies that no request of this crate can have, such as those of `incr`, are malformed.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::LINE_END;
use crate::reply::{Reply, Ttl, Value};

/// The longest line: a key of 250 bytes, some numbers, or the text of an error.
const LINE_MAX: usize = 2048;
/// What is reserved for a value before any of it has arrived.
const RESERVED: usize = 64 * 1024;

/// Why what came is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A line is none of the protocol's.
    Line,
    /// A line does not end.
    LongLine,
    /// A value does not end where its length says.
    Ending,
    /// A value is longer than the reader takes.
    TooLarge,
}

/// Reads the replies of one connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    value_max: usize,
    /// Bytes of the line that have been searched for its end.
    searched: usize,
}

#[derive(Debug)]
enum State {
    Line,
    /// The rest of a value, and its line end.
    Body {
        value: Value,
        body: Vec<u8>,
        rest: usize,
        is_classic: bool,
    },
    /// What has to follow literally.
    Ending {
        value: Value,
        ending: &'static [u8],
    },
}

impl Decoder {
    /// Takes values of up to `value_max` bytes.
    pub(crate) fn new(value_max: usize) -> Self {
        Self { state: State::Line, value_max, searched: 0 }
    }

    /// Takes the next reply out of `inbox`, or as much of it as is there.
    ///
    /// # Errors
    /// What came is no reply. The connection has to be closed.
    pub(crate) fn read(&mut self, inbox: &mut BytesMut) -> Result<Option<Reply>, Malformed> {
        loop {
            match std::mem::replace(&mut self.state, State::Line) {
                State::Line => {
                    let Some(line) = self.line(inbox)? else { return Ok(None) };
                    match parse(&line, self.value_max)? {
                        Parsed::Reply(reply) => return Ok(Some(reply)),
                        Parsed::Value { value, length, is_classic } => {
                            let body = Vec::with_capacity(length.min(RESERVED));
                            self.state = State::Body { value, body, rest: length, is_classic };
                        }
                    }
                }
                State::Body { mut value, mut body, rest, is_classic } => {
                    let rest = move_into(&mut body, rest, inbox);
                    if rest > 0 {
                        self.state = State::Body { value, body, rest, is_classic };
                        return Ok(None);
                    }
                    value.body = body.into();
                    let ending = if is_classic { b"\r\nEND\r\n" } else { LINE_END };
                    self.state = State::Ending { value, ending };
                }
                State::Ending { value, ending } => {
                    let there = inbox.len().min(ending.len());
                    if inbox.get(..there) != ending.get(..there) {
                        return Err(Malformed::Ending);
                    }
                    if there < ending.len() {
                        self.state = State::Ending { value, ending };
                        return Ok(None);
                    }
                    inbox.advance(there);
                    return Ok(Some(Reply::Value(value)));
                }
            }
        }
    }

    /// A line without its end.
    fn line(&mut self, inbox: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        let new = inbox.get(self.searched..).unwrap_or_default();
        let Some(at) = new.iter().position(|byte| *byte == b'\n') else {
            self.searched = inbox.len();
            return if self.searched > LINE_MAX { Err(Malformed::LongLine) } else { Ok(None) };
        };
        let end = std::mem::take(&mut self.searched) + at + 1;
        if end > LINE_MAX {
            return Err(Malformed::LongLine);
        }
        let line = inbox.split_to(end);
        let line = line.strip_suffix(LINE_END).ok_or(Malformed::Line)?;
        Ok(Some(Bytes::copy_from_slice(line)))
    }
}

/// Moves up to `rest` bytes, and returns how many are missing then.
fn move_into(body: &mut Vec<u8>, rest: usize, inbox: &mut BytesMut) -> usize {
    let arrived = inbox.split_to(rest.min(inbox.len()));
    if body.capacity() - body.len() < arrived.len() {
        // Twice as much each time, and exactly the announced length in the end.
        body.reserve_exact(arrived.len().max(body.len()).min(rest));
    }
    body.extend_from_slice(&arrived);
    rest - arrived.len()
}

enum Parsed {
    Reply(Reply),
    Value { value: Value, length: usize, is_classic: bool },
}

fn parse(line: &Bytes, value_max: usize) -> Result<Parsed, Malformed> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let text = || String::from_utf8_lossy(line).into_owned();
    let plain = match first {
        b"VA" => return meta_value(line, words, value_max),
        b"VALUE" => return classic_value(line, words, value_max),
        b"EN" => return Ok(Parsed::Reply(Reply::Absent(key_among(line, words)))),
        b"CLIENT_ERROR" => return Ok(Parsed::Reply(Reply::ClientError(text()))),
        b"SERVER_ERROR" => return Ok(Parsed::Reply(Reply::ServerError(text()))),
        b"END" => Reply::Absent(None),
        b"STORED" => Reply::Stored,
        b"NOT_STORED" => Reply::NotStored,
        b"DELETED" => Reply::Deleted,
        b"NOT_FOUND" => Reply::NotFound,
        b"MN" => Reply::NoOp,
        b"ERROR" => Reply::Unknown,
        _ => return Err(Malformed::Line),
    };
    // These stand alone.
    if words.next().is_some() { Err(Malformed::Line) } else { Ok(Parsed::Reply(plain)) }
}

/// `VA LENGTH kKEY fFLAGS tTTL`, in any order and with others between them.
fn meta_value<'a>(
    line: &Bytes,
    mut words: impl Iterator<Item = &'a [u8]>,
    value_max: usize,
) -> Result<Parsed, Malformed> {
    let length = length(words.next(), value_max)?;
    let (mut key, mut value) = (None, bare(Bytes::new()));
    for word in words {
        match word.split_first() {
            Some((b'k', word)) => key = Some(line.slice_ref(word)),
            Some((b'f', word)) => value.flags = number(word)?,
            Some((b't', b"-1")) => value.ttl = Ttl::Unlimited,
            Some((b't', word)) => value.ttl = Ttl::Left(Duration::from_secs(number::<u32>(word)?.into())),
            Some((b'X', b"")) => value.is_stale = true,
            Some((b'W' | b'Z', b"")) => value.is_awaited = true,
            _ => {}
        }
    }
    // It was asked for, and proves whose value this is.
    value.key = key.ok_or(Malformed::Line)?;
    Ok(Parsed::Value { value, length, is_classic: false })
}

/// `VALUE KEY FLAGS LENGTH`, and a number for `gets`, which is not asked.
fn classic_value<'a>(
    line: &Bytes,
    mut words: impl Iterator<Item = &'a [u8]>,
    value_max: usize,
) -> Result<Parsed, Malformed> {
    let mut value = bare(line.slice_ref(words.next().ok_or(Malformed::Line)?));
    value.flags = number(words.next().ok_or(Malformed::Line)?)?;
    let length = length(words.next(), value_max)?;
    if words.next().is_some() {
        return Err(Malformed::Line);
    }
    Ok(Parsed::Value { value, length, is_classic: true })
}

fn bare(key: Bytes) -> Value {
    let ttl = Ttl::Unknown;
    Value { key, flags: 0, ttl, is_stale: false, is_awaited: false, body: Bytes::new() }
}

fn key_among<'a>(line: &Bytes, mut words: impl Iterator<Item = &'a [u8]>) -> Option<Bytes> {
    words.find_map(|word| word.strip_prefix(b"k")).map(|key| line.slice_ref(key))
}

fn length(word: Option<&[u8]>, value_max: usize) -> Result<usize, Malformed> {
    let length = number::<u64>(word.ok_or(Malformed::Line)?)?;
    usize::try_from(length).ok().filter(|length| *length <= value_max).ok_or(Malformed::TooLarge)
}

/// Digits alone: no sign, no blank, no overflow.
fn number<N: TryFrom<u64>>(word: &[u8]) -> Result<N, Malformed> {
    let digit = |byte: u8| byte.is_ascii_digit().then_some(u64::from(byte & 15));
    let add = |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(digit(*byte)?);
    let number = word.iter().try_fold(0, add).filter(|_| !word.is_empty());
    number.and_then(|number| N::try_from(number).ok()).ok_or(Malformed::Line)
}

#[cfg(test)]
mod tests;
