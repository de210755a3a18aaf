//! What a listener is told: its limits, each with the reason for its default.
//!
//! Every limit has a counter in [`crate::metrics`], so that an operator sees which one bites. A connection keeps the
//! settings it started with; a reload reaches new connections only.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use larder_http::time::Clock;
use larder_tls::server::ServerTls;

/// Bounds on what one client may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Request line and fields together, in bytes. 32 KiB: room for cookies gone wild, still cheap to hold.
    pub head_bytes_max: usize,
    /// Field lines in one request, HTTP/2 cookie crumbs counted one by one. 100: the count costs memory
    /// even where the bytes do not.
    pub fields_max: usize,
    /// Name and value of one field, in bytes. 16 KiB.
    pub field_bytes_max: usize,
    /// The request target, in bytes. 8 KiB.
    pub target_bytes_max: usize,
    /// From the first wait for a head's bytes to its end, however they trickle in. 10 s.
    pub head_time: Duration,
    /// Between two requests on one connection. 60 s.
    pub keep_alive_idle: Duration,
    /// Between two pieces of a request's content that somebody waits for. 30 s.
    pub body_idle: Duration,
    /// Between two successful writes of a response. 30 s; on HTTP/2 also how long a window may stay closed.
    pub write_idle: Duration,
    /// The least that a client must send or take, in bytes per second over [`Limits::rate_window`]. 256.
    pub rate_min: u64,
    /// Over how long the least rate is measured. 30 s.
    pub rate_window: Duration,
    /// The longest request content, in bytes; `None` for no limit, the default: what an application takes is its own
    /// affair, and content is streamed, never kept.
    pub body_bytes_max: Option<u64>,
    /// Content that nobody reads is read and thrown away up to this many bytes, so that the client sees its answer
    /// and not a reset. 64 KiB.
    pub unread_bytes_max: u64,
    /// How long a closing connection is still read, for the same reason. 2 s.
    pub linger_time: Duration,
    /// Interim responses per exchange. 16.
    pub interims_max: usize,
    /// How long a tunnel may be silent. 1 h.
    pub tunnel_idle: Duration,
    /// Whether calls of gRPC may pause for as long as a tunnel. Only where an origin can answer them: to any other, their content type is a
    /// word that every client may say. No.
    pub has_grpc: bool,
    /// From accepting a connection to the end of its TLS handshake, however bytes trickle in. 10 s.
    pub handshake_time: Duration,
    /// TLS handshakes under way at once, for each worker. 512: beyond that, connections wait in the kernel.
    pub handshakes_max: usize,
    /// HTTP/2 streams at once on one connection. 128.
    pub streams_max: u32,
    /// HTTP/2 streams that a client may reset beyond those it let finish, before its connection is closed. 200: a
    /// browser that cancels a page's images stays far below, a flood of resets does not.
    pub resets_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 32 * 1024,
            fields_max: 100,
            field_bytes_max: 16 * 1024,
            target_bytes_max: 8 * 1024,
            head_time: Duration::from_secs(10),
            keep_alive_idle: Duration::from_secs(60),
            body_idle: Duration::from_secs(30),
            write_idle: Duration::from_secs(30),
            rate_min: 256,
            rate_window: Duration::from_secs(30),
            body_bytes_max: None,
            unread_bytes_max: 64 * 1024,
            linger_time: Duration::from_secs(2),
            interims_max: 16,
            tunnel_idle: Duration::from_secs(3600),
            has_grpc: false,
            handshake_time: Duration::from_secs(10),
            handshakes_max: 512,
            streams_max: 128,
            resets_max: 200,
        }
    }
}

/// What a listener's connections share.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Bounds.
    pub limits: Limits,
    /// What TLS listeners speak with. Without it, they refuse every name.
    pub tls: Option<Arc<ServerTls>>,
    /// For Date, where a response has none. Timers stay in real time.
    pub clock: Clock,
    /// Peers that may say over HTTP/2 that a request came with another scheme than its connection has (RFC 9110 4.2.2).
    pub trusted: TrustedPeers,
}

/// Addresses of gateways whose word is taken. By default none is.
#[derive(Clone, Default)]
pub struct TrustedPeers(Option<Arc<IsTrusted>>);

type IsTrusted = dyn Fn(IpAddr) -> bool + Send + Sync;

impl TrustedPeers {
    /// Those that `is_trusted` holds for.
    pub fn new(is_trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_trusted)))
    }

    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.0.as_ref().is_some_and(|is_trusted| is_trusted(address))
    }
}

impl fmt::Debug for TrustedPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TrustedPeers(some)" } else { "TrustedPeers(none)" })
    }
}
