//! The servers of one origin as the whole process sees them, under one version of its settings.
//!
//! In: settings, answers from DNS, outcomes of requests, health checks. Out: for each request an endpoint (a
//! [`Ticket`]), and whether there is any point in asking at all.
//!
//! ```text
//!   OriginResources (kept over reloads)        Fleet (one per settings)            worker
//!     records by server and place    <------     endpoints, by server   ------>      Chooser, Pools
//!     queue, budget                              names (look-ups)
//! ```
//!
//! Which server is asked: one of the lowest level that has an available server. That is the server that the client
//! has met before (sticky), otherwise the balance's choice. Where all are ejected it is the one whose time ends
//! first, because an origin that fails for some requests is better than none. Levels are servers first and backups
//! after them, and within a service record its priorities.
//!
//! **Invariant**: an endpoint that left the list gets no new request and keeps no unused connection.

mod answers;
mod balance;
mod budget;
mod condition;
mod endpoint;
mod names;
mod pools;
mod queue;
mod record;
mod records;
mod report;
mod roster;
mod server;
mod tag;
mod tend;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

pub use answers::{CheckReport, HEAD_TIMES, head_time_bound};
pub(crate) use balance::Chooser;
pub(crate) use budget::Budget;
pub(crate) use condition::Checks;
use condition::Use;
pub(crate) use endpoint::{Endpoint, Members, Ticket};
pub(crate) use pools::Pools;
pub(crate) use queue::{Queue, Seat};
pub(crate) use records::Records;
pub use report::{ServerReport, ServerState};
pub(crate) use roster::Roster;
pub use tag::{NotATag, ServerTag, stable_hash};

use crate::error::{OriginError, SetupError};
use crate::request::Affinity;
use crate::resolve::{Names, ResolvedTarget};
use crate::resources::OriginResources;
use crate::settings::{OriginSettings, ServerAddress};

pub(crate) struct Fleet {
    settings: Arc<OriginSettings>,
    resources: Arc<OriginResources>,
    /// Grows with each version of the settings.
    number: u64,
    names: Names,
    /// By configured server. Held while an answer is put in, never while asking.
    servers: Mutex<Vec<server::Server>>,
    members: watch::Sender<Members>,
    /// Held while asking, so that a burst asks once.
    asking: tokio::sync::Mutex<()>,
    /// Counts look-ups that have ended; for those who wait for one.
    asked: watch::Sender<u64>,
    /// Notified when connecting failed: perhaps the server moved.
    doubts: tokio::sync::Notify,
    /// One for each worker.
    pools: Mutex<Vec<Weak<Pools>>>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Who may be given a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those that can be asked, and where there are none the best of those that are ejected.
    Anybody,
    /// Only those that can be asked.
    Available,
}

impl Fleet {
    /// A fleet for `settings`, which takes over what the fleet before knows of servers that stay.
    ///
    /// # Errors
    /// No servers, a limit of time beyond a year, or TLS that cannot be set up.
    fn new(
        settings: &Arc<OriginSettings>,
        resources: &Arc<OriginResources>,
        before: Option<&Self>,
        number: u64,
    ) -> Result<Arc<Self>, SetupError> {
        if settings.servers.is_empty() {
            return Err(SetupError::NoServers);
        }
        settings.check_times()?;
        let known = |address: &ServerAddress| before?.known(address);
        let since = before.map(|_| Instant::now());
        let servers = server::servers(settings, resources, known, since)?;
        let members = watch::Sender::new(server::members(&servers));
        // What is known of the servers stays as it is: this fleet may be one of a reload that is refused.
        Ok(Arc::new(Self {
            settings: settings.clone(),
            resources: resources.clone(),
            number,
            names: Names::new(&settings.resolve),
            servers: Mutex::new(servers),
            members,
            asking: tokio::sync::Mutex::new(()),
            asked: watch::Sender::new(0),
            doubts: tokio::sync::Notify::new(),
            pools: Mutex::default(),
        }))
    }

