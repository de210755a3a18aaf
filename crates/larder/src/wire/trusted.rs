//! Which peers are trusted, from `trusted`.
//!
//! In: the config. Out: a question about an address, for the listener and for the proxy.

use std::net::IpAddr;

use larder_config::Config;

/// Whether an address is in one of the networks.
pub(super) fn is_trusted(config: &Config) -> impl Fn(IpAddr) -> bool + Send + Sync + use<> {
    let trusted = config.trusted.clone();
    move |address| trusted.iter().any(|network| network.contains(address.to_canonical()))
}
