//! Responses that larders share through Redis, as a tier of a store.
//!
//! In: what a store asks of a tier. Out: responses that any larder of the fleet has fetched, and records of those that this one has.
//! Each larder has a memory of its own in front of it, and a hit there asks nothing. Redis is asked where a request would go to the
//! origin, once, and what it has becomes a response of this memory.
//!
//! ```text
//!   request without a usable response -> name -> GET -> record -> judged by the fleet's log -> a response in the store's memory
//!   stored response -> record with the position of its fetch in the log -> queue -> SET with the time that it may be of use
//! ```
//!
//! **Invariant**: a record is used only if it is of the fleet's present log, and counts here as fetched before everything that its
//! fetch may have missed. No clock of a member says how old it is. A record that is damaged, cut, or of another key is a miss.
//!
//! What a response means is `larder-cache`'s; what the server does, `larder-remote`'s; positions in the log are `larder-fleet`'s.
//! docs/design/records.md has the reasons. Deliberately absent: deletion by names: what was purged is told by the log,
//! and goes when its time is over.

mod claim;
mod coding;
mod ended;
mod find;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod invalidate;
mod keep;
mod known;
mod late;
mod lead;
mod leads;
mod listing;
mod name;
mod outlook;
mod packing;
mod random;
mod reading;
mod record;
mod refusals;
mod removed;
mod run;
mod settings;
mod standing;
#[cfg(test)]
mod tests;
mod told;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use larder_cache::{CachePolicy, StoredHead};
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use larder_remote::redis::RedisSettings;
use larder_remote::{Clients, RemoteError, RemoteSettings, Resolve, ServerReport};
use larder_tier::VocabularyOf;

use claim::Fetching;
use ended::EndedKeys;
use known::Known;
pub use larder_tier::outlook::PlaceFacts;
use late::Late;
use leads::Leads;
use name::Names;
use packing::Packing;
use reading::Reading;
use refusals::Refusals;
use removed::Removed;
pub use settings::{RECORD_MAX_BYTES, RecordsSettings};
pub use standing::Standing;

/// The rules of caching, as [`larder_cache`] has them.
type HttpCaching = VocabularyOf<StoredHead, CachePolicy>;

/// The records of one store. Shared by all workers.
pub struct Records {
    settings: RecordsSettings,
    /// The largest body, in bytes.
    max_object: AtomicU64,
    names: Names,
    servers: Arc<Clients>,
    clock: Clock,
    standing: Arc<dyn Standing>,
    removed: Removed,
    refusals: Refusals,
    late: Late,
    leads: Leads,
    leading: Fetching,
    known: Known,
    ended: EndedKeys,
    reading: Reading,
    /// Where bodies are compressed.
    packing: Option<Packing>,
    /// What it writes where it fetches for all.
    holder: Bytes,
}

impl Records {
    /// Starts what writes. No server is connected before something is asked or written. `standing` is this larder's in its fleet.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(
        settings: RecordsSettings,
        server: RedisSettings,
        names: Arc<dyn Resolve>,
        standing: Arc<dyn Standing>,
        clock: &Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Arc<Self>, RemoteError> {
        let server =
            RemoteSettings::Redis(Box::new(RedisSettings { max_object: record::PART_MAX_BYTES, ..server }));
        Ok(Arc::new(Self {
            names: Names::new(&settings.prefix, &settings.store),
            late: Late::new(settings.timeout),
            servers: Arc::new(Clients::start(server, names, clock, diagnostics)?),
            clock: clock.clone(),
            standing,
            removed: Removed::default(),
            refusals: Refusals::default(),
            leads: Leads::default(),
            leading: Fetching::default(),
            known: Known::default(),
            ended: EndedKeys::default(),
            reading: Reading::default(),
            packing: settings.is_compressed.then(Packing::default),
            holder: claim::holder(random::draw().unwrap_or_default(), &settings.member),
            max_object: AtomicU64::new(settings.max_object),
            settings,
        }))
    }

    /// The largest body that is written or read, in bytes.
    fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed)
    }

    /// The figures of the server.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.servers.reports()
    }

    /// Adds all samples; `store` is what they call the store.
    pub fn expose(&self, store: &str, out: &mut Exposition) {
        self.servers.expose(store, out);
    }

    /// Records that were found and not used, by reason.
    pub fn each_refusal(&self, visit: impl FnMut(&'static str, u64)) {
        self.refusals.each(visit);
    }

    /// Bytes that compression has saved so far. `None`: nothing is compressed.
    pub fn saved_bytes(&self) -> Option<u64> {
        self.packing.as_ref().map(Packing::saved)
    }

    /// How questions who fetches for all larders have ended.
    pub fn each_lead(&self, visit: impl FnMut(&'static str, u64)) {
        self.leads.each(visit);
    }

    /// Responses of which no record was written, by reason.
    pub fn each_not_shared(&self, visit: impl FnMut(&'static str, u64)) {
        self.refusals.each_not_shared(visit);
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("servers", &self.servers).finish_non_exhaustive()
    }
}
