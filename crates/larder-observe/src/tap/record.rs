//! What a worker hands over of one exchange, and the room for it.
//!
//! In: a [`SampleHead`], which the worker owns, and [`SampleTexts`], which the request still holds. Out: the same, in the same order, for
//! the drain. Room is made once, half of it for heads and lengths and half for bytes of texts, and never grows: what has no
//! room is refused.
//! Deliberately absent: redaction and masks. They are the drain's, so they cost the worker nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::fields::cache_status::{Forward, RequestResult};
use larder_http::message::{Scheme, TlsVersion};
use larder_http::time::WallTime;

use super::chance::{EVERY_BURST, Weight};
use crate::fetched::Fetched;
use crate::names::RuleId;

/// What is known of an exchange at its end, beside its texts.
#[derive(Clone, Debug)]
pub struct SampleHead {
    /// When the request's head was complete.
    pub time: WallTime,
    /// For how many exchanges it stands.
    pub weight: Weight,
    /// The rule with its site and store; the default for what was turned away before.
    pub rule: RuleId,
    /// Who answered.
    pub result: RequestResult,
    /// Why it was no hit.
    pub forward: Option<Forward>,
    /// The token of Cache-Status's `detail`.
    pub detail: Option<&'static str>,
    /// Why the response was not stored, where it might have been.
    pub not_stored: Option<&'static str>,
    /// Whether it was.
    pub stored: bool,
    /// Why nothing was stored for a URI that was missed.
    pub before: Option<&'static str>,
    /// The final status.
    pub status: StatusCode,
    /// Of the client's connection.
    pub scheme: Scheme,
    /// The client's version.
    pub version: Version,
    /// Of the client's connection, where it is over TLS.
    pub tls: Option<TlsVersion>,
    /// The client, as far as trusted peers tell.
    pub client: IpAddr,
    /// Response body bytes handed to the kernel.
    pub body_bytes: u64,
    /// From the request's head to the end of the response.
    pub took: Duration,
    /// How long the request waited for another's fetch.
    pub collapse_wait: Option<Duration>,
    /// The fetch that the answer comes from.
    pub fetched: Option<Arc<Fetched>>,
    /// The trace that the request belongs to.
    pub trace: Option<[u8; 16]>,
}

#[cfg(test)]
impl SampleHead {
    /// An otherwise empty one.
    pub(crate) fn of(result: RequestResult, weight: Weight) -> Self {
        Self {
            time: WallTime(0),
            weight,
            rule: RuleId::default(),
            result,
            forward: None,
            detail: None,
            not_stored: None,
            stored: false,
            before: None,
            status: StatusCode::OK,
            scheme: Scheme::Http,
            version: Version::HTTP_11,
            tls: None,
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            body_bytes: 0,
            took: Duration::ZERO,
            collapse_wait: None,
            fetched: None,
            trace: None,
        }
    }
}

/// How many texts a sample has.
const TEXTS: usize = 6;

/// The texts of an exchange, as the client and the origin sent them. An absent one and one that is empty are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTexts<'a> {
    /// Cut at 32 bytes.
    pub method: &'a [u8],
    /// Host and port, cut at 255 bytes.
    pub host: &'a [u8],
    /// Path and query, cut at 512 bytes.
    pub target: &'a [u8],
    /// The User-Agent field, cut at 256 bytes.
    pub user_agent: &'a [u8],
    /// The Referer field, cut at 256 bytes.
    pub referer: &'a [u8],
    /// The response's Content-Type field, cut at 128 bytes.
    pub content_type: &'a [u8],
}

impl<'a> SampleTexts<'a> {
    pub(super) const COUNT: usize = TEXTS;

    pub(super) fn cut(&self) -> [&'a [u8]; TEXTS] {
        let cut = |text: &'a [u8], bytes_max: usize| text.get(..bytes_max).unwrap_or(text);
        [
            cut(self.method, 32),
            cut(self.host, 255),
            cut(self.target, 512),
            cut(self.user_agent, 256),
            cut(self.referer, 256),
            cut(self.content_type, 128),
        ]
    }

