//! Bounds of time, size and number towards an origin, with the reasons for their defaults.

use std::time::Duration;

/// The longest limit of time.
pub(super) const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Limits of time towards an origin; none may be longer than a year.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP and TLS together, for all addresses of a server; another server, where one is tried, gets as much. A request
    /// that comes before the first answer from DNS waits as long for that. 3 s.
    pub connect: Duration,
    /// From the last byte of the request that was written to the end of the final response head. 60 s.
    pub first_byte: Duration,
    /// Between two reads of a response body. 30 s.
    pub between_bytes: Duration,
    /// The same for `text/event-stream`, which is silent by nature. 1 h.
    pub event_stream: Duration,
    /// From the start of a request, the time in the queue included, to the end of the response's content; a tunnel
    /// is none. Without a limit.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(60),
            between_bytes: Duration::from_secs(30),
            event_stream: Duration::from_secs(3600),
            total: None,
        }
    }
}

/// Bounds of a response head; interim responses count one by one.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// The whole head, in bytes. 128 KiB; at least 8 KiB.
    pub bytes_max: usize,
    /// Field lines. 256.
    pub fields_max: usize,
    /// Name and value of one field, in bytes. 64 KiB.
    pub field_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: 128 * 1024, fields_max: 256, field_bytes_max: 64 * 1024 }
    }
}

/// How many requests an origin is given at once, by the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightLimit {
    /// Requests whose response has not ended; tunnels leave the count when they begin. Without a limit; 0 is taken
    /// for 1.
    pub max: Option<usize>,
    /// How many wait for one of those to end; beyond, a request fails at once. 1000.
    pub queue: usize,
    /// How long they wait. 5 s: longer than a client that is still there is likely to.
    pub queue_timeout: Duration,
}

impl Default for InFlightLimit {
    fn default() -> Self {
        Self { max: None, queue: 1000, queue_timeout: Duration::from_secs(5) }
    }
}
