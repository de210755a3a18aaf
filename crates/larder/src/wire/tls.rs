//! TLS with clients, as the config wants it: files to certificates, policies and keys of tickets.
//!
//! In: a checked config, and where each of its keys stands. Out: a [`TlsDraft`], whole, or all that is wrong with the files, each problem at the line that names the file. Keys of
//! tickets stay over a reload that leaves their settings as they are, so that sessions are resumed across it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use larder_config::{CertificateFiles, Config, Errors, Hsts, Places, Problem, Site};
use larder_http::message::TlsVersion;
use larder_proxy::settings::SiteTlsSettings;
use larder_tls::server::{
    CertificateStore, ClientPolicy, ClientPolicyFiles, Identity, IdentityFiles, ServerFault, ServerFile,
    ServerTls, ServerTlsSettings, SiteCertificates, SiteTls, TicketKeys, uncovered,
};
use larder_tls::{CertificateFacts, provider};

use super::acme::{self, OrderedCertificates, Proofs};

/// A certificate that clients are shown, for those who look after it.
#[derive(Clone, Debug)]
pub(crate) struct KnownCertificate {
    /// Of its site.
    pub(crate) site: String,
    /// Where its chain lies.
    pub(crate) path: PathBuf,
    pub(crate) facts: CertificateFacts,
}

/// The server side of a config.
#[derive(Debug)]
pub(crate) struct TlsDraft {
    /// What listeners speak with; `None` where none speaks TLS.
    pub(crate) server: Option<Arc<ServerTls>>,
    /// What each site has to do with it, in the order of the config.
    pub(crate) sites: Vec<Option<SiteTlsSettings>>,
    pub(crate) certificates: Vec<KnownCertificate>,
    pub(crate) tickets: Option<KnownTickets>,
    /// A digest of the files, as they were before they were read.
    pub(crate) files: u64,
    /// Each pair as its site uses it, by the number of the site.
    pub(crate) pairs: HashMap<(usize, IdentityFiles), Identity>,
    /// Each policy of clients as it was read.
    pub(crate) policies: HashMap<ClientPolicyFiles, ClientPolicy>,
    /// What is wrong with files for which what was read of them before is used.
    pub(crate) problems: Vec<Problem>,
}

impl TlsDraft {
    /// Whether anything was read otherwise than in `before`.
    pub(crate) fn has_news(&self, before: &Self) -> bool {
        let is_known = |(pair, identity): (&(usize, IdentityFiles), &Identity)| {
            before.pairs.get(pair).is_some_and(|before| before.chain() == identity.chain())
        };
        let is_in_force = |(files, policy): (&ClientPolicyFiles, &ClientPolicy)| {
            before.policies.get(files).is_some_and(|before| before.is_same(policy))
        };
        let are_in_use = match (&self.tickets, &before.tickets) {
            (Some(tickets), Some(before)) => tickets.keys.is_same(&before.keys),
            (tickets, before) => tickets.is_none() && before.is_none(),
        };
        !(self.pairs.iter().all(is_known) && self.policies.iter().all(is_in_force) && are_in_use)
    }
}

/// The keys of tickets, with what they were made for.
#[derive(Clone, Debug)]
pub(crate) struct KnownTickets {
    lifetime: Duration,
    file: Option<PathBuf>,
    pub(crate) keys: Arc<TicketKeys>,
}

/// Reads everything. `before` is what is in use, whose keys of tickets stay; where `keeps`, it also stands in for each
/// file that is wrong now. `now` is in seconds since 1970. Blocks for as long as the files take.
///
/// # Errors
/// Everything that is wrong with the files, but for those that something stands in for.
pub(crate) fn draft(
    config: &Config,
    places: &Places,
    before: Option<&TlsDraft>,
    keeps: bool,
    ordered: &OrderedCertificates,
    now: i64,
) -> Result<TlsDraft, Errors> {
    let files = files(config);
    let mut reading = TlsReading {
        places,
        store: Arc::clone(&ordered.store),
        kept: before.filter(|_| keeps),
        pairs: HashMap::new(),
        policies: HashMap::new(),
        problems: Vec::new(),
        told: Vec::new(),
        certificates: Vec::new(),
        now,
    };
    let sites: Vec<_> =
        config.sites.iter().enumerate().map(|(index, site)| reading.site(index, site)).collect();
    let is_wanted = config.listen.iter().any(|entry| entry.tls);
    let known = before.and_then(|before| before.tickets.as_ref());
    let tickets = if is_wanted { reading.tickets(config, known) } else { None };
    if !reading.problems.is_empty() {
        return Err(Errors(reading.problems));
    }
    let settings = ServerTlsSettings {
        sites,
        min_version: match config.tls.min_version {
            larder_config::TlsVersion::Tls12 => TlsVersion::Tls12,
            larder_config::TlsVersion::Tls13 => TlsVersion::Tls13,
        },
        tickets: tickets.as_ref().map(|tickets| Arc::clone(&tickets.keys)),
        challenges: acme::is_wanted(config).then(|| Arc::new(Proofs(Arc::clone(&ordered.challenges))) as _),
    };
    let built = is_wanted.then(|| ServerTls::new(settings, &provider())).transpose();
    let server = built.map_err(|error| Errors(vec![places.problem("tls", error.to_string())]))?;
    Ok(TlsDraft {
        server: server.map(Arc::new),
        sites: config.sites.iter().map(|site| site_settings(site, ordered)).collect(),
        certificates: reading.certificates,
        tickets,
        files,
        pairs: reading.pairs,
        policies: reading.policies,
        problems: reading.told,
    })
}

