//! What the system knows about names: its resolver, its name servers, which addresses it has a way to.
//!
//! In: a host name. Out: addresses from `getaddrinfo`, which also reads the hosts file and whatever else the system is
//! told to; the name servers of `/etc/resolv.conf` for what `getaddrinfo` cannot ask, services. The file is read each
//! time: it is short, and changes when a machine changes networks.
//! Deliberately absent: the file's options and search domains (the names asked here are complete), name servers with a
//! scope (`fe80::1%eth0`).

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// What is read of `resolv.conf`.
const BYTES_MAX: u64 = 64 * 1024;

/// Name servers taken from it; the C library takes as many.
const SERVERS_MAX: usize = 3;

/// Where name servers listen.
const PORT: u16 = 53;

/// The addresses of `host`, in the system's order.
///
/// # Cancel safety
/// May be dropped at any time; the system's look-up then ends by itself on its thread.
pub(super) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// The system's name servers, at least one: without any configured it is the one on this machine.
pub(super) async fn name_servers() -> Vec<SocketAddr> {
    let read = || {
        let mut text = Vec::new();
        let file = std::fs::File::open("/etc/resolv.conf")?;
        file.take(BYTES_MAX).read_to_end(&mut text)?;
        io::Result::Ok(text)
    };
    let text = tokio::task::spawn_blocking(read).await.ok().and_then(Result::ok).unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

fn parse(text: &str) -> Vec<SocketAddr> {
    let listed = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.parse::<IpAddr>().ok())?
    });
    let servers: Vec<_> = listed.take(SERVERS_MAX).map(|ip| SocketAddr::new(ip, PORT)).collect();
    match servers.is_empty() {
        true => vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
        false => servers,
    }
}

/// Whether the system has a way to `address`. Sends nothing: a datagram socket that is connected only looks up the
/// route. Without this, each IPv6 address of a name would be a server that never answers where there is only IPv4.
pub(super) fn has_route(address: &SocketAddr) -> bool {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(any).and_then(|socket| socket.connect(address)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read_as_the_c_library_reads_them() {
        let cases: &[(&str, &[&str])] = &[
            ("nameserver 192.0.2.1\n", &["192.0.2.1:53"]),
            ("# nameserver 192.0.2.1\nnameserver\t192.0.2.2 # here\n", &["192.0.2.2:53"]),
            ("search example\nnameserver 2001:db8::1\noptions edns0\n", &["[2001:db8::1]:53"]),
            (
                "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4",
                &["192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53"],
            ),
            ("nameserver fe80::1%eth0\nnameserver nonsense\nnameserver", &["127.0.0.1:53"]),
            ("", &["127.0.0.1:53"]),
        ];
        for (text, expected) in cases {
            let servers: Vec<_> = parse(text).iter().map(ToString::to_string).collect();
            assert_eq!(servers, *expected, "{text:?}");
        }
    }

    #[test]
    fn there_is_a_way_to_loopback_and_none_to_nowhere() {
        assert!(has_route(&SocketAddr::from(([127, 0, 0, 1], 80))));
        // Broadcasting has to be asked for, so this socket has no way there on any machine.
        assert!(!has_route(&SocketAddr::from(([255, 255, 255, 255], 80))));
    }
}
