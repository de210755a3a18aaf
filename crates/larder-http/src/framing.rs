//! Where a request's content ends (RFC 9112 6 and 7), decided once and strictly.
//!
//! In: the fields of a head, then the bytes that follow it. Out: a [`Framing`], and for chunked content the data
//! without its framing. Every form on which two parsers could disagree is refused rather than repaired: that is what
//! request smuggling lives on. Trailers are checked, bounded and handed out; chunk extensions are checked, bounded and
//! dropped.
//! Sans I/O: [`Chunked`] takes what is in a buffer and says what it found; how bytes get there is not its matter.
//! Deliberately absent: transfer codings other than `chunked`, and content that ends when the connection does.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Version};

use crate::trailers;

/// Chunk extensions that one body may carry, in bytes.
const EXTENSION_BYTES_MAX: usize = 4 * 1024;
/// A chunk size of more digits is refused, leading zeros or not.
const SIZE_DIGITS_MAX: u8 = 16;
/// No content is longer than this; a larger claim is an attack or a mistake.
const LENGTH_MAX: u64 = i64::MAX as u64;

/// Why content could not be framed. All are the sender's fault; for a client, 400 and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Not one plain decimal number.
    #[error("malformed content-length")]
    ContentLength,
    /// Not one line that says exactly `chunked`, or not on HTTP/1.1.
    #[error("transfer-encoding that is not exactly chunked")]
    TransferEncoding,
    /// Both ways of framing at once.
    #[error("content-length beside transfer-encoding")]
    Both,
    /// Not a plain hexadecimal number followed by CRLF or an extension.
    #[error("malformed chunk size")]
    ChunkSize,
    /// A control in a chunk extension, or too many bytes of them.
    #[error("malformed chunk extension")]
    ChunkExtension,
    /// Something other than CRLF after a chunk's data.
    #[error("chunk data not followed by a line end")]
    ChunkEnd,
    /// A trailer line that no field line may be, or too many bytes of them.
    #[error("malformed trailer")]
    Trailer,
}

/// How a request's content is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// This many bytes; 0 where the client said so itself.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// Decides the framing of an HTTP/1 request and takes Content-Length and Transfer-Encoding out of `fields`.
///
/// # Errors
/// Any doubt; see [`FramingError`].
pub fn take_request_framing(fields: &mut HeaderMap, version: Version) -> Result<Framing, FramingError> {
    let framing = request_framing(fields, version)?;
    if framing != Framing::None {
        fields.remove(CONTENT_LENGTH);
        fields.remove(TRANSFER_ENCODING);
    }
    Ok(framing)
}

fn request_framing(fields: &HeaderMap, version: Version) -> Result<Framing, FramingError> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let mut encodings = fields.get_all(TRANSFER_ENCODING).iter();
    match (lengths.next(), encodings.next()) {
        (None, None) => Ok(Framing::None),
        (Some(_), Some(_)) => Err(FramingError::Both),
        (Some(length), None) => {
            if lengths.next().is_some() {
                return Err(FramingError::ContentLength);
            }
            parse_length(length.as_bytes()).map(Framing::Length)
        }
        (None, Some(encoding)) => {
            let is_chunked = encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
            if version == Version::HTTP_11 && is_chunked && encodings.next().is_none() {
                Ok(Framing::Chunked)
            } else {
                Err(FramingError::TransferEncoding)
            }
        }
    }
}

/// Reads a Content-Length: decimal digits and nothing else.
///
/// # Errors
/// [`FramingError::ContentLength`] for signs, lists, spaces, nothing at all, or more than 63 bits can hold.
pub fn parse_length(value: &[u8]) -> Result<u64, FramingError> {
    if value.is_empty() {
        return Err(FramingError::ContentLength);
    }
    let mut length = 0_u64;
    for byte in value {
        if !byte.is_ascii_digit() {
            return Err(FramingError::ContentLength);
        }
        length = length
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(byte - b'0')))
            .filter(|n| *n <= LENGTH_MAX)
            .ok_or(FramingError::ContentLength)?;
    }
    Ok(length)
}

/// What [`Chunked::decode`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Content.
    Data(Bytes),
    /// The buffer holds nothing more to decide on.
    NeedMore,
    /// The last chunk and its trailers are behind; what is left in the buffer belongs to the next message.
    End,
}

/// A decoder of chunked content.
///
/// ```text
/// Size -> [Extension] -> SizeEnd -> Data -> DataCr -> DataLf -> Size        size > 0
///                              \-> Line -> [Name -> Value -> ValueEnd] -> Line
///                                     \-> LastLf -> Done                    size = 0
/// ```
#[derive(Clone, Debug)]
pub struct Chunked {
    state: State,
    left: u64,
    digits: u8,
    extension_bytes: usize,
    trailer_bytes: usize,
    trailer_lines: usize,
    /// The trailer lines so far, each ended by CRLF.
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    Line,
    Name,
    Value,
    ValueEnd,
    LastLf,
    Done,
}

impl Default for Chunked {
    fn default() -> Self {
        Self {
            state: State::Size,
            left: 0,
            digits: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            trailer_lines: 0,
            trailers: Vec::new(),
        }
    }
}