/// One walk over the files.
struct TlsReading<'a> {
    places: &'a Places,
    /// Where ordered certificates will lie.
    store: Arc<CertificateStore>,
    /// What was read before, to be used in the place of what is wrong now.
    kept: Option<&'a TlsDraft>,
    pairs: HashMap<(usize, IdentityFiles), Identity>,
    policies: HashMap<ClientPolicyFiles, ClientPolicy>,
    problems: Vec<Problem>,
    /// Those that something from before stands in for.
    told: Vec<Problem>,
    certificates: Vec<KnownCertificate>,
    now: i64,
}

impl TlsReading<'_> {
    /// Notes what is wrong with a file, and whether what was read of it before is used.
    fn note(&mut self, key: &str, fault: &ServerFault, is_kept: bool) {
        // The line names the file already where it lies beside the config.
        let problem = self.places.problem(key, fault.to_string());
        if is_kept {
            self.told.push(problem);
            return;
        }
        self.problems.push(match fault.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    fn site(&mut self, index: usize, site: &Site) -> SiteTls {
        let hosts: Vec<_> = site.hosts.iter().map(|host| host.as_str().to_owned()).collect();
        let pairs: Vec<_> = pairs(site)
            .iter()
            .map(|files| (index, IdentityFiles { chain: files.cert.clone(), key: files.key.clone() }))
            .collect();
        let mut identities = Vec::new();
        for (number, pair) in pairs.iter().enumerate() {
            let before = self.kept.and_then(|kept| kept.pairs.get(pair));
            let read = Identity::read(&pair.1, &provider(), self.now).or_else(|faults| {
                for fault in &faults {
                    let part = if fault.file == ServerFile::Key { "key" } else { "cert" };
                    self.note(&format!("site[{index}].tls[{number}].{part}"), fault, before.is_some());
                }
                before.cloned().ok_or(())
            });
            identities.extend(read);
        }
        // Which of them is missing is not known where one could not be read.
        if identities.len() == pairs.len() && !identities.is_empty() {
            // Those of before were for all of its hosts.
            let before = self.kept.and_then(|kept| {
                pairs.iter().map(|pair| kept.pairs.get(pair).cloned()).collect::<Option<Vec<_>>>()
            });
            let uncovered = uncovered(&hosts, &identities);
            for host in &uncovered {
                let found = format!("no certificate of this site is for {host}");
                let problem = self.places.problem(&format!("site[{index}].tls"), found);
                match before {
                    Some(_) => self.told.push(problem),
                    None => self.problems.push(problem.hint(format!("it is for {}", named(&identities)))),
                }
            }
            if let (false, Some(before)) = (uncovered.is_empty(), before) {
                identities = before;
            }
        }
        for (pair, identity) in pairs.into_iter().zip(&identities) {
            let (site, facts) = (site.label().to_owned(), identity.facts.clone());
            self.certificates.push(KnownCertificate { site, path: pair.1.chain.clone(), facts });
            self.pairs.insert(pair, identity.clone());
        }
        let certificates = match site.tls {
            Some(larder_config::SiteTls::Acme) => Some(SiteCertificates::Store(Arc::clone(&self.store))),
            _ => Some(identities).filter(|all| !all.is_empty()).map(SiteCertificates::Fixed),
        };
        SiteTls { hosts, certificates, policy: self.policy(index, site) }
    }

    fn policy(&mut self, index: usize, site: &Site) -> ClientPolicy {
        let Some(files) = client_policy(site) else { return ClientPolicy::none() };
        let before = self.kept.and_then(|kept| kept.policies.get(&files));
        let policy = ClientPolicy::read(&files, &provider()).unwrap_or_else(|faults| {
            for fault in &faults {
                let key = match fault.file {
                    ServerFile::Revoked => {
                        let number =
                            files.revoked.iter().position(|path| *path == fault.path).unwrap_or_default();
                        format!("client_crl[{number}]")
                    }
                    _ => "client_ca".to_owned(),
                };
                self.note(&format!("site[{index}].{key}"), fault, before.is_some());
            }
            before.cloned().unwrap_or_else(ClientPolicy::none)
        });
        self.policies.insert(files, policy.clone());
        policy
    }

    fn tickets(&mut self, config: &Config, before: Option<&KnownTickets>) -> Option<KnownTickets> {
        let (lifetime, file) =
            (config.tls.tickets, config.tls.ticket_keys.as_ref().map(|file| file.0.clone()));
        if lifetime.is_zero() {
            return None;
        }
        // A file is read anew: what is wrong with it is to be told.
        let is_same =
            |known: &&KnownTickets| known.lifetime == lifetime && known.file.is_none() && file.is_none();
        if let Some(known) = before.filter(is_same) {
            return Some(known.clone());
        }
        let keys = match &file {
            Some(path) => match TicketKeys::read(path, lifetime) {
                Ok(keys) => keys,
                Err(fault) => {
                    let stands_in = before.filter(|_| self.kept.is_some());
                    self.note("tls.ticket_keys", &fault, stands_in.is_some());
                    return stands_in.cloned();
                }
            },
            None => TicketKeys::random(lifetime)?,
        };
        let keys = match before {
            Some(before) => keys.after(&before.keys),
            None => keys,
        };
        Some(KnownTickets { lifetime, file, keys: Arc::new(keys) })
    }
}

/// The names and addresses that certificates are for, a few of them.
fn named(identities: &[Identity]) -> String {
    const NAMED_MAX: usize = 5;
    let names = identities.iter().flat_map(|identity| {
        let CertificateFacts { names, addresses, .. } = &identity.facts;
        names.iter().cloned().chain(addresses.iter().map(ToString::to_string))
    });
    let all: Vec<_> = names.collect();
    let told = all.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 if all.is_empty() => "no name: one has to stand in subjectAltName".to_owned(),
        0 => told,
        more => format!("{told}, and {more} more"),
    }
}

