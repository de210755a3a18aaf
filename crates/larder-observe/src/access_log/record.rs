//! What is known about an exchange when its response has a head.
//!
//! Texts are borrowed from where they are: a record is made to become a [`LogLine`](super::LogLine), on the spot. Each is cut at a
//! length, so that the line's length is known.

use std::net::IpAddr;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::fields::cache_status::CacheStatus;
use larder_http::message::{Scheme, TlsPeer};
use larder_http::time::WallTime;

use crate::fetched::Fetched;

/// So many bytes of a target are kept, its `?` included.
const TARGET_BYTES_MAX: usize = 8192;

/// The texts of a record beside the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The method as sent.
    Method,
    /// Host and port.
    Host,
    /// larder's whole Cache-Status member as sent, where that says more than [`LogRecord::cache_status`].
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
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Method, Self::Host, Self::CacheStatus, Self::Origin, Self::UserAgent, Self::Referer];

    const COUNT: usize = 6;

    /// So many bytes of it are kept.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Method => 32,
            Self::Host => 255,
            Self::CacheStatus | Self::Origin | Self::UserAgent | Self::Referer => 1024,
        }
    }
}

/// The names of a site and a rule as lines have them. They are the same in each line of the rule, so they are written once.
#[derive(Clone, Debug, Default)]
pub struct LoggedRule {
    pub(super) json: Box<[u8]>,
}

/// One exchange. Made by [`LogRecord::new`], then filled field by field; what stays empty is left out of the line.
#[derive(Clone, Debug)]
pub struct LogRecord<'a> {
    /// When the request's head was complete.
    pub time: WallTime,
    /// The client, as far as trusted peers tell.
    pub client: IpAddr,
    /// Of the client's connection.
    pub scheme: Scheme,
    /// The client's version.
    pub version: Version,
    /// What its connection has agreed on; `None` in clear text.
    pub tls: Option<&'a TlsPeer>,
    /// The final status.
    pub status: StatusCode,
    /// The site and the rule that it belongs to; `None` for what was turned away before.
    pub rule: Option<&'a LoggedRule>,
    /// Where what is said about the cache comes from; `None` for what was never asked.
    pub cache_status: Option<&'a CacheStatus>,
    /// The rule by which the parser refused the request.
    pub refusal: Option<&'static str>,
    /// How long the request waited for another's fetch.
    pub collapse_wait: Option<Duration>,
    /// What became of the URL, where nothing is stored under it, and why its last response was not.
    pub before: Option<(&'static str, Option<&'static str>)>,
    /// How asking the origin went.
    pub fetched: Option<&'a Fetched>,
    texts: [&'a [u8]; Text::COUNT],
    path: &'a [u8],
    /// What follows `?`.
    query: Option<&'a [u8]>,
    is_target_cut: bool,
    /// A bit for each text that was cut.
    cut: u8,
}

impl<'a> LogRecord<'a> {
    /// An otherwise empty record: status 500, HTTP/1.1, `http`.
    #[inline(always)]
    pub fn new(time: WallTime, client: IpAddr) -> Self {
        Self {
            time,
            client,
            scheme: Scheme::Http,
            version: Version::HTTP_11,
            tls: None,
            status: StatusCode::INTERNAL_SERVER_ERROR,
            rule: None,
            cache_status: None,
            refusal: None,
            collapse_wait: None,
            before: None,
            fetched: None,
            texts: [&[]; Text::COUNT],
            path: &[],
            query: None,
            is_target_cut: false,
            cut: 0,
        }
    }

    /// Takes a text, up to its limit. An absent one and one that is empty look the same in a log.
    #[inline(always)]
    pub fn set(&mut self, text: Text, bytes: &'a [u8]) {
        self.texts[text as usize] = bytes.get(..text.bytes_max()).unwrap_or(bytes);
        self.cut |= u8::from(bytes.len() > text.bytes_max()) << text as usize;
    }

    /// Takes path and query, up to 8192 bytes together. An empty query is another thing than none.
    #[inline(always)]
    pub fn set_target(&mut self, path: &'a [u8], query: Option<&'a [u8]>) {
        self.path = path.get(..TARGET_BYTES_MAX).unwrap_or(path);
        let left = TARGET_BYTES_MAX.checked_sub(path.len() + 1);
        self.query = query.zip(left).map(|(query, left)| query.get(..left).unwrap_or(query));
        self.is_target_cut =
            self.path.len() < path.len() || self.query.map(<[u8]>::len) != query.map(<[u8]>::len);
    }

    /// A text as far as it was kept.
    #[inline(always)]
    pub(super) fn text(&self, text: Text) -> &'a [u8] {
        self.texts[text as usize]
    }

    /// The target's two parts as far as they were kept, without the `?`.
    #[inline(always)]
    pub(super) fn path_and_query(&self) -> (&'a [u8], Option<&'a [u8]>) {
        (self.path, self.query)
    }

    /// Whether some of the target was left out.
    pub(super) fn is_target_cut(&self) -> bool {
        self.is_target_cut
    }

    /// Whether some of a text was left out.
    pub(super) fn is_cut(&self, text: Text) -> bool {
        self.cut & (1 << text as usize) != 0
    }

    /// Whether some of anything was.
    #[inline(always)]
    pub(super) fn is_any_cut(&self) -> bool {
        self.is_target_cut || self.cut != 0
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

/// How an exchange ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Response body bytes handed to the kernel.
    pub body_bytes: u64,
    /// False where the response did not reach its end.
    pub complete: bool,
    /// From the request's head to the end of the response.
    pub request_time: Duration,
    /// Whether the response is stored, as of the end of its body, which may come after that of the exchange.
    pub stored: bool,
    /// Why it is not, where its body might have been.
    pub not_stored: Option<&'static str>,
    /// Of a page that was put together from fragments.
    pub page: Option<PageEnding>,
}

/// What became of the fragments of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageEnding {
    /// How many the page asked for; one that it has several times counts once.
    pub fragments: u32,
    /// Those that were not in memory.
    pub asked: u32,
    /// Includes that failed, whatever stood in for them.
    pub failed: u32,
    /// How long the page had nothing to send.
    pub waited: Duration,
}
