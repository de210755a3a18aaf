//! Which listener to ask, and whether it takes this client's word on the scheme.
//!
//! In: `--through`, a config, or a running larder. Out: host and port. larder's listeners speak plain HTTP. Whether visitors use
//! `https`, a listener knows only from X-Forwarded-Proto, and believes it only from addresses in `trusted`. From any other address
//! larder would take `https` URLs for `http` ones, and store them where no visitor finds them; so that is refused before the first
//! request. Where the list of trusted networks is not known, there is no such check.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::{HeaderMap, Method};
use larder_config::{Cidr, ListenAddress};
use larder_http::message::Scheme;
use serde::Deserialize;

use super::client::WarmClient;
use super::error::WarmError;
use super::url::WarmUrl;
use crate::cli::admin::{AdminArguments, reachable};

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct ListenerAddress {
    /// Host and port.
    pub(in crate::cli) address: String,
    /// Whose word on the scheme counts, where that is known.
    trusted: Option<Vec<Cidr>>,
}

/// What `/stats` says of it; an older larder says nothing of the trusted.
#[derive(Debug, Deserialize)]
struct Doors {
    listeners: Vec<Listening>,
    trusted: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Listening {
    address: SocketAddr,
    kind: String,
}

impl ListenerAddress {
    /// The one that is named, else the first of the config, else the first of the running larder.
    ///
    /// # Errors
    /// The config has errors, no larder answers, or it listens nowhere.
    pub(in crate::cli) async fn find(
        through: Option<&str>,
        admin: &AdminArguments,
    ) -> Result<Self, WarmError> {
        let config = admin.config()?;
        let trusted = config.as_ref().map(|config| config.trusted.clone());
        // What is warmed comes in clear text, and says itself which scheme it stands for.
        let clear = config.iter().flat_map(|config| &config.listen).find(|entry| !entry.tls);
        let configured = clear.map(|entry| match entry.address {
            ListenAddress::Socket(address) => address,
            ListenAddress::AnyFamily(port) => (Ipv4Addr::LOCALHOST, port).into(),
        });
        match (through, configured) {
            (Some(address), _) => Ok(Self { address: address.to_owned(), trusted }),
            (None, Some(address)) if address.port() != 0 => {
                Ok(Self { address: reachable(address).to_string(), trusted })
            }
            (None, _) => Self::of_running(admin).await,
        }
    }

    async fn of_running(admin: &AdminArguments) -> Result<Self, WarmError> {
        let larder = admin.larder()?;
        let doors: Doors = larder.ask_for(Method::GET, "/stats", "tells its figures").await?;
        let listening = doors.listeners.iter().find(|listening| listening.kind == "http");
        let listening = listening.ok_or_else(|| WarmError::NoListener(larder.address().to_owned()))?;
        let trusted =
            doors.trusted.map(|networks| networks.iter().filter_map(|one| one.parse().ok()).collect());
        Ok(Self { address: beside(larder.address(), listening.address), trusted })
    }

    /// Whether larder listens there, and will take each URL for what it is.
    ///
    /// # Errors
    /// Nobody accepts, or larder will not believe `https`.
    pub(in crate::cli) async fn check<'a>(
        &self,
        urls: impl IntoIterator<Item = &'a WarmUrl>,
    ) -> Result<(), WarmError> {
        let mut client = WarmClient::new(self.address.clone(), HeaderMap::new());
        let connected = client.connect().await;
        let local = connected.map_err(|error| WarmError::NotListening(self.address.clone(), error.into()))?;
        self.believes(local, urls)
    }

    /// Whether larder will believe a client that it sees as `local`.
    fn believes<'a>(
        &self,
        local: IpAddr,
        urls: impl IntoIterator<Item = &'a WarmUrl>,
    ) -> Result<(), WarmError> {
        let Some(trusted) = &self.trusted else { return Ok(()) };
        if trusted.iter().any(|network| network.contains(local)) {
            return Ok(());
        }
        match urls.into_iter().find(|url| url.scheme == Scheme::Https) {
            None => Ok(()),
            Some(url) => Err(WarmError::Untrusted(local.to_canonical(), url.to_string())),
        }
    }
}

/// Where `listening` is reached by a client that has reached the same larder at `admin`.
fn beside(admin: &str, listening: SocketAddr) -> String {
    let host = admin.rsplit_once(':').map_or(admin, |(host, _)| host);
    let is_local = admin.parse::<SocketAddr>().is_ok_and(|admin| admin.ip().is_loopback());
    match listening.ip().is_unspecified() && !is_local {
        true => format!("{host}:{}", listening.port()),
        false => reachable(listening).to_string(),
    }
}

/// Reads `--through`.
pub(in crate::cli) fn address(text: &str) -> Result<String, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(reachable(address).to_string());
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '@', ':', '[', ']', ' ']);
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) => Ok(text.to_owned()),
        _ => Err("expected HOST:PORT, such as 127.0.0.1:8080".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_host_and_port() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::1]:80", "[::1]:80"),
            ("cache.internal:8080", "cache.internal:8080"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "localhost", ":80", "a:0", "a:99999", "http://a:80", "a:80/x", "::1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_listener_on_every_address_is_reached_where_the_admin_address_was() {
        for (admin, listening, expected) in [
            ("127.0.0.1:8081", "0.0.0.0:8080", "127.0.0.1:8080"),
            ("127.0.0.1:8081", "[::]:8080", "[::1]:8080"),
            ("cache.internal:8081", "0.0.0.0:8080", "cache.internal:8080"),
            ("[fd00::1]:8081", "[::]:8080", "[fd00::1]:8080"),
            ("cache.internal:8081", "10.0.0.7:8080", "10.0.0.7:8080"),
        ] {
            let listening = listening.parse().expect("an address");
            assert_eq!(beside(admin, listening), expected, "{admin} {listening}");
        }
    }

    #[test]
    fn https_is_refused_where_it_would_not_be_believed() {
        let urls = |list: &[&str]| -> Vec<_> {
            list.iter().map(|url| WarmUrl::parse(url).expect("a URL")).collect()
        };
        let listener = |trusted: Option<&str>| ListenerAddress {
            address: String::new(),
            trusted: trusted.map(|list| list.split(' ').filter_map(|one| one.parse().ok()).collect()),
        };
        let local: IpAddr = [127, 0, 0, 1].into();
        let https = urls(&["http://a/", "https://a/"]);
        assert!(listener(Some("127.0.0.0/8")).believes(local, &https).is_ok());
        assert!(listener(None).believes(local, &https).is_ok());
        assert!(listener(Some("")).believes(local, &urls(&["http://a/"])).is_ok());
        let refused = listener(Some("10.0.0.0/8 ::1")).believes(local, &https).expect_err("not trusted");
        assert!(refused.to_string().contains("127.0.0.1 is not in `trusted`"), "{refused}");
    }
}
