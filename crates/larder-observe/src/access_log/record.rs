//! What is known about an exchange when it has ended.
//!
//! Texts from a peer are copied, and cut at a length: a record lives as long as its response is being sent, and must
//! not keep a read buffer alive, and its size must be known. All of them stand in one buffer, so that a record costs
//! one allocation however many there are. Nothing in it is shared with another worker: a count of references that two
//! of them write would cost more than the copy.

use std::net::IpAddr;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::message::Scheme;
use larder_http::time::WallTime;

use super::escape;

/// The texts of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The method as sent.
    Method,
    /// Host and port.
    Host,
    /// Path and query as sent.
    Target,
    /// The site's name or first host.
    Site,
    /// larder's whole Cache-Status member as sent.
    CacheStatus,
    /// The origin that was asked.
    Origin,
    /// The User-Agent field.
    UserAgent,
    /// The Referer field.
    Referer,
}

impl Text {
    #[cfg(test)]
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Method,
        Self::Host,
        Self::Target,
        Self::Site,
        Self::CacheStatus,
        Self::Origin,
        Self::UserAgent,
        Self::Referer,
    ];

    const COUNT: usize = 8;

    /// So many bytes of it are kept.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Method => 32,
            Self::Host => 255,
            Self::Target => 8192,
            Self::Site | Self::CacheStatus | Self::Origin | Self::UserAgent | Self::Referer => 1024,
        }
    }
}

/// Where a text stands in its record's buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    bytes: u16,
    is_cut: bool,
}

/// One exchange. Made by [`LogRecord::new`], then filled field by field; what stays empty is left out of the line.
#[derive(Clone, Debug)]
pub struct LogRecord {
    /// When the request's head was complete.
    pub time: WallTime,
    /// The client, as far as trusted peers tell.
    pub client: IpAddr,
    /// Of the client's connection.
    pub scheme: Scheme,
    /// The client's version.
    pub version: Version,
    /// The final status.
    pub status: StatusCode,
    /// Response body bytes handed to the kernel.
    pub body_bytes: u64,
    /// False where the response did not reach its end.
    pub complete: bool,
    /// From the request's head to the end of the response.
    pub request_time: Duration,
    /// `hit`, or the forward reason (RFC 9211 2.2); `None` where no cache was asked.
    pub verdict: Option<&'static str>,
    /// The fixed token of Cache-Status's `detail`.
    pub detail: Option<&'static str>,
    /// Whether the request joined another's fetch.
    pub collapsed: bool,
    /// How long it waited for that.
    pub collapse_wait: Option<Duration>,
    /// Whether the response was stored.
    pub stored: bool,
    /// The origin's status, where it differs or not.
    pub origin_status: Option<StatusCode>,
    /// From asking the origin to its final head.
    pub origin_time: Option<Duration>,
    buffer: Vec<u8>,
    spans: [Span; Text::COUNT],
}

impl LogRecord {
    /// An otherwise empty record: status 500, not complete, HTTP/1.1, `http`.
    pub fn new(time: WallTime, client: IpAddr) -> Self {
        Self::with_room(time, client, 0)
    }

    /// The same with room for `bytes` of texts; more is found when it is needed.
    #[inline]
    pub fn with_room(time: WallTime, client: IpAddr, bytes: usize) -> Self {
        Self {
            time,
            client,
            scheme: Scheme::Http,
            version: Version::HTTP_11,
            status: StatusCode::INTERNAL_SERVER_ERROR,
            body_bytes: 0,
            complete: false,
            request_time: Duration::ZERO,
            verdict: None,
            detail: None,
            collapsed: false,
            collapse_wait: None,
            stored: false,
            origin_status: None,
            origin_time: None,
            buffer: Vec::with_capacity(bytes),
            spans: [Span::default(); Text::COUNT],
        }
    }

    /// Copies a text, up to its limit. An empty one changes nothing.
    #[inline]
    pub fn set(&mut self, text: Text, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let kept = bytes.get(..text.bytes_max()).unwrap_or(bytes);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(kept);
        self.note(text, start, bytes.len() > kept.len());
    }

    /// The same with what `write` appends to the buffer that it is given.
    #[inline]
    pub fn set_with(&mut self, text: Text, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        write(&mut self.buffer);
        let end = start + text.bytes_max();
        let is_cut = self.buffer.len() > end;
        self.buffer.truncate(end);
        self.note(text, start, is_cut);
    }

    #[inline]
    fn note(&mut self, text: Text, start: usize, is_cut: bool) {
        // A text's limit is far below 64 KiB, and a buffer of 4 GiB would take half a million texts.
        let bytes = self.buffer.len().saturating_sub(start) as u16;
        self.spans[text as usize] = Span { start: start as u32, bytes, is_cut };
    }

    /// A text as far as it was kept. One that is absent and one that is empty look the same in a log.
    pub fn text(&self, text: Text) -> &[u8] {
        let Span { start, bytes, .. } = self.spans[text as usize];
        let start = start as usize;
        self.buffer.get(start..start + usize::from(bytes)).unwrap_or_default()
    }

    /// Whether some of a text was left out.
    pub fn is_cut(&self, text: Text) -> bool {
        self.spans[text as usize].is_cut
    }

    /// Whether no text needs an escape.
    pub(super) fn is_plain(&self) -> bool {
        escape::is_all_plain(&self.buffer)
    }

    /// Whether some of any text was.
    pub(super) fn is_any_cut(&self) -> bool {
        self.spans.iter().any(|span| span.is_cut)
    }

    /// The target's two parts, without the `?`.
    pub(super) fn path_and_query(&self) -> (&[u8], Option<&[u8]>) {
        let target = self.text(Text::Target);
        match target.iter().position(|b| *b == b'?') {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        }
    }

    /// The version as both formats write it.
    pub(super) fn version_number(&self) -> &'static str {
        match self.version {
            Version::HTTP_09 => "0.9",
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2.0",
            Version::HTTP_3 => "3.0",
            _ => "1.1",
        }
    }
}
