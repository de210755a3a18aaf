//! How much of a client's address is kept.
//!
//! In: an address. Out: its text, whole or as the network it is in, which is shared by many; or nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::access_log::decimal;

/// What is kept of clients' addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clients {
    /// The network: `192.0.2.0/24`, `2001:db8::/48`.
    #[default]
    Masked,
    /// The whole address.
    Full,
    /// Nothing.
    Off,
}

impl Clients {
    /// What is kept of an address. One of IPv4 that was mapped into IPv6 is one of IPv4.
    pub fn kept(self, address: IpAddr) -> Option<String> {
        let mut text = Vec::new();
        self.write(address, &mut text);
        String::from_utf8(text).ok().filter(|text| !text.is_empty())
    }

    /// Appends the same, or nothing.
    pub(super) fn write(self, address: IpAddr, out: &mut Vec<u8>) {
        let (network, length): (IpAddr, &[u8]) = match (self, address.to_canonical()) {
            (Self::Off, _) => return,
            (Self::Full, address) => (address, b""),
            (Self::Masked, IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                (Ipv4Addr::new(a, b, c, 0).into(), b"/24")
            }
            (Self::Masked, IpAddr::V6(address)) => {
                let [a, b, c, ..] = address.segments();
                (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into(), b"/48")
            }
        };
        decimal::address(network, out);
        out.extend_from_slice(length);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn of_a_masked_address_only_the_network_is_kept() {
        for (address, masked, full) in [
            ("192.0.2.7", "192.0.2.0/24", "192.0.2.7"),
            ("255.255.255.255", "255.255.255.0/24", "255.255.255.255"),
            ("::ffff:192.0.2.7", "192.0.2.0/24", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48", "2001:db8:1:2:3:4:5:6"),
            ("::1", "::/48", "::1"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Clients::Masked.kept(address).as_deref(), Some(masked));
            assert_eq!(Clients::Full.kept(address).as_deref(), Some(full));
            assert_eq!(Clients::Off.kept(address), None);
        }
        assert_eq!(Clients::default(), Clients::Masked);
    }
}
