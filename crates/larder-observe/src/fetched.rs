//! One fetch: the origin that was asked, how often, and how long each part took.
//!
//! In: an origin's answer, or why there was none. Out: one value that all share who got something from the fetch: the request that
//! caused it, those that waited for it, those for which a stored response was confirmed, or stood in. Log and views show it.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

/// A fetch, as far as its final head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The origin's name.
    pub origin: Arc<str>,
    /// The server that answered, or failed last, as configured; `None` where none was chosen.
    pub server: Option<Arc<str>>,
    /// How often the request was sent: more than once after a kept connection had closed, or on to another server. 0 where it was not sent.
    pub attempts: u32,
    /// Whether a kept connection was used.
    pub is_reused: bool,
    /// From asking to the final head, or to the failure, with the queue and connecting.
    pub took: Duration,
    /// How long it waited for a place among the requests in flight.
    pub queue: Duration,
    /// DNS, TCP and TLS; `None` where a kept connection was used, and where no answer came.
    pub connect: Option<Duration>,
    /// From sending the request to the end of the final head; `None` where none came.
    pub first_byte: Option<Duration>,
    /// What the origin answered.
    pub status: Option<StatusCode>,
    /// Why there is no answer, as a word.
    pub error: Option<&'static str>,
}
