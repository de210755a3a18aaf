//! A configured server, and the endpoints that its name stands for at the moment.
//!
//! Each address gets the whole weight of its server. The targets of a service share it by the record's weights, so
//! that their average is the server's.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::time::Instant;

use super::endpoint::{Endpoint, Members, Parts, Rank};
use crate::connect::Dial;
use crate::error::SetupError;
use crate::resolve::ResolvedTarget;
use crate::resources::OriginResources;
use crate::settings::{OriginSettings, ServerAddress, ServerSettings};

/// A weight of 1.
pub(super) const WEIGHT: u64 = 1000;

/// Where backups begin; below are a service's priorities.
const BACKUP_LEVEL: u32 = 1 << 16;

/// One configured server and what it means now.
pub(super) struct Server {
    settings: ServerSettings,
    pub(super) address: Arc<ServerAddress>,
    /// What the endpoints were made from; a fleet after this one begins with it.
    pub(super) targets: Vec<ResolvedTarget>,
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    /// How to connect, by the name for TLS. One, as long as a service keeps its domain.
    dials: Vec<(Arc<str>, Arc<Dial>)>,
    /// Where it is spoken to in TLS.
    tls: Option<Arc<ClientConfig>>,
    pub(super) is_fixed: bool,
    /// Of the latest look-up.
    pub(super) failure: Option<(Instant, io::ErrorKind)>,
}

/// The servers of a new fleet, with the endpoints of addresses that are fixed, or `known` to the fleet before. These come at
/// `since`, where there was such a fleet.
pub(super) fn servers(
    settings: &Arc<OriginSettings>,
    resources: &Arc<OriginResources>,
    known: impl Fn(&ServerAddress) -> Option<(Arc<ServerAddress>, Vec<ResolvedTarget>)>,
    since: Option<Instant>,
) -> Result<Vec<Server>, SetupError> {
    // Read for each version of the settings: what is in force goes on as it is when this one is refused. Also where
    // no name for TLS is known yet, so that a file that cannot be read is found now.
    let tls = match settings.servers.iter().any(|server| server.address.is_tls()) {
        true => Some(Arc::new(larder_tls::client_config(&settings.tls)?)),
        false => None,
    };
    let server = |of: &ServerSettings| -> Result<Server, SetupError> {
        let known = known(&of.address);
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
            server.dial(&Arc::from(host), settings, resources)?;
        }
        let targets = match (of.address.fixed_place(), known) {
            (Some(place), _) => {
                let host = of.address.host_and_port().map_or("", |(host, _)| host);
                vec![ResolvedTarget { place, host: Arc::from(host), priority: 0, weight: 1 }]
            }
            (None, Some((_, targets))) => targets,
            (None, None) => return Ok(server),
        };
        server.put(targets, settings, resources, since)?;
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
        resources: &Arc<OriginResources>,
    ) -> Result<Arc<Dial>, SetupError> {
        if let Some((_, known)) = self.dials.iter().find(|(name, _)| name == host) {
            return Ok(known.clone());
        }
        let dial = Arc::new(Dial::new(self.tls.as_ref(), host, settings, &resources.room)?);
        self.dials.push((host.clone(), dial.clone()));
        Ok(dial)
    }

    /// Makes endpoints of `targets`, keeps those that are there, and returns those that are gone. What came anew came
    /// at `since`.
    pub(super) fn put(
        &mut self,
        targets: Vec<ResolvedTarget>,
        settings: &Arc<OriginSettings>,
        resources: &Arc<OriginResources>,
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
                    dial: self.dial(&target.host, settings, resources)?,
                    rank,
                    record: resources.records.record(&self.address, &target.place, since),
                    settings: settings.clone(),
                    counters: Arc::clone(&resources.counters),
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

fn weight(server: &ServerSettings, target: &ResolvedTarget, all: &[ResolvedTarget]) -> u64 {
    let own = u64::from(server.weight.max(1)) * WEIGHT;
    let alike = || all.iter().filter(|other| other.priority == target.priority);
    let sum: u64 = alike().map(|other| u64::from(other.weight)).sum();
    let scaled = own * u64::from(target.weight) * alike().count() as u64;
    // A weight of 0 beside others is asked "very rarely" (RFC 2782); all of 0 share alike.
    scaled.checked_div(sum).map_or(own, |weight| weight.max(1))
}

fn level(server: &ServerSettings, target: &ResolvedTarget, all: &[ResolvedTarget]) -> u32 {
    let mut better: Vec<u16> =
        all.iter().map(|other| other.priority).filter(|p| *p < target.priority).collect();
    better.sort_unstable();
    better.dedup();
    let rank = u32::try_from(better.len()).unwrap_or(BACKUP_LEVEL - 1);
    if server.backup { BACKUP_LEVEL + rank } else { rank }
}
