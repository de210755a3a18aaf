//! Which certificate and which policy a client gets, by what it says first.
//!
//! In: a ClientHello (RFC 8446 4.1.2): the name it asks for (RFC 6066 3), the protocols and the signatures it knows. Out: a configuration, or an alert. One
//! configuration per site holds the site's certificates; the first that is for the name and that the client can verify is shown, those with ECDSA before others.
//! A client that speaks `acme-tls/1` alone (RFC 8737) is an authority that looks for its proof, and gets that.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use larder_http::hosts::HostTable;
use larder_http::message::{ClientPolicyId, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, ServerConfig};

use super::client_policy::ClientPolicy;
use super::compression;
use super::identity::Identity;
use super::tickets::{TicketKeys, TicketProducer};
use crate::client::{HTTP1, HTTP2};

/// The protocol of ACME's proof (RFC 8737 6.2).
const ACME: &[u8] = b"acme-tls/1";
const TLS12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
const TLS13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Certificates that come and go while larder runs, by the host that they are for. Read without a lock.
#[derive(Debug, Default)]
pub struct CertificateStore(ArcSwap<HashMap<String, Arc<CertifiedKey>>>);

impl CertificateStore {
    /// Shows `key` to who asks for `host` from now on.
    pub fn install(&self, host: &str, key: Arc<CertifiedKey>) {
        self.0.rcu(|all| {
            let mut all = HashMap::clone(all);
            all.insert(host.to_owned(), Arc::clone(&key));
            all
        });
    }

    /// Whether there is one for `host`.
    pub fn has(&self, host: &str) -> bool {
        self.0.load().contains_key(host)
    }

    fn of(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        self.0.load().get(host).cloned()
    }
}

/// Certificates that prove to an authority that a name is ours (RFC 8737 3).
pub trait ChallengeCertificates: std::fmt::Debug + Send + Sync {
    /// The proof for `host`, while an authority may look for it.
    fn proof(&self, host: &str) -> Option<Arc<CertifiedKey>>;
}

/// Where a site's certificates come from.
#[derive(Clone, Debug)]
pub enum SiteCertificates {
    /// Files, at least one pair.
    Fixed(Vec<Identity>),
    /// One for each host, as they come.
    Store(Arc<CertificateStore>),
}

/// One site.
#[derive(Clone, Debug)]
pub struct SiteTls {
    /// Its hosts, as requests are matched with them. None for the site that has all others.
    pub hosts: Vec<String>,
    /// `None` where it is not served over TLS.
    pub certificates: Option<SiteCertificates>,
    /// What is asked of its clients.
    pub policy: ClientPolicy,
}

/// What all of the server side is built of.
#[derive(Debug)]
pub struct ServerTlsSettings {
    /// In the order of the config.
    pub sites: Vec<SiteTls>,
    /// The oldest version. TLS 1.2.
    pub min_version: TlsVersion,
    /// `None` where no session is resumed.
    pub tickets: Option<Arc<TicketKeys>>,
    /// Where proofs for an authority are found, if any are wanted.
    pub challenges: Option<Arc<dyn ChallengeCertificates>>,
}

/// The server side of TLS, whole.
#[derive(Debug)]
pub struct ServerTls {
    hosts: HostTable,
    sites: Box<[Option<BuiltSite>]>,
    challenges: Option<(Arc<dyn ChallengeCertificates>, Arc<ServerConfig>)>,
}

#[derive(Debug)]
struct BuiltSite {
    config: Arc<ServerConfig>,
    policy: ClientPolicyId,
    certificates: SiteCertificates,
}

/// What a client gets.
#[derive(Clone, Debug)]
pub enum TlsChoice {
    /// The handshake goes on with this.
    Serve {
        /// Of the site whose name was asked for.
        config: Arc<ServerConfig>,
        /// What is asked of the client.
        policy: ClientPolicyId,
    },
    /// The handshake goes on, and the connection ends with it.
    Prove(Arc<ServerConfig>),
    /// The handshake ends with this alert.
    Refuse(AlertDescription),
}

