//! What is said about a fleet.
//!
//! In: the config, already read. Out: who this member is, and where the log lies.

use std::sync::Arc;
use std::time::Duration;

use crate::redis::RedisSettings;

/// What a fleet is told of in the config.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// The name of this member, which no other one has.
    pub name: Arc<str>,
    /// How long it uses stored responses without hearing from the server. `None`: for ever.
    pub lease: Option<Duration>,
    /// Where the log lies. Its `timeout` bounds each call.
    pub server: RedisSettings,
    /// What the names of its keys begin with.
    pub prefix: String,
    /// Whether members share responses as well: then each compares those of others with the whole log, and knows the server's time.
    pub shares_responses: bool,
}
