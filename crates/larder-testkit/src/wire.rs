//! HTTP/1 on the wire, as strict as it is written: what both the raw client and the scripted origin read with.
//!
//! In: a socket. Out: heads as the exact bytes, fields in their order with duplicates, bodies piece by piece by
//! their framing (RFC 9112 sections 2 to 7). Nothing is repaired and nothing is forgiven: bare CR or LF, folded
//! lines, odd chunk sizes and chunk extensions are errors, since larder must never send them.
//! Bytes above 127 become the Latin-1 characters of the same number, so no byte is lost.

mod fields;
mod stream;

use std::fmt;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::Error;
pub use fields::{Fields, find, is_token, latin1, to_bytes};
use stream::WireStream;

const HEAD_BYTES_MAX: usize = 512 * 1024;
const CHUNK_LINE_BYTES_MAX: usize = 64;
/// The most that is read without regard to its meaning.
const PLAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Splits a head into its first line and the block of field lines, and refuses bare CR and LF anywhere.
///
/// # Errors
/// [`Error::Malformed`].
pub fn split_head(head: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    for (at, &byte) in head.iter().enumerate() {
        let bare_lf = byte == b'\n' && (at == 0 || head.get(at - 1) != Some(&b'\r'));
        let bare_cr = byte == b'\r' && head.get(at + 1) != Some(&b'\n');
        if bare_lf || bare_cr {
            return Err(Error::malformed("line end", head.get(at.saturating_sub(40)..).unwrap_or_default()));
        }
    }
    let line_end = find(head, b"\r\n").ok_or_else(|| Error::malformed("head", head))?;
    let (line, rest) = head.split_at(line_end);
    let fields = rest.get(2..rest.len().saturating_sub(2)).unwrap_or_default();
    Ok((line, fields))
}

/// How a body ends, and how much of it is still to come.
#[derive(Debug)]
pub enum Framing {
    /// There is none, or all of it has been read.
    Ended,
    /// By Content-Length.
    Length(u64),
    /// By the last chunk; bytes left of the current one, `None` where a size line is due.
    Chunked(Option<u64>),
    /// By the end of the connection.
    UntilClose,
}

impl Framing {
    /// The framing that `fields` state, or `otherwise` where they state none.
    ///
    /// # Errors
    /// [`Error::Malformed`] where they contradict each other or are not plain.
    pub fn stated(fields: &Fields, otherwise: Self) -> Result<Self, Error> {
        let lengths: Vec<&str> = fields.all("content-length").collect();
        let codings: Vec<&str> = fields.all("transfer-encoding").collect();
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => Ok(otherwise),
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Self::Chunked(None)),
            ([length], []) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => length
                .parse()
                .map(Self::Length)
                .map_err(|_| Error::malformed("content-length", length.as_bytes())),
            _ => Err(Error::Malformed { what: "framing", found: format!("{lengths:?} with {codings:?}") }),
        }
    }
}

/// Is given each piece that the socket brings, before anything is made of it.
struct Tap(Box<TakePiece>);

type TakePiece = dyn Fn(&[u8]) + Send + Sync;

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// A socket with the bytes that were read ahead.
#[derive(Debug)]
pub struct Wire {
    stream: WireStream,
    ahead: BytesMut,
    limit: Duration,
    tap: Option<Tap>,
}

impl Wire {
    /// Wraps a connected socket. `limit` bounds each single wait for bytes or for room to write.
    pub fn new(stream: TcpStream, limit: Duration) -> Self {
        // Only a hint: without it, tests are slower and not wrong.
        let _ = stream.set_nodelay(true);
        Self { stream: WireStream::Clear(stream), ahead: BytesMut::new(), limit, tap: None }
    }

    /// The same after a handshake of TLS.
    pub fn secured(stream: TlsStream<TcpStream>, limit: Duration) -> Self {
        let _ = stream.get_ref().0.set_nodelay(true);
        Self { stream: WireStream::Secured(Box::new(stream)), ahead: BytesMut::new(), limit, tap: None }
    }

