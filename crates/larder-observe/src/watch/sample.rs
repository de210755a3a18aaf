//! A sample as it is kept and shown: redacted, and with names in place of numbers.
//!
//! In: what the tap hands out, the names of the rule, and what of it may be kept. Out: a value that all views share, which a filter can ask.
//! Its texts lie in one piece of memory. What was no UTF-8 has become U+FFFD.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Version;
use larder_http::message::TlsVersion;
use larder_http::time::WallTime;

use super::clients::Clients;
use super::redact::Redact;
use crate::fetched::Fetched;
use crate::filter::{Facts, NumberField, TextField, TimeField};
use crate::tap::{SampleHead, SampleTexts};

/// What may be kept, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// The parameters whose values are not.
    pub redact: Redact,
    /// How much of clients' addresses is.
    pub clients: Clients,
    /// How far figures over time reach back; at most a day, which is the default. Zero: there are only those of the moment.
    pub history: Duration,
    /// What figures over time may take. Default 16 MiB.
    pub memory_bytes: usize,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            redact: Redact::default(),
            clients: Clients::default(),
            history: Duration::from_secs(24 * 60 * 60),
            memory_bytes: 16 * 1024 * 1024,
        }
    }
}

impl WatchSettings {
    /// Whether another thing of exchanges may be kept.
    pub(super) fn keeps_another(&self, other: &Self) -> bool {
        (&self.redact, self.clients) != (&other.redact, other.clients)
    }
}

/// The site, rule and store of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) site: Option<Arc<str>>,
    pub(super) rule: Option<Arc<str>>,
    pub(super) store: Option<Arc<str>>,
}

/// Texts in the order in which they lie in a sample.
#[derive(Clone, Copy)]
enum Kept {
    Client,
    Method,
    Host,
    Target,
    UserAgent,
    Referer,
    Type,
}

const KEPT: usize = Kept::Type as usize + 1;

/// One exchange that was sampled.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Everything but texts. The client's address is not in it.
    head: SampleHead,
    place: Place,
    texts: Box<str>,
    ends: [u16; KEPT],
    /// Where the target's path ends, from its start.
    path_end: u16,
}

/// In place of the client's address, of which a text is kept.
const NO_CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

/// Room that is used for one sample after the other.
#[derive(Debug, Default)]
pub(super) struct Making {
    texts: String,
    redacted: Vec<u8>,
}

impl Making {
    /// Makes a sample of what the tap has handed out.
    pub(super) fn sample(
        &mut self,
        head: &SampleHead,
        texts: &SampleTexts<'_>,
        place: Place,
        settings: &WatchSettings,
    ) -> Arc<Sample> {
        let Self { texts: all, redacted } = self;
        all.clear();
        redacted.clear();
        settings.clients.write(head.client, redacted);
        push_lossy(redacted, all);
        let mut ends = [end(all); KEPT];
        let mut add = |kept: Kept, text: &[u8], is_url: bool| {
            redacted.clear();
            if is_url {
                settings.redact.write(text, redacted);
            }
            let begin = all.len();
            push_lossy(if is_url { redacted } else { text }, all);
            if let Some(text) = all.get_mut(begin..).filter(|_| matches!(kept, Kept::Type)) {
                text.make_ascii_lowercase();
            }
            ends[kept as usize] = end(all);
        };
        add(Kept::Method, texts.method, false);
        add(Kept::Host, texts.host, false);
        add(Kept::Target, texts.target, true);
        add(Kept::UserAgent, texts.user_agent, false);
        add(Kept::Referer, texts.referer, true);
        let media_type = texts.content_type.split(|byte| *byte == b';').next().unwrap_or_default();
        add(Kept::Type, media_type.trim_ascii(), false);
        let path = text_of(all, &ends, Kept::Target).and_then(|target| target.split('?').next());
        Arc::new(Sample {
            path_end: end(path.unwrap_or_default()),
            head: SampleHead { client: NO_CLIENT, ..head.clone() },
            place,
            texts: all.as_str().into(),
            ends,
        })
    }
}

/// All texts together have less than 8 KiB, also where each byte has become three.
fn end(texts: &str) -> u16 {
    u16::try_from(texts.len()).unwrap_or(u16::MAX)
}

