//! JSON lines: one object per exchange, its fields declared in one table from which the reference page is made.
//!
//! Names follow OpenTelemetry's conventions where there is one, else `larder.`. A field without a value is left out.
//! Bytes that are not UTF-8 become U+FFFD; controls, DEL, C1 controls and the two Unicode line separators are
//! escaped, so a line is safe on a terminal and one line for every reader.
//! The table becomes straight code, in which each name stands with its quotes and comma as one constant, and so do
//! the values that nearly every line has. The worker that served an exchange writes its line, and a serializer would
//! cost a tenth of a hit. What is known only at the end stands together, so that it is put in at one place.

use std::time::Duration;

use http::Version;
use larder_http::fields::cache_status::{CacheStatus, Outcome, RequestResult};
use larder_http::message::Scheme;
use larder_http::time::WallTime;

use super::record::{Ending, LogRecord, LoggedRule, PageEnding, Text};
use super::{calendar, decimal, escape};

/// So many bytes of the name of a site or a rule are kept.
const NAME_BYTES_MAX: usize = 1024;

/// A field's declaration.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// JSON type and unit.
    pub(crate) form: &'static str,
    pub(crate) help: &'static str,
}

/// Declares all fields in the order they are written, in groups that are written at once: name, JSON type and unit,
/// meaning, and how the value of a record is put into its slot.
macro_rules! fields {
    ($(
        $(#[$doc:meta])*
        fn $group:ident($from:ty) {
            $($name:literal, $form:literal, $help:literal => |$record:ident, $slot:ident| $value:expr;)*
        }
    )*) => {
        /// All fields, in the order they are written.
        pub(crate) const FIELDS: &[Field] = &[$($(Field { name: $name, form: $form, help: $help }),*),*];

        $(
            $(#[$doc])*
            #[inline(always)]
            fn $group(from: &$from, out: &mut Vec<u8>) {
                $({
                    const KEY: &str = concat!(",\"", $name, "\":");
                    let slot = Slot { key: KEY, quoted: concat!(",\"", $name, "\":\""), out: &mut *out };
                    let ($record, $slot) = (from, slot);
                    $value;
                })*
            }
        )*
    };
}

/// Appends a member whose value is the same in nearly every line, as one constant.
macro_rules! usual {
    ($slot:ident, $value:literal) => {{
        const MEMBER: [u8; KEY.len() + $value.len()] = joined(KEY, $value);
        $slot.out.extend_from_slice(&MEMBER);
    }};
}

const fn joined<const N: usize>(key: &str, value: &str) -> [u8; N] {
    let (mut all, mut at) = ([0; N], 0);
    while at < N {
        let from = if at < key.len() { key.as_bytes()[at] } else { value.as_bytes()[at - key.len()] };
        all[at] = from;
        at += 1;
    }
    all
}

fields! {
    /// Appends the members before those of the end, a comma before each.
    fn front(LogRecord<'_>) {
        "time", "string, RFC 3339, UTC", "When the request's head was complete." => |r, s| s.time(r.time);
        "client.address", "string", "The client, as far as trusted peers tell." => |r, s| s.address(r.client);
        "http.request.method", "string", "As sent, cut at 32 bytes." => |r, s| match r.text(Text::Method) {
            b"GET" => usual!(s, "\"GET\""),
            method => s.text(method),
        };
        "url.scheme", "string", "`http` or `https`." => |r, s| match r.scheme {
            Scheme::Http => usual!(s, "\"http\""),
            Scheme::Https => usual!(s, "\"https\""),
        };
        "server.address", "string", "Host and port that were asked for." => |r, s| s.text(r.text(Text::Host));
        "url.path", "string", "The path as sent." => |r, s| s.string(r.path_and_query().0);
        "url.query", "string", "What follows `?`; path and query are cut at 8192 bytes together." => |r, s| {
            if let (_, Some(query)) = r.path_and_query() {
                s.string(query);
            }
        };
        "network.protocol.version", "string", "`1.0`, `1.1` or `2.0`." => |r, s| match r.version {
            Version::HTTP_11 => usual!(s, "\"1.1\""),
            Version::HTTP_2 => usual!(s, "\"2.0\""),
            _ => s.word(r.version_number()),
        };
        "tls.protocol.version", "string", "`1.2` or `1.3`, of a connection over TLS." => |r, s| {
            if let Some(tls) = r.tls {
                s.word(tls.version.word());
            }
        };
        "tls.next_protocol", "string", "The protocol that its client and larder have agreed on, where the client offers some." => |r, s| {
            if let Some(agreed) = r.tls.and_then(|tls| tls.alpn) {
                s.word(agreed);
            }
        };
        "tls.resumed", "boolean", "Whether its client resumed an earlier session." => |r, s| {
            if let Some(tls) = r.tls {
                if tls.is_resumed { usual!(s, "true") } else { usual!(s, "false") }
            }
        };
        "http.response.status_code", "number", "The final status." => |r, s| s.status(Some(r.status));
    }

    /// Appends the members that are known at the end.
    fn ending(Ending) {
        "http.response.body.size", "number, bytes", "Body bytes handed to the kernel." => |e, s| {
            s.integer(e.body_bytes)
        };
        "larder.complete", "boolean", "False where the response did not reach its end." => |e, s| {
            if e.complete { usual!(s, "true") } else { usual!(s, "false") }
        };
        "larder.request_time", "number, seconds", "From the request's head to the end of the response." => |e, s| {
            s.seconds(Some(e.request_time))
        };
        "larder.cache.stored", "boolean", "Whether the response was stored, as of the end of its body." => |e, s| {
            if e.stored { usual!(s, "true") } else { usual!(s, "false") }
        };
        "larder.cache.not_stored", "string", "Why not, where its body was to be stored: `queue-full`, `no-room`, `incomplete` ..." => |e, s| {
            if let Some(why) = e.not_stored {
                s.word(why);
            }
        };
    }

    /// Appends the members of a page that are known at the end.
    fn page(PageEnding) {
        "larder.fragments", "number", "Of a page that was put together: the fragments that it asked for." => |p, s| {
            s.integer(p.fragments.into())
        };
        "larder.fragments_asked", "number", "Those of them that were not in memory." => |p, s| {
            s.integer(p.asked.into())
        };
        "larder.fragments_failed", "number", "Its includes that failed, whatever stood in for them." => |p, s| {
            s.integer(p.failed.into())
        };
        "larder.fragment_wait", "number, seconds", "How long the page had nothing to send." => |p, s| {
            s.seconds(Some(p.waited))
        };
    }

    /// Appends the names of a site and a rule, which are the same in many lines.
    fn rule([&str; 2]) {
        "larder.site", "string", "The site's name or first host." => |r, s| s.text(r[0].as_bytes());
        "larder.rule", "string", "The rule's name, or `(site)` where none matched." => |r, s| s.text(r[1].as_bytes());
    }

    /// Appends the members behind them.
    fn back(LogRecord<'_>) {
        "larder.result", "string", "Who answered: `memory`, `disk`, `file`, `remote`, `stale`, `joined`, `asked`, `own` or `refused`." => |r, s| {
            match r.cache_status.map_or(RequestResult::Refused, CacheStatus::result) {
                RequestResult::Memory => usual!(s, "\"memory\""),
                result => s.word(result.token()),
            }
        };
        "larder.cache.status", "string", "`hit`, or why the request was forwarded (RFC 9211 2.2)." => |r, s| {
            match r.cache_status.map(|said| said.outcome) {
                Some(Outcome::Hit) => usual!(s, "\"hit\""),
                Some(Outcome::Forwarded(reason)) => s.word(reason.token()),
                Some(Outcome::Own) | None => {}
            }
        };
        "larder.cache.status_field", "string", "larder's member of Cache-Status as sent." => |r, s| {
            s.cache_status(r)
        };
        "larder.cache.detail", "string", "The token of Cache-Status's `detail`." => |r, s| {
            if let Some(detail) = r.cache_status.map_or(r.refusal, |said| said.detail) {
                s.word(detail);
            }
        };
        "larder.cache.before", "string", "Where nothing is stored under the URL, what became of it: `new`, `evicted`, `idle`, `purged`, `invalidated`, `not-stored` or `unknown`." => |r, s| {
            if let Some((before, _)) = r.before {
                s.word(before);
            }
        };
        "larder.cache.before_reason", "string", "Why its last response was not stored." => |r, s| {
            if let Some((_, Some(why))) = r.before {
                s.word(why);
            }
        };
        "larder.cache.collapsed", "boolean", "Whether the request joined another's fetch." => |r, s| {
            match r.cache_status {
                Some(said) if said.collapsed => usual!(s, "true"),
                _ => usual!(s, "false"),
            }
        };
        "larder.cache.collapse_wait", "number, seconds", "How long it waited for that." => |r, s| {
            s.seconds(r.collapse_wait)
        };
        "larder.origin.name", "string", "The origin that was asked." => |r, s| s.text(r.text(Text::Origin));
        "larder.origin.status_code", "number", "What it answered." => |r, s| {
            s.status(r.cache_status.and_then(|said| said.forward_status))
        };
        "larder.origin.server", "string", "Which of its servers answered, or failed last, as configured." => |r, s| {
            s.text(r.fetched.and_then(|fetched| fetched.server.as_deref()).unwrap_or_default().as_bytes())
        };
        "larder.origin.attempts", "number", "How often the request was sent, to any server; absent where it was not sent." => |r, s| {
            if let Some(fetched) = r.fetched.filter(|fetched| fetched.attempts > 0) {
                s.integer(fetched.attempts.into());
            }
        };
        "larder.origin.time", "number, seconds", "From asking it to its final head, or to its failure; also where another request's fetch was waited for." => |r, s| {
            s.seconds(r.fetched.map(|fetched| fetched.took))
        };
        "user_agent.original", "string", "The User-Agent field, cut at 1024 bytes." => |r, s| {
            s.text(r.text(Text::UserAgent))
        };
        "http.request.header.referer", "string", "The Referer field, cut at 1024 bytes." => |r, s| {
            s.text(r.text(Text::Referer))
        };
        "larder.log.truncated", "boolean", "Present and true where a text was cut." => |r, s| {
            if r.is_any_cut() {
                usual!(s, "true");
            }
        };
    }
}

/// Appends the line of `record`, with its line feed, all but what [`write_ending`] does. Returns where that belongs.
pub(super) fn write(record: &LogRecord<'_>, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    front(record, out);
    // The first member's comma: there is one, since every line has its time.
    if let Some(first) = out.get_mut(start) {
        *first = b'{';
    }
    let gap = out.len();
    if let Some(rule) = record.rule {
        out.extend_from_slice(&rule.json);
    }
    back(record, out);
    out.extend_from_slice(b"}\n");
    gap
}

impl LoggedRule {
    /// The rule's name, in the site of that name. Of each, 1024 bytes are kept.
    pub fn new(site: &str, name: &str) -> Self {
        let kept = |name: &'_ str| name.floor_char_boundary(NAME_BYTES_MAX);
        let names = [site.get(..kept(site)), name.get(..kept(name))].map(Option::unwrap_or_default);
        let mut json = Vec::new();
        rule(&names, &mut json);
        Self { json: json.into() }
    }
}

/// Appends what is known at the end.
pub(super) fn write_ending(ended: &Ending, out: &mut Vec<u8>) {
    ending(ended, out);
    if let Some(ended) = &ended.page {
        write_page(ended, out);
    }
}

/// Most responses are no pages.
#[cold]
fn write_page(ended: &PageEnding, out: &mut Vec<u8>) {
    page(ended, out);
}

/// The place of one field in a line. Nothing is written before there is a value.
struct Slot<'a> {
    /// The name with the comma before it and the colon after.
    key: &'static str,
    /// The same and the quote that begins a string.
    quoted: &'static str,
    out: &'a mut Vec<u8>,
}

/// Small, and each put in its place, so that a key's length is known there, and that of a word where it is a constant.
impl Slot<'_> {
    #[inline(always)]
    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    fn integer(mut self, value: u64) {
        self.push(self.key);
        decimal::integer(value, self.out);
    }

    #[inline(always)]
    fn status(mut self, value: Option<http::StatusCode>) {
        if let Some(value) = value {
            self.push(self.key);
            self.out.extend_from_slice(&decimal::three_digits(value.as_u16()));
        }
    }

    #[inline(always)]
    fn seconds(mut self, value: Option<Duration>) {
        if let Some(value) = value {
            self.push(self.key);
            decimal::seconds(value, self.out);
        }
    }

    #[inline(always)]
    fn time(mut self, value: WallTime) {
        self.push(self.quoted);
        self.out.extend_from_slice(&calendar::rfc3339(value));
        let [a, b, c] = decimal::three_digits((value.0 % 1000) as u16);
        self.out.extend_from_slice(&[b'.', a, b, c, b'Z', b'"']);
    }

    #[inline(always)]
    fn address(mut self, value: std::net::IpAddr) {
        self.push(self.quoted);
        decimal::address(value, self.out);
        self.push("\"");
    }

    /// Words of larder's own, which need no escapes.
    #[inline(always)]
    fn word(mut self, value: &'static str) {
        self.push(self.quoted);
        self.push(value);
        self.push("\"");
    }

    /// Without a key it is made of such words.
    #[inline(always)]
    fn cache_status(mut self, record: &LogRecord<'_>) {
        match (record.text(Text::CacheStatus), record.cache_status) {
            ([], Some(said)) => {
                self.push(self.quoted);
                said.write(self.out);
                self.push("\"");
            }
            (text, _) => self.text(text),
        }
    }

    /// Left out where it is empty.
    #[inline(always)]
    fn text(self, value: &[u8]) {
        if !value.is_empty() {
            self.string(value);
        }
    }

    #[inline(always)]
    fn string(mut self, value: &[u8]) {
        self.push(self.quoted);
        escape::json(value, self.out);
        self.push("\"");
    }
}
