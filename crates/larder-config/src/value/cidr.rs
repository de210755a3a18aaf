//! Networks: an address and how many of its bits count (CIDR, RFC 4632).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::schema::{Text, TextSetting};

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix_bits: u32,
}

impl Cidr {
    /// Whether `address` lies in this network. An IPv4 address that came in on an IPv6 socket counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.prefix_bits) == self.network
    }

    /// Whether it has every address of its version of IP.
    pub(crate) fn is_everything(&self) -> bool {
        self.prefix_bits == 0
    }

    /// Whether an address in it may be of loopback, of the local link, or of a private network.
    pub(crate) fn has_private(&self) -> bool {
        PRIVATE.iter().any(|private| private.contains(self.network) || self.contains(private.network))
    }
}

/// Loopback, local links and private networks (RFC 6890): addresses that a proxy in front of larder is likely to have.
const PRIVATE: [Cidr; 9] = [
    Cidr { network: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), prefix_bits: 8 },
    Cidr { network: IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), prefix_bits: 10 },
    Cidr { network: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix_bits: 8 },
    Cidr { network: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), prefix_bits: 16 },
    Cidr { network: IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), prefix_bits: 12 },
    Cidr { network: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), prefix_bits: 16 },
    Cidr { network: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix_bits: 128 },
    Cidr { network: IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), prefix_bits: 7 },
    Cidr { network: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), prefix_bits: 10 },
];

/// `address` with all but its first `prefix_bits` cleared.
fn masked(address: IpAddr, prefix_bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(prefix_bits)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(prefix_bits)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}

impl TextSetting for Cidr {
    const TEXT: Text = Text {
        noun: "a network",
        examples: r#""10.0.0.0/8", "192.0.2.7", "fd00::/8""#,
        about: "An IP address, or a network as an address and the number of its leading bits that count.",
        pattern: Some("^[0-9A-Fa-f.:]+(/[0-9]+)?$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| None)?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => bits_max,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= bits_max);
                bits.ok_or_else(|| Some(format!("at most {bits_max} bits")))?
            }
            Some(_) => return Err(None),
        };
        let network = masked(address, prefix_bits);
        let cidr = Self { network, prefix_bits };
        if network == address { Ok(cidr) } else { Err(Some(format!("did you mean \"{cidr}\"?"))) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_network_contains_what_shares_its_leading_bits() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "::1", true),
        ] {
            let cidr = Cidr::from_text(network).unwrap();
            assert_eq!(cidr.contains(address.parse().unwrap()), inside, "{network} {address}");
        }
    }

    #[test]
    fn a_network_is_private_where_it_has_a_private_address() {
        for (network, is_private) in [
            ("10.1.2.3", true),
            ("127.0.0.1", true),
            ("172.31.0.0/16", true),
            ("172.32.0.0/16", false),
            ("192.168.0.0/16", true),
            ("192.0.0.0/8", true),
            ("192.0.2.0/24", false),
            ("100.64.0.1", true),
            ("203.0.113.7", false),
            ("::1", true),
            ("fd00::/8", true),
            ("fe80::1", true),
            ("2001:db8::/32", false),
            ("::/0", true),
        ] {
            let cidr = Cidr::from_text(network).unwrap();
            assert_eq!(cidr.has_private(), is_private, "{network}");
            assert_eq!(cidr.is_everything(), network.ends_with("/0"), "{network}");
        }
    }

    #[test]
    fn bits_beyond_the_prefix_are_refused_with_the_network() {
        assert_eq!(Cidr::from_text("10.1.0.0/8"), Err(Some("did you mean \"10.0.0.0/8\"?".to_owned())));
        assert_eq!(Cidr::from_text("10.0.0.0/33"), Err(Some("at most 32 bits".to_owned())));
        for bad in ["", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "localhost", "fd00::/129", "::1/1/1"] {
            assert!(Cidr::from_text(bad).is_err(), "{bad}");
        }
    }
}
