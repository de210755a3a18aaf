//! Samples and events as JSON: one object each, without a line feed, its keys declared once.
//!
//! A key has the name of the filter's field wherever there is one, so that what is seen can be asked for. A key without a value is left out.
//! Times are seconds and sizes are bytes. What a peer sent is escaped as in the access log.

use std::time::Duration;

use larder_http::time::WallTime;

use super::event::Event;
use super::sample::Sample;
use crate::access_log::{decimal, escape};
use crate::fetched::Fetched;
use crate::filter::{Facts, NumberField, TextField, TimeField};

/// The declaration of a key.
#[derive(Clone, Copy, Debug)]
pub struct SampleKey {
    /// In the object.
    pub name: &'static str,
    /// JSON type and unit.
    pub form: &'static str,
    /// One sentence.
    pub meaning: &'static str,
}

macro_rules! keys {
    ($($name:literal, $form:literal, $meaning:literal, $write:expr;)*) => {
        /// Every key of a sample, in the order in which they are written.
        pub const SAMPLE_KEYS: &[SampleKey] =
            &[$(SampleKey { name: $name, form: $form, meaning: $meaning }),*];

        /// Appends each of them that has a value. A loop over functions in a table took twice the time: these are built in.
        fn members(sample: &Sample, out: &mut Vec<u8>) {
            $({
                let write: fn(&Sample, Member<'_>) = $write;
                write(sample, Member { key: concat!(",\"", $name, "\":"), out });
            })*
        }
    };
}

keys! {
    "at", "number, seconds", "When the request's head was complete, since 1970.", |s, m| m.at(s.head().time);
    "weight", "number", "For how many exchanges the sample stands.", |s, m| m.number(Some(s.head().weight.count()));
    "client", "string", "The client's address, as far as it is told.", |s, m| m.field(s, TextField::Client);
    "method", "string", "The request method.", |s, m| m.field(s, TextField::Method);
    "scheme", "string", "`http` or `https`.", |s, m| m.field(s, TextField::Scheme);
    "host", "string", "The host that was asked for.", |s, m| m.field(s, TextField::Host);
    "path", "string", "The path as the client sent it.", |s, m| m.field(s, TextField::Path);
    "query", "string", "What follows `?`, without the values of secret parameters. Path and query are cut at 512 bytes together.", |s, m| m.field(s, TextField::Query);
    "protocol", "string", "The HTTP version of the client's connection.", |s, m| m.field(s, TextField::Protocol);
    "tls", "string", "The version of TLS of the client's connection.", |s, m| m.field(s, TextField::Tls);
    "ua", "string", "The User-Agent field, cut at 256 bytes.", |s, m| m.field(s, TextField::UserAgent);
    "referer", "string", "The Referer field, without the values of secret parameters, cut at 256 bytes.", |s, m| m.field(s, TextField::Referer);
    "site", "string", "The site's name, or its first host.", |s, m| m.field(s, TextField::Site);
    "rule", "string", "The name of the rule that matched.", |s, m| m.field(s, TextField::Rule);
    "store", "string", "The name of the store that was used.", |s, m| m.field(s, TextField::Store);
    "result", "string", "How larder came by the answer.", |s, m| m.field(s, TextField::Result);
    "reason", "string", "Why the request was forwarded.", |s, m| m.field(s, TextField::Reason);
    "before", "string", "Why a URI that was missed had no stored response.", |s, m| m.field(s, TextField::Before);
    "detail", "string", "The token in the `detail` parameter of `Cache-Status`.", |s, m| m.field(s, TextField::Detail);
    "stored", "boolean", "Whether the response was stored.", |s, m| m.flag(s.stored());
    "not_stored", "string", "Why it was not, where it might have been.", |s, m| m.text(s.head().not_stored);
    "status", "number", "The status code of the response.", |s, m| m.number(s.status().map(u64::from));
    "type", "string", "The media type of the response.", |s, m| m.field(s, TextField::Type);
    "bytes", "number, bytes", "Bytes of the response's body that were sent to the client.", |s, m| m.number(s.number(NumberField::Bytes));
    "time", "number, seconds", "From the request's head to the end of the response.", |s, m| m.time(s.time(TimeField::Whole));
    "wait", "number, seconds", "How long the request waited for the fetch of another one.", |s, m| m.time(s.time(TimeField::Wait));
    "origin", "string", "The name of the origin that was asked.", |s, m| m.field(s, TextField::Origin);
    "server", "string", "The server of the origin that answered, or failed last, as configured.", |s, m| m.field(s, TextField::Server);
    "attempts", "number", "How many times a server of the origin was asked.", |s, m| m.number(s.number(NumberField::Attempts));
    "reused", "boolean", "Whether a kept connection to the server was used.", |s, m| m.flag(fetched(s).map(|f| f.is_reused));
    "queue", "number, seconds", "How long the fetch stood in the queue of the origin.", |s, m| m.time(s.time(TimeField::Queue));
    "connect", "number, seconds", "How long the connection to the server took.", |s, m| m.time(s.time(TimeField::Connect));
    "first_byte", "number, seconds", "From the request that was sent to the origin to the first byte of its response.", |s, m| m.time(s.time(TimeField::FirstByte));
    "origin_time", "number, seconds", "From asking the origin to its final head, or to the failure.", |s, m| m.time(fetched(s).map(|f| f.took));
    "origin_status", "number", "The status code of the origin's answer.", |s, m| m.number(fetched(s).and_then(|f| f.status).map(|status| status.as_u16().into()));
    "error", "string", "Why the origin gave no answer.", |s, m| m.text(fetched(s).and_then(|f| f.error));
    "trace", "string", "The identifier of the trace that the request belongs to.", |s, m| m.field(s, TextField::Trace);
}

fn fetched(sample: &Sample) -> Option<&Fetched> {
    sample.head().fetched.as_deref()
}

/// One member of an object, which is written where it has a value.
struct Member<'a> {
    /// A comma, the name in quotes, and a colon.
    key: &'static str,
    out: &'a mut Vec<u8>,
}

