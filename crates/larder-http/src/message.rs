//! The heads of an exchange after parsing: what a client asked, what it is answered.
//!
//! In: a request that a listener validated. Framing and connection-level fields have been consumed by then: a head
//! holds end-to-end fields only, so nothing hop-by-hop can be copied onwards by accident (RFC 9110 7.6.1).
//! Out to the listener: a [`Response`], whose head may be prepared once and shared by many answers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};

use crate::authority::Authority;
use crate::body::Body;
use crate::field_block::FieldBlock;
use crate::fields::age;
use crate::fields::cache_status::{CACHE_STATUS, CacheStatus};
pub use crate::peer::{ClientPolicyId, Peer, TlsPeer, TlsVersion};
pub use crate::scheme::Scheme;
use crate::target::Target;
use crate::trailers;

/// A validated request head. `fields` holds end-to-end fields only, without Host and Content-Length.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// As sent; methods are case-sensitive and never folded.
    pub method: Method,
    /// From the connection, or from a trusted peer.
    pub scheme: Scheme,
    /// Canonical: lower case, without the scheme's default port.
    pub authority: Authority,
    /// Raw path and query, byte for byte as they will reach the origin.
    pub target: Target,
    /// The client's version.
    pub version: Version,
    /// End-to-end fields.
    pub fields: HeaderMap,
}

/// A request with everything its exchange needs.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub head: RequestHead,
    /// What is sent along; [`Body::Empty`] where the framing says there is none.
    pub body: Body,
    /// Set when the client asked to switch to WebSocket (RFC 6455) with a well-formed request; any other
    /// `Upgrade` has been dropped.
    pub websocket: bool,
    /// What the client says about trailers.
    pub trailers: trailers::Wish,
    /// Who asks.
    pub peer: Peer,
}

/// Fields that were put in order once, when a response was stored, and are shared by every answer made from it.
#[derive(Debug, Default)]
pub struct PreparedFields {
    /// The fields as a map, for HTTP/2 and for decisions.
    pub map: HeaderMap,
    /// The same fields as HTTP/1 lines, each ended by CRLF.
    pub http1: Bytes,
    /// Whether Date is among them.
    pub has_date: bool,
}

impl PreparedFields {
    /// Prepares `map`. Values are written byte for byte.
    pub fn new(map: HeaderMap) -> Self {
        let mut http1 = Vec::with_capacity(map.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum());
        write_http1_fields(&map, &mut http1);
        Self::with_lines(map, http1.into())
    }

    /// The same where the lines are written already.
    pub fn with_lines(map: HeaderMap, http1: Bytes) -> Self {
        Self { has_date: map.contains_key(header::DATE), map, http1 }
    }
}

/// Something that keeps prepared fields for as long as somebody holds it.
pub trait SharedFields: std::fmt::Debug + Send + Sync {
    /// They do not change.
    fn prepared(&self) -> &PreparedFields;

    /// The same fields as HTTP/2 sends them, where they were encoded once.
    fn block(&self) -> Option<&FieldBlock> {
        None
    }
}

impl SharedFields for PreparedFields {
    fn prepared(&self) -> &PreparedFields {
        self
    }
}

/// Writes `fields` as HTTP/1 field lines.
pub fn write_http1_fields(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        write_http1_field(name, value, out);
    }
}

fn write_http1_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A final response head on its way to a client. The fields sent are `stored`, where present, followed by `fields`, Age
/// and our Cache-Status; no name stands twice but Cache-Status, of which the last line is ours. Content-Length,
/// Transfer-Encoding, Connection and Date (where missing) are the listener's own affair.
#[derive(Debug)]
pub struct ResponseHead {
    /// 200 to 999.
    pub status: StatusCode,
    /// Shared fields of a stored response.
    pub stored: Option<Arc<dyn SharedFields>>,
    /// Fields of this answer alone, or everything where nothing is stored.
    pub fields: HeaderMap,
    /// Age, in seconds, of an answer from the cache. A number and no field: nearly every hit has it, and no other field of
    /// its own, so that it needs no map.
    pub age: Option<u64>,
    /// The same for what Cache-Status says.
    pub cache_status: Option<CacheStatus>,
    /// What the site adds to each answer that has no field of the name, prepared once.
    pub site: Option<Arc<PreparedFields>>,
    /// The reason phrase of HTTP/1, where it is not the usual one of the status: printable ASCII. HTTP/2 has none.
    pub reason: Option<&'static str>,
}

