//! What the connections of an origin share.

use std::time::{Duration, SystemTime};

use larder_http::time::Clock;
use parking_lot::Mutex;

use super::gates::Gates;
use super::log::Log;
use super::place::Place;
use super::script::PathScript;

/// Everything that connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) scripts: Vec<PathScript>,
    /// One for each script.
    pub(super) places: Mutex<Vec<Place>>,
    pub(super) log: Log,
    pub(super) gates: Gates,
    pub(super) clock: Clock,
    pub(super) start: SystemTime,
    pub(super) limit: Duration,
}
