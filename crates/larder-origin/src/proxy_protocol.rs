//! The PROXY header, version 2: who the client is, told to an origin before the first byte of the connection itself.
//!
//! In: the two ends of the client's connection, or nothing where we speak for ourselves (a health check, a refresh
//! behind nobody's back). Out: the bytes that come first on the wire, before TLS. A connection that began with them
//! belongs to that client, so it serves one exchange and never meets a pool.
//! By the protocol's own text (HAProxy, "The PROXY protocol", 2.2). Deliberately absent: version 1, and the additional
//! values (TLVs), which carry nothing that fields do not carry better.

use std::net::{IpAddr, Ipv6Addr};

use larder_http::message::Peer;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2 with the command LOCAL or PROXY.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Family and transport.
const UNSPECIFIED: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// The header of a connection made for `peer`.
pub(crate) fn header(peer: Option<Peer>) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    let Some(Peer { remote, local, .. }) = peer else {
        bytes.extend([LOCAL, UNSPECIFIED, 0, 0]);
        return bytes;
    };
    // A listener on `::` sees IPv4 clients as mapped addresses; the origin is to see what they are.
    match (remote.ip().to_canonical(), local.ip().to_canonical()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            bytes.extend([PROXY, TCP4, 0, 12]);
            bytes.extend(client.octets());
            bytes.extend(server.octets());
        }
        (client, server) => {
            bytes.extend([PROXY, TCP6, 0, 36]);
            bytes.extend(as_v6(client).octets());
            bytes.extend(as_v6(server).octets());
        }
    }
    bytes.extend(remote.port().to_be_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes
}

fn as_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ends: Option<(&str, &str)>, expected: &str) {
        let peer = ends.map(|(remote, local)| Peer::clear(remote.parse().unwrap(), local.parse().unwrap()));
        let bytes = header(peer);
        assert_eq!(bytes.get(..12), Some(b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a".as_slice()));
        let rest: Vec<String> = bytes.iter().skip(12).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(rest.join(""), expected.replace(' ', ""), "{ends:?}");
    }

    #[test]
    fn the_header_names_both_ends_in_one_family() {
        check(None, "20 00 0000");
        check(Some(("192.0.2.1:51000", "198.51.100.7:443")), "21 11 000c c0000201 c6336407 c738 01bb");
        // An IPv4 client of a dual-stack listener.
        check(
            Some(("[::ffff:192.0.2.1]:1", "[::ffff:198.51.100.7]:2")),
            "21 11 000c c0000201 c6336407 0001 0002",
        );
        check(
            Some(("[2001:db8::1]:1", "[2001:db8::2]:258")),
            "21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 0001 0102",
        );
        // Of two families, both are written in the wider one.
        check(
            Some(("192.0.2.1:1", "[2001:db8::2]:2")),
            "21 21 0024 00000000000000000000ffffc0000201 20010db8000000000000000000000002 0001 0002",
        );
    }
}
