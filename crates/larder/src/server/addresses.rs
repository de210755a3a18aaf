//! The listeners that a config asks for.
//!
//! In: an address of the config, and the others of it. Out: the listener there. Each takes all protocols over TCP. `[::]` takes IPv4 as well, as it does in most
//! servers, but not where an IPv4 address of the config has the same port: then each family has its own listener.

use std::net::SocketAddr;

use larder_config::Config;
use larder_listen::{Bound, ListenError, Listener};

/// The listener at an address of `config`.
pub(super) fn listener(address: SocketAddr, config: &Config) -> Listener {
    let others = config.listen.iter().chain(config.admin.address.iter());
    let mut with_port = others.filter(|other| other.port() == address.port() && address.port() != 0);
    let takes_ipv4 = is_any_ipv6(address) && !with_port.any(|other| other.is_ipv4());
    Listener { takes_ipv4, ..address.into() }
}

/// Opens it for `workers`, beside the addresses `ours` at which this process listens already.
pub(super) fn bind(listener: Listener, workers: usize, ours: &[SocketAddr]) -> Result<Bound, ListenError> {
    let port = listener.address.port();
    match port != 0 && ours.iter().any(|other| other.port() == port) {
        true => listener.bind_beside_ours(workers),
        false => listener.bind(workers),
    }
}

fn is_any_ipv6(address: SocketAddr) -> bool {
    address.is_ipv6() && address.ip().is_unspecified()
}

/// What a listener takes, where its address alone does not say it.
pub(super) fn takes(listener: &Listener) -> Option<&'static str> {
    match (is_any_ipv6(listener.address), listener.takes_ipv4) {
        (false, _) => None,
        (true, true) => Some("IPv4 and IPv6"),
        (true, false) => Some("IPv6 only"),
    }
}
