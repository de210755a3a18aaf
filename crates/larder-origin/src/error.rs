//! Why an exchange with an origin failed: whose fault it was, which status it becomes, whether the origin is dead.
//!
//! In: errors of sockets, TLS, hyper and the client's body. Out: one enum whose tokens are fixed words for
//! `Cache-Status`, logs and metrics. The text of a peer never appears in a token or a message.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use larder_http::body::BodyError;
use larder_tls::TlsFailure;

/// A full queue empties as fast as the origin answers, so soon is as good a guess as any.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Who is to blame for a failed exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The client whose body was being sent.
    Client,
    /// The origin, or the way to it.
    Origin,
    /// A limit of our own.
    Larder,
}

/// Why there is no final response head.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// Nobody listens there.
    #[error("connection refused")]
    ConnectRefused,
    /// TCP and TLS together took longer than the limit, or the first answer from DNS did.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// No connection for another reason.
    #[error("connection failed")]
    ConnectFailed(#[source] io::Error),
    /// The process has as many connections to this origin open as it may.
    #[error("too many connections open")]
    ConnectionLimit,
    /// Every server is unhealthy, as far as our own checks can tell.
    #[error("no healthy server")]
    NoServer,
    /// As many requests wait for this origin as may.
    #[error("too many requests wait for the origin")]
    QueueFull,
    /// Too many requests were out for too long.
    #[error("waited too long for the origin to become free")]
    QueueTimeout,
    /// The limit on the whole exchange passed before the head.
    #[error("no response head within the limit of the whole exchange")]
    TotalTimeout,
    /// The server's name has no address.
    #[error("name not resolved")]
    Dns(#[source] io::Error),
    /// The TLS handshake failed; why, and the error behind it.
    #[error("tls handshake failed: {}", .0.sentence())]
    Tls(TlsFailure, #[source] io::Error),
    /// The connection ended before a final head was complete.
    #[error("closed before the response head")]
    Closed,
    /// The origin did not answer, or did not take the request, within the limit.
    #[error("no response head in time")]
    FirstByteTimeout,
    /// An answer that HTTP does not allow, or that two readers could read differently.
    #[error("bad response: {0}")]
    BadResponse(&'static str),
    /// The head, one field or the number of fields is beyond its limit.
    #[error("response head too large")]
    HeadTooLarge,
    /// 101 where it was not asked for, or not the one that was.
    #[error("unexpected switch of protocols")]
    UnexpectedUpgrade,
    /// A WebSocket, which needs HTTP/1.1, for a server that speaks nothing but HTTP/2: the settings say so, or it does.
    #[error("no websocket over http/2")]
    NoWebsocket,
    /// The client's body broke while it was being sent.
    #[error("request body failed")]
    ClientBody(#[source] BodyError),
    /// A part of the request that cannot be written down; which one.
    #[error("request {0} cannot be sent")]
    BadRequest(&'static str),
}

impl OriginError {
    /// Every token, for metrics; [`token`](Self::token) returns one of these.
    pub const TOKENS: &'static [&'static str] = &[
        "connect-refused",
        "connect-timeout",
        "connect-failed",
        "connection-limit",
        "no-server",
        "queue-full",
        "queue-timeout",
        "total-timeout",
        "dns",
        "tls",
        "tls-untrusted",
        "tls-name",
        "tls-expired",
        "tls-not-yet-valid",
        "tls-certificate",
        "tls-protocol",
        "tls-cipher",
        "tls-alpn",
        "tls-client-certificate",
        "tls-refused",
        "tls-closed",
        "closed",
        "first-byte-timeout",
        "bad-response",
        "head-too-large",
        "unexpected-upgrade",
        "no-websocket",
        "client-body-cut",
        "client-body-stalled",
        "client-body-framing",
        "client-body-too-large",
        "client-body-lost",
        "bad-request",
    ];

    /// A handshake that failed with `error`.
    pub(crate) fn tls(error: io::Error) -> Self {
        Self::Tls(TlsFailure::of(&error), error)
    }

    /// A fixed word for `Cache-Status` detail, the log and metrics.
    pub fn token(&self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::ConnectFailed(_) => "connect-failed",
            Self::ConnectionLimit => "connection-limit",
            Self::NoServer => "no-server",
            Self::QueueFull => "queue-full",
            Self::QueueTimeout => "queue-timeout",
            Self::TotalTimeout => "total-timeout",
            Self::Dns(_) => "dns",
            Self::Tls(why, _) => why.token(),
            Self::Closed => "closed",
            Self::FirstByteTimeout => "first-byte-timeout",
            Self::BadResponse(_) => "bad-response",
            Self::HeadTooLarge => "head-too-large",
            Self::UnexpectedUpgrade => "unexpected-upgrade",
            Self::NoWebsocket => "no-websocket",
            Self::ClientBody(error) => match error {
                BodyError::Cut => "client-body-cut",
                BodyError::Stalled | BodyError::SlowReader => "client-body-stalled",
                BodyError::Framing => "client-body-framing",
                BodyError::TooLarge => "client-body-too-large",
                BodyError::Lost => "client-body-lost",
            },
            Self::BadRequest(_) => "bad-request",
        }
    }

    /// What the client is told: 502 or 504, 503 where it should come back, and for its own body 400, 408 or 413.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ConnectTimeout | Self::FirstByteTimeout | Self::TotalTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::QueueFull | Self::QueueTimeout => StatusCode::SERVICE_UNAVAILABLE,
            Self::ClientBody(BodyError::Stalled | BodyError::SlowReader) => StatusCode::REQUEST_TIMEOUT,
            Self::ClientBody(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ClientBody(_) | Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// When the client should come back, in seconds, where we are what it waits for.
    pub fn retry_after(&self) -> Option<u32> {
        matches!(self, Self::QueueFull | Self::QueueTimeout).then_some(RETRY_AFTER_SECONDS)
    }

    /// Whether the origin is dead: no final head came (refused, reset, timeout, DNS, TLS, nobody healthy, too busy to
    /// be asked). A wrong answer is an answer, and a client's own failure says nothing about the origin.
    pub fn is_dead(&self) -> bool {
        match self {
            Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::ConnectFailed(_)
            | Self::NoServer
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::TotalTimeout
            | Self::Dns(_)
            | Self::Tls(..)
            | Self::Closed
            | Self::FirstByteTimeout => true,
            Self::ConnectionLimit
            | Self::BadResponse(_)
            | Self::HeadTooLarge
            | Self::UnexpectedUpgrade
            | Self::NoWebsocket
            | Self::ClientBody(_)
            | Self::BadRequest(_) => false,
        }
    }

    /// Who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::ClientBody(_) | Self::BadRequest(_) => Fault::Client,
            Self::ConnectionLimit | Self::QueueFull | Self::QueueTimeout | Self::NoWebsocket => Fault::Larder,
            _ => Fault::Origin,
        }
    }
}

/// An exchange without a final response head, and how far it came. It is no error itself: its [`OriginError`] is, and says all that there is to say.
#[derive(Debug)]
pub struct OriginFailure {
    /// Why.
    pub error: OriginError,
    /// The server that was asked or connected to last, as configured; `None` where none was chosen.
    pub server: Option<Arc<str>>,
    /// How often the request was sent; 0 where it was not.
    pub attempts: u32,
    /// How long it waited for a place among the requests in flight, and for a server to choose.
    pub queue: Duration,
}

impl OriginFailure {
    /// Of a request for which no server was chosen.
    pub(crate) fn before_all(error: OriginError, queue: Duration) -> Self {
        Self { error, server: None, attempts: 0, queue }
    }
}

impl Deref for OriginFailure {
    type Target = OriginError;

    fn deref(&self) -> &OriginError {
        &self.error
    }
}

/// Why an origin could not be set up; found at start or reload, never while serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No server is configured.
    #[error("no servers")]
    NoServers,
    /// A limit of time that is none.
    #[error("a time limit of {0:?} is longer than a year")]
    Time(std::time::Duration),
    /// A host that cannot be named in TLS.
    #[error("{0:?} cannot be used as a tls server name")]
    ServerName(String),
    /// Settings that do not go together.
    #[error("{0}")]
    Conflict(&'static str),
    /// TLS cannot be spoken as configured.
    #[error(transparent)]
    Tls(#[from] larder_tls::SetupError),
}

/// No descriptor, port or memory left here: no server can help that.
pub(crate) fn is_our_own(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let ours = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| ours.iter().any(|errno| errno.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_error() -> io::Error {
        io::Error::other("test")
    }

    #[test]
    fn every_error_has_a_known_token_a_status_and_a_fault() {
        use Fault::{Client, Larder, Origin};
        let cases = [
            (OriginError::ConnectRefused, 502, true, Origin),
            (OriginError::ConnectTimeout, 504, true, Origin),
            (OriginError::ConnectFailed(io_error()), 502, true, Origin),
            (OriginError::ConnectionLimit, 502, false, Larder),
            (OriginError::NoServer, 502, true, Origin),
            (OriginError::QueueFull, 503, true, Larder),
            (OriginError::QueueTimeout, 503, true, Larder),
            (OriginError::TotalTimeout, 504, true, Origin),
            (OriginError::Dns(io_error()), 502, true, Origin),
            (OriginError::tls(io_error()), 502, true, Origin),
            (OriginError::Closed, 502, true, Origin),
            (OriginError::FirstByteTimeout, 504, true, Origin),
            (OriginError::BadResponse("x"), 502, false, Origin),
            (OriginError::HeadTooLarge, 502, false, Origin),
            (OriginError::UnexpectedUpgrade, 502, false, Origin),
            (OriginError::NoWebsocket, 502, false, Larder),
            (OriginError::ClientBody(BodyError::Cut), 400, false, Client),
            (OriginError::ClientBody(BodyError::Framing), 400, false, Client),
            (OriginError::ClientBody(BodyError::Stalled), 408, false, Client),
            (OriginError::ClientBody(BodyError::TooLarge), 413, false, Client),
            (OriginError::ClientBody(BodyError::Lost), 400, false, Client),
            (OriginError::BadRequest("target"), 400, false, Client),
        ];
        for (error, status, is_dead, fault) in cases {
            assert!(OriginError::TOKENS.contains(&error.token()), "{error:?}");
            assert_eq!(error.status().as_u16(), status, "{error:?}");
            assert_eq!(error.is_dead(), is_dead, "{error:?}");
            assert_eq!(error.fault(), fault, "{error:?}");
            assert_eq!(error.retry_after().is_some(), status == 503, "{error:?}");
        }
    }
}
