//! The listeners that a config asks for.
//!
//! In: an entry of the config, and the others of it. Out: the listener there. `[::]` takes IPv4 as well, as it does in most servers, but not where an IPv4 address of the config has
//! the same port: then each family has its own listener. `*:PORT` is `[::]:PORT` with IPv4, or `0.0.0.0:PORT` on a machine without IPv6.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

use larder_config::{Config, ListenAddress, ListenEntry};
use larder_listen::{Bound, ListenError, Listener, Transport};

/// The listener at an entry of `config`.
pub(super) fn listener(entry: &ListenEntry, config: &Config) -> Listener {
    let transport = if entry.tls { Transport::Tls } else { Transport::Tcp };
    let (address, takes_ipv4) = match entry.address {
        ListenAddress::AnyFamily(port) if has_ipv6() => ((Ipv6Addr::UNSPECIFIED, port).into(), true),
        ListenAddress::AnyFamily(port) => ((Ipv4Addr::UNSPECIFIED, port).into(), false),
        ListenAddress::Socket(address) => {
            (address, is_any_ipv6(address) && !has_ipv4(address.port(), config))
        }
    };
    Listener { takes_ipv4, transport, ..address.into() }
}

/// Whether the config has an IPv4 address with this port.
fn has_ipv4(port: u16, config: &Config) -> bool {
    let listening = config.listen.iter().filter_map(|other| match other.address {
        ListenAddress::Socket(address) => Some(address),
        ListenAddress::AnyFamily(_) => None,
    });
    let mut with_port =
        listening.chain(config.admin.address).filter(|other| other.port() == port && port != 0);
    with_port.any(|other| other.is_ipv4())
}

/// Whether this machine has IPv6. Asked once.
fn has_ipv6() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok())
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