/// The certificates of a site that lie in files which the config names.
fn pairs(site: &Site) -> &[CertificateFiles] {
    match &site.tls {
        Some(larder_config::SiteTls::Files(pairs)) => pairs,
        Some(larder_config::SiteTls::Acme) | None => &[],
    }
}

fn client_policy(site: &Site) -> Option<ClientPolicyFiles> {
    let authorities = site.client_ca.as_ref()?.0.clone();
    Some(ClientPolicyFiles {
        authorities,
        revoked: site.client_crl.iter().map(|file| file.0.clone()).collect(),
        is_required: site.client_auth() == Some(larder_config::ClientAuth::Require),
    })
}

/// What the proxy has to know of a site's TLS.
fn site_settings(site: &Site, ordered: &OrderedCertificates) -> Option<SiteTlsSettings> {
    // What else it says of TLS is refused without it.
    site.tls.as_ref()?;
    Some(SiteTlsSettings {
        redirect: site.https_port(),
        hsts: site.hsts.as_ref().and_then(strict_transport_security),
        client_policy: client_policy(site).map(|files| files.id()).unwrap_or_default(),
        forward_client_cert: site.forward_client_cert,
        ordered: (site.tls == Some(larder_config::SiteTls::Acme)).then(|| Arc::clone(&ordered.store)),
    })
}

/// The value of Strict-Transport-Security (RFC 6797 6.1).
fn strict_transport_security(hsts: &Hsts) -> Option<HeaderValue> {
    let mut value = format!("max-age={}", hsts.max_age.as_secs());
    if hsts.subdomains {
        value.push_str("; includeSubDomains");
    }
    if hsts.preload {
        value.push_str("; preload");
    }
    HeaderValue::try_from(value).ok()
}

/// A digest of which files the config names for TLS with clients, and of what is known of each without opening it.
pub(crate) fn files(config: &Config) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use std::os::unix::fs::MetadataExt as _;

    let of_sites = config.sites.iter().flat_map(|site| {
        let files = pairs(site).iter().flat_map(|files| [&files.cert, &files.key]);
        files.chain(site.client_ca.iter().chain(&site.client_crl).map(|file| &file.0))
    });
    let mut digest = DefaultHasher::new();
    for path in of_sites.chain(config.tls.ticket_keys.iter().map(|file| &file.0)) {
        path.hash(&mut digest);
        let known = std::fs::metadata(path).ok();
        known
            .map(|known| {
                (
                    known.dev(),
                    known.ino(),
                    known.mtime(),
                    known.mtime_nsec(),
                    known.ctime(),
                    known.ctime_nsec(),
                    known.len(),
                )
            })
            .hash(&mut digest);
    }
    digest.finish()
}
