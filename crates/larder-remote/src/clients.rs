//! The values of one store, as all workers use them.
//!
//! In: names and values. Out: what look-ups came to, and what was queued. Each worker has a client of its own, told apart by its
//! runtime, because a connection belongs to the runtime that polls it. A name becomes a key that the server takes.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use parking_lot::RwLock;
use tokio::runtime::{Handle, Id};

use crate::address::Resolve;
use crate::client::{Claimed, Client, Found, LookedUp};
use crate::error::{Failure, RemoteError, Unfit};
use crate::metrics::ServerReport;
use crate::queue::{MadeValue, Offered};
use crate::redis::{KeyspaceBounds, KeyspaceCursor, KeyspacePage};
use crate::server::ServerOutlook;
use crate::settings::RemoteSettings;
use crate::store::RemoteStore;

/// See the head of the file.
pub struct Clients {
    store: Arc<RemoteStore>,
    /// By the runtime that asks. Held for a look, and once per runtime for a change.
    clients: RwLock<HashMap<Id, Arc<Client>, RandomState>>,
}

impl Clients {
    /// Starts what writes. No server is connected before something is asked or written.
    ///
    /// # Errors
    /// The settings are outside of their bounds, or there is no thread.
    pub fn start(
        settings: RemoteSettings,
        names: Arc<dyn Resolve>,
        clock: &Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Self, RemoteError> {
        let store = RemoteStore::start(settings, names, clock.clone(), diagnostics)?;
        Ok(Self { store, clients: RwLock::default() })
    }

    /// Looks a value up, and hands it to `judge`, which says what it is or why it is not used.
    ///
    /// # Cancel safety
    /// Dropped, the reply is for nobody.
    pub async fn look_up<T>(
        &self,
        name: &Bytes,
        judge: impl FnOnce(Found) -> Result<T, Unfit>,
    ) -> LookedUp<T> {
        match self.client() {
            Some(client) => client.look_up(&self.store.key(name.clone()), judge).await,
            None => LookedUp::Failed(Failure::Connect),
        }
    }

    /// Puts a value there for `lifetime`, unless there is one.
    ///
    /// # Cancel safety
    /// Dropped, the value may be there.
    pub async fn claim(&self, name: &Bytes, value: Bytes, lifetime: Duration) -> Claimed {
        match self.client() {
            Some(client) => client.claim(&self.store.key(name.clone()), value, lifetime).await,
            None => Claimed::Unknown,
        }
    }

    fn client(&self) -> Option<Arc<Client>> {
        let runtime = Handle::try_current().ok()?.id();
        if let Some(client) = self.clients.read().get(&runtime) {
            return Some(Arc::clone(client));
        }
        let client = || Arc::new(Client::new(Arc::clone(&self.store)));
        Some(Arc::clone(self.clients.write().entry(runtime).or_insert_with(client)))
    }

    /// Queues a value, which stays for `lifetime`. Where there is no room, or the server fails, that is counted.
    pub fn set(&self, name: &Bytes, value: Bytes, lifetime: Duration) -> Offered {
        self.store.set(&self.store.key(name.clone()), value, lifetime)
    }

    /// Queues values that `make` makes when they are to be written, on the thread of the writer. They have the server of `name`, and about so
    /// many bytes together. Where there is no room, or the server fails, that is counted.
    pub fn set_made(
        &self,
        name: &Bytes,
        bytes: usize,
        make: impl FnOnce() -> Vec<MadeValue> + Send + 'static,
    ) -> Offered {
        self.store.set_made(&self.store.key(name.clone()), bytes, make)
    }

    /// Queues that a value is in use, where there is room.
    pub fn touch(&self, name: &Bytes) {
        self.store.touch(&self.store.key(name.clone()));
    }

    /// Queues a deletion behind it; `then` is called when it is confirmed.
    ///
    /// # Errors
    /// The queue has no room.
    pub fn delete(&self, name: &Bytes, then: impl FnOnce() + Send + 'static) -> Result<(), RemoteError> {
        self.store.delete_then(&self.store.key(name.clone()), then)
    }

    /// The same where the server is asked at the moment, and nothing depends on it.
    pub fn delete_if_up(&self, name: &Bytes) {
        let key = self.store.key(name.clone());
        if self.store.is_asked(&key) {
            let _ = self.store.delete_then(&key, || ());
        }
    }

    /// From now on the largest value has so many bytes. A connection that is open reads as before until it ends.
    pub fn resize(&self, max_object: usize) {
        self.store.resize(max_object);
    }

    /// Waits until all that was queued is carried out.
    pub fn drained(&self, limit: Duration) -> bool {
        self.store.drained(limit)
    }

    /// The figures of the servers.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.store.reports()
    }

    /// Adds all samples; `store` is what they call the store.
    pub fn expose(&self, store: &str, out: &mut Exposition) {
        self.store.expose(store, out);
    }

    /// A page of the names at one of them, by its number. `None` where it is no Redis, or there is none of this number.
    ///
    /// # Cancel safety
    /// Dropping it closes its connection.
    pub async fn keyspace(
        &self,
        number: usize,
        pattern: &[u8],
        from: KeyspaceCursor,
        bounds: KeyspaceBounds,
    ) -> Option<io::Result<KeyspacePage>> {
        self.store.keyspace(number, pattern, from, bounds).await
    }

    /// All of them, in words.
    pub fn told(&self) -> Vec<String> {
        self.store.told()
    }

    /// The one of this number, in words.
    pub fn told_at(&self, number: usize) -> Option<String> {
        self.store.told_at(number)
    }

    /// How the server is doing that has a name. `None` where it is not known which one that is.
    pub fn outlook(&self, name: &Bytes) -> Option<ServerOutlook> {
        self.store.outlook(&self.store.key(name.clone()))
    }

    /// The one that has a name, in words.
    pub fn told_of(&self, name: &Bytes) -> Option<String> {
        let key = self.store.key(name.clone());
        let server = self.store.told_of(&key)?;
        Some(format!("{server}, {}", key.as_bytes().escape_ascii()))
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}