impl<'a> Member<'a> {
    fn key(self) -> &'a mut Vec<u8> {
        self.out.extend_from_slice(self.key.as_bytes());
        self.out
    }

    fn field(self, sample: &Sample, field: TextField) {
        self.text(sample.text(field, &mut String::new()));
    }

    fn text(self, value: Option<&str>) {
        if let Some(value) = value {
            let out = self.key();
            out.push(b'"');
            escape::json(value.as_bytes(), out);
            out.push(b'"');
        }
    }

    fn number(self, value: Option<u64>) {
        if let Some(value) = value {
            decimal::integer(value, self.key());
        }
    }

    fn time(self, value: Option<Duration>) {
        if let Some(value) = value {
            decimal::seconds(value, self.key());
        }
    }

    fn at(self, value: WallTime) {
        self.time(Some(Duration::from_millis(value.0)));
    }

    fn flag(self, value: Option<bool>) {
        if let Some(value) = value {
            self.key().extend_from_slice(if value { b"true" } else { b"false" });
        }
    }
}

/// Appends an object. Its members write a comma before their names, of which the first becomes the brace.
fn object(out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    members(out);
    match out.get_mut(start) {
        Some(first) => *first = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
}

impl Sample {
    /// Appends the sample as an object with the keys of [`SAMPLE_KEYS`].
    pub fn json(&self, out: &mut Vec<u8>) {
        object(out, |out| members(self, out));
    }
}

impl Event {
    /// Appends the event as an object: `at`, `kind`, and where they are not empty `subject` and `text`.
    pub fn json(&self, out: &mut Vec<u8>) {
        let full = |text| Some(text).filter(|text: &&str| !text.is_empty());
        object(out, |out| {
            Member { key: ",\"at\":", out }.at(self.at);
            Member { key: ",\"kind\":", out }.text(Some(self.kind));
            Member { key: ",\"subject\":", out }.text(full(&self.subject));
            Member { key: ",\"text\":", out }.text(full(&self.text));
        });
    }
}
