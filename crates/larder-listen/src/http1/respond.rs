//! How a response looks on an HTTP/1 wire: its head, its framing, and where its content comes from (RFC 9112 4, 6).
//!
//! Framing is decided here and nowhere else, from the length of the body and what the client can read.

use std::task::{Context, Poll};

use http::header::{CONTENT_LENGTH, TRAILER};
use http::{HeaderMap, StatusCode, Version};
use larder_http::body::Body;
use larder_http::message::{ResponseHead, write_http1_fields};
use larder_http::time::Clock;

use crate::content::Source;
use crate::date;
use crate::error::Refusal;
use crate::outbox::Outbox;

/// How the end of a response's content is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimited {
    /// There can be no content (204, 304), so nothing is said.
    Never,
    /// By Content-Length.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By the end of the connection: HTTP/1.0 and a length that is not known.
    Close,
    /// HEAD, and the length is not known or stands among the fields.
    Unsaid,
}

impl Delimited {
    pub(super) fn of(head: &ResponseHead, body: &Body, version: Version, is_head: bool) -> Self {
        if head.status == StatusCode::NO_CONTENT || head.status == StatusCode::NOT_MODIFIED {
            return Self::Never;
        }
        if is_head && head.field(&CONTENT_LENGTH).is_some() {
            return Self::Unsaid;
        }
        match body.length() {
            Some(length) => Self::Length(length),
            None if is_head => Self::Unsaid,
            None if version == Version::HTTP_11 => Self::Chunked,
            None => Self::Close,
        }
    }
}

/// What Connection says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Nothing: HTTP/1.1 goes on by itself.
    Implied,
    /// `keep-alive`, for an HTTP/1.0 client that asked.
    KeepAlive,
    /// `close`.
    Close,
    /// The switch to a tunnel.
    Upgrade,
}

/// Writes a final head.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    head: &ResponseHead,
    delimited: Delimited,
    persistence: Persistence,
    clock: &Clock,
) {
    write_status(out, head.status, head.reason);
    head.write_http1(out);
    match delimited {
        Delimited::Length(length) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Delimited::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Delimited::Never | Delimited::Close | Delimited::Unsaid => {}
    }
    if !head.has_date() {
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(&date::text(clock));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(match persistence {
        Persistence::Implied => b"\r\n".as_slice(),
        Persistence::KeepAlive => b"connection: keep-alive\r\n\r\n",
        Persistence::Close => b"connection: close\r\n\r\n",
        Persistence::Upgrade => b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
    });
}

/// Writes an interim head.
pub(super) fn write_interim(out: &mut Vec<u8>, status: StatusCode, fields: &HeaderMap) {
    write_status(out, status, None);
    write_http1_fields(fields, out);
    out.extend_from_slice(b"\r\n");
}

/// Writes the whole answer to a request that was refused.
pub(super) fn write_refusal(out: &mut Vec<u8>, refusal: Refusal, clock: &Clock) {
    let status = refusal.status();
    let text = refusal.text();
    write_status(out, status, None);
    out.extend_from_slice(
        b"content-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\ncontent-length: ",
    );
    out.extend_from_slice(itoa::Buffer::new().format(text.len()).as_bytes());
    out.extend_from_slice(b"\r\ncache-status: ");
    out.extend_from_slice(refusal.cache_status().as_bytes());
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(&date::text(clock));
    out.extend_from_slice(b"\r\nconnection: close\r\n\r\n");
    out.extend_from_slice(text.as_bytes());
}

fn write_status(out: &mut Vec<u8>, status: StatusCode, reason: Option<&'static str>) {
    if status == StatusCode::OK && reason.is_none() {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let reason = reason.or_else(|| status.canonical_reason()).unwrap_or_default();
    debug_assert!(reason.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{reason}");
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Content on its way into the outbox, with its framing.
pub(super) struct Content {
    source: Source,
    delimited: Delimited,
    sends_files: bool,
    sends_trailers: bool,
    /// It ended before its end.
    is_cut: bool,
}

impl Content {
    pub(super) fn new(body: Body, delimited: Delimited, sends_files: bool, takes_trailers: bool) -> Self {
        let source = Source::new(body);
        Self { source, delimited, sends_files, sends_trailers: takes_trailers, is_cut: false }
    }

    /// Whether everything is queued that will ever come.
    pub(super) fn is_done(&self) -> bool {
        self.source.is_done()
    }

    /// Whether that is not all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether an orderly end of the connection would pass for the end of the content.
    pub(super) fn ends_with_connection(&self) -> bool {
        self.delimited == Delimited::Close
    }

    /// Queues more. Pending where a stream has none now; ready where something was queued, the end was reached, or
    /// there is no room.
    pub(super) fn poll_queue(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Poll<()> {
        let is_chunked = self.delimited == Delimited::Chunked;
        if self.sends_files
            && !is_chunked
            && let Some(filed) = self.source.take_file()
        {
            out.file(filed);
            return Poll::Ready(());
        }
        let mut has_queued = false;
        while !self.source.is_done() && out.has_room(self.source.gathered_bytes()) {
            match self.source.poll_next(cx) {
                Poll::Pending if has_queued => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(_))) => {
                    // What came before is sent on, head and all: only the end is missing.
                    self.is_cut = true;
                    self.source = Source::Done(None);
                }
                Poll::Ready(Some(Ok(bytes))) => {
                    has_queued = true;
                    if is_chunked {
                        out.inline(|o| write_chunk_size(o, bytes.len()));
                    }
                    out.content(bytes);
                    if is_chunked {
                        out.inline(|o| o.extend_from_slice(b"\r\n"));
                    }
                }
                Poll::Ready(None) if is_chunked => {
                    let trailers = self.source.take_trailers().filter(|_| self.sends_trailers);
                    out.inline(|o| write_last_chunk(o, trailers.as_ref()));
                }
                Poll::Ready(None) => {}
            }
        }
        Poll::Ready(())
    }
}

fn write_last_chunk(out: &mut Vec<u8>, trailers: Option<&HeaderMap>) {
    out.extend_from_slice(b"0\r\n");
    if let Some(trailers) = trailers {
        write_http1_fields(trailers, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Takes the announcement of trailers out of a head that will have none.
pub(super) fn settle_announcement(head: &mut ResponseHead, delimited: Delimited, takes_trailers: bool) {
    if !(takes_trailers && delimited == Delimited::Chunked) {
        head.fields.remove(TRAILER);
    }
}

fn write_chunk_size(out: &mut Vec<u8>, size: usize) {
    let digits = (size.checked_ilog2().unwrap_or_default() / 4) as usize;
    for place in (0..=digits).rev() {
        let digit = u32::try_from(size >> (4 * place) & 0xf).unwrap_or_default();
        out.push(char::from_digit(digit, 16).unwrap_or('0') as u8);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_plain_hexadecimal() {
        for size in [1, 9, 10, 15, 16, 255, 256, 4096, 65_535, 1 << 20, 0xdead_beef] {
            let mut out = Vec::new();
            write_chunk_size(&mut out, size);
            assert_eq!(out, format!("{size:x}\r\n").into_bytes());
        }
    }
}
