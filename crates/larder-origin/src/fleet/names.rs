//! Keeps a fleet's endpoints in step with what its servers' names mean at the moment.
//!
//! In: configured servers and what DNS answers. Out: endpoints, made, kept and retired. An address that is given as
//! such, and what the fleet before knew, is there at once. A name that nobody looked up yet is looked up at first use,
//! and requests wait for it as long as the connect limit; from then on only behind, and nobody waits. A look-up has a
//! limit of its own and ends with nobody who waits for it. When one fails, the last good answer stays, because a name
//! server that is down should not take the origin with it.
//!
//! Each address gets the whole weight of its server. The targets of a service share it by the record's weights, so
//! that their average is the server's.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use rustls::ClientConfig;
use tokio::sync::{MutexGuard, watch};
use tokio::time::Instant;

use super::endpoint::{Endpoint, Parts, Rank};
use super::{Fleet, Members};
use crate::connect::Dial;
use crate::error::{OriginError, SetupError};
use crate::metrics::Shared;
use crate::resolve::Target;
use crate::settings::{OriginSettings, ServerAddress, ServerSettings};

/// A weight of 1.
pub(super) const WEIGHT: u64 = 1000;

/// Where backups begin; below are a service's priorities.
const BACKUP_LEVEL: u32 = 1 << 16;

/// How long a failed look-up stands for those that ask right after it, and the least time between two.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a look-up may take; requests wait less for it. Enough for several name servers that are silent.
const LOOK_UP_LIMIT: Duration = Duration::from_secs(10);

/// For how many of the regular look-ups an address that has left is remembered.
const ABSENT_ROUNDS: u32 = 4;

/// How soon a failed look-up is tried again where nobody asks for it.
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// One configured server and what it means now.
pub(super) struct Server {
    settings: ServerSettings,
    address: Arc<ServerAddress>,
    /// What the endpoints were made from; a fleet after this one begins with it.
    targets: Vec<Target>,
    endpoints: Vec<Arc<Endpoint>>,
    /// How to connect, by the name for TLS. One, as long as a service keeps its domain.
    dials: Vec<(Arc<str>, Arc<Dial>)>,
    /// Where it is spoken to in TLS.
    tls: Option<Arc<ClientConfig>>,
    is_fixed: bool,
    /// Of the latest look-up.
    failure: Option<(Instant, io::ErrorKind)>,
}

/// The servers of a new fleet, with whatever can be said of them at once.
pub(super) fn servers(
    settings: &Arc<OriginSettings>,
    shared: &Arc<Shared>,
    before: Option<&Fleet>,
) -> Result<Vec<Server>, SetupError> {
    // Read for each version of the settings: what is in force goes on as it is when this one is refused. Also where
    // no name for TLS is known yet, so that a file that cannot be read is found now.
    let tls = match settings.servers.iter().any(|server| server.address.is_tls()) {
        true => Some(Arc::new(crate::tls::client_config(&settings.tls)?)),
        false => None,
    };
    let server = |of: &ServerSettings| -> Result<Server, SetupError> {
        let known = before.and_then(|before| before.known(&of.address));
        let address = match &known {
            Some((address, _)) => address.clone(),
            None => Arc::new(of.address.clone()),
        };
        let mut server = Server {
            settings: of.clone(),
            address,
            targets: Vec::new(),
            endpoints: Vec::new(),
            dials: Vec::new(),
            tls: tls.clone().filter(|_| of.address.is_tls()),
            is_fixed: of.address.fixed_place().is_some(),
            failure: None,
        };
        if let Some((host, _)) = of.address.host_and_port() {
            server.dial(&Arc::from(host), settings, shared)?;
        }
        let targets = match (of.address.fixed_place(), known) {
            (Some(place), _) => {
                let host = of.address.host_and_port().map_or("", |(host, _)| host);
                vec![Target { place, host: Arc::from(host), priority: 0, weight: 1 }]
            }
            (None, Some((_, targets))) => targets,
            (None, None) => return Ok(server),
        };
        let since = before.map(|_| Instant::now());
        server.put(targets, settings, shared, since)?;
        Ok(server)
    };
    settings.servers.iter().map(server).collect()
}

/// All endpoints, in the order of the config.
pub(super) fn members(servers: &[Server]) -> Members {
    servers.iter().flat_map(|server| server.endpoints.iter().cloned()).collect()
}

