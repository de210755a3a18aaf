//! Keeps a fleet's endpoints in step with what its servers' names mean at the moment.
//!
//! In: configured servers and what DNS answers. Out: endpoints, made, kept and retired. An address that is given as
//! such, and what the fleet before knew, is there at once. A name that nobody looked up yet is looked up at first use,
//! and requests wait for it as long as the connect limit; from then on only behind, and nobody waits. A look-up has a
//! limit of its own and ends with nobody who waits for it. When one fails, the last good answer stays, because a name
//! server that is down should not take the origin with it.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{MutexGuard, watch};
use tokio::time::Instant;

use super::Fleet;
use super::server::{Server, members};
use crate::error::{OriginError, SetupError};
use crate::resolve::ResolvedTarget;
use crate::settings::ServerAddress;

/// How long a failed look-up stands for those that ask right after it, and the least time between two.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a look-up may take; requests wait less for it. Enough for several name servers that are silent.
const LOOK_UP_LIMIT: Duration = Duration::from_secs(10);

/// For how many of the regular look-ups an address that has left is remembered.
const ABSENT_ROUNDS: u32 = 4;

/// How soon a failed look-up is tried again where nobody asks for it.
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// The right to ask. When it ends, in whatever way, those who wait for answers look again.
struct Turn<'a> {
    asking: Option<MutexGuard<'a, ()>>,
    asked: &'a watch::Sender<u64>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // First, so that one of them can ask where there is no answer.
        self.asking = None;
        self.asked.send_modify(|asked| *asked = asked.wrapping_add(1));
    }
}

impl Fleet {
    /// Whether there is nobody, because no name has an address.
    pub(super) fn is_unresolvable(&self) -> bool {
        self.servers.lock().iter().all(|server| server.endpoints.is_empty() && server.failure.is_some())
    }

