//! Names of servers to the places where they are reached now.
//!
//! In: a server's address as configured. Out: [`ResolvedTarget`]s, in an order that does not depend on the answer's,
//! so that a rotated answer is the same answer and a bound always keeps the same ones.
//!
//! ```text
//!   unix:/path, IP address   at once
//!   name                     getaddrinfo; with name_servers configured: A and AAAA from them
//!   service (SRV)            the configured or the system's name servers, then each target's name as above
//! ```
//!
//! Every look-up asks anew: how often is the fleet's to say, and so is keeping the last good answer when one fails. What
//! is kept here is less: the addresses that a *part* of a look-up found last, so that one family's question or one
//! service's target that fails does not take its addresses away while the other parts succeed. That a name does not
//! exist is no such failure.
//!
//! TLS at a service checks the service's domain (`app.example` of `_https._tcp.app.example`), not the name that an
//! unsigned SRV record points to (RFC 6125 6.2.1); `server_name` overrides both. Addresses that nobody can listen on
//! (0.0.0.0 from a filtering name server, multicast) are passed over, and so are those without a route while there are
//! others.
//!
//! Deliberately absent: search domains, the records' own lifetimes (`resolve_every` is what the operator said).

mod ask;
mod question;
mod system;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::stream::{self, StreamExt as _};
use parking_lot::Mutex;

use self::question::{DnsRecord, Kind, Question, Service};
use crate::error::OriginError;
use crate::place::Place;
use crate::settings::{ResolveSettings, ServerAddress};

/// Addresses of one name that are used.
const ADDRESSES_MAX: usize = 16;

/// Targets of one service that are used, the best first.
const SERVICES_MAX: usize = 32;

/// Places of one configured server.
const TARGETS_MAX: usize = 128;

/// Targets of a service that are looked up at once.
const AT_ONCE: usize = 8;

/// Questions whose last addresses are remembered; beyond that all are forgotten, which only costs the fallback.
const REMEMBERED_MAX: usize = 1024;

/// A place where a server is reached now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedTarget {
    pub(crate) place: Place,
    /// The name for TLS: the configured host, or the domain of a service. Empty for a Unix socket.
    pub(crate) host: Arc<str>,
    /// From an SRV record: the lowest is used first, the others stand by. 0 otherwise.
    pub(crate) priority: u16,
    /// From an SRV record: the share among those of one priority, 0 included. 1 otherwise.
    pub(crate) weight: u16,
}

/// A part of a look-up: a host, and one family of its addresses or all.
type Part = (String, Option<Kind>);

/// Looks up names. One per configured origin; used by all that need a name of it.
pub(crate) struct Names {
    /// Empty: the system's.
    servers: Vec<SocketAddr>,
    /// The place of the one that is asked first.
    preferred: AtomicUsize,
    /// What parts of look-ups found last. Never held while asking.
    last: Mutex<HashMap<Part, Vec<SocketAddr>>>,
}

impl Names {
    /// Asks nothing yet.
    pub(crate) fn new(settings: &ResolveSettings) -> Self {
        Self {
            servers: settings.name_servers.clone(),
            preferred: AtomicUsize::new(0),
            last: Mutex::new(HashMap::new()),
        }
    }

    /// Where `address` is reached now, at least one place; 16 addresses per name and 128 places at most. Those of a
    /// service are sorted by priority, the best first.
    ///
    /// # Errors
    /// [`OriginError::Dns`]: no name server answers, the name does not exist, has no addresses, or the service is
    /// expressly not offered.
    ///
    /// # Cancel safety
    /// May be dropped at any time. The caller sets the time limit.
    pub(crate) async fn look_up(&self, address: &ServerAddress) -> Result<Vec<ResolvedTarget>, OriginError> {
        match address {
            ServerAddress::Unix(path) => {
                let place = Place::Unix(Arc::from(path.as_path()));
                Ok(vec![ResolvedTarget { place, host: Arc::from(""), priority: 0, weight: 1 }])
            }
            ServerAddress::Http { host, port } | ServerAddress::Https { host, port } => {
                let found = self.addresses(host, *port).await.map_err(OriginError::Dns)?;
                let host: Arc<str> = Arc::from(host.as_str());
                let target =
                    |at| ResolvedTarget { place: Place::Tcp(at), host: host.clone(), priority: 0, weight: 1 };
                Ok(found.into_iter().map(target).collect())
            }
            ServerAddress::Srv { name, .. } => self.service(name).await.map_err(OriginError::Dns),
        }
    }