    /// Texts that lie one behind the other.
    pub(super) fn of_lengths(mut rest: &'a [u8], lengths: [u16; TEXTS]) -> Self {
        Self::from_cut(lengths.map(|length| take(&mut rest, length)))
    }

    fn from_cut([method, host, target, user_agent, referer, content_type]: [&'a [u8]; TEXTS]) -> Self {
        Self { method, host, target, user_agent, referer, content_type }
    }
}

/// So many bytes from the front.
fn take<'a>(rest: &mut &'a [u8], length: u16) -> &'a [u8] {
    let (text, behind) = rest.split_at_checked(usize::from(length)).unwrap_or((*rest, &[]));
    *rest = behind;
    text
}

#[derive(Debug)]
struct Record {
    head: SampleHead,
    /// Of each text.
    lengths: [u16; TEXTS],
}

/// Two buffers of a worker have 256 KiB together.
pub(super) const BUFFER_BYTES: usize = 128 * 1024;
/// So many samples have room; their texts then have some 200 bytes each.
pub(super) const RECORDS_MAX: usize = 352;
pub(super) const TEXT_BYTES_MAX: usize = BUFFER_BYTES - RECORDS_MAX * size_of::<Record>();
const _: () = assert!(TEXT_BYTES_MAX >= RECORDS_MAX * 192);

/// With so many samples, or so many bytes of texts, a drain is due. It may have to wait for a processor: where twice as many come
/// meanwhile, they have room and are not yet thinned out.
pub(super) const RECORDS_DUE: usize = RECORDS_MAX / 4;
const _: () = assert!(EVERY_BURST as usize >= 3 * RECORDS_DUE);
pub(super) const TEXT_BYTES_DUE: usize = TEXT_BYTES_MAX / 4;

/// Samples that wait for the drain.
#[derive(Debug)]
pub(super) struct Buffer {
    records: Vec<Record>,
    texts: Vec<u8>,
    is_due: bool,
}

/// What became of a sample that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Kept,
    /// It is kept, and with it a drain has become due: once until the buffer is taken.
    Due,
    NoRoom,
}

impl Buffer {
    pub(super) fn new() -> Self {
        let (records, texts) = (Vec::with_capacity(RECORDS_MAX), Vec::with_capacity(TEXT_BYTES_MAX));
        Self { records, texts, is_due: false }
    }

    /// Adds a sample.
    pub(super) fn put(&mut self, head: SampleHead, texts: &SampleTexts<'_>) -> Put {
        if self.records.is_empty() {
            // A drain that panicked has left them.
            self.texts.clear();
            self.is_due = false;
        }
        let texts = texts.cut();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if self.records.len() >= RECORDS_MAX || self.texts.len() + bytes > TEXT_BYTES_MAX {
            return Put::NoRoom;
        }
        // No text is longer than 512 bytes.
        let lengths = texts.map(|text| text.len() as u16);
        texts.iter().for_each(|text| self.texts.extend_from_slice(text));
        self.records.push(Record { head, lengths });
        if self.is_due || self.records.len() < RECORDS_DUE && self.texts.len() < TEXT_BYTES_DUE {
            return Put::Kept;
        }
        self.is_due = true;
        Put::Due
    }

    /// Hands out all samples, in the order in which they came, and is empty then. They are lent where they lie: to
    /// move them took a tenth of what it costs to watch every request.
    pub(super) fn take(&mut self, mut each: impl FnMut(&SampleHead, SampleTexts<'_>)) {
        let mut rest: &[u8] = &self.texts;
        let taken = Taken(&mut self.records);
        for Record { head, lengths } in &*taken.0 {
            let texts = lengths.map(|length| take(&mut rest, length));
            each(head, SampleTexts::from_cut(texts));
        }
        drop(taken);
        self.texts.clear();
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> [usize; 2] {
        [self.records.capacity(), self.texts.capacity()]
    }
}

/// Records that are gone when it is dropped, so also where a drain panics.
struct Taken<'a>(&'a mut Vec<Record>);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}