    /// Waits until there is somebody to ask, at most for the connect limit, and only where nobody has asked yet. Names
    /// that have no address while other servers can be asked are looked up behind.
    ///
    /// # Errors
    /// Why there is nobody.
    ///
    /// # Cancel safety
    /// May be dropped at any time; what is looked up goes on.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<(), OriginError> {
        if self.endpoints().is_empty() {
            let limit = self.settings.timeouts.connect;
            return tokio::time::timeout(limit, self.first_answer())
                .await
                .unwrap_or(Err(OriginError::ConnectTimeout));
        }
        if !self.unanswered(Instant::now()).is_empty() {
            self.ask_behind();
        }
        Ok(())
    }

    async fn first_answer(self: &Arc<Self>) -> Result<(), OriginError> {
        let mut asked = self.asked.subscribe();
        loop {
            if !self.endpoints().is_empty() {
                return Ok(());
            }
            if self.unanswered(Instant::now()).is_empty() {
                let failure = self.servers.lock().iter().find_map(|server| server.failure);
                return Err(OriginError::Dns(
                    failure.map_or(io::ErrorKind::NotFound, |(_, kind)| kind).into(),
                ));
            }
            self.ask_behind();
            // Fails only without a sender, which is part of the fleet.
            let _ = asked.changed().await;
        }
    }

    /// Looks up what has no address, in a task of its own, unless somebody is asking.
    fn ask_behind(self: &Arc<Self>) {
        if self.asking.try_lock().is_err() {
            return;
        }
        let fleet = Arc::downgrade(self);
        tokio::spawn(async move {
            if let Some(fleet) = fleet.upgrade() {
                // Several that began at once take turns, and all but the first find nothing left to ask.
                let _turn = fleet.turn().await;
                fleet.ask(fleet.unanswered(Instant::now())).await;
            }
        });
    }

    async fn turn(&self) -> Turn<'_> {
        Turn { asking: Some(self.asking.lock().await), asked: &self.asked }
    }

    /// Servers without an address that nobody has asked for just now.
    fn unanswered(&self, now: Instant) -> Vec<usize> {
        let is_due = |server: &Server| {
            server.endpoints.is_empty()
                && server.failure.is_none_or(|(at, _)| now.saturating_duration_since(at) >= PAUSE)
        };
        let servers = self.servers.lock();
        servers.iter().enumerate().filter(|(_, server)| is_due(server)).map(|(index, _)| index).collect()
    }

    /// Looks all these servers' names up at once. Returns those that failed, and why.
    async fn ask(&self, which: Vec<usize>) -> Vec<(Arc<ServerAddress>, OriginError)> {
        let addresses: Vec<_> = {
            let servers = self.servers.lock();
            which.into_iter().filter_map(|index| Some((index, servers.get(index)?.address.clone()))).collect()
        };
        let look_up = |(index, address): (usize, Arc<ServerAddress>)| async move {
            let outcome = tokio::time::timeout(LOOK_UP_LIMIT, self.names.look_up(&address))
                .await
                .unwrap_or(Err(OriginError::ConnectTimeout));
            (index, address, outcome)
        };
        let answers = join_all(addresses.into_iter().map(look_up)).await;
        let failed = |(index, address, outcome)| self.put(index, outcome).err().map(|error| (address, error));
        answers.into_iter().filter_map(failed).collect()
    }

    /// Puts one answer in.
    fn put(
        &self,
        index: usize,
        outcome: Result<Vec<ResolvedTarget>, OriginError>,
    ) -> Result<(), OriginError> {
        let now = Instant::now();
        let mut servers = self.servers.lock();
        // What is there when the process starts has no slow start; what a reload brought, or DNS later, has.
        let is_first = servers.get(index).is_some_and(|server| server.targets.is_empty()) && self.number == 1;
        let Some(server) = servers.get_mut(index) else { return Ok(()) };
        let put = outcome.and_then(|targets| {
            let since = (!is_first).then_some(now);
            server.put(targets, &self.settings, &self.resources, since).map_err(|error| match error {
                SetupError::ServerName(_) => OriginError::Dns(io::ErrorKind::InvalidData.into()),
                other => OriginError::tls(io::Error::other(other)),
            })
        });
        let gone = match put {
            Ok(gone) => gone,
            Err(error) => {
                let kind = match &error {
                    OriginError::Dns(error) => error.kind(),
                    _ => io::ErrorKind::TimedOut,
                };
                server.failure = Some((now, kind));
                return Err(error);
            }
        };
        server.failure = None;
        let members = members(&servers);
        self.members.send_if_modified(|current| {
            let is_same = current.len() == members.len()
                && current.iter().zip(members.iter()).all(|(one, other)| Arc::ptr_eq(one, other));
            if !is_same {
                *current = members;
            }
            !is_same
        });
        drop(servers);
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        for endpoint in gone {
            endpoint.retire();
            pools.iter().for_each(|pools| pools.forget(&endpoint));
            let absence = self.settings.resolve.every.max(PAUSE).saturating_mul(ABSENT_ROUNDS);
            self.resources.records.depart(endpoint.record().clone(), absence);
        }
        Ok(())
    }

    /// Looks every name up once. Returns those that failed, and why.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn look_up_all(&self) -> Vec<(Arc<ServerAddress>, OriginError)> {
        let _turn = self.turn().await;
        let named: Vec<_> = {
            let servers = self.servers.lock();
            servers.iter().enumerate().filter(|(_, s)| !s.is_fixed).map(|(index, _)| index).collect()
        };
        self.ask(named).await
    }

    /// Connecting to a server failed: perhaps its name means something else by now.
    pub(crate) fn doubt(&self) {
        self.doubts.notify_one();
    }

    /// Looks names up again for ever: at once, then as often as the settings say, and earlier where connecting
    /// failed. Waits for ever where there are no names.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn keep_names(&self) {
        if self.servers.lock().iter().all(|server| server.is_fixed) {
            return std::future::pending().await;
        }
        let every = self.settings.resolve.every.max(PAUSE);
        loop {
            let failed = !self.look_up_all().await.is_empty();
            let next = if failed { every.min(FAILED_PAUSE) } else { every };
            tokio::time::sleep(PAUSE).await;
            let _ = tokio::time::timeout(next.saturating_sub(PAUSE), self.doubts.notified()).await;
        }
    }
}
