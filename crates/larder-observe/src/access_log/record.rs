//! What is known about an exchange when it has ended.
//!
//! Texts from a peer are copied, and cut at a length: a record that waits in the queue must not keep a read buffer
//! alive, and its size must be known. The worker fills it, the writer's thread formats it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::message::Scheme;
use larder_http::time::WallTime;

/// Bytes from a peer, at most `MAX` of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<const MAX: usize> {
    bytes: Box<[u8]>,
    is_cut: bool,
}

impl<const MAX: usize> Text<MAX> {
    /// Copies `bytes`, up to the limit.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        Self { bytes: bytes[..bytes.len().min(MAX)].into(), is_cut: bytes.len() > MAX }
    }

    /// The bytes kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether some were left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether there is nothing; a field that is absent and one that is empty look the same in a log.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// One exchange. Made by [`LogRecord::new`], then filled field by field; what stays empty is left out of the line.
#[derive(Clone, Debug)]
pub struct LogRecord {
    /// When the request's head was complete.
    pub time: WallTime,
    /// The client, as far as trusted peers tell.
    pub client: IpAddr,
    /// As sent.
    pub method: Text<32>,
    /// Of the client's connection.
    pub scheme: Scheme,
    /// Host and port.
    pub host: Text<255>,
    /// Path and query as sent.
    pub target: Text<8192>,
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
    /// The site's name or first host.
    pub site: Option<Arc<str>>,
    /// `hit`, or the forward reason (RFC 9211 2.2); `None` where no cache was asked.
    pub verdict: Option<&'static str>,
    /// larder's whole Cache-Status member as sent.
    pub cache_status: Text<1024>,
    /// The fixed token of Cache-Status's `detail`.
    pub detail: Option<&'static str>,
    /// Whether the request joined another's fetch.
    pub collapsed: bool,
    /// How long it waited for that.
    pub collapse_wait: Option<Duration>,
    /// Whether the response was stored.
    pub stored: bool,
    /// The origin that was asked.
    pub origin: Option<Arc<str>>,
    /// Its status, where it differs or not.
    pub origin_status: Option<StatusCode>,
    /// From asking it to its final head.
    pub origin_time: Option<Duration>,
    /// The User-Agent field.
    pub user_agent: Text<1024>,
    /// The Referer field.
    pub referer: Text<1024>,
}

impl LogRecord {
    /// An otherwise empty record: status 500, not complete, HTTP/1.1, `http`.
    pub fn new(time: WallTime, client: IpAddr) -> Self {
        Self {
            time,
            client,
            method: Text::default(),
            scheme: Scheme::Http,
            host: Text::default(),
            target: Text::default(),
            version: Version::HTTP_11,
            status: StatusCode::INTERNAL_SERVER_ERROR,
            body_bytes: 0,
            complete: false,
            request_time: Duration::ZERO,
            site: None,
            verdict: None,
            cache_status: Text::default(),
            detail: None,
            collapsed: false,
            collapse_wait: None,
            stored: false,
            origin: None,
            origin_status: None,
            origin_time: None,
            user_agent: Text::default(),
            referer: Text::default(),
        }
    }

    /// What the record takes in the queue, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let texts = [&self.method.bytes, &self.host.bytes, &self.target.bytes, &self.cache_status.bytes];
        let texts = texts.into_iter().chain([&self.user_agent.bytes, &self.referer.bytes]);
        size_of::<Self>() + texts.map(|bytes| bytes.len()).sum::<usize>()
    }

    /// Whether any text was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.method.is_cut
            || self.host.is_cut
            || self.target.is_cut
            || self.cache_status.is_cut
            || self.user_agent.is_cut
            || self.referer.is_cut
    }

    /// The target's two parts, without the `?`.
    pub(crate) fn path_and_query(&self) -> (&[u8], Option<&[u8]>) {
        let target = &*self.target.bytes;
        match target.iter().position(|b| *b == b'?') {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        }
    }

    /// The version as both formats write it.
    pub(crate) fn version_number(&self) -> &'static str {
        match self.version {
            Version::HTTP_09 => "0.9",
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2.0",
            Version::HTTP_3 => "3.0",
            _ => "1.1",
        }
    }
}
