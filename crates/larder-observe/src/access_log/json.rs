//! JSON lines: one object per exchange, its fields declared in one table from which the reference page is made.
//!
//! Names follow OpenTelemetry's conventions where there is one, else `larder.`. A field without a value is left out.
//! Bytes that are not UTF-8 become U+FFFD; controls, DEL, C1 controls and the two Unicode line separators are
//! escaped, so a line is safe on a terminal and one line for every reader.

use std::fmt::{self, Write};

use larder_http::time::WallTime;

use super::calendar;
use super::record::{LogRecord, Text};

/// A field's declaration.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// JSON type and unit.
    pub(crate) form: &'static str,
    pub(crate) help: &'static str,
    value: fn(&LogRecord, Slot<'_>),
}

/// All fields, in the order they are written.
pub(crate) const FIELDS: &[Field] = &[
    field("time", "string, RFC 3339, UTC", "When the request's head was complete.", |r, s| s.time(r.time)),
    field("client.address", "string", "The client, as far as trusted peers tell.", |r, s| {
        s.shown(Some(r.client))
    }),
    field("http.request.method", "string", "As sent, cut at 32 bytes.", |r, s| s.text(&r.method)),
    field("url.scheme", "string", "`http` or `https`.", |r, s| s.plain(Some(r.scheme.as_str()))),
    field("server.address", "string", "Host and port that were asked for.", |r, s| s.text(&r.host)),
    field("url.path", "string", "The path as sent.", |r, s| s.bytes(r.path_and_query().0)),
    field(
        "url.query",
        "string",
        "What follows `?`; path and query are cut at 8192 bytes together.",
        |r, s| {
            if let Some(query) = r.path_and_query().1 {
                s.bytes(query);
            }
        },
    ),
    field("network.protocol.version", "string", "`1.0`, `1.1` or `2.0`.", |r, s| {
        s.plain(Some(r.version_number()))
    }),
    field("http.response.status_code", "number", "The final status.", |r, s| s.number(r.status.as_u16())),
    field("http.response.body.size", "number, bytes", "Body bytes handed to the kernel.", |r, s| {
        s.number(r.body_bytes)
    }),
    field("larder.complete", "boolean", "False where the response did not reach its end.", |r, s| {
        s.number(r.complete)
    }),
    field(
        "larder.request_time",
        "number, seconds",
        "From the request's head to the end of the response.",
        |r, s| {
            s.seconds(Some(r.request_time));
        },
    ),
    field("larder.site", "string", "The site's name or first host.", |r, s| s.shown(r.site.as_deref())),
    field(
        "larder.cache.status",
        "string",
        "`hit`, or why the request was forwarded (RFC 9211 2.2).",
        |r, s| {
            s.plain(r.verdict);
        },
    ),
    field("larder.cache.status_field", "string", "larder's member of Cache-Status as sent.", |r, s| {
        s.text(&r.cache_status);
    }),
    field("larder.cache.detail", "string", "The token of Cache-Status's `detail`.", |r, s| s.plain(r.detail)),
    field("larder.cache.stored", "boolean", "Whether the response was stored.", |r, s| s.number(r.stored)),
    field("larder.cache.collapsed", "boolean", "Whether the request joined another's fetch.", |r, s| {
        s.number(r.collapsed);
    }),
    field("larder.cache.collapse_wait", "number, seconds", "How long it waited for that.", |r, s| {
        s.seconds(r.collapse_wait);
    }),
    field("larder.origin.name", "string", "The origin that was asked.", |r, s| s.shown(r.origin.as_deref())),
    field("larder.origin.status_code", "number", "What it answered.", |r, s| {
        if let Some(status) = r.origin_status {
            s.number(status.as_u16());
        }
    }),
    field("larder.origin.time", "number, seconds", "From asking it to its final head.", |r, s| {
        s.seconds(r.origin_time)
    }),
    field("user_agent.original", "string", "The User-Agent field, cut at 1024 bytes.", |r, s| {
        s.text(&r.user_agent)
    }),
    field("http.request.header.referer", "string", "The Referer field, cut at 1024 bytes.", |r, s| {
        s.text(&r.referer)
    }),
    field("larder.log.truncated", "boolean", "Present and true where a text was cut.", |r, s| {
        if r.is_cut() {
            s.number(true);
        }
    }),
];

const fn field(
    name: &'static str,
    form: &'static str,
    help: &'static str,
    value: fn(&LogRecord, Slot<'_>),
) -> Field {
    Field { name, form, help, value }
}

/// Appends the line of `record`, with its line feed.
pub(super) fn write(record: &LogRecord, out: &mut Vec<u8>) {
    let mut line = String::with_capacity(1024);
    for field in FIELDS {
        (field.value)(record, Slot { name: field.name, line: &mut line });
    }
    line.push_str("}\n");
    out.extend_from_slice(line.as_bytes());
}

/// The place of one field in a line. Nothing is written before there is a value.
struct Slot<'a> {
    name: &'static str,
    line: &'a mut String,
}

impl Slot<'_> {
    fn value(self, value: impl fmt::Display) {
        let separator = if self.line.is_empty() { '{' } else { ',' };
        let _ = write!(self.line, "{separator}\"{}\":{value}", self.name);
    }

    /// Numbers and booleans.
    fn number(self, value: impl fmt::Display) {
        self.value(value);
    }

    fn seconds(self, value: Option<std::time::Duration>) {
        if let Some(value) = value {
            self.value(format_args!("{}.{:06}", value.as_secs(), value.subsec_micros()));
        }
    }

    /// Words of larder's own, which need no escapes.
    fn plain(self, value: Option<&'static str>) {
        if let Some(value) = value {
            self.value(format_args!("\"{value}\""));
        }
    }

    fn time(self, value: WallTime) {
        self.value(format_args!("\"{}\"", calendar::rfc3339(value)));
    }

    fn shown(self, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.bytes(value.to_string().as_bytes());
        }
    }

    fn text<const MAX: usize>(self, value: &Text<MAX>) {
        if !value.is_empty() {
            self.bytes(value.as_bytes());
        }
    }

    fn bytes(self, value: &[u8]) {
        self.value(Escaped(value));
    }
}

/// Bytes as a JSON string.
struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in String::from_utf8_lossy(self.0).chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                    write!(f, "\\u{:04x}", u32::from(c))?
                }
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
