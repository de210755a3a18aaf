//! What can go wrong at the listener: a socket that does not open, a request that is not one.
//!
//! A [`Refusal`] is a value, not an error: the parser's answer to what is not a request. It has a status and a fixed
//! token for logs and metrics. Its text is all that the client is told, and has nothing in it that the client sent.

use std::io;
use std::net::SocketAddr;

use http::{HeaderValue, StatusCode};
use larder_http::authority::AuthorityError;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::framing::FramingError;

/// Why a listener could not be opened or run.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else listens there.
    #[error("{0} is in use")]
    InUse(SocketAddr),
    /// The address is not one of this machine's, or the port needs privileges, or anything else.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a request was refused by the parser. The connection is closed after the answer (RFC 9112 2.2, 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not `METHOD SP target SP version`.
    RequestLine,
    /// A version other than 1.0 and 1.1 in a request line.
    Version,
    /// CONNECT, TRACE, or a method name longer than any.
    Method,
    /// A target of no served form, or with bytes that have to be escaped.
    Target,
    /// Longer than the limit.
    TargetTooLong,
    /// An absolute target of another scheme than the connection's.
    Scheme,
    /// A carriage return or a line feed alone.
    LineEnd,
    /// NUL or another control.
    Control,
    /// A folded line, a name that is no token, or space before the colon.
    FieldLine,
    /// One field is larger than the limit.
    FieldTooLarge,
    /// More fields than the limit.
    TooManyFields,
    /// The whole head is larger than the limit.
    HeadTooLarge,
    /// No Host, two, or one that differs from `:authority`.
    HostCount,
    /// A Host, `:authority` or absolute target whose authority is malformed.
    Host(AuthorityError),
    /// Content-Length and Transfer-Encoding leave doubt, or the content is not framed as they say.
    Framing(FramingError),
    /// Expect asks for something other than `100-continue`.
    Expectation,
    /// The head did not come within its time.
    HeadTimeout,
    /// The content stalled.
    BodyTimeout,
    /// The content ended before its framing said so.
    BodyCut,
    /// The content is longer than the limit.
    BodyTooLarge,
    /// Something else than TLS at a listener for TLS.
    ClearText,
}

impl Refusal {
    /// The status it is answered with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Method => StatusCode::NOT_IMPLEMENTED,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::FieldTooLarge | Self::TooManyFields | Self::HeadTooLarge => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::HeadTimeout | Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ClearText
            | Self::RequestLine
            | Self::Target
            | Self::Scheme
            | Self::LineEnd
            | Self::Control
            | Self::FieldLine
            | Self::HostCount
            | Self::Host(_)
            | Self::Framing(_)
            | Self::BodyCut => StatusCode::BAD_REQUEST,
        }
    }

    /// A fixed token for logs and as the label of a metric.
    pub const fn as_str(self) -> &'static str {
        Self::TOKENS[self.index()]
    }

    /// What the client is told: the text of its answer.
    pub(crate) fn text(self) -> String {
        let status = self.status();
        format!("{} {}: {}\n", status.as_str(), status.canonical_reason().unwrap_or_default(), self.as_str())
    }

    /// The field Cache-Status of the answer: larder answered by itself, and why.
    pub(crate) fn cache_status(self) -> HeaderValue {
        let status = CacheStatus { detail: Some(self.as_str()), ..CacheStatus::new(Outcome::Own) };
        status.value()
    }

    /// All tokens, in the order of the enum.
    pub const TOKENS: [&'static str; 21] = [
        "request-line",
        "version",
        "method",
        "target",
        "target-too-long",
        "scheme",
        "line-end",
        "control",
        "field-line",
        "field-too-large",
        "too-many-fields",
        "head-too-large",
        "host-count",
        "host",
        "framing",
        "expectation",
        "head-timeout",
        "body-timeout",
        "body-cut",
        "body-too-large",
        "clear-text",
    ];

    /// Its place among the counters.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::RequestLine => 0,
            Self::Version => 1,
            Self::Method => 2,
            Self::Target => 3,
            Self::TargetTooLong => 4,
            Self::Scheme => 5,
            Self::LineEnd => 6,
            Self::Control => 7,
            Self::FieldLine => 8,
            Self::FieldTooLarge => 9,
            Self::TooManyFields => 10,
            Self::HeadTooLarge => 11,
            Self::HostCount => 12,
            Self::Host(_) => 13,
            Self::Framing(_) => 14,
            Self::Expectation => 15,
            Self::HeadTimeout => 16,
            Self::BodyTimeout => 17,
            Self::BodyCut => 18,
            Self::BodyTooLarge => 19,
            Self::ClearText => 20,
        }
    }
}
