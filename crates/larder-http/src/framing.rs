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
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[(&'static str, &[u8])], version: Version, expected: Result<Framing, FramingError>) {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(*name, HeaderValue::from_bytes(value).expect("a value"));
        }
        assert_eq!(take_request_framing(&mut fields, version), expected, "{lines:?}");
        assert!(expected.is_err() || fields.is_empty());
    }

    #[test]
    fn the_framing_of_a_request_is_beyond_doubt_or_refused() {
        use FramingError::{Both, ContentLength, TransferEncoding};
        let v11 = Version::HTTP_11;
        check(&[], v11, Ok(Framing::None));
        check(&[("content-length", b"0")], v11, Ok(Framing::Length(0)));
        check(&[("content-length", b"007")], v11, Ok(Framing::Length(7)));
        check(&[("content-length", b"5")], Version::HTTP_10, Ok(Framing::Length(5)));
        check(&[("transfer-encoding", b"chunked")], v11, Ok(Framing::Chunked));
        check(&[("transfer-encoding", b"CHUNKED")], v11, Ok(Framing::Chunked));
        let bad: [&[u8]; 15] = [
            b"",
            b"+5",
            b"-5",
            b"5,5",
            b"5, 5",
            b"0x5",
            b"5_0",
            b"5 ",
            b" 5",
            b"5.0",
            b"5e1",
            b"\xd9\xa5",
            b"a",
            b"9223372036854775808",
            b"18446744073709551621",
        ];
        for value in bad {
            check(&[("content-length", value)], v11, Err(ContentLength));
        }
        check(&[("content-length", b"5"), ("content-length", b"5")], v11, Err(ContentLength));
        check(&[("content-length", b"5"), ("transfer-encoding", b"chunked")], v11, Err(Both));
        check(&[("content-length", b"x"), ("transfer-encoding", b"y")], Version::HTTP_10, Err(Both));
        check(&[("transfer-encoding", b"chunked")], Version::HTTP_10, Err(TransferEncoding));
        let odd: [&[u8]; 10] = [
            b"",
            b",chunked",
            b"chunked,",
            b"gzip, chunked",
            b"chunked, chunked",
            b"chunked;a=b",
            b"identity",
            b"xchunked",
            b"\"chunked\"",
            b"chunked\x80",
        ];
        for value in odd {
            check(&[("transfer-encoding", value)], v11, Err(TransferEncoding));
        }
        check(
            &[("transfer-encoding", b"chunked"), ("transfer-encoding", b"chunked")],
            v11,
            Err(TransferEncoding),
        );
        check(
            &[("transfer-encoding", b"identity"), ("transfer-encoding", b"chunked")],
            v11,
            Err(TransferEncoding),
        );
    }

    /// Decodes `pieces` one after the other: the data, whether the end was reached, and what is left over.
    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), FramingError> {
        let (mut decoder, mut buffer, mut data) = (Chunked::default(), BytesMut::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            while let Decoded::Data(bytes) = decoder.decode(&mut buffer)? {
                data.extend_from_slice(&bytes);
            }
        }
        Ok((data, decoder.is_done(), buffer.to_vec()))
    }

    #[test]
    fn chunked_content_is_read_to_its_end_and_no_further() {
        for (input, data, done, left) in [
            ("0\r\n\r\n", "", true, ""),
            ("5\r\nhello\r\n0\r\n\r\nGET", "hello", true, "GET"),
            ("5\r\nhel", "hel", false, ""),
            ("A\r\n0123456789\r\n0001\r\nx\r\n0000000000000000\r\n\r\n", "0123456789x", true, ""),
            ("1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n", "x", true, ""),
            ("1\r\nx\r\n0\r\nA: b\r\nX-Y:\r\nz: \t\u{e9}\r\n\r\nrest", "x", true, "rest"),
            ("0\r\n", "", false, ""),
            ("0\r\n\r", "", false, ""),
        ] {
            let expected = Ok((data.as_bytes().to_vec(), done, left.as_bytes().to_vec()));
            assert_eq!(decode(&[input.as_bytes()]), expected, "{input:?}");
        }
    }

    #[test]
    fn trailers_are_had_at_the_end_wherever_the_bytes_were_split() {
        let input = b"1\r\nx\r\n0\r\nX-A:  b\tc \r\nhost: evil\r\nX-A:\r\n\r\n";
        for cut in 0..input.len() {
            let (mut decoder, mut buffer) = (Chunked::default(), BytesMut::new());
            for piece in [&input[..cut], &input[cut..]] {
                buffer.extend_from_slice(piece);
                while let Decoded::Data(_) = decoder.decode(&mut buffer).expect("good chunks") {}
            }
            let trailers = decoder.take_trailers().expect("trailers");
            let lines: Vec<_> = trailers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
            assert_eq!(lines, [("x-a", b"b\tc".as_slice()), ("x-a", b"")]);
            assert_eq!(decoder.take_trailers(), None);
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        use FramingError::{ChunkEnd, ChunkExtension, ChunkSize, Trailer};
        for (input, error) in [
            ("\r\n", ChunkSize),
            (";a\r\n", ChunkSize),
            (" 5\r\nhello", ChunkSize),
            ("5 \r\nhello", ChunkSize),
            ("5 ;a\r\nhello", ChunkSize),
            ("0x5\r\nhello", ChunkSize),
            ("+5\r\nhello", ChunkSize),
            ("-5\r\nhello", ChunkSize),
            ("1_0\r\n", ChunkSize),
            ("g\r\n", ChunkSize),
            ("5\nhello", ChunkSize),
            ("5\r\rhello", ChunkSize),
            ("5\rhello", ChunkSize),
            ("00000000000000005\r\n", ChunkSize),
            ("10000000000000005\r\n", ChunkSize),
            ("ffffffffffffffff\r\n", ChunkSize),
            ("8000000000000000\r\n", ChunkSize),
            ("5\r\nhelloXY0\r\n\r\n", ChunkEnd),
            ("5\r\nhello\n0\r\n\r\n", ChunkEnd),
            ("5\r\nhello\rX0\r\n\r\n", ChunkEnd),
            ("5\r\nhello0\r\n\r\n", ChunkEnd),
            ("5;a\nb\r\nhello", ChunkExtension),
            ("5;a\rb\r\nhello", ChunkSize),
            ("5;\0\r\nhello", ChunkExtension),
            ("5;\u{7f}\r\n", ChunkExtension),
            ("0\r\n\n", Trailer),
            ("0\r\n\r\r", Trailer),
            ("0\r\n: a\r\n\r\n", Trailer),
            ("0\r\nA : b\r\n\r\n", Trailer),
            ("0\r\n A: b\r\n\r\n", Trailer),
            ("0\r\nA: b\r\n c\r\n\r\n", Trailer),
            ("0\r\nA\r\n\r\n", Trailer),
            ("0\r\nA: b\n\r\n", Trailer),
            ("0\r\nA: \0\r\n\r\n", Trailer),
            ("0\r\nA: b\rc\r\n", Trailer),
        ] {
            assert_eq!(decode(&[input.as_bytes()]), Err(error), "{input:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded_per_body() {
        let chunks = "1;abcdefg\r\nx\r\n".repeat(512);
        assert!(decode(&[chunks.as_bytes()]).is_ok());
        let chunks = "1;abcdefg\r\nx\r\n".repeat(513);
        assert_eq!(decode(&[chunks.as_bytes()]), Err(FramingError::ChunkExtension));
        let long = format!("0\r\nA: {}\r\n\r\n", "b".repeat(trailers::BYTES_MAX));
        assert_eq!(decode(&[long.as_bytes()]), Err(FramingError::Trailer));
        let many = format!("0\r\n{}\r\n", "a:\r\n".repeat(trailers::LINES_MAX + 1));
        assert_eq!(decode(&[many.as_bytes()]), Err(FramingError::Trailer));
    }

    proptest! {
        #[test]
        fn a_run_of_field_bytes_ends_where_the_first_other_byte_is(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\t'), Just(0x7f), Just(0x1f), 0x20..=0xff_u8], 0..64)
        ) {
            let expected = bytes.iter().position(|byte| !is_field_byte(*byte)).unwrap_or(bytes.len());
            prop_assert_eq!(field_run(&bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_split_does_not_matter(
            input in "(([0-9a-fA-F]{1,2}|1|2|3)(;[a-z=]{0,3})?\r\n[a-z]{0,5}\r\n){0,5}0\r\n([A-Z]:[a-z]{0,2}\r\n){0,2}(\r\n|\n|x){1,2}",
            mut cuts in proptest::collection::vec(0..200_usize, 0..10),
        ) {
            let bytes = input.as_bytes();
            cuts.iter_mut().for_each(|c| *c = (*c).min(bytes.len()));
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
        }

        #[test]
        fn what_was_chunked_comes_back(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8)) {
            let mut wire = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\nnext");
            prop_assert_eq!(decode(&[&wire]), Ok((chunks.concat(), true, b"next".to_vec())));
        }
    }
}
