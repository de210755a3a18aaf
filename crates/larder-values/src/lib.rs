//! Values of applications in another program's memory, as a tier of a store.
//!
//! In: what a store asks of a tier. Out: a value as the response that it stands for, values that larder writes, and deletions. The
//! application that writes them knows nothing of larder: it has a key made of the URL, and bytes. So this tier knows nothing of what
//! lies there, has no index and no listing, and is asked each time that memory has no fresh copy ([`larder_tier::Ask`]).
//!
//! ```text
//!   request -> template -> name -> server -> value -> format -> head and body -> a copy in the store's memory
//!   stored response -> format -> name, behind all that was queued for it -> server
//!   invalidation -> notes -> deletion; under a note nothing is believed
//! ```
//!
//! **Invariant**: nothing found is used that was asked for before an invalidation of its URL, or lies under a deletion that no
//! server has confirmed. A value is used for a request only if its name was made of all that the cache key has.
//!
//! What a head is made of, and whether it may be used, is `larder-cache`'s; what the servers do, `larder-remote`'s.
//! docs/design/values.md has the reasons. Deliberately absent: lists of what lies there, and anything that would walk
//! through the values of others.

mod find;
mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod invalidate;
mod keep;
mod notes;
mod run;
mod settings;
#[cfg(test)]
mod tests;
mod told;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use larder_cache::{CachePolicy, StoredHead};
use larder_http::authority::Authority;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use larder_remote::{Clients, RemoteError, RemoteSettings, Resolve, ServerReport};
use larder_tier::rank::{Rank, RankedRwLock};
use larder_tier::{TargetUri, VocabularyOf};

pub use larder_tier::template::{KeyPart, KeyTemplate};
use notes::Notes;
pub use settings::{Format, ValuesSettings};

/// The rules of caching, as [`larder_cache`] has them.
type HttpCaching = VocabularyOf<StoredHead, CachePolicy>;

/// Whether a host is one of those whose responses go to the store.
pub type ServedHosts = dyn Fn(&str) -> bool + Send + Sync;

/// The values of one store. Shared by all workers.
pub struct Values {
    settings: ValuesSettings,
    /// The largest body, in bytes.
    max_object: AtomicU64,
    servers: Clients,
    clock: Clock,
    /// What an invalidation of another host would delete is somebody else's. Held for a copy of the handle.
    hosts: RankedRwLock<Arc<ServedHosts>>,
    notes: Arc<Notes>,
    /// The operator was told that nothing is believed any more.
    is_told: AtomicBool,
}

impl Values {
    /// Starts what writes. No server is connected before something is asked or written. Until it [serves](Self::serve) hosts it
    /// writes and deletes nothing.
    ///
    /// # Errors
    /// The settings are outside of their bounds, or there is no thread.
    pub fn start(
        settings: ValuesSettings,
        servers: RemoteSettings,
        names: Arc<dyn Resolve>,
        clock: &Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Arc<Self>, RemoteError> {
        let no_host: Arc<ServedHosts> = Arc::new(|_| false);
        Ok(Arc::new(Self {
            max_object: AtomicU64::new(settings.max_object),
            settings,
            servers: Clients::start(servers, names, clock, diagnostics)?,
            clock: clock.clone(),
            hosts: RankedRwLock::new(Rank::Leaf, no_host),
            notes: Arc::default(),
            is_told: AtomicBool::new(false),
        }))
    }

    /// From now on the responses of these hosts go to the store.
    pub fn serve(&self, hosts: Arc<ServedHosts>) {
        *self.hosts.write() = hosts;
    }

    /// The largest body that is written, in bytes.
    fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed)
    }

    /// The figures of the servers.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.servers.reports()
    }

    /// Adds all samples; `store` is what they call the store.
    pub fn expose(&self, store: &str, out: &mut Exposition) {
        self.servers.expose(store, out);
    }

    /// The authority of a URL, if the responses of its host go to the store.
    fn served(&self, uri: &TargetUri<'_>) -> Option<Authority> {
        let authority = Bytes::copy_from_slice(uri.authority.as_bytes());
        let authority = Authority::parse(authority, uri.scheme).ok()?;
        let hosts = Arc::clone(&self.hosts.read());
        hosts(authority.host()).then_some(authority)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("servers", &self.servers).finish_non_exhaustive()
    }
}
