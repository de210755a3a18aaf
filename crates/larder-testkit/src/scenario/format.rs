//! The words of a scenario file.
//!
//! A file states one rule, scripts the origin, and walks through steps. A step does one thing and may expect
//! something. Unknown keys are errors, so that a misspelt expectation cannot pass unnoticed.
//! `tests/scenarios/README.md` explains the same to those who write scenarios.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::origin::PathScript;

/// A whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The rule that it checks, with its RFC section where there is one.
    pub rule: String,
    /// The whole config; the default one where not given.
    pub config: Option<String>,
    /// Lines added to the only site of the default config.
    pub site: Option<String>,
    /// Lines added to the only origin of the default config.
    pub app: Option<String>,
    /// Files made before larder starts, beneath `{tmp}`.
    #[serde(default)]
    pub file: Vec<StaticFile>,
    /// What the origins answer.
    #[serde(default)]
    pub origin: Vec<PathScript>,
    /// What happens, in order.
    pub step: Vec<Step>,
}

/// A file on disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticFile {
    /// Relative to `{tmp}`.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// One step: exactly one action, or none where it only looks at the origin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    // Requests.
    /// GET this target.
    pub get: Option<String>,
    /// HEAD this target.
    pub head: Option<String>,
    /// POST to this target.
    pub post: Option<String>,
    /// `METHOD target`.
    pub request: Option<String>,
    /// Literal bytes, one request.
    pub raw: Option<String>,
    /// Requests written at once on one connection.
    pub pipeline: Vec<Step>,

    // How they are sent.
    /// The value of Host; `""` leaves the field out.
    pub host: Option<String>,
    /// `1.1`, `1.0` or `h2`.
    pub version: Option<String>,
    /// Lines of `Name: value`.
    pub fields: Vec<String>,
    /// The request's content.
    pub body: Option<String>,
    /// Content of this many bytes, derived from the target.
    pub body_bytes: Option<u64>,
    /// Send the content in one chunk.
    pub chunked: bool,
    /// Send the content in chunks of at most so many bytes.
    pub chunk_bytes: Option<usize>,
    /// Lines of `Name: value`, sent behind the content, which is `chunked` or goes over `h2`.
    pub trailers: Vec<String>,
    /// Send it on this kept connection, opening it where it is new.
    pub on: Option<String>,
    /// Send it to the admin address.
    pub admin: bool,
    /// Do it in the background, under this name, until `finish` or `abort`.
    pub start: Option<String>,
    /// How many clients send it at the same time; `{i}` as under `times`.
    pub clients: Option<usize>,
    /// Send it this many times, one after the other; `{i}` in target, fields and body is the number of each, from 1.
    /// What is expected of a response is expected of each, what is expected of origins and metrics holds at the end.
    pub times: Option<u64>,
    /// The client stops reading after this many bytes of body, until `resume`.
    pub pause_at: Option<u64>,
    /// Names for what the answer's fields say up to the first `;`, for `{name}` in fields of later requests and in what
    /// is expected of fields.
    pub remember: BTreeMap<String, String>,
    /// Instead of reading an answer: `close`, `half-close` (and read), or `abort`.
    pub after: Option<After>,

    // Other actions.
    /// Wait for background clients and look at what each received.
    pub finish: Option<String>,
    /// Reset the connections of background clients.
    pub abort: Option<String>,
    /// Close a kept connection.
    pub hang_up: Option<String>,
    /// Let paused background clients read on.
    pub resume: Option<String>,
    /// Move larder's and the origin's clock.
    pub advance: Option<String>,
    /// Open a gate of the origin's script.
    pub release: Option<String>,
    /// Stop an origin: connections are refused.
    pub stop_origin: Option<String>,
    /// Start it again on the same port.
    pub start_origin: Option<String>,
    /// Load this config.
    pub reload: Option<String>,
    /// The reload is to be refused, with an error that contains this.
    pub refused: Option<String>,
    /// Wait for something to become true.
    pub wait: Option<Wait>,
    /// Bytes in both directions on a kept connection, after an upgrade.
    pub talk: Option<Talk>,

    /// What is to be seen.
    pub expect: Option<Expect>,
}

impl fmt::Display for Step {
    /// The action in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("get", &self.get),
            ("head", &self.head),
            ("post", &self.post),
            ("request", &self.request),
            ("finish", &self.finish),
            ("abort", &self.abort),
            ("hang_up", &self.hang_up),
            ("resume", &self.resume),
            ("advance", &self.advance),
            ("release", &self.release),
            ("stop_origin", &self.stop_origin),
            ("start_origin", &self.start_origin),
        ];
        if let Some((name, value)) = named.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?)))
        {
            return write!(f, "{name} {value}");
        }
        f.write_str(match self {
            Self { raw: Some(_), .. } => "raw request",
            Self { reload: Some(_), .. } => "reload",
            Self { wait: Some(_), .. } => "wait",
            Self { talk: Some(_), .. } => "talk",
            Self { pipeline, .. } if !pipeline.is_empty() => "pipeline",
            _ => "look at the origin",
        })
    }
}