    /// The same, where `tap` is given each piece that the socket brings, before anything is made of it.
    pub fn tapped(self, tap: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { tap: Some(Tap(Box::new(tap))), ..self }
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        match &self.stream {
            WireStream::Clear(stream) => stream,
            WireStream::Secured(stream) => stream.get_ref().0,
        }
    }

    /// What a handshake has agreed on; `None` in clear text.
    pub fn session(&self) -> Option<&tokio_rustls::rustls::ClientConnection> {
        match &self.stream {
            WireStream::Clear(_) => None,
            WireStream::Secured(stream) => Some(stream.get_ref().1),
        }
    }

    /// Bytes that were read and not yet asked for.
    pub fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Reads more into `ahead`; 0 at the end of the stream.
    ///
    /// # Cancel safety
    /// No bytes are lost, here and in all readers below.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Io`].
    pub async fn fill(&mut self, what: &'static str) -> Result<usize, Error> {
        let before = self.ahead.len();
        let read = tokio::time::timeout(self.limit, self.stream.read_buf(&mut self.ahead)).await;
        let read = read.map_err(|_| Error::TimedOut(what))??;
        if let (Some(Tap(tap)), Some(piece)) = (&self.tap, self.ahead.get(before..)) {
            tap(piece);
        }
        Ok(read)
    }

    /// What has come, as soon as there is any; nothing at the end of the stream.
    ///
    /// # Errors
    /// As [`Wire::fill`].
    pub async fn read_some(&mut self) -> Result<Bytes, Error> {
        if self.ahead.is_empty() {
            self.fill("bytes").await?;
        }
        Ok(self.ahead.split().freeze())
    }

    /// Everything up to and with `end`, as it comes.
    ///
    /// # Errors
    /// [`Error::Cut`] where the connection ends first; [`Error::Malformed`] beyond 64 MiB; and as [`Wire::fill`].
    pub async fn read_until(&mut self, end: &[u8]) -> Result<Bytes, Error> {
        loop {
            if let Some(at) = find(&self.ahead, end) {
                return Ok(self.ahead.split_to(at + end.len()).freeze());
            }
            if !self.more("bytes before an end").await? {
                return Err(Error::Cut("bytes before an end"));
            }
        }
    }