    /// The same server's address, and what its name means here.
    fn known(&self, address: &ServerAddress) -> Option<(Arc<ServerAddress>, Vec<ResolvedTarget>)> {
        let servers = self.servers.lock();
        let server =
            servers.iter().find(|server| *server.address == *address && !server.targets.is_empty())?;
        Some((server.address.clone(), server.targets.clone()))
    }

    pub(crate) fn settings(&self) -> &Arc<OriginSettings> {
        &self.settings
    }

    /// Grows with each version of the settings.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A worker's connections; the fleet takes out those to endpoints that leave.
    pub(crate) fn pools(&self) -> Arc<Pools> {
        let pools = Arc::new(Pools::new(self.settings.clone(), self.resources.clone()));
        let mut all = self.pools.lock();
        all.retain(|pools| pools.strong_count() > 0);
        all.push(Arc::downgrade(&pools));
        pools
    }

    /// Everybody, those that cannot be asked included.
    pub(crate) fn endpoints(&self) -> Members {
        self.members.borrow().clone()
    }

    /// The same, and each change from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Members> {
        self.members.subscribe()
    }

    /// Whether nobody can be asked: each is ejected, on probation or unhealthy, or no name has an address.
    pub(crate) fn is_down(&self) -> bool {
        let members = self.endpoints();
        let now = Instant::now();
        match members.is_empty() {
            true => self.is_unresolvable(),
            false => members.iter().all(|endpoint| !matches!(endpoint.usable(now), Use::Share(_))),
        }
    }

    /// Whether a request would find out now that somebody is well again.
    pub(crate) fn is_probe_due(&self) -> bool {
        let now = Instant::now();
        self.endpoints().iter().any(|endpoint| matches!(endpoint.usable(now), Use::Probe))
    }

    /// Whether somebody not in `tried` can be asked.
    pub(crate) fn has_other(&self, tried: &[u64]) -> bool {
        let now = Instant::now();
        let can_be_asked =
            |endpoint: &Arc<Endpoint>| matches!(endpoint.usable(now), Use::Share(_) | Use::Probe);
        self.endpoints().iter().any(|endpoint| !tried.contains(&endpoint.id()) && can_be_asked(endpoint))
    }

    /// Gives a request to somebody not in `tried`.
    ///
    /// # Errors
    /// [`OriginError::NoServer`]: nobody is left within `reach`.
    pub(crate) fn assign(
        &self,
        chooser: &Chooser,
        affinity: &Affinity,
        tried: &[u64],
        reach: Reach,
    ) -> Result<Ticket, OriginError> {
        let members = self.endpoints();
        // Who was free to be probed may not be any more when it comes to it; then the choice is made again.
        for _ in 0..=members.len() {
            let now = Instant::now();
            let Some(chosen) = self.choose(&members, chooser, affinity, tried, reach, now) else {
                break;
            };
            let mut ticket = chosen.endpoint.begin(now);
            if ticket.is_probe() || !chosen.is_probe {
                if chosen.is_last_resort {
                    ticket.make_last_resort();
                }
                return Ok(ticket);
            }
        }
        Err(OriginError::NoServer)
    }

    /// Other addresses of the same server and level for a request that could not connect: those that can be asked,
    /// and where the request was a last resort, those that are ejected. Those that stand by are asked when no server
    /// of this level is left, which [`assign`](Self::assign) knows.
    pub(crate) fn siblings(&self, ticket: &Ticket, tried: &[u64]) -> Vec<Arc<Endpoint>> {
        let now = Instant::now();
        let members = self.endpoints();
        let level = ticket.endpoint().level();
        let is_sibling = |endpoint: &&Arc<Endpoint>| {
            Arc::ptr_eq(endpoint.server(), ticket.endpoint().server())
                && endpoint.level() == level
                && !tried.contains(&endpoint.id())
                && match endpoint.usable(now) {
                    Use::Share(_) | Use::Probe => true,
                    Use::Ejected(_) => ticket.is_last_resort(),
                    Use::Unhealthy => false,
                }
        };
        members.iter().filter(is_sibling).cloned().collect()
    }

    /// Gives a request to this endpoint, which [`siblings`](Self::siblings) has named.
    pub(crate) fn assign_sibling(&self, endpoint: &Arc<Endpoint>) -> Ticket {
        endpoint.begin(Instant::now())
    }

    fn choose<'a>(
        &self,
        members: &'a [Arc<Endpoint>],
        chooser: &Chooser,
        affinity: &Affinity,
        tried: &[u64],
        reach: Reach,
        now: Instant,
    ) -> Option<Chosen<'a>> {
        let mut available = Vec::with_capacity(members.len());
        let mut level = u32::MAX;
        let mut met: Option<(u32, Chosen<'a>)> = None;
        let mut last_resort: Option<(Instant, &Arc<Endpoint>)> = None;
        for (index, endpoint) in members.iter().enumerate() {
            if tried.contains(&endpoint.id()) {
                continue;
            }
            let (share, is_probe) = match endpoint.usable(now) {
                Use::Share(share) => (share, false),
                Use::Probe => (1.0, true),
                Use::Ejected(until) => {
                    if last_resort.is_none_or(|(earliest, _)| until < earliest) {
                        last_resort = Some((until, endpoint));
                    }
                    continue;
                }
                Use::Unhealthy => continue,
            };
            let own_level = endpoint.level();
            if affinity.server == Some(endpoint.tag()) {
                met = Some((own_level, Chosen { endpoint, is_probe, is_last_resort: false }));
            }
            if own_level < level {
                level = own_level;
                available.clear();
            }
            if own_level == level {
                available.push((endpoint.candidate(index, share), is_probe));
            }
        }
        // A client that met a backup leaves it when those that it stood in for are back.
        if let Some((_, met)) = met.filter(|(met_at, _)| *met_at == level) {
            return Some(met);
        }
        let candidates: Vec<_> = available.iter().map(|(candidate, _)| *candidate).collect();
        if let Some(chosen) = chooser.choose(self.settings.balance, affinity.hash, &candidates) {
            let is_probe = available.iter().any(|(other, is_probe)| other.id == chosen.id && *is_probe);
            return Some(Chosen { endpoint: members.get(chosen.index)?, is_probe, is_last_resort: false });
        }
        let (_, endpoint) = last_resort.filter(|_| reach == Reach::Anybody)?;
        Some(Chosen { endpoint, is_probe: false, is_last_resort: true })
    }

    /// For [`Roster::report`].
    fn report(&self) -> Vec<ServerReport> {
        let now = Instant::now();
        let report = |endpoint: &Arc<Endpoint>| {
            let state = match endpoint.usable(now) {
                Use::Share(share) if share < 1.0 => ServerState::SlowStart,
                Use::Share(_) => ServerState::Up,
                Use::Probe | Use::Ejected(_) => ServerState::Ejected,
                Use::Unhealthy => ServerState::Unhealthy,
            };
            let weight = u32::try_from(endpoint.weight().div_ceil(server::WEIGHT)).unwrap_or(u32::MAX);
            let is_backup = endpoint.level() > 0;
            ServerReport::new(
                endpoint.server(),
                endpoint.place(),
                endpoint.record(),
                weight,
                is_backup,
                state,
            )
        };
        self.endpoints().iter().map(report).collect()
    }

    fn has(&self, record: &Arc<record::EndpointRecord>) -> bool {
        self.endpoints().iter().any(|endpoint| Arc::ptr_eq(endpoint.record(), record))
    }
}

struct Chosen<'a> {
    endpoint: &'a Arc<Endpoint>,
    /// Whether it may be asked once only, to find out.
    is_probe: bool,
    is_last_resort: bool,
}