/// One of all texts; `None` where it is empty.
fn text_of<'a>(texts: &'a str, ends: &[u16; KEPT], kept: Kept) -> Option<&'a str> {
    let place = kept as usize;
    let begin = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(place).copied()?;
    texts.get(usize::from(begin)..usize::from(end)).filter(|text| !text.is_empty())
}

fn push_lossy(bytes: &[u8], out: &mut String) {
    if let Ok(text) = str::from_utf8(bytes) {
        return out.push_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

impl Sample {
    /// What is known beside texts. Its client is `0.0.0.0`.
    pub fn head(&self) -> &SampleHead {
        &self.head
    }

    /// When the response ended.
    pub(super) fn ended(&self) -> WallTime {
        let took = u64::try_from(self.head.took.as_millis()).unwrap_or(u64::MAX);
        WallTime(self.head.time.0.saturating_add(took))
    }

    /// So much memory it takes. A fetch that it shares with others counts for each.
    pub fn bytes(&self) -> usize {
        let fetch = if self.head.fetched.is_some() { size_of::<Fetched>() } else { 0 };
        size_of::<Self>() + self.texts.len() + fetch
    }

    fn kept(&self, kept: Kept) -> Option<&str> {
        text_of(&self.texts, &self.ends, kept)
    }

    fn path_and_query(&self) -> Option<(&str, Option<&str>)> {
        let target = self.kept(Kept::Target)?;
        let (path, query) = target.split_at_checked(usize::from(self.path_end))?;
        Some((path, query.strip_prefix('?')))
    }
}

impl Facts for Sample {
    fn text<'a>(&'a self, field: TextField, scratch: &'a mut String) -> Option<&'a str> {
        let Self { head, place, .. } = self;
        match field {
            TextField::Method => self.kept(Kept::Method),
            TextField::Scheme => Some(head.scheme.as_str()),
            TextField::Host => self.kept(Kept::Host),
            TextField::Path => self.path_and_query().map(|(path, _)| path),
            TextField::Query => self.path_and_query().and_then(|(_, query)| query),
            TextField::Result => Some(head.result.token()),
            TextField::Reason => head.forward.map(|reason| reason.token()),
            TextField::Before => head.before,
            TextField::Detail => head.detail,
            TextField::NotStored => head.not_stored,
            TextField::Site => place.site.as_deref(),
            TextField::Rule => place.rule.as_deref(),
            TextField::Store => place.store.as_deref(),
            TextField::Origin => head.fetched.as_ref().map(|fetched| &*fetched.origin),
            TextField::Server => head.fetched.as_ref().and_then(|fetched| fetched.server.as_deref()),
            TextField::Client => self.kept(Kept::Client),
            TextField::UserAgent => self.kept(Kept::UserAgent),
            TextField::Referer => self.kept(Kept::Referer),
            TextField::Type => self.kept(Kept::Type),
            TextField::Trace => {
                for byte in head.trace? {
                    scratch.extend(
                        [byte >> 4, byte & 15]
                            .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
                    );
                }
                Some(scratch)
            }
            TextField::Protocol => Some(match head.version {
                Version::HTTP_09 => "0.9",
                Version::HTTP_10 => "1.0",
                Version::HTTP_2 => "2.0",
                Version::HTTP_3 => "3.0",
                _ => "1.1",
            }),
            TextField::Tls => head.tls.map(TlsVersion::word),
        }
    }

    fn time(&self, field: TimeField) -> Option<Duration> {
        let fetched = self.head.fetched.as_ref();
        match field {
            TimeField::Whole => Some(self.head.took),
            TimeField::Wait => self.head.collapse_wait,
            TimeField::Queue => fetched.map(|fetched| fetched.queue),
            TimeField::Connect => fetched.and_then(|fetched| fetched.connect),
            TimeField::FirstByte => fetched.and_then(|fetched| fetched.first_byte),
        }
    }

    fn number(&self, field: NumberField) -> Option<u64> {
        match field {
            NumberField::Bytes => Some(self.head.body_bytes),
            NumberField::Attempts => self.head.fetched.as_ref().map(|fetched| fetched.attempts.into()),
        }
    }

    fn status(&self) -> Option<u16> {
        Some(self.head.status.as_u16())
    }

    fn stored(&self) -> Option<bool> {
        Some(self.head.stored)
    }
}