impl ServerTls {
    /// Builds it of what was read.
    ///
    /// # Errors
    /// The library refuses the settings.
    pub fn new(settings: ServerTlsSettings, provider: &Arc<CryptoProvider>) -> Result<Self, rustls::Error> {
        let ServerTlsSettings { sites, min_version, tickets, challenges } = settings;
        let versions = match min_version {
            TlsVersion::Tls12 => TLS12,
            TlsVersion::Tls13 => TLS13,
        };
        let hosts = HostTable::new(sites.iter().map(|site| site.hosts.as_slice()));
        let compressed = compression::cache();
        let build = |site: SiteTls| {
            let Some(certificates) = site.certificates else { return Ok(None) };
            let resolver = SiteResolver::new(certificates.clone());
            let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
                .with_protocol_versions(versions)?
                .with_client_cert_verifier(site.policy.verifier)
                .with_cert_resolver(Arc::new(resolver));
            config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.cert_compressors = compression::COMPRESSORS.to_vec();
            config.cert_compression_cache = Arc::clone(&compressed);
            match &tickets {
                // A ticket has the client's certificate in it, which nobody would look at again.
                Some(keys) if site.policy.id == ClientPolicyId::default() => {
                    let (keys, policy) = (Arc::clone(keys), site.policy.ticket_id);
                    config.ticketer = Arc::new(TicketProducer { keys, policy });
                }
                _ => config.send_tls13_tickets = 0,
            }
            let config = Arc::new(config);
            Ok(Some(BuiltSite { config, policy: site.policy.id, certificates }))
        };
        let sites = sites.into_iter().map(build).collect::<Result<_, rustls::Error>>()?;
        let prove = |challenges: Arc<dyn ChallengeCertificates>| {
            let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
                .with_protocol_versions(TLS12)?
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(ProofResolver(Arc::clone(&challenges))));
            config.alpn_protocols = vec![ACME.to_vec()];
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            Ok::<_, rustls::Error>((challenges, Arc::new(config)))
        };
        Ok(Self { hosts, sites, challenges: challenges.map(prove).transpose()? })
    }

    /// What the client that said `hello` gets.
    pub fn choose(&self, hello: &ClientHello<'_>) -> TlsChoice {
        let name = hello.server_name();
        if let Some((challenges, config)) = &self.challenges
            && is_proof_alone(hello)
        {
            return match name.and_then(|name| challenges.proof(name)) {
                Some(_) => TlsChoice::Prove(Arc::clone(config)),
                None => TlsChoice::Refuse(AlertDescription::UnrecognisedName),
            };
        }
        // No host is empty: that is the site for all others.
        let site =
            self.hosts.find(name.unwrap_or_default()).and_then(|index| self.sites.get(index)?.as_ref());
        let Some(site) = site else { return TlsChoice::Refuse(AlertDescription::UnrecognisedName) };
        match site.refusal(hello) {
            None => TlsChoice::Serve { config: Arc::clone(&site.config), policy: site.policy },
            Some(alert) => TlsChoice::Refuse(alert),
        }
    }
}

impl BuiltSite {
    /// Why none of its certificates can be shown: there is none yet for the name, or the client can verify none (RFC 8446 4.4.2.2), for
    /// which rustls has another alert.
    fn refusal(&self, hello: &ClientHello<'_>) -> Option<AlertDescription> {
        let can_verify = match &self.certificates {
            SiteCertificates::Fixed(all) => all.iter().any(|identity| can_verify(&identity.key, hello)),
            SiteCertificates::Store(store) => match hello.server_name().and_then(|name| store.of(name)) {
                Some(key) => can_verify(&key, hello),
                None => return Some(AlertDescription::UnrecognisedName),
            },
        };
        (!can_verify).then_some(AlertDescription::HandshakeFailure)
    }
}

/// Whether the client knows a signature that the key makes.
fn can_verify(key: &CertifiedKey, hello: &ClientHello<'_>) -> bool {
    key.key.choose_scheme(hello.signature_schemes()).is_some()
}

/// Whether `acme-tls/1` is all that is offered.
fn is_proof_alone(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|mut offered| offered.next() == Some(ACME) && offered.next().is_none())
}

/// The certificates of one site.
#[derive(Debug)]
struct SiteResolver(SiteCertificates);

impl SiteResolver {
    fn new(mut certificates: SiteCertificates) -> Self {
        if let SiteCertificates::Fixed(all) = &mut certificates {
            // The sort keeps the config's order among equals.
            all.sort_by_key(|identity| !identity.is_ecdsa());
        }
        Self(certificates)
    }
}

impl ResolvesServerCert for SiteResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        match &self.0 {
            SiteCertificates::Store(store) => store.of(name?),
            SiteCertificates::Fixed(all) => {
                let can_verify = |identity: &&Identity| can_verify(&identity.key, &hello);
                let is_for = |identity: &&Identity| name.is_none_or(|name| identity.facts.covers(name));
                // A wildcard of sites reaches further than one of certificates: such a client sees a certificate that it may refuse.
                let known = || all.iter().filter(can_verify);
                let found = known().find(is_for).or_else(|| known().next());
                found.map(|identity| Arc::clone(&identity.key))
            }
        }
    }
}

/// The proofs for an authority.
#[derive(Debug)]
struct ProofResolver(Arc<dyn ChallengeCertificates>);

impl ResolvesServerCert for ProofResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.proof(hello.server_name()?)
    }
}
