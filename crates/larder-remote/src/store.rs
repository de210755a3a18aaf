//! The values of one store, as the process has them.
//!
//! In: settings. Out: what all workers share, the way to write and delete, and the figures. One thread with a runtime of
//! its own writes, and probes servers that fail. It ends with the last handle, after what can still be written.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::address::Resolve;
use crate::deadline::Limits;
use crate::error::{Failure, RemoteError};
use crate::key::RemoteKey;
use crate::label::Label;
use crate::link::Link;
use crate::memcached::Codings;
use crate::metrics::{ServerReport, Write};
use crate::probe::probe;
use crate::protocol::{Dialer, Protocol};
use crate::queue::{Confirm, Deletion, Job, MadeValue, Make, Offered, Queue};
use crate::redis::{KeyspaceBounds, KeyspaceCursor, KeyspacePage, keyspace};
use crate::server::{Server, ServerOutlook};
use crate::settings::{KeyPlaces, RemoteSettings, Terms};
use crate::writer::{Routes, write};

/// Look-ups of names that wait at once in the writer's thread: a resolver that hangs must not take more threads with each probe.
const NAMES_AT_ONCE: usize = 4;

/// Values in other programs' memory, for the whole process.
pub struct RemoteStore {
    terms: Terms,
    members: Box<[QueuedServer]>,
    /// The largest value, in bytes.
    max_object: Arc<AtomicUsize>,
    clock: Clock,
}

/// A server, and what waits for it.
pub(crate) struct QueuedServer {
    pub(crate) server: Arc<Server>,
    dialer: Arc<Dialer>,
    queue: Arc<Queue>,
}

impl QueuedServer {
    /// A new way to it.
    pub(crate) fn link(&self, limits: Limits) -> Link {
        Link::new(Arc::clone(&self.server), Arc::clone(&self.dialer), limits)
    }

    /// Whether what is queued waits for something that it has not confirmed.
    pub(crate) fn is_held_up(&self) -> bool {
        self.queue.is_held_up()
    }
}

