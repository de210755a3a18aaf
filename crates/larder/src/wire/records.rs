//! Responses that larders share through the Redis of a store, put to work, and how this larder stands in the fleet for them.
//!
//! In: what the config says, and the fleet once it is joined. Out: the tier. A store may be opened before the fleet is joined: until
//! then nothing is used of what others have fetched, and nothing is shared.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use larder_config::RecordCoding;
use larder_fleet::Position;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_records::{PlaceFacts, RECORD_MAX_BYTES, Records, RecordsSettings, Standing};
use larder_remote::fleet::Fleet;
use larder_remote::{RemoteError, SystemNames};

use super::member::member_name;

/// The fleet, once it is joined.
#[derive(Default)]
pub(crate) struct FleetStanding(OnceLock<Arc<Fleet>>);

impl FleetStanding {
    /// It is joined, once only.
    pub(super) fn join(&self, fleet: &Arc<Fleet>) {
        let _ = self.0.set(Arc::clone(fleet));
    }
}

impl Standing for FleetStanding {
    fn position_of(&self, number: u64) -> Option<Position> {
        self.0.get()?.position_of(number)
    }

    fn number_of(&self, position: Position) -> Option<u64> {
        self.0.get()?.number_of(position)
    }

    fn server_now(&self) -> Option<Duration> {
        self.0.get()?.server_now()
    }

    fn clock_set_back_at(&self) -> Duration {
        self.0.get().map(|fleet| fleet.set_back_at()).unwrap_or_default()
    }

    fn place(&self) -> Option<PlaceFacts> {
        let report = self.0.get()?.report();
        Some(PlaceFacts {
            member: report.name.to_string(),
            position: report.position.map(|position| (position.epoch.0, position.sequence)),
            left: report.left,
        })
    }
}

/// Starts the tier of a store, where it has one. No server is connected before something is asked or written.
///
/// # Errors
/// There is no thread.
pub(super) fn start(
    (name, config): (&str, &larder_config::Store),
    fleet: &larder_config::Fleet,
    standing: &Arc<FleetStanding>,
    clock: &Clock,
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<Records>>, RemoteError> {
    let Some(redis) = config.records() else { return Ok(None) };
    let settings = RecordsSettings {
        prefix: fleet.prefix.as_str().to_owned(),
        store: name.to_owned(),
        member: member_name(fleet).to_string(),
        timeout: redis.timeout,
        is_compressed: redis.compress == RecordCoding::Lz4,
        max_object: config.max_object_bytes().min(RECORD_MAX_BYTES),
    };
    let server = super::redis::settings(&redis.server, redis.timeout, RECORD_MAX_BYTES);
    let standing = Arc::clone(standing) as Arc<dyn Standing>;
    Records::start(settings, server, Arc::new(SystemNames), standing, clock, diagnostics).map(Some)
}
