//! What a store says of its values, in whichever program's memory they lie.
//!
//! In: the tables of memcached and Redis, which have these keys in common. Out: one form for all who do not care where values lie.

use std::time::Duration;

use crate::value::media::MediaType;
use crate::value::value_key::ValueKey;
use crate::value::words::ValueFormat;

/// How values are named, read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSettings {
    /// How keys are made.
    pub key: ValueKey,
    /// What a value is.
    pub format: ValueFormat,
    /// How long a copy is used.
    pub near: Duration,
    /// How long a look-up may take.
    pub timeout: Duration,
    /// The type of bodies.
    pub default_type: MediaType,
    /// Whether larder writes there.
    pub write: bool,
}