impl Chunked {
    /// Whether the end was reached.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The trailers that may be passed on, once the end was reached.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        let lines = std::mem::take(&mut self.trailers);
        let mut fields = HeaderMap::new();
        for line in lines.split(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\r")) {
            // Each line has been held against the grammar byte by byte.
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at(colon);
            let name = HeaderName::from_bytes(name).ok()?;
            let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default().trim_ascii()).ok()?;
            fields.append(name, value);
        }
        trailers::permitted(fields).ok().flatten()
    }

    /// Takes framing and at most one run of data from the front of `buffer`.
    ///
    /// # Errors
    /// The framing is broken; nothing that follows can be trusted.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, FramingError> {
        let mut used = 0;
        while !matches!(self.state, State::Data | State::Done) {
            let Some(byte) = buffer.get(used) else {
                buffer.advance(used);
                return Ok(Decoded::NeedMore);
            };
            used += 1;
            self.state = self.step(*byte)?;
        }
        buffer.advance(used);
        if self.state == State::Done {
            return Ok(Decoded::End);
        }
        if buffer.is_empty() {
            return Ok(Decoded::NeedMore);
        }
        let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        self.left -= take as u64;
        if self.left == 0 {
            self.state = State::DataCr;
        }
        Ok(Decoded::Data(buffer.split_to(take).freeze()))
    }

    fn step(&mut self, byte: u8) -> Result<State, FramingError> {
        match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.digits == SIZE_DIGITS_MAX {
                    return Err(FramingError::ChunkSize);
                }
                self.digits += 1;
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                self.left = self.left << 4 | u64::from(digit);
                Ok(State::Size)
            }
            (State::Size, b'\r' | b';') if self.digits > 0 && self.left <= LENGTH_MAX => {
                self.digits = 0;
                if byte == b'\r' { Ok(State::SizeEnd) } else { self.extension() }
            }
            (State::Size, _) => Err(FramingError::ChunkSize),
            (State::Extension, b'\r') => Ok(State::SizeEnd),
            (State::Extension, byte) if is_field_byte(byte) => self.extension(),
            (State::Extension, _) => Err(FramingError::ChunkExtension),
            (State::SizeEnd, b'\n') if self.left == 0 => Ok(State::Line),
            (State::SizeEnd, b'\n') => Ok(State::Data),
            (State::SizeEnd, _) => Err(FramingError::ChunkSize),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size),
            (State::DataCr | State::DataLf, _) => Err(FramingError::ChunkEnd),
            (State::Line, b'\r') => Ok(State::LastLf),
            (State::Line, byte) if is_token_byte(byte) => {
                self.trailer_lines += 1;
                self.trailer(byte, State::Name)
            }
            (State::Name, b':') => self.trailer(byte, State::Value),
            (State::Name, byte) if is_token_byte(byte) => self.trailer(byte, State::Name),
            (State::Value, b'\r') => {
                self.trailers.extend_from_slice(b"\r\n");
                Ok(State::ValueEnd)
            }
            (State::Value, byte) if is_field_byte(byte) => self.trailer(byte, State::Value),
            (State::ValueEnd, b'\n') => Ok(State::Line),
            (State::LastLf, b'\n') => Ok(State::Done),
            (State::Line | State::Name | State::Value | State::ValueEnd | State::LastLf, _) => {
                Err(FramingError::Trailer)
            }
            // The loop that calls this stops in both states.
            (State::Data | State::Done, _) => Ok(self.state),
        }
    }

    fn extension(&mut self) -> Result<State, FramingError> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES_MAX {
            return Err(FramingError::ChunkExtension);
        }
        Ok(State::Extension)
    }

    fn trailer(&mut self, byte: u8, next: State) -> Result<State, FramingError> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > trailers::BYTES_MAX || self.trailer_lines > trailers::LINES_MAX {
            return Err(FramingError::Trailer);
        }
        self.trailers.push(byte);
        Ok(next)
    }
}

/// Whether `byte` may stand in a token, and so in a field name or a method (RFC 9110 5.6.2).
pub const fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

const TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_in_token(byte as u8);
        byte += 1;
    }
    table
};

const fn is_in_token(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

/// Whether `byte` may stand in a field value (RFC 9110 5.5): visible, space, tab, or above 0x7f.
pub const fn is_field_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x7e | 0x80..=0xff)
}

/// How many bytes at the front of `bytes` may stand in a field value. Looks at eight at a time: every byte of every
/// request head passes here.
pub fn field_run(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The top bit of each byte that is below 0x20 or 0x7f; above the lowest of them a borrow may set others.
        let below_space = word.wrapping_sub(0x20 * EACH) & !word & TOP;
        let not_delete = word ^ (0x7f * EACH);
        let delete = not_delete.wrapping_sub(EACH) & !not_delete & TOP;
        let found = below_space | delete;
        if found != 0 {
            let run = index * 8 + found.trailing_zeros() as usize / 8;
            // A tab is the one that may stay.
            return if bytes.get(run) == Some(&b'\t') { after_tab(bytes, run) } else { run };
        }
    }
    let tail = words.len() * 8;
    let rest = bytes.get(tail..).unwrap_or_default();
    tail + rest.iter().position(|byte| !is_field_byte(*byte)).unwrap_or(rest.len())
}

fn after_tab(bytes: &[u8], tab: usize) -> usize {
    let rest = bytes.get(tab..).unwrap_or_default();
    tab + rest.iter().position(|byte| !is_field_byte(*byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
