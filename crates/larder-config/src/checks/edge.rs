//! Listeners and sites where TLS is spoken: each needs the other. And ACME, which needs names, agreement and ports.
//!
//! In: the whole config, and the document for the places. Out: errors, and warnings where a challenge cannot work. Where an entry of
//! `listen`, or a key of `[acme]`, was refused, what depends on it is not judged.

use crate::document::{Node, Position, Table, Value};
use crate::reading::{At, Reading, tables};
use crate::schema::Setting;
use crate::sections::config::Config;
use crate::sections::listen::ListenEntry;
use crate::sections::origin::item;
use crate::sections::site_tls::ACME;
use crate::value::acme::AcmeDirectory;
use crate::value::host::HostPattern;
use crate::value::words::AcmeChallenge;

/// The port for requests of HTTP-01 (RFC 8555 8.3).
const HTTP_PORT: u16 = 80;
/// The port for handshakes of TLS-ALPN-01 (RFC 8737 3).
const TLS_PORT: u16 = 443;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let sites: Vec<(usize, &Table, &Node)> = tables(table, "site")
        .into_iter()
        .enumerate()
        .filter_map(|(index, site)| Some((index, site, site.get("tls")?)))
        .collect();
    let listening = Listening::of(config, table, reading);
    if let Some(listening) = &listening {
        listening.fits(&sites, table, reading);
    }
    let acme: Vec<_> = sites
        .into_iter()
        .filter(|(_, _, node)| matches!(&node.value, Value::Text(word) if word == ACME))
        .collect();
    let Some((first, _, node)) = acme.first() else {
        if let Some(node) = table.get("acme") {
            let problem =
                reading.problem(&node.place, &At::Key(&At::Top, "acme"), "no site has certificates by ACME");
            reading.warn(problem.hint("give a site tls = \"acme\", or leave [acme] out"));
        }
        return;
    };
    for (index, site, node) in &acme {
        names(*index, site, node, reading);
    }
    let list = At::Key(&At::Top, "site");
    let site_at = At::Item(&list, *first);
    let first = (&node.place, &At::Key(&site_at, "tls"));
    agreed(config, table, first, reading);
    if let Some(listening) = &listening {
        listening.proves(config, table, first, reading);
    }
}

/// The names of a site whose certificates come by ACME: there are some, and each can be proven.
fn names(index: usize, site: &Table, node: &Node, reading: &mut Reading<'_>) {
    let list = At::Key(&At::Top, "site");
    let at = At::Item(&list, index);
    if site.get("hosts").is_none() {
        let problem = reading.problem(
            &node.place,
            &At::Key(&at, "tls"),
            "the site has no `hosts`, and a certificate is for names",
        );
        reading.refuse(problem.hint("name the hosts, or give the site a certificate of your own: tls = { cert = \"FILE\", key = \"FILE\" }"));
    }
    let hosts_at = At::Key(&at, "hosts");
    for (host, place, index) in reading.located::<HostPattern>(site, "hosts") {
        let host = host.as_str();
        let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        let (found, hint) = match (host.starts_with("*."), is_address) {
            (true, _) => (
                format!("\"{host}\" cannot have a certificate by ACME here"),
                "a wildcard is proven in DNS alone: name each host, or give the site a certificate of your own",
            ),
            (_, true) => (
                format!(
                    "\"{host}\" is an address, and clients ask for certificates by names alone (RFC 6066 3)"
                ),
                "name the host, or give the site a certificate of your own",
            ),
            _ => continue,
        };
        let problem = reading.problem(&place, &item(&hosts_at, index), found);
        reading.refuse(problem.hint(hint));
    }
}

/// The good value that a key of `[acme]` has, or its default; `None` where it was refused.
fn said<T: Setting>(table: &Table, key: &str, default: T, reading: &Reading<'_>) -> Option<T> {
    let acme = tables(table, "acme").into_iter().find(|acme| acme.get(key).is_some());
    match acme {
        None => Some(default),
        Some(acme) => reading.located::<T>(acme, key).into_iter().next().map(|(value, ..)| value),
    }
}