/// How a client ends after sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// Closes.
    Close,
    /// Ends its sending direction and reads on.
    HalfClose,
    /// Resets.
    Abort,
}

/// Something to wait for; each condition given must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    /// At least so many requests have reached the origins.
    pub origin_requests: Option<u64>,
    /// The same for one of several.
    pub origin_requests_of: BTreeMap<String, u64>,
    /// At least so many requests that scripts have put `aside`.
    pub origin_aside: Option<u64>,
    /// Exactly so many are being answered.
    pub origin_in_flight: Option<u64>,
    /// Exactly so many connections to the origins are open.
    pub origin_connections_open: Option<u64>,
    /// Background clients have received the head of their response and at least so many bytes of body, each.
    pub received: BTreeMap<String, u64>,
    /// Metrics have at least these values.
    pub metrics: BTreeMap<String, f64>,
    /// Metrics have exactly these values.
    pub gauges: BTreeMap<String, f64>,
}

/// Bytes on a kept connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    /// Which.
    pub on: String,
    /// Sent first.
    #[serde(default)]
    pub send: String,
    /// Exactly what must come then.
    #[serde(default)]
    pub receive: String,
}

/// Expectations. What is not given is not looked at, but for two: a response must be complete unless `cut`, and the
/// number of origin requests at the end must be the last one stated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The status code; several where any of them will do.
    pub status: Option<OneOrMany<u16>>,
    /// The reason phrase.
    pub reason: Option<String>,
    /// `HTTP/1.1`, `HTTP/1.0`, `HTTP/2`.
    pub version: Option<String>,
    /// The whole body.
    pub body: Option<String>,
    /// Its length.
    pub body_bytes: Option<u64>,
    /// The whole body is a range of a derived one.
    pub body_of: Option<BodyOf>,
    /// A part of the body.
    pub body_contains: Option<String>,
    /// The whole body is multipart/byteranges of exactly these parts, in this order.
    pub multipart: Option<Vec<PartOf>>,
    /// Fields by name.
    pub fields: BTreeMap<String, Want>,
    /// Fields that must not be there.
    pub absent: Vec<String>,
    /// Trailers by name.
    pub trailers: BTreeMap<String, Want>,
    /// Cache-Status, whole; several where any of them will do. See [`super::cache_status`].
    pub cache_status: Option<OneOrMany<String>>,
    /// The status codes of interim responses, in order.
    pub interim: Option<Vec<u16>>,
    /// The body breaks off.
    pub cut: bool,
    /// Larder closes the connection after the response, without another byte.
    pub closed: bool,
    /// Larder closes without an answer.
    pub no_response: bool,
    /// How many requests all origins have received, in all, so far.
    pub origin_requests: Option<u64>,
    /// The same for one of several.
    pub origin_requests_of: BTreeMap<String, u64>,
    /// What the origin received.
    pub origin_saw: Option<Saw>,
    /// How many requests were being answered at once, at most.
    pub origin_peak: Option<u64>,
    /// How many connections were opened to the origins, in all.
    pub origin_connections: Option<u64>,
    /// Metrics by series.
    pub metrics: BTreeMap<String, f64>,
}

/// A value or a list of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// This one.
    One(T),
    /// Any of these.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values that will do.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// A range of a derived body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyOf {
    /// The target that the origin received, or the `seed` of its answer.
    pub seed: String,
    /// Where the range begins.
    #[serde(default)]
    pub first: u64,
    /// How long it is.
    pub bytes: u64,
}

/// One part of a body that has several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartOf {
    /// Its fields by name.
    pub fields: BTreeMap<String, Want>,
    /// Fields that must not be there.
    pub absent: Vec<String>,
    /// Its content.
    pub body: Option<String>,
    /// Its content is a range of a derived body.
    pub body_of: Option<BodyOf>,
}

/// What a field is to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Want {
    /// One line of exactly this; placeholders are filled in.
    Exactly(String),
    /// Lines of exactly these, in this order.
    Lines(Vec<String>),
    /// Something looser.
    Looser(Looser),
}

/// Looser than equality; each that is given must hold for the first line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looser {
    /// A part of it.
    pub contains: Option<String>,
    /// A pattern in which `*` stands for anything.
    pub matches: Option<String>,
    /// A number within `a..b`, both included.
    pub between: Option<String>,
}

/// What an origin received.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Saw {
    /// Which origin; `origin` where not given.
    pub origin: Option<String>,
    /// The number of the request, from 1; the last one where not given.
    pub number: Option<usize>,
    /// Its method.
    pub method: Option<String>,
    /// Its target.
    pub target: Option<String>,
    /// Fields by name.
    pub fields: BTreeMap<String, Want>,
    /// Fields that must not be there.
    pub absent: Vec<String>,
    /// Trailers by name.
    pub trailers: BTreeMap<String, Want>,
    /// Trailers that must not be there.
    pub absent_trailers: Vec<String>,
    /// Its whole body.
    pub body: Option<String>,
    /// The whole body is a range of a derived one.
    pub body_of: Option<BodyOf>,
    /// Whether the body came to its proper end.
    pub body_complete: Option<bool>,
}
