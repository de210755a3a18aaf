//! Who really asks: X-Forwarded fields from trusted peers, and fields that nobody may supply.
//!
//! Applications read fields such as X-Forwarded-Host or X-Original-URL and put them into pages. They are not part of
//! the key, so a client that could set them could have its page stored for everybody. They are dropped before
//! anything looks at the request, and the forwarding fields are written anew for the origin.

use std::net::IpAddr;

use http::HeaderName;
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};

/// Dropped from every request, whoever sends it.
const NEVER_KEPT: &[&str] = &[
    "forwarded",
    "proxy",
    "surrogate-capability",
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-url",
    "x-rewrite-url",
];

/// Dropped unless the peer is trusted, and with them everything that begins with `x-forwarded`.
const FOR_TRUSTED_PEERS: &[&str] =
    &["client-cert", "client-cert-chain", "x-real-ip", "x-client-ip", "x-cluster-client-ip"];

/// Framing in the disguise of an underscore; under its true name it has been taken out long before.
const FRAMING: &[&str] = &["content-length", "transfer-encoding"];

/// Whether `name` is `other` to an application that is told fields as variables (RFC 3875 4.1.18), where `_` and `-` are
/// the same.
fn is_read_as(name: &str, other: &str) -> bool {
    let as_read = |byte: u8| if byte == b'_' { b'-' } else { byte };
    name.len() == other.len() && name.bytes().map(as_read).eq(other.bytes())
}

fn is_offender(name: &str, trusted: bool) -> bool {
    let is_one_of = |others: &[&str]| others.iter().any(|other| is_read_as(name, other));
    let is_forwarded =
        || name.get(.."x-forwarded".len()).is_some_and(|start| is_read_as(start, "x-forwarded"));
    is_one_of(NEVER_KEPT)
        || is_one_of(FRAMING)
        || (!trusted && (is_forwarded() || is_one_of(FOR_TRUSTED_PEERS)))
}

/// Removes fields that would poison what is stored. Free of allocation where there is none, as nearly always.
pub(crate) fn drop_unkeyed_fields(head: &mut RequestHead, trusted: bool) {
    let is_offender = |name: &&HeaderName| is_offender(name.as_str(), trusted);
    while let Some(name) = head.fields.keys().find(is_offender).cloned() {
        head.fields.remove(name);
    }
}

/// Takes scheme and authority from a trusted peer's X-Forwarded-Proto and X-Forwarded-Host, the last hop's word being
/// the first member. What does not parse is not believed.
pub(crate) fn believe_forwarded(head: &mut RequestHead) {
    let first = |name: &str| {
        let value = head.fields.get(name)?.as_bytes();
        let member = value.split(|byte| *byte == b',').next()?.trim_ascii();
        Some(bytes::Bytes::copy_from_slice(member))
    };
    let scheme = first("x-forwarded-proto").and_then(|proto| {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|scheme| proto.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
    });
    let scheme_now = scheme.unwrap_or(head.scheme);
    let authority = first("x-forwarded-host").and_then(|host| Authority::parse(host, scheme_now).ok());
    if let Some(authority) = authority {
        head.authority = authority;
    } else if scheme.is_some() {
        // The default port depends on the scheme: the same name means another authority under another scheme.
        let text = bytes::Bytes::copy_from_slice(head.authority.as_str().as_bytes());
        if let Ok(authority) = Authority::parse(text, scheme_now) {
            head.authority = authority;
        }
    }
    head.scheme = scheme_now;
}

/// Addresses of a forwarding list that are looked at; beyond that the nearest one known is taken.
const HOPS_MAX: usize = 32;

/// The client, as far as trusted peers tell: `peer`, or the nearest address of the forwarding list that is not a trusted
/// peer's own.
pub(crate) fn client_of(head: &RequestHead, peer: IpAddr, trusted: impl Fn(IpAddr) -> bool) -> IpAddr {
    let mut client = peer;
    if !trusted(peer) {
        return client;
    }
    let lines: Vec<&[u8]> =
        head.fields.get_all("x-forwarded-for").iter().map(|line| line.as_bytes()).collect();
    let nearest_first = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    for member in nearest_first.take(HOPS_MAX) {
        let address = str::from_utf8(member.trim_ascii()).ok().and_then(|text| text.parse::<IpAddr>().ok());
        let Some(address) = address else { break };
        client = address;
        if !trusted(address) {
            break;
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_nearest_address_that_is_not_a_trusted_peers() {
        let trusted = |address: IpAddr| address.is_loopback();
        let client = |peer: &str, lines: &[&'static str]| {
            let mut head = crate::testing::request("/");
            for line in lines {
                head.fields.append("x-forwarded-for", http::HeaderValue::from_static(line));
            }
            client_of(&head, peer.parse().unwrap(), trusted).to_string()
        };
        assert_eq!(client("192.0.2.1", &["198.51.100.1"]), "192.0.2.1");
        assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &["203.0.113.9, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("127.0.0.1", &["203.0.113.9", "198.51.100.1, 127.0.0.2"]), "198.51.100.1");
        assert_eq!(client("127.0.0.1", &["203.0.113.9, nonsense"]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &["127.0.0.3, 127.0.0.2"]), "127.0.0.3");
    }

    #[track_caller]
    fn check(name: &str, kept: bool, kept_if_trusted: bool) {
        assert_eq!(!is_offender(name, false), kept, "{name}");
        assert_eq!(!is_offender(name, true), kept_if_trusted, "{name} of a trusted peer");
    }

    #[test]
    fn what_steers_applications_is_dropped_under_every_spelling() {
        for name in NEVER_KEPT {
            check(name, false, false);
            check(&name.replace('-', "_"), false, false);
        }
        check("content_length", false, false);
        check("transfer_encoding", false, false);
        for name in
            ["x-forwarded-for", "x-forwarded-anything", "x-forwarded", "x_forwarded_host", "x-real-ip"]
        {
            check(name, false, true);
        }
        for name in ["accept", "x-hosts", "api_key", "x-forward", "forwarded-x", "x"] {
            check(name, true, true);
        }
    }
}
