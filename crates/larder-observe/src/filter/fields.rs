//! The fields of an exchange that a filter may ask for, declared once.
//!
//! In: a name from a filter. Out: its declaration: where its value comes from, the operators that it takes, whether case
//! counts, and a sentence and an example for the reference page.
//! `cache` and `url` are made of other fields, so that every view means the same by them.
//! Deliberately absent: the words that `result`, `reason`, `before` and `detail` may have. The crates that decide own them.

use super::operator::Operator;

/// A text that an exchange may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextField {
    /// As the client sent it.
    Method,
    /// `http` or `https`.
    Scheme,
    /// In lower case, with a port where the client named one.
    Host,
    /// As the client sent it, from the first `/` on.
    Path,
    /// What follows `?`; absent where there is no `?`.
    Query,
    /// One word: how larder came by the answer.
    Result,
    /// Why the request was forwarded: a word of RFC 9211 2.2.
    Reason,
    /// Why nothing was stored for a URI that was missed.
    Before,
    /// The token of Cache-Status's `detail`.
    Detail,
    /// Why the response was not stored, where it might have been.
    NotStored,
    /// The site's name or first host.
    Site,
    /// The rule's name.
    Rule,
    /// The store's name.
    Store,
    /// The origin's name.
    Origin,
    /// Host and port of one server of the origin.
    Server,
    /// The client's address, as far as it is told.
    Client,
    /// The User-Agent field.
    UserAgent,
    /// The Referer field.
    Referer,
    /// The response's media type in lower case, without parameters.
    Type,
    /// The identifier of the trace.
    Trace,
    /// `1.0`, `1.1` or `2.0`.
    Protocol,
    /// `1.2` or `1.3`; absent in clear text.
    Tls,
}

/// A length of time that an exchange may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeField {
    /// From the request's head to the end of the response.
    Whole,
    /// For another request's fetch.
    Wait,
    /// In the queue of an origin.
    Queue,
    /// For a connection to a server.
    Connect,
    /// From a request that was sent to the first byte of its response.
    FirstByte,
}

/// A number that an exchange may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberField {
    /// Bytes of the body that were sent to the client.
    Bytes,
    /// How often a server was asked.
    Attempts,
}

/// What the value of a field is, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A text that an exchange has as it is.
    Text(TextField),
    /// Host, path and query together.
    Url,
    /// `hit`, or the reason.
    Cache,
    /// A length of time, written with a unit.
    Time(TimeField),
    /// A number of bytes.
    Bytes(NumberField),
    /// A plain number.
    Count(NumberField),
    /// The status code.
    Status,
    /// Whether the response was stored.
    Stored,
}

impl FieldKind {
    /// The operators that a field of this kind takes.
    pub const fn operators(self) -> &'static [Operator] {
        use Operator::{AtLeast, AtMost, Equal, Less, Match, More, NoMatch, Unequal};
        match self {
            Self::Text(_) | Self::Url | Self::Cache => &[Equal, Unequal, Match, NoMatch],
            Self::Time(_) | Self::Bytes(_) | Self::Count(_) | Self::Status => {
                &[Equal, Unequal, Less, AtMost, More, AtLeast]
            }
            Self::Stored => &[Equal, Unequal],
        }
    }

    /// The form of its values.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Url | Self::Cache => "text",
            Self::Time(_) => "time",
            Self::Bytes(_) => "bytes",
            Self::Count(_) => "number",
            Self::Status => "status",
            Self::Stored => "boolean",
        }
    }
}

/// The declaration of a field.
#[derive(Debug, PartialEq, Eq)]
pub struct FilterField {
    /// As it is written in a filter.
    pub name: &'static str,
    /// What its value is.
    pub kind: FieldKind,
    /// Of a text: whether `a` and `A` are the same.
    pub ignores_case: bool,
    /// One sentence.
    pub meaning: &'static str,
    /// A filter with this field.
    pub example: &'static str,
    /// What others call it: no names, but hints where one of them is written.
    also: &'static [&'static str],
}

macro_rules! fields {
    ($($name:literal $(($($also:literal)*))?, $kind:expr, $case:ident, $meaning:literal, $example:literal;)*) => {
        /// Every field.
        pub const FILTER_FIELDS: &[FilterField] = &[$(FilterField {
            name: $name,
            kind: $kind,
            ignores_case: ignores!($case),
            meaning: $meaning,
            example: $example,
            also: &[$($($also),*)?],
        }),*];
    };
}

macro_rules! ignores {
    (counts) => {
        false
    };
    (ignored) => {
        true
    };
}

use FieldKind::{Bytes, Count, Text, Time};

