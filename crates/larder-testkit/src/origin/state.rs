//! What the connections of an origin share.

use std::time::{Duration, SystemTime};

use larder_http::time::Clock;

use super::gates::Gates;
use super::log::Log;
use super::source::Source;

/// Everything that connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) source: Source,
    pub(super) log: Log,
    pub(super) gates: Gates,
    pub(super) clock: Clock,
    pub(super) start: SystemTime,
    pub(super) limit: Duration,
}