    /// Everything to the end of the connection, as it comes, and how it ended.
    ///
    /// # Errors
    /// Beside what came: [`Error::Malformed`] beyond 64 MiB; and as [`Wire::fill`].
    pub async fn read_to_end(&mut self) -> (Bytes, Result<(), Error>) {
        let end = loop {
            match self.more("end of connection").await {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (self.ahead.split().freeze(), end)
    }

    /// Whether the connection has brought more.
    async fn more(&mut self, what: &'static str) -> Result<bool, Error> {
        if self.ahead.len() > PLAIN_BYTES_MAX {
            return Err(Error::malformed(what, &self.ahead));
        }
        Ok(self.fill(what).await? > 0)
    }

    /// Reads and forgets what still comes until the other side has ended, for as long as the limit of one wait.
    ///
    /// # Errors
    /// As [`Wire::fill`].
    pub async fn drain(&mut self) -> Result<(), Error> {
        let limit = self.limit;
        let drain = async {
            loop {
                self.ahead.clear();
                if self.fill("end of the other side").await? == 0 {
                    return Ok(());
                }
            }
        };
        tokio::time::timeout(limit, drain).await.map_err(|_| Error::TimedOut("end of the other side"))?
    }

    /// A head with its empty line, or `None` where the connection ended before the first byte.
    ///
    /// # Errors
    /// [`Error::Cut`] inside a head; [`Error::Malformed`] beyond 512 KiB; and as [`Wire::fill`].
    pub async fn read_head(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(at) = find(&self.ahead, b"\r\n\r\n") {
                return Ok(Some(self.ahead.split_to(at + 4).freeze()));
            }
            if self.ahead.len() > HEAD_BYTES_MAX {
                return Err(Error::malformed("head", &self.ahead));
            }
            if self.fill("head").await? == 0 {
                return if self.ahead.is_empty() { Ok(None) } else { Err(Error::Cut("head")) };
            }
        }
    }

    /// The next piece of a body, `None` at its proper end. Trailers are added to `trailers`.
    ///
    /// # Errors
    /// [`Error::Cut`] where the connection ends first; [`Error::Malformed`]; and as [`Wire::fill`].
    pub async fn read_piece(
        &mut self,
        framing: &mut Framing,
        trailers: &mut Fields,
    ) -> Result<Option<Bytes>, Error> {
        loop {
            match framing {
                Framing::Ended | Framing::Length(0) => {
                    *framing = Framing::Ended;
                    return Ok(None);
                }
                Framing::Length(left) | Framing::Chunked(Some(left)) if *left > 0 => {
                    if let Some(piece) = self.take(*left) {
                        *left -= piece.len() as u64;
                        return Ok(Some(piece));
                    }
                }
                Framing::Length(_) => {}
                Framing::Chunked(Some(_)) => {
                    if let Some(end) = self.ahead.get(..2) {
                        if end != b"\r\n" {
                            return Err(Error::malformed("end of chunk", end));
                        }
                        self.ahead.advance(2);
                        *framing = Framing::Chunked(None);
                        continue;
                    }
                }
                Framing::Chunked(None) => {
                    if let Some(size) = self.chunk_size()? {
                        if size == 0 {
                            *trailers = self.read_trailers().await?;
                            *framing = Framing::Ended;
                        } else {
                            *framing = Framing::Chunked(Some(size));
                        }
                        continue;
                    }
                }
                Framing::UntilClose => {
                    if let Some(piece) = self.take(u64::MAX) {
                        return Ok(Some(piece));
                    }
                }
            }
            if self.fill("body").await? == 0 {
                if matches!(framing, Framing::UntilClose) {
                    *framing = Framing::Ended;
                    return Ok(None);
                }
                return Err(Error::Cut("body"));
            }
        }
    }

    fn take(&mut self, most: u64) -> Option<Bytes> {
        let length = self.ahead.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        (length > 0).then(|| self.ahead.split_to(length).freeze())
    }

    /// Takes a size line off, `None` where it is not complete. The last chunk's line stays until its trailers are
    /// whole, so that a cancelled read loses nothing.
    fn chunk_size(&mut self) -> Result<Option<u64>, Error> {
        let Some(end) = find(&self.ahead, b"\r\n") else {
            if self.ahead.len() > CHUNK_LINE_BYTES_MAX {
                return Err(Error::malformed("chunk size", &self.ahead));
            }
            return Ok(None);
        };
        let line = self.ahead.get(..end).unwrap_or_default();
        let plain = (1..=16).contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit);
        if !plain {
            return Err(Error::malformed("chunk size", line));
        }
        let size =
            u64::from_str_radix(&latin1(line), 16).map_err(|_| Error::malformed("chunk size", line))?;
        if size > 0 {
            self.ahead.advance(end + 2);
        }
        Ok(Some(size))
    }

    async fn read_trailers(&mut self) -> Result<Fields, Error> {
        let line = find(&self.ahead, b"\r\n").map_or(0, |end| end + 2);
        loop {
            let rest = self.ahead.get(line..).unwrap_or_default();
            let end =
                if rest.starts_with(b"\r\n") { Some(0) } else { find(rest, b"\r\n\r\n").map(|at| at + 2) };
            if let Some(end) = end {
                let fields = Fields::parse(rest.get(..end).unwrap_or_default())?;
                self.ahead.advance(line + end + 2);
                return Ok(fields);
            }
            if rest.len() > HEAD_BYTES_MAX {
                return Err(Error::malformed("trailers", rest));
            }
            if self.fill("trailers").await? == 0 {
                return Err(Error::Cut("trailers"));
            }
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Cancel safety
    /// None: an unknown part has been written.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Io`].
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match tokio::time::timeout(self.limit, self.stream.write_all(bytes)).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(Error::TimedOut("write")),
        }
    }

    /// Ends this direction; the other one stays open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn close_write(&mut self) -> Result<(), Error> {
        Ok(self.stream.shutdown().await?)
    }

    /// Closes with a reset instead of an orderly end.
    pub fn reset(self) {
        // Where the option cannot be set, the connection is gone already, which is what is wanted.
        let _ = socket2::SockRef::from(self.stream()).set_linger(Some(Duration::ZERO));
    }
}

#[cfg(test)]
mod tests;