fields! {
    "cache", FieldKind::Cache, ignored,
        "`hit` where the answer came from a store (`result` is `memory`, `disk`, `file`, `remote` or `stale`), otherwise the same as `reason`.",
        "cache!=hit";
    "result" ("outcome"), Text(TextField::Result), ignored,
        "How larder came by the answer: `memory`, `disk`, `file`, `remote`, `stale`, `joined`, `asked`, `own` or `refused`.",
        "result=memory,disk";
    "reason" ("fwd" "miss"), Text(TextField::Reason), ignored,
        "Why the request was forwarded, in the words of `Cache-Status` (RFC 9211 2.2).",
        "reason=uri-miss";
    "before", Text(TextField::Before), ignored,
        "Why a URI that was missed had no stored response, such as `new`, `evicted` or `purged`.",
        "before=evicted";
    "detail", Text(TextField::Detail), ignored,
        "The token in the `detail` parameter of `Cache-Status`.",
        "detail=set-cookie";
    "not_stored" ("not-stored" "notstored"), Text(TextField::NotStored), ignored,
        "Why the response was not stored, such as `no-store` or `set-cookie`.",
        "not_stored=set-cookie";
    "stored" ("cached"), FieldKind::Stored, ignored,
        "Whether the response was stored: `true` or `false`.",
        "stored=false";
    "method" ("verb"), Text(TextField::Method), ignored,
        "The request method.",
        "method=GET,HEAD";
    "scheme", Text(TextField::Scheme), ignored,
        "`http` or `https`.",
        "scheme=https";
    "host" ("domain" "vhost" "authority"), Text(TextField::Host), ignored,
        "The host that was asked for, with its port where the client named one.",
        "host=*.example.com";
    "path", Text(TextField::Path), counts,
        "The path as the client sent it, without the query.",
        "path=/blog/*";
    "query" ("args" "querystring" "query_string"), Text(TextField::Query), counts,
        "The part of the target behind `?`.",
        "query=*utm_*";
    "url" ("uri" "target"), FieldKind::Url, counts,
        "Host, path and, where there is one, `?` with the query.",
        "url=shop.example/cart*";
    "status" ("code" "status_code"), FieldKind::Status, ignored,
        "The status code of the response.",
        "status=5xx";
    "site", Text(TextField::Site), counts,
        "The site's name, or its first host.",
        "site=shop";
    "rule" ("route"), Text(TextField::Rule), counts,
        "The name of the rule that matched.",
        "rule=assets";
    "store", Text(TextField::Store), counts,
        "The name of the store that was used.",
        "store=pages";
    "origin" ("upstream" "backend"), Text(TextField::Origin), counts,
        "The name of the origin that was asked.",
        "origin=app";
    "server" ("upstream_addr"), Text(TextField::Server), ignored,
        "The server of the origin that answered, as configured.",
        "server=http://10.0.0.7:*";
    "client" ("ip" "addr" "address" "remote_addr"), Text(TextField::Client), ignored,
        "The client's address, as far as larder tells it.",
        "client=192.0.2.*";
    "ua" ("user_agent" "user-agent" "useragent" "agent"), Text(TextField::UserAgent), ignored,
        "The User-Agent field of the request.",
        "ua~^curl/[78]";
    "referer" ("referrer"), Text(TextField::Referer), counts,
        "The Referer field of the request.",
        "referer!=*shop.example*";
    "type" ("content_type" "content-type" "mime"), Text(TextField::Type), ignored,
        "The media type of the response, without parameters.",
        "type=image/*";
    "bytes" ("size" "length" "body_bytes_sent"), Bytes(NumberField::Bytes), ignored,
        "Bytes of the response's body that were sent to the client.",
        "bytes>=1MiB";
    "time" ("duration" "latency" "elapsed" "request_time"), Time(TimeField::Whole), ignored,
        "From the request's head to the end of the response.",
        "time>200ms";
    "wait", Time(TimeField::Wait), ignored,
        "How long the request waited for the fetch of another one.",
        "wait>50ms";
    "queue", Time(TimeField::Queue), ignored,
        "How long the request stood in the queue of the origin.",
        "queue>0s";
    "connect", Time(TimeField::Connect), ignored,
        "How long the connection to the origin's server took.",
        "connect>=1s";
    "first_byte" ("ttfb" "first-byte" "firstbyte"), Time(TimeField::FirstByte), ignored,
        "From the request that was sent to the origin to the first byte of its response.",
        "first_byte>1.5s";
    "attempts" ("tries" "retries"), Count(NumberField::Attempts), ignored,
        "How many times a server of the origin was asked.",
        "attempts>1";
    "trace" ("trace_id" "traceid"), Text(TextField::Trace), ignored,
        "The identifier of the trace that the request belongs to.",
        "trace=4bf92f35*";
    "protocol" ("proto" "version"), Text(TextField::Protocol), ignored,
        "The HTTP version of the client's connection: `1.0`, `1.1` or `2.0`.",
        "protocol=2.0";
    "tls" ("tls_version" "ssl" "ssl_protocol"), Text(TextField::Tls), ignored,
        "The version of TLS of the client's connection: `1.2` or `1.3`. A connection in clear text has none.",
        "tls=1.2";
}

/// Longer names are not compared.
const NAME_BYTES_MAX: usize = 64;

/// The declaration of a name.
pub(super) fn find(name: &str) -> Option<&'static FilterField> {
    FILTER_FIELDS.iter().find(|field| field.name == name)
}

/// The field that was probably meant: another word for it, or a name of which at most a third of the letters differ.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_lowercase();
    let known = FILTER_FIELDS.iter().find(|field| field.also.contains(&name.as_str()));
    let distances = FILTER_FIELDS.iter().map(|field| (strsim::osa_distance(&name, field.name), field.name));
    let close = distances.filter(|(distance, known)| *distance <= (known.len() / 3).max(1));
    known
        .map(|field| field.name)
        .or_else(|| close.min_by_key(|(distance, _)| *distance).map(|(_, known)| known))
}