impl ResponseHead {
    /// A head with its own fields only.
    pub fn new(status: StatusCode, fields: HeaderMap) -> Self {
        Self { status, stored: None, fields, age: None, cache_status: None, site: None, reason: None }
    }

    /// A head with `stored` fields and some of its own.
    pub fn from_stored(status: StatusCode, stored: Option<Arc<dyn SharedFields>>, fields: HeaderMap) -> Self {
        Self { stored, ..Self::new(status, fields) }
    }

    /// Every field, in the order in which they are sent.
    pub fn into_fields(self) -> HeaderMap {
        let mut all = match self.stored {
            None => self.fields,
            Some(stored) => {
                let mut all = stored.prepared().map.clone();
                all.reserve(self.fields.len() + 4);
                for (name, value) in &self.fields {
                    all.append(name, value.clone());
                }
                all
            }
        };
        if let Some(seconds) = self.age {
            all.append(header::AGE, age::format(Duration::from_secs(seconds)));
        }
        if let Some(status) = &self.cache_status {
            all.append(CACHE_STATUS, status.value());
        }
        if let Some(site) = &self.site {
            for (name, value) in &site.map {
                all.entry(name).or_insert_with(|| value.clone());
            }
        }
        all
    }

    /// Writes the same fields as HTTP/1 lines.
    pub fn write_http1(&self, out: &mut Vec<u8>) {
        if let Some(stored) = &self.stored {
            out.extend_from_slice(&stored.prepared().http1);
        }
        write_http1_fields(&self.fields, out);
        if let Some(seconds) = self.age {
            out.extend_from_slice(b"age: ");
            out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if let Some(status) = &self.cache_status {
            out.extend_from_slice(b"cache-status: ");
            status.write(out);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(site) = &self.site {
            // Nearly always, the application leaves them to the site.
            if site.map.keys().all(|name| self.field(name).is_none()) {
                out.extend_from_slice(&site.http1);
            } else {
                let missing = site.map.iter().filter(|(name, _)| self.field(name).is_none());
                missing.for_each(|(name, value)| write_http1_field(name, value, out));
            }
        }
    }

    /// Whether Date is among the fields.
    pub fn has_date(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.prepared().has_date)
            || self.fields.contains_key(header::DATE)
    }

    /// The first value of `name` among the fields of either map.
    pub fn field(&self, name: &http::HeaderName) -> Option<&http::HeaderValue> {
        self.fields.get(name).or_else(|| self.stored.as_ref().and_then(|s| s.prepared().map.get(name)))
    }
}

/// An interim (1xx) response: relayed in order, never stored, never replayed (RFC 9110 15.2).
#[derive(Clone, Debug)]
pub struct Interim {
    /// 102 to 199: 100 is made by the listener itself, 101 is final for HTTP.
    pub status: StatusCode,
    /// End-to-end fields.
    pub fields: HeaderMap,
}

/// Both directions of a byte stream, for tunnels. The methods mean what those of a runtime's streams do, and name none.
pub trait Duplex: Send {
    /// Reads into `bytes`; 0 is the end.
    ///
    /// # Errors
    /// The stream broke.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes some of `bytes`.
    ///
    /// # Errors
    /// The stream broke.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends what was written.
    ///
    /// # Errors
    /// The stream broke.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the direction that is written to.
    ///
    /// # Errors
    /// The stream broke.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The origin's end of an accepted upgrade.
pub struct Tunnel(pub Pin<Box<dyn Duplex>>);

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tunnel")
    }
}

/// What became of a response after it was handed to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Body bytes handed to the kernel.
    pub body_bytes: u64,
    /// False where the client vanished, stalled, or the body broke.
    pub complete: bool,
    /// When it was over.
    pub at: Instant,
}

/// A final response.
pub struct Response {
    /// Status and fields.
    pub head: ResponseHead,
    /// What follows the head. Where the request was HEAD, or the status forbids content, it still says how long
    /// the content would be, and is not sent.
    pub body: Body,
    /// Present with status 101 only.
    pub tunnel: Option<Tunnel>,
    /// Ask for the connection to be closed after this response.
    pub close: bool,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("head", &self.head).field("body", &self.body).finish_non_exhaustive()
    }
}

impl Response {
    /// A response without extras.
    pub fn new(head: ResponseHead, body: Body) -> Self {
        Self { head, body, tunnel: None, close: false }
    }
}
