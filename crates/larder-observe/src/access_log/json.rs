//! JSON lines: one object per exchange, its fields declared in one table from which the reference page is made.
//!
//! Names follow OpenTelemetry's conventions where there is one, else `larder.`. A field without a value is left out.
//! Bytes that are not UTF-8 become U+FFFD; controls, DEL, C1 controls and the two Unicode line separators are
//! escaped, so a line is safe on a terminal and one line for every reader.
//! The table becomes straight code, in which each name stands with its quotes and comma as one constant: a line
//! is written by the worker that served it, and a serializer costs a tenth of a hit.

use std::time::Duration;

use larder_http::time::WallTime;

use super::calendar::{self, Stamp};
use super::record::{LogRecord, Text};
use super::{decimal, escape};

/// A field's declaration.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// JSON type and unit.
    pub(crate) form: &'static str,
    pub(crate) help: &'static str,
}

/// Declares all fields in the order they are written: name, JSON type and unit, meaning, and how the value of a
/// record is put into its slot.
macro_rules! fields {
    ($($name:literal, $form:literal, $help:literal => |$record:ident, $slot:ident| $value:expr;)*) => {
        /// All fields, in the order they are written.
        pub(crate) const FIELDS: &[Field] = &[$(Field { name: $name, form: $form, help: $help }),*];

        /// Appends all members, a comma before each.
        fn members(record: &LogRecord, stamp: &mut Stamp, out: &mut Vec<u8>) {
            let (path, query) = record.path_and_query();
            let texts = &Texts { is_plain: record.is_plain(), path, query };
            $({
                let slot = Slot {
                    key: concat!(",\"", $name, "\":"),
                    quoted: concat!(",\"", $name, "\":\""),
                    texts,
                    stamp: &mut *stamp,
                    out: &mut *out,
                };
                let ($record, $slot) = (record, slot);
                $value;
            })*
        }
    };
}

fields! {
    "time", "string, RFC 3339, UTC", "When the request's head was complete." => |r, s| s.time(r.time);
    "client.address", "string", "The client, as far as trusted peers tell." => |r, s| s.address(r.client);
    "http.request.method", "string", "As sent, cut at 32 bytes." => |r, s| s.text(r.text(Text::Method));
    "url.scheme", "string", "`http` or `https`." => |r, s| s.word(Some(r.scheme.as_str()));
    "server.address", "string", "Host and port that were asked for." => |r, s| s.text(r.text(Text::Host));
    "url.path", "string", "The path as sent." => |_r, s| s.path();
    "url.query", "string", "What follows `?`; path and query are cut at 8192 bytes together." => |_r, s| s.query();
    "network.protocol.version", "string", "`1.0`, `1.1` or `2.0`." => |r, s| s.word(Some(r.version_number()));
    "http.response.status_code", "number", "The final status." => |r, s| s.integer(Some(r.status.as_u16()));
    "http.response.body.size", "number, bytes", "Body bytes handed to the kernel." => |r, s| {
        s.integer(Some(r.body_bytes))
    };
    "larder.complete", "boolean", "False where the response did not reach its end." => |r, s| {
        s.boolean(r.complete)
    };
    "larder.request_time", "number, seconds", "From the request's head to the end of the response." => |r, s| {
        s.seconds(Some(r.request_time))
    };
    "larder.site", "string", "The site's name or first host." => |r, s| s.text(r.text(Text::Site));
    "larder.cache.status", "string", "`hit`, or why the request was forwarded (RFC 9211 2.2)." => |r, s| {
        s.word(r.verdict)
    };
    "larder.cache.status_field", "string", "larder's member of Cache-Status as sent." => |r, s| {
        s.text(r.text(Text::CacheStatus))
    };
    "larder.cache.detail", "string", "The token of Cache-Status's `detail`." => |r, s| s.word(r.detail);
    "larder.cache.stored", "boolean", "Whether the response was stored." => |r, s| s.boolean(r.stored);
    "larder.cache.collapsed", "boolean", "Whether the request joined another's fetch." => |r, s| {
        s.boolean(r.collapsed)
    };
    "larder.cache.collapse_wait", "number, seconds", "How long it waited for that." => |r, s| {
        s.seconds(r.collapse_wait)
    };
    "larder.origin.name", "string", "The origin that was asked." => |r, s| s.text(r.text(Text::Origin));
    "larder.origin.status_code", "number", "What it answered." => |r, s| {
        s.integer(r.origin_status.map(|status| status.as_u16()))
    };
    "larder.origin.time", "number, seconds", "From asking it to its final head." => |r, s| {
        s.seconds(r.origin_time)
    };
    "user_agent.original", "string", "The User-Agent field, cut at 1024 bytes." => |r, s| {
        s.text(r.text(Text::UserAgent))
    };
    "http.request.header.referer", "string", "The Referer field, cut at 1024 bytes." => |r, s| {
        s.text(r.text(Text::Referer))
    };
    "larder.log.truncated", "boolean", "Present and true where a text was cut." => |r, s| {
        if r.is_any_cut() {
            s.boolean(true);
        }
    };
}

/// Appends the line of `record`, with its line feed.
pub(super) fn write(record: &LogRecord, stamp: &mut Stamp, out: &mut Vec<u8>) {
    let start = out.len();
    members(record, stamp, out);
    // The first member's comma: there is one, since every line has its time.
    if let Some(first) = out.get_mut(start) {
        *first = b'{';
    }
    out.extend_from_slice(b"}\n");
}

/// What is looked up in a record's texts once per line.
struct Texts<'a> {
    /// None of them needs an escape.
    is_plain: bool,
    path: &'a [u8],
    query: Option<&'a [u8]>,
}

/// The place of one field in a line. Nothing is written before there is a value.
struct Slot<'a> {
    /// The name with the comma before it and the colon after.
    key: &'static str,
    /// The same and the quote that begins a string.
    quoted: &'static str,
    texts: &'a Texts<'a>,
    stamp: &'a mut Stamp,
    out: &'a mut Vec<u8>,
}

/// Small, and each put in its place, so that a key's length is known there.
impl Slot<'_> {
    #[inline(always)]
    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    fn boolean(mut self, value: bool) {
        self.push(self.key);
        self.push(if value { "true" } else { "false" });
    }

    #[inline(always)]
    fn integer(mut self, value: Option<impl itoa::Integer>) {
        if let Some(value) = value {
            self.push(self.key);
            decimal::integer(value, self.out);
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
        let second = self.stamp.at(value, calendar::rfc3339);
        self.out.extend_from_slice(second.as_bytes());
        self.push(".");
        decimal::millis(value.0 % 1000, self.out);
        self.push("Z\"");
    }

    #[inline(always)]
    fn address(mut self, value: std::net::IpAddr) {
        self.push(self.quoted);
        decimal::address(value, self.out);
        self.push("\"");
    }

    /// Words of larder's own, which need no escapes.
    #[inline(always)]
    fn word(mut self, value: Option<&'static str>) {
        if let Some(value) = value {
            self.push(self.quoted);
            self.push(value);
            self.push("\"");
        }
    }

    #[inline(always)]
    fn path(self) {
        let path = self.texts.path;
        self.string(path);
    }

    #[inline(always)]
    fn query(self) {
        if let Some(query) = self.texts.query {
            self.string(query);
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
        if self.texts.is_plain {
            self.out.extend_from_slice(value);
        } else {
            escape::json(value, self.out);
        }
        self.push("\"");
    }
}
