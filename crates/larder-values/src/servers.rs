//! Where the values lie: the one file that names the kind of server.
//!
//! In: names and values. Out: what look-ups came to, and what was queued. Each worker has a client of its own, told apart by its
//! runtime, because a connection belongs to the runtime that polls it. Another kind of server is another field here, with the
//! same few calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use larder_remote::memcached::{Client, Found, LookedUp, Memcached, MemcachedSettings};
use larder_remote::{Failure, RemoteError, RemoteKey, Resolve, ServerReport, Unfit};
use larder_tier::rank::{Rank, RankedRwLock};
use tokio::runtime::{Handle, Id};

/// What stands before an address, for people.
const KIND: &str = "memcached";

/// The servers of one store.
pub(crate) struct Servers {
    memcached: Arc<Memcached>,
    /// By the runtime that asks. Held for a look, and once per runtime for a change.
    clients: RankedRwLock<HashMap<Id, Arc<Client>, RandomState>>,
}

impl Servers {
    pub(crate) fn start(
        settings: MemcachedSettings,
        names: Arc<dyn Resolve>,
        clock: &Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Self, RemoteError> {
        let memcached = Memcached::start(settings, names, clock.clone(), diagnostics)?;
        Ok(Self { memcached, clients: RankedRwLock::new(Rank::Leaf, HashMap::default()) })
    }

    /// Looks a value up, and hands it to `judge`, which says what it is or why it is not used.
    ///
    /// # Cancel safety
    /// Dropped, the reply is for nobody.
    pub(crate) async fn look_up<T>(
        &self,
        name: &RemoteKey,
        judge: impl FnOnce(Found) -> Result<T, Unfit>,
    ) -> LookedUp<T> {
        match self.client() {
            Some(client) => client.look_up(name, judge).await,
            None => LookedUp::Failed(Failure::Connect),
        }
    }

    fn client(&self) -> Option<Arc<Client>> {
        let runtime = Handle::try_current().ok()?.id();
        if let Some(client) = self.clients.read().get(&runtime) {
            return Some(Arc::clone(client));
        }
        let client = || Arc::new(Client::new(Arc::clone(&self.memcached)));
        Some(Arc::clone(self.clients.write().entry(runtime).or_insert_with(client)))
    }

    /// Queues a value, which stays for `lifetime`. Where there is no room, or the server fails, that is counted.
    pub(crate) fn set(&self, name: &RemoteKey, value: Bytes, lifetime: Duration) {
        self.memcached.set(name, value, lifetime);
    }

    /// Queues a deletion behind it; `then` is called when it is confirmed.
    ///
    /// # Errors
    /// The queue has no room.
    pub(crate) fn delete(
        &self,
        name: &RemoteKey,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<(), RemoteError> {
        self.memcached.delete_then(name, then)
    }

    /// The same where the server is asked at the moment, and nothing depends on it.
    pub(crate) fn delete_if_up(&self, name: &RemoteKey) {
        if self.memcached.is_asked(name) {
            let _ = self.memcached.delete_then(name, || ());
        }
    }

    /// Waits until all that was queued is carried out.
    pub(crate) fn drained(&self, limit: Duration) -> bool {
        self.memcached.drained(limit)
    }

    pub(crate) fn reports(&self) -> Vec<ServerReport> {
        self.memcached.reports()
    }

    pub(crate) fn expose(&self, store: &str, out: &mut Exposition) {
        self.memcached.expose(store, out);
    }

    /// All of them, in words.
    pub(crate) fn told(&self) -> Vec<String> {
        self.reports().into_iter().map(|report| format!("{KIND} {}", report.server)).collect()
    }

    /// The one that has a name, in words.
    pub(crate) fn told_of(&self, name: &RemoteKey) -> Option<String> {
        let server = self.memcached.server_of(name)?;
        Some(format!("{KIND} {server}, {}", name.as_bytes().escape_ascii()))
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.memcached.fmt(f)
    }
}
