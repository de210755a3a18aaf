//! Which clients an address takes.
//!
//! In: an address of the config, and the others of it. Out: how it is opened. `[::]` takes IPv4 as well, as it does in most
//! servers, but not where an IPv4 address of the config has the same port: then each family has its own listener.

use std::net::SocketAddr;

use larder_config::Config;
use larder_listen::Opening;

/// How an address of `config` is opened, beside the listeners that this process has already.
pub(super) fn opening(address: SocketAddr, config: &Config, ours: &[SocketAddr]) -> Opening {
    let others = config.listen.iter().chain(config.admin.0.iter());
    let mut with_port = others.filter(|other| other.port() == address.port() && address.port() != 0);
    Opening {
        address,
        takes_ipv4: is_any_ipv6(address) && !with_port.any(|other| other.is_ipv4()),
        is_beside_ours: address.port() != 0 && ours.iter().any(|other| other.port() == address.port()),
    }
}

fn is_any_ipv6(address: SocketAddr) -> bool {
    address.is_ipv6() && address.ip().is_unspecified()
}

/// What an address takes, where it does not say it itself.
pub(super) fn takes(address: SocketAddr, takes_ipv4: bool) -> Option<&'static str> {
    match (is_any_ipv6(address), takes_ipv4) {
        (false, _) => None,
        (true, true) => Some("IPv4 and IPv6"),
        (true, false) => Some("IPv6 only"),
    }
}