impl Server {
    fn dial(
        &mut self,
        host: &Arc<str>,
        settings: &OriginSettings,
        shared: &Arc<Shared>,
    ) -> Result<Arc<Dial>, SetupError> {
        if let Some((_, known)) = self.dials.iter().find(|(name, _)| name == host) {
            return Ok(known.clone());
        }
        let dial = Arc::new(Dial::new(self.tls.as_ref(), host, settings, shared)?);
        self.dials.push((host.clone(), dial.clone()));
        Ok(dial)
    }

    /// Makes endpoints of `targets`, keeps those that are there, and returns those that are gone. What came anew came
    /// at `since`.
    fn put(
        &mut self,
        targets: Vec<Target>,
        settings: &Arc<OriginSettings>,
        shared: &Arc<Shared>,
        since: Option<Instant>,
    ) -> Result<Vec<Arc<Endpoint>>, SetupError> {
        self.dials.retain(|(host, _)| targets.iter().any(|target| target.host == *host));
        let mut endpoints: Vec<Arc<Endpoint>> = Vec::with_capacity(targets.len());
        for target in &targets {
            if endpoints.iter().any(|endpoint| *endpoint.place() == target.place) {
                continue;
            }
            let rank = Rank {
                weight: weight(&self.settings, target, &targets),
                level: level(&self.settings, target, &targets),
            };
            let kept = self.endpoints.iter().find(|endpoint| *endpoint.place() == target.place);
            let endpoint = match kept {
                Some(endpoint) => {
                    endpoint.set_rank(rank);
                    endpoint.clone()
                }
                None => Endpoint::new(Parts {
                    server: self.address.clone(),
                    place: target.place.clone(),
                    host: target.host.clone(),
                    dial: self.dial(&target.host, settings, shared)?,
                    rank,
                    record: shared.roster().record(&self.address, &target.place, since),
                    settings: settings.clone(),
                    shared: shared.clone(),
                }),
            };
            endpoints.push(endpoint);
        }
        let gone = std::mem::replace(&mut self.endpoints, endpoints)
            .into_iter()
            .filter(|old| !self.endpoints.iter().any(|new| Arc::ptr_eq(new, old)))
            .collect();
        self.targets = targets;
        Ok(gone)
    }
}

fn weight(server: &ServerSettings, target: &Target, all: &[Target]) -> u64 {
    let own = u64::from(server.weight.max(1)) * WEIGHT;
    let alike = || all.iter().filter(|other| other.priority == target.priority);
    let sum: u64 = alike().map(|other| u64::from(other.weight)).sum();
    let scaled = own * u64::from(target.weight) * alike().count() as u64;
    // A weight of 0 beside others is asked "very rarely" (RFC 2782); all of 0 share alike.
    scaled.checked_div(sum).map_or(own, |weight| weight.max(1))
}

fn level(server: &ServerSettings, target: &Target, all: &[Target]) -> u32 {
    let mut better: Vec<u16> =
        all.iter().map(|other| other.priority).filter(|p| *p < target.priority).collect();
    better.sort_unstable();
    better.dedup();
    let rank = u32::try_from(better.len()).unwrap_or(BACKUP_LEVEL - 1);
    if server.backup { BACKUP_LEVEL + rank } else { rank }
}

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
    /// The same server's address, and what its name means here.
    fn known(&self, address: &ServerAddress) -> Option<(Arc<ServerAddress>, Vec<Target>)> {
        let servers = self.servers.lock();
        let server =
            servers.iter().find(|server| *server.address == *address && !server.targets.is_empty())?;
        Some((server.address.clone(), server.targets.clone()))
    }

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
    fn put(&self, index: usize, outcome: Result<Vec<Target>, OriginError>) -> Result<(), OriginError> {
        let now = Instant::now();
        let mut servers = self.servers.lock();
        // What is there when the process starts has no slow start; what a reload brought, or DNS later, has.
        let is_first = servers.get(index).is_some_and(|server| server.targets.is_empty()) && self.number == 1;
        let Some(server) = servers.get_mut(index) else { return Ok(()) };
        let put = outcome.and_then(|targets| {
            let since = (!is_first).then_some(now);
            server.put(targets, &self.settings, &self.shared, since).map_err(|error| match error {
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
            self.shared.roster().depart(endpoint.record().clone(), absence);
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