impl RemoteStore {
    /// Starts the writer. No server is connected before something is asked or written.
    ///
    /// # Errors
    /// The settings are outside of their bounds, or there is no thread.
    pub fn start(
        settings: RemoteSettings,
        names: Arc<dyn Resolve>,
        clock: Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Arc<Self>, RemoteError> {
        let mut terms = settings.into_terms(&names, diagnostics)?;
        let servers = std::mem::take(&mut terms.servers);
        let max_object = Arc::new(AtomicUsize::new(terms.max_object));
        let member = |(label, protocol): (Label, Protocol)| QueuedServer {
            server: Arc::new(Server::new(terms.kind, label, diagnostics.clone())),
            dialer: Arc::new(Dialer { protocol, value_max: Arc::clone(&max_object) }),
            queue: Arc::default(),
        };
        let members = servers.into_iter().map(member).collect();
        let started = Arc::new(Self { terms, members, max_object, clock });
        started.start_writer()?;
        Ok(started)
    }

    fn start_writer(&self) -> Result<(), RemoteError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(NAMES_AT_ONCE)
            .build()
            .map_err(RemoteError::Thread)?;
        let timeout = self.terms.timeout;
        let share = |member: &QueuedServer| {
            let link = member.link(Limits::unattended(timeout));
            (Arc::clone(&member.server), Arc::clone(&member.dialer), Arc::clone(&member.queue), link)
        };
        let shares: Vec<_> = self.members.iter().map(share).collect();
        let queues = self.members.iter().map(|member| Arc::clone(&member.queue)).collect();
        let watched = self.terms.watched.clone();
        let placement = self.terms.placement.clone();
        let routes = Arc::new(Routes { placement, queues, watched: watched.clone() });
        let run = move || {
            runtime.block_on(async {
                let (mut writing, mut probing) = (JoinSet::new(), JoinSet::new());
                if let Some(dial) = watched {
                    probing.spawn(async move { dial.watch().await });
                }
                for (number, (server, dialer, queue, link)) in shares.into_iter().enumerate() {
                    writing.spawn(write((Arc::clone(&server), number), queue, link, Arc::clone(&routes)));
                    probing.spawn(async move { probe(&server, &dialer, timeout).await });
                }
                while writing.join_next().await.is_some() {}
            });
            // A look-up of a name may still wait on its thread.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(self.terms.kind.into()).spawn(run);
        thread.map(drop).map_err(RemoteError::Thread)
    }

    /// The key for a name that a template has made of a request.
    pub fn key(&self, name: Bytes) -> RemoteKey {
        (self.terms.key)(name)
    }

    /// Queues a value to be written; it stays for `lifetime`. Never waits.
    pub fn set(&self, key: &RemoteKey, value: Bytes, lifetime: Duration) -> Offered {
        let Some(member) = self.member(key) else { return Offered::Failing };
        match self.job(member, key, value, lifetime) {
            Ok(job) => offer(member, job),
            Err(why) => why,
        }
    }

    /// Queues values that `make` makes when they are to be written, on the writer's thread. All have the server of `key`, and are about so
    /// many bytes together. Never waits.
    pub(crate) fn set_made(
        self: &Arc<Self>,
        key: &RemoteKey,
        bytes: usize,
        make: impl FnOnce() -> Vec<MadeValue> + Send + 'static,
    ) -> Offered {
        let Some(member) = self.member(key) else { return Offered::Failing };
        let (store, key) = (Arc::clone(self), key.clone());
        let make = Make::new(move || {
            // A slot that has moved meanwhile is none of this server's: it says so.
            let Some(member) = store.member(&key) else { return Vec::new() };
            let job =
                |made: MadeValue| store.job(member, &store.key(made.name), made.value, made.lifetime).ok();
            make().into_iter().filter_map(job).collect()
        });
        offer(member, Job::Made { bytes, make })
    }

    /// A value that is to be written.
    ///
    /// # Errors
    /// It is too large, or is to stay for less than a second.
    fn job(
        &self,
        member: &QueuedServer,
        key: &RemoteKey,
        value: Bytes,
        lifetime: Duration,
    ) -> Result<Job, Offered> {
        if value.len() > self.max_object() {
            member.server.counters().wrote(Write::TooLarge);
            return Err(Offered::TooLarge);
        }
        let expires = self.expires(lifetime).ok_or(Offered::TooShort)?;
        Ok(Job::Set { key: key.clone(), expires, value })
    }

    /// Queues that a value is in use, where there is room. Never waits.
    pub fn touch(&self, key: &RemoteKey) {
        if let Some(member) = self.member(key).filter(|member| member.server.may_ask()) {
            member.queue.touch(key.clone());
        }
    }

    /// Queues a deletion, behind all that was queued for the key before. Never waits. It is sent until the server confirms it.
    ///
    /// # Errors
    /// [`RemoteError::QueueFull`].
    pub fn delete(&self, key: &RemoteKey) -> Result<Deletion, RemoteError> {
        self.deleting(key, |queue| queue.delete(key.clone()))
    }

    /// The same, and calls `then` from the writer's thread when the server has confirmed. It is dropped uncalled where nobody
    /// carries out the deletion any more.
    ///
    /// # Errors
    /// [`RemoteError::QueueFull`].
    pub fn delete_then(
        &self,
        key: &RemoteKey,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<(), RemoteError> {
        self.deleting(key, |queue| queue.delete_then(key.clone(), Confirm::new(then)))
    }

    fn deleting<T>(
        &self,
        key: &RemoteKey,
        queue: impl FnOnce(&Queue) -> Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
        let member = self.member(key).ok_or(RemoteError::Unplaced)?;
        let deletion = queue(&member.queue);
        if deletion.is_err() {
            member.server.counters().wrote(Write::Full);
        }
        deletion
    }

    /// Waits until all that was queued is carried out, for so long at most. For a thread that may.
    pub fn drained(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        // All of them are waited for.
        self.members.iter().filter(|member| !member.queue.drained(until)).count() == 0
    }

    /// Whether the server of `key` is asked at the moment.
    pub fn is_asked(&self, key: &RemoteKey) -> bool {
        self.member(key).is_some_and(|member| member.server.may_ask())
    }

    /// How many servers there are: of a cluster, nodes that have been known so far.
    fn servers(&self) -> usize {
        match &self.terms.placement {
            KeyPlaces::Ring(_) => self.members.len(),
            KeyPlaces::Cluster(cluster) => cluster.nodes(),
        }
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
        let member = self.members.get(..self.servers())?.get(number)?;
        if !self.have_slots().get(number).is_some_and(|has_slots| *has_slots) {
            // It has left its cluster.
            return Some(Ok(KeyspacePage::default()));
        }
        if !member.server.may_ask() {
            return Some(Err(io::Error::other(Failure::Skipped.to_string())));
        }
        match &member.dialer.protocol {
            Protocol::Redis(dial) => Some(keyspace(dial, pattern, from, bounds).await),
            Protocol::Memcached(..) => None,
        }
    }

    /// All servers in words, in the order of the settings: what they are, and where.
    pub fn told(&self) -> Vec<String> {
        self.known().map(|member| member.server.told()).collect()
    }

    /// The server of this number, in words.
    pub fn told_at(&self, number: usize) -> Option<String> {
        Some(self.members.get(..self.servers())?.get(number)?.server.told())
    }

    /// The server of `key`, in words.
    pub fn told_of(&self, key: &RemoteKey) -> Option<String> {
        self.member(key).map(|member| member.server.told())
    }

    /// How the server of `key` is doing. `None` where it is not known which has it.
    pub fn outlook(&self, key: &RemoteKey) -> Option<ServerOutlook> {
        let slot = self.terms.placement.slot(key.as_bytes());
        self.member(key).map(|member| member.server.outlook(slot))
    }

    /// The figures of all servers, in the order of the settings.
    pub fn reports(&self) -> Vec<ServerReport> {
        let report = |QueuedServer { server, queue, .. }: &QueuedServer| ServerReport {
            kind: server.kind(),
            server: server.label().into_owned(),
            is_up: server.may_ask(),
            lookups: server.counters().lookups().collect(),
            writes: server.counters().writes().collect(),
            queued_bytes: queue.bytes() as u64,
        };
        self.known().map(report).collect()
    }

    /// Adds the samples of all servers.
    pub fn expose(&self, store: &str, out: &mut Exposition) {
        for QueuedServer { server, queue, .. } in self.known() {
            server.counters().expose(store, &server.label(), server.breaker(), queue.bytes(), out);
        }
    }

    /// How long a value is to stay, as its server counts it; `None` for less than a second.
    pub(crate) fn expires(&self, lifetime: Duration) -> Option<u64> {
        (self.terms.expires)(lifetime, self.clock.now().wall)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.terms.timeout
    }

    pub(crate) fn max_object(&self) -> usize {
        self.max_object.load(Ordering::Relaxed)
    }

    /// From now on the largest value has so many bytes. A connection that is open reads as before until it ends.
    pub fn resize(&self, max_object: usize) {
        self.max_object.store(max_object, Ordering::Relaxed);
    }

    pub(crate) fn codings(&self) -> Codings {
        self.terms.codings
    }

    pub(crate) fn members(&self) -> &[QueuedServer] {
        &self.members
    }

    /// Of each of them by its number, whether it has a share of the keys.
    fn have_slots(&self) -> Vec<bool> {
        match &self.terms.placement {
            KeyPlaces::Ring(_) => vec![true; self.members.len()],
            KeyPlaces::Cluster(cluster) => cluster.have_slots(),
        }
    }

    /// Those of them that have a share of the keys. One that has left its cluster fails for good, and is missed by nobody.
    fn known(&self) -> impl Iterator<Item = &QueuedServer> {
        self.members
            .iter()
            .zip(self.have_slots())
            .filter(|(_, has_slots)| *has_slots)
            .map(|(member, _)| member)
    }

    pub(crate) fn placement(&self) -> &KeyPlaces {
        &self.terms.placement
    }

    fn member(&self, key: &RemoteKey) -> Option<&QueuedServer> {
        self.members.get(self.terms.placement.place(key.as_bytes())?)
    }
}

fn offer(QueuedServer { server, queue, .. }: &QueuedServer, job: Job) -> Offered {
    let counters = server.counters();
    if !server.may_ask() {
        counters.wrote(Write::Failing);
        return Offered::Failing;
    }
    match queue.offer(job) {
        true => Offered::Queued,
        false => {
            counters.wrote(Write::Full);
            Offered::Full
        }
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.queue.close());
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.members.iter().map(|member| &member.server);
        f.debug_list().entries(servers).finish()
    }
}