    /// The addresses of one name, sorted, at least one.
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let mut found = match self.servers.is_empty() {
            true => system::addresses(host, port).await?,
            false => self.both_families(host).await?,
        };
        found.iter_mut().for_each(|address| address.set_port(port));
        let found = usable(found);
        match found.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no addresses")),
            false => Ok(found),
        }
    }

    /// A and AAAA, asked at once. Servers that fail on AAAA are common, so one that fails does not spoil the other.
    async fn both_families(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let (v4, v6) = tokio::join!(self.family(host, Kind::V4), self.family(host, Kind::V6));
        let (mut found, (kind, outcome)) = match (v4, v6) {
            (Ok(v4), v6) if !v4.is_empty() => (v4, (Kind::V6, v6)),
            (v4, Ok(v6)) if !v6.is_empty() => (v6, (Kind::V4, v4)),
            (v4, v6) => return v4.and(v6),
        };
        let part = (host.to_owned(), Some(kind));
        found.extend(outcome.unwrap_or_else(|_| self.recall(&part)));
        Ok(found)
    }

    async fn family(&self, host: &str, kind: Kind) -> io::Result<Vec<SocketAddr>> {
        let records = self.ask(&self.servers, host, kind).await?;
        let found = records.into_iter().filter_map(|record| match record {
            DnsRecord::Address(ip) => Some(SocketAddr::new(ip, 0)),
            DnsRecord::Service(_) => None,
        });
        let found: Vec<_> = found.collect();
        self.remember((host.to_owned(), Some(kind)), &found);
        Ok(found)
    }

    /// The places of a service, the best first, at least one.
    async fn service(&self, name: &str) -> io::Result<Vec<ResolvedTarget>> {
        let records = match self.servers.is_empty() {
            true => self.ask(&system::name_servers().await, name, Kind::Service).await?,
            false => self.ask(&self.servers, name, Kind::Service).await?,
        };
        let services = offered(records)?;
        let looked_up = stream::iter(services).map(|service| self.target(service)).buffered(AT_ONCE);
        let looked_up: Vec<_> = looked_up.collect().await;
        let host: Arc<str> = Arc::from(domain_of(name));
        let mut targets: Vec<ResolvedTarget> = Vec::new();
        let mut error = None;
        for (service, outcome) in looked_up {
            let Service { priority, weight, .. } = service;
            let found = outcome.unwrap_or_else(|failed| {
                error = Some(failed);
                Vec::new()
            });
            for place in found.into_iter().map(Place::Tcp) {
                // Two targets may be two names of one machine; the better one's word holds.
                if targets.iter().all(|known| known.place != place) && targets.len() < TARGETS_MAX {
                    targets.push(ResolvedTarget { place, host: host.clone(), priority, weight });
                }
            }
        }
        match error {
            Some(error) if targets.is_empty() => Err(error),
            _ => Ok(targets),
        }
    }

    /// The addresses of one target of a service: the last ones, where nobody can say at the moment.
    async fn target(&self, service: Service) -> (Service, io::Result<Vec<SocketAddr>>) {
        let part = (service.host.clone(), None);
        let outcome = match self.addresses(&service.host, service.port).await {
            Ok(found) => {
                self.remember(part, &found);
                Ok(found)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            Err(error) => {
                let mut last = self.recall(&part);
                last.iter_mut().for_each(|address| address.set_port(service.port));
                if last.is_empty() { Err(error) } else { Ok(last) }
            }
        };
        (service, outcome)
    }

    async fn ask(&self, servers: &[SocketAddr], name: &str, kind: Kind) -> io::Result<Vec<DnsRecord>> {
        let question = Question::new(name, kind);
        let question =
            question.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a name of DNS"))?;
        ask::ask(servers, &self.preferred, &question).await
    }

    fn remember(&self, part: Part, found: &[SocketAddr]) {
        let mut last = self.last.lock();
        if last.len() >= REMEMBERED_MAX && !last.contains_key(&part) {
            last.clear();
        }
        let found = found.iter().take(ADDRESSES_MAX).copied().collect();
        last.insert(part, found);
    }

    fn recall(&self, part: &Part) -> Vec<SocketAddr> {
        self.last.lock().get(part).cloned().unwrap_or_default()
    }
}

/// The addresses that can be connected to, each once, sorted, up to the bound.
fn usable(mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    found.retain(|address| {
        let ip = address.ip();
        let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
    });
    found.sort_unstable();
    found.dedup();
    if found.iter().any(system::has_route) {
        found.retain(system::has_route);
    }
    found.truncate(ADDRESSES_MAX);
    found
}

/// The targets of a service, the best first, up to the bound.
fn offered(records: Vec<DnsRecord>) -> io::Result<Vec<Service>> {
    let services = records.into_iter().filter_map(|record| match record {
        DnsRecord::Service(service) => Some(service),
        DnsRecord::Address(_) => None,
    });
    let mut services: Vec<Service> = services.collect();
    if services.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such service"));
    }
    // RFC 2782: the root as the target says that the service is not offered; nobody listens on port 0.
    services.retain(|service| !service.host.is_empty() && service.port != 0);
    services.sort_by(|a, b| {
        let rank = |s: &Service| (s.priority, std::cmp::Reverse(s.weight));
        rank(a).cmp(&rank(b)).then_with(|| (&a.host, a.port).cmp(&(&b.host, b.port)))
    });
    services.dedup();
    services.truncate(SERVICES_MAX);
    match services.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "the service is not offered")),
        false => Ok(services),
    }
}

/// The domain of a service's name: what is left after the labels that name the service and its transport.
fn domain_of(service: &str) -> &str {
    let mut rest = service.trim_end_matches('.');
    while let Some((label, parent)) = rest.split_once('.') {
        if !label.starts_with('_') {
            break;
        }
        rest = parent;
    }
    rest
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
