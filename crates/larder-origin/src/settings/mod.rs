//! What an origin is: its servers, how requests are shared among them, limits and TLS.
//!
//! In: values that the binary takes from the config. Out: checked settings with their defaults and the reasons for
//! them. Addresses are in `address`, bounds of time and number in `limits`, what is done about servers that fail in
//! `failure`.

mod address;
mod failure;
mod limits;

use std::net::SocketAddr;
use std::time::Duration;

pub use address::ServerAddress;
pub use failure::{Ejection, HealthCheck, Retry};
pub use limits::{HeadLimits, InFlightLimit, Timeouts};

use larder_http::authority::Authority;
use larder_tls::TlsSettings;

use crate::error::SetupError;
use limits::TIME_MAX;

/// One configured origin.
#[derive(Clone, Debug)]
pub struct OriginSettings {
    /// As in the config; labels logs and metrics.
    pub name: String,
    /// At least one.
    pub servers: Vec<ServerSettings>,
    /// How a request's server is chosen.
    pub balance: Balance,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How long an unused connection is kept. 4 s: below the 5 s after which common app servers (Node among them)
    /// close theirs, so that we close first and never race with them.
    pub idle: Duration,
    /// Unused connections kept per worker and server. 32.
    pub max_idle: usize,
    /// Connections open at once in the whole process, tunnels and unused ones included. 8192: far above what an
    /// origin serves, and below common descriptor limits.
    pub max_connections: usize,
    /// Bounds of a response's head.
    pub head: HeadLimits,
    /// For servers spoken to in TLS.
    pub tls: TlsSettings,
    /// Which Host is sent.
    pub host: SentHost,
    /// Which version of HTTP is spoken.
    pub protocol: Protocol,
    /// Whether every connection begins with a PROXY header, version 2, that names the client. Such a connection
    /// belongs to one client and serves one request. Off.
    pub proxy_protocol: bool,
    /// How many requests are out at once, and how many wait.
    pub in_flight: InFlightLimit,
    /// Whether a failed request is sent to another server although some of it was sent. Off.
    pub retry: Option<Retry>,
    /// When a server that fails gets no more requests.
    pub ejection: Ejection,
    /// How long a server that comes (back) is given less than its share, rising from a tenth. 0: not at all.
    pub slow_start: Duration,
    /// Asking servers how they are. Off.
    pub health: Option<HealthCheck>,
    /// How names are looked up.
    pub resolve: ResolveSettings,
}

impl OriginSettings {
    /// `servers`, all alike, with the default limits.
    pub fn new(name: impl Into<String>, servers: Vec<ServerAddress>) -> Self {
        Self {
            name: name.into(),
            servers: servers.into_iter().map(ServerSettings::from).collect(),
            balance: Balance::RoundRobin,
            timeouts: Timeouts::default(),
            idle: Duration::from_secs(4),
            max_idle: 32,
            max_connections: 8192,
            head: HeadLimits::default(),
            tls: TlsSettings::default(),
            host: SentHost::Client,
            protocol: Protocol::Http1,
            proxy_protocol: false,
            in_flight: InFlightLimit::default(),
            retry: None,
            ejection: Ejection::default(),
            slow_start: Duration::ZERO,
            health: None,
            resolve: ResolveSettings::default(),
        }
    }

    /// Times are added to readings of a clock, which must not overflow.
    pub(crate) fn check_times(&self) -> Result<(), SetupError> {
        let Timeouts { connect, first_byte, between_bytes, event_stream, total } = self.timeouts;
        let health = self.health.as_ref().map(|health| health.every.max(health.timeout));
        let times = [
            connect,
            first_byte,
            between_bytes,
            event_stream,
            total.unwrap_or_default(),
            self.idle,
            self.in_flight.queue_timeout,
            self.ejection.time,
            self.ejection.time_max,
            self.slow_start,
            health.unwrap_or_default(),
            self.resolve.every,
        ];
        match times.into_iter().max() {
            Some(longest) if longest > TIME_MAX => Err(SetupError::Time(longest)),
            _ => Ok(()),
        }
    }
}

/// The value of Host, or `:authority`, in requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SentHost {
    /// What the client asked for.
    #[default]
    Client,
    /// The name of the server that is asked, with its port where that is not the usual one.
    Upstream,
    /// This one.
    Name(Authority),
}

/// One server of an origin. All addresses of its name get its weight each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Where it listens.
    pub address: ServerAddress,
    /// Its share beside the others', 1 to 1000. 1; 0 is taken for 1.
    pub weight: u16,
    /// Whether it is asked only while no other server can be. `false`.
    pub backup: bool,
}

impl From<ServerAddress> for ServerSettings {
    fn from(address: ServerAddress) -> Self {
        Self { address, weight: 1, backup: false }
    }
}

/// How a request's server is chosen among those that can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// By turns, in the proportion of the weights.
    #[default]
    RoundRobin,
    /// The less busy, for its weight, of two taken at random.
    LeastRequests,
    /// By the request's own [`Affinity`](crate::Affinity): the same hash meets the same server, and few of them move
    /// when a server comes or goes. A request without one is sent by turns.
    Hash,
}

/// Which version of HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 and nothing else; on clear text by prior knowledge (RFC 9113 3.3). A WebSocket gets HTTP/1.1 over TLS
    /// and is refused on clear text.
    Http2,
    /// What the server chooses in the TLS handshake; HTTP/1.1 on clear text.
    Auto,
}

/// How names are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveSettings {
    /// How often names are looked up again while running. 30 s.
    pub every: Duration,
    /// Whom to ask; the system's resolver where empty.
    pub name_servers: Vec<SocketAddr>,
}

impl Default for ResolveSettings {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), name_servers: Vec::new() }
    }
}
