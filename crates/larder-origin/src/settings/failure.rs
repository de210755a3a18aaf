//! What is done about servers that fail: trying another, leaving them alone for a while, asking how they are.

use std::ops::RangeInclusive;
use std::time::Duration;

use larder_http::authority::Authority;
use larder_http::target::Target;

/// Sending a request to another server although the first may have acted on it. Only idempotent methods (RFC 9110
/// 9.2.2) whose content is in memory are, and only within a budget, so that an origin in trouble is not given twice
/// the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many other servers are tried, 1 to 10. 1.
    pub servers: u32,
    /// After no connection, or one that closed before the head. On.
    pub on_error: bool,
    /// After no head in time. On.
    pub on_timeout: bool,
    /// After these statuses. None. They also count as failures of the server.
    pub statuses: Vec<u16>,
    /// Retries in percent of requests. 20.
    pub budget_percent: u8,
}

impl Default for Retry {
    fn default() -> Self {
        Self { servers: 1, on_error: true, on_timeout: true, statuses: Vec::new(), budget_percent: 20 }
    }
}

/// When a server that fails gets no more requests for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// After so many failures in a row: no connection, closed before the head, no head in time, a bad response, a
    /// status that [`Retry::statuses`] names. 5; 0 is never.
    pub failures: u32,
    /// For how long the first time. 1 s.
    pub time: Duration,
    /// Each time in a row is twice as long, up to this. 30 s.
    pub time_max: Duration,
}

impl Default for Ejection {
    fn default() -> Self {
        Self { failures: 5, time: Duration::from_secs(1), time_max: Duration::from_secs(30) }
    }
}

/// Asking servers how they are, beside the requests they get.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// What is asked for.
    pub path: Target,
    /// Host of the question; the server's own name where none.
    pub host: Option<Authority>,
    /// Which answers are good. 200 to 399.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// How often each server is asked. 5 s.
    pub every: Duration,
    /// How long an answer's head may take, connecting included. 2 s.
    pub timeout: Duration,
    /// After so many good answers in a row a server that was unhealthy is healthy. 2.
    pub healthy: u32,
    /// After so many bad ones in a row it is unhealthy. 3.
    pub unhealthy: u32,
}

impl HealthCheck {
    /// Asks for `path` with the default limits.
    pub fn new(path: Target) -> Self {
        Self {
            path,
            host: None,
            statuses: vec![200..=399],
            every: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            healthy: 2,
            unhealthy: 3,
        }
    }
}