/// Whether the operator agrees to the CA's terms.
fn agreed(config: &Config, table: &Table, first: (&Position, &At<'_>), reading: &mut Reading<'_>) {
    let is_agreed = said(table, "terms_agreed", config.acme.terms_agreed, reading);
    let directory = said(table, "directory", config.acme.directory.clone(), reading);
    let (Some(false), Some(directory)) = (is_agreed, directory) else { return };
    let acme_at = At::Key(&At::Top, "acme");
    let key_at = At::Key(&acme_at, "terms_agreed");
    let node = table.get("acme");
    let key = tables(table, "acme").into_iter().find_map(|acme| acme.get("terms_agreed"));
    let (place, at) = match (key.or(node), node) {
        (Some(node), _) => (&node.place, &key_at),
        (None, _) => first,
    };
    let host = directory.url().strip_prefix("https://").and_then(|rest| rest.split(['/', '?']).next());
    let ca = match &directory {
        AcmeDirectory::LetsEncrypt | AcmeDirectory::LetsEncryptStaging => "Let's Encrypt",
        AcmeDirectory::Own(_) => host.unwrap_or_default(),
    };
    let problem = reading.problem(
        place,
        at,
        format!("nobody has agreed to the terms of {ca}, which larder would order certificates from"),
    );
    reading.refuse(problem.hint(format!(
        "read them: `termsOfService` in the answer of {} has their URL. Then set terms_agreed = true in [acme], or give --agree-terms beside --domain",
        directory.url().split('?').next().unwrap_or_default()
    )));
}

/// Where an entry stands, and its position where there is a list; `None` of the default.
type EntryPlace = Option<(Position, Option<usize>)>;

/// Where larder listens, all of it good.
struct Listening {
    entries: Vec<(ListenEntry, EntryPlace)>,
}

impl Listening {
    /// `None` where an entry was refused.
    fn of(config: &Config, table: &Table, reading: &Reading<'_>) -> Option<Self> {
        let Some(node) = table.get("listen") else {
            return Some(Self { entries: config.listen.iter().map(|entry| (*entry, None)).collect() });
        };
        let count = match &node.value {
            Value::List(items) => items.len(),
            _ => 1,
        };
        let located = reading.located::<ListenEntry>(table, "listen");
        let is_good = count > 0 && located.len() == count;
        let entries = located.into_iter().map(|(entry, place, index)| (entry, Some((place, index))));
        is_good.then(|| Self { entries: entries.collect() })
    }

    fn has(&self, port: u16, tls: bool) -> bool {
        self.entries.iter().any(|(entry, _)| entry.address.port() == port && entry.tls == tls)
    }

    /// Sites with TLS have a listener with TLS, and the other way round.
    fn fits(&self, sites: &[(usize, &Table, &Node)], table: &Table, reading: &mut Reading<'_>) {
        let list = At::Key(&At::Top, "site");
        if !self.entries.iter().any(|(entry, _)| entry.tls) {
            for (index, _, node) in sites {
                let site_at = At::Item(&list, *index);
                let problem =
                    reading.problem(&node.place, &At::Key(&site_at, "tls"), "no listener speaks TLS");
                reading
                    .refuse(problem.hint(
                        "add one at the top: listen = [\"*:80\", { address = \"*:443\", tls = true }]",
                    ));
            }
        }
        // Tables of sites that were refused as a whole say nothing.
        let is_known = matches!(table.get("site").map(|node| &node.value), Some(Value::List(_)));
        if !sites.is_empty() || !is_known {
            return;
        }
        let listen_at = At::Key(&At::Top, "listen");
        for (entry, place) in self.entries.iter().filter(|(entry, _)| entry.tls) {
            let Some((place, index)) = place else { continue };
            let said = format!("no site has a certificate to show at {entry}");
            let problem = reading.problem(place, &item(&listen_at, *index), said);
            reading.refuse(
                problem.hint("give a site tls = \"acme\" or tls = { cert = \"FILE\", key = \"FILE\" }"),
            );
        }
    }

    /// Whether a challenge can reach larder: the CA decides on the ports.
    fn proves(&self, config: &Config, table: &Table, first: (&Position, &At<'_>), reading: &mut Reading<'_>) {
        let challenges = &config.acme.challenges;
        if challenges.is_empty() {
            return;
        }
        let Some(directory) = said(table, "directory", config.acme.directory.clone(), reading) else {
            return;
        };
        let missing: Vec<_> = challenges
            .iter()
            .filter_map(|challenge| match challenge {
                AcmeChallenge::TlsAlpn01 if !self.has(TLS_PORT, true) => {
                    Some("TLS-ALPN-01 cannot work: no listener speaks TLS on port 443")
                }
                AcmeChallenge::Http01 if !self.has(HTTP_PORT, false) => {
                    Some("HTTP-01 cannot work: no listener is in clear text on port 80")
                }
                _ => None,
            })
            .collect();
        let listen_at = At::Key(&At::Top, "listen");
        let (place, at) = match table.get("listen") {
            Some(node) => (&node.place, &listen_at),
            None => first,
        };
        let is_hopeless = missing.len() == challenges.len() && !directory.is_own();
        if is_hopeless {
            let problem = reading.problem(place, at, missing.join("; "));
            // A container's ports may be others outside, which larder cannot see.
            let hint = "a CA proves hosts on ports 80 and 443 alone: listen there, or have these ports mapped to those of larder";
            reading.warn(problem.hint(hint));
            return;
        }
        for found in missing {
            let problem = reading.problem(place, at, found);
            reading.warn(problem.hint("listen there, or leave it out of `challenges` in [acme]"));
        }
    }
}
