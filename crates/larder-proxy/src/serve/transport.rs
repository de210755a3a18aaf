//! Whether a request may be served over the connection that it came on.
//!
//! In: a request that has its site, and the connection. Out: nothing, or why not. A site with a certificate is not served in clear text, but where its config says so; where its
//! first certificate is still being ordered, it is not served at all. A site with rules for client certificates is served on connections that were accepted under the
//! same rules alone, whatever name they were opened for: clients may use one connection for several names (RFC 9113 9.1.1).

use http::HeaderValue;
use larder_http::fields::client_cert::{self, CLIENT_CERT};
use larder_http::message::{Peer, RequestHead, Scheme};

use super::turned_away::TurnedAwayRequest;
use crate::failure::Failure;
use crate::settings::SiteTlsSettings;

/// The port of https that a URL need not name.
const HTTPS_PORT: u16 = 443;

/// Refuses what may not be served here. What may be says which certificate its client has shown, where the site tells its origin.
pub(super) fn admit(
    site: Option<&SiteTlsSettings>,
    head: &mut RequestHead,
    peer: &Peer,
) -> Result<(), TurnedAwayRequest> {
    if let Some(site) = site
        && head.scheme == Scheme::Http
    {
        if site.ordered.as_ref().is_some_and(|ordered| !ordered.has(head.authority.host())) {
            return Err(Failure::CERTIFICATE_PENDING.into());
        }
        if let Some(port) = site.redirect {
            return Err(TurnedAwayRequest { failure: Failure::HTTPS, location: location(head, port) });
        }
    }
    if site.map(|site| site.client_policy).unwrap_or_default() != peer.client_policy() {
        return Err(Failure::TLS_POLICY.into());
    }
    if let Some(site) = site {
        tell_certificate(site, head, peer);
    }
    Ok(())
}

/// The same URL over https, its target byte for byte.
fn location(head: &RequestHead, port: u16) -> Option<HeaderValue> {
    let mut url = Vec::with_capacity(64);
    url.extend_from_slice(b"https://");
    url.extend_from_slice(head.authority.host().as_bytes());
    if port != HTTPS_PORT {
        url.extend_from_slice(format!(":{port}").as_bytes());
    }
    url.extend_from_slice(head.target.as_bytes());
    HeaderValue::from_bytes(&url).ok()
}

/// Tells the origin which certificate the client has shown, where the site has it so.
fn tell_certificate(site: &SiteTlsSettings, head: &mut RequestHead, peer: &Peer) {
    let shown = peer.tls.as_ref().filter(|_| site.forward_client_cert);
    let certificate = shown.and_then(|tls| tls.client_certificate.as_ref());
    if let Some(value) = certificate.and_then(|certificate| client_cert::value(certificate)) {
        head.fields.insert(CLIENT_CERT, value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use larder_http::authority::Authority;
    use larder_http::message::{ClientPolicyId, TlsPeer, TlsVersion};

    use super::*;

    fn head(scheme: Scheme, host: &'static str) -> RequestHead {
        let authority = Authority::parse(bytes::Bytes::from_static(host.as_bytes()), scheme).unwrap();
        RequestHead { scheme, authority, ..crate::testing::request("/a%20b?c=%2F&d") }
    }

    fn peer(policy: Option<u8>) -> Peer {
        let nobody = "192.0.2.1:1".parse().unwrap();
        let tls = policy.map(|policy| {
            Arc::new(TlsPeer {
                version: TlsVersion::Tls13,
                alpn: None,
                is_resumed: false,
                client_policy: ClientPolicyId([policy; 32]),
                client_certificate: Some(bytes::Bytes::from_static(b"abc")),
            })
        });
        Peer { tls, ..Peer::clear(nobody, nobody) }
    }

    #[test]
    fn clear_text_is_sent_to_the_same_url() {
        let site = |port| SiteTlsSettings { redirect: Some(port), ..SiteTlsSettings::default() };
        for (host, port, expected) in [
            ("a.example", 443, "https://a.example/a%20b?c=%2F&d"),
            ("a.example:8080", 443, "https://a.example/a%20b?c=%2F&d"),
            ("a.example:8080", 8443, "https://a.example:8443/a%20b?c=%2F&d"),
            ("[::1]:80", 8443, "https://[::1]:8443/a%20b?c=%2F&d"),
        ] {
            let turned = admit(Some(&site(port)), &mut head(Scheme::Http, host), &peer(None)).unwrap_err();
            assert_eq!(turned.failure, Failure::HTTPS);
            assert_eq!(turned.location.unwrap(), expected);
        }
        // A trusted peer says that it came over TLS.
        assert_eq!(admit(Some(&site(443)), &mut head(Scheme::Https, "a.example"), &peer(None)), Ok(()));
        assert_eq!(admit(None, &mut head(Scheme::Http, "a.example"), &peer(None)), Ok(()));
    }

    #[test]
    fn a_connection_under_other_rules_is_the_wrong_one() {
        let (none, one, two) = (ClientPolicyId::default(), ClientPolicyId([1; 32]), ClientPolicyId([2; 32]));
        for (client_policy, policy, is_admitted) in [
            (none, None, true),
            (none, Some(0), true),
            (none, Some(1), false),
            (one, None, false),
            (one, Some(0), false),
            (one, Some(1), true),
            (two, Some(1), false),
        ] {
            let site = SiteTlsSettings { client_policy, ..SiteTlsSettings::default() };
            for scheme in [Scheme::Http, Scheme::Https] {
                let admitted = admit(Some(&site), &mut head(scheme, "a.example"), &peer(policy));
                let expected = if is_admitted { Ok(()) } else { Err(Failure::TLS_POLICY.into()) };
                assert_eq!(admitted, expected, "{client_policy:?} {policy:?}");
            }
        }
    }

    #[test]
    fn a_certificate_is_told_where_the_site_has_it_so() {
        for (forward_client_cert, policy, expected) in
            [(true, Some(0), Some(":YWJj:")), (true, None, None), (false, Some(0), None)]
        {
            let site = SiteTlsSettings { forward_client_cert, ..SiteTlsSettings::default() };
            let mut head = head(Scheme::Https, "a.example");
            tell_certificate(&site, &mut head, &peer(policy));
            let told = head.fields.get(CLIENT_CERT).map(|value| value.to_str().unwrap());
            assert_eq!(told, expected);
        }
    }
}
