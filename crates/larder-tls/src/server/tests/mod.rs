//! Certificates made on the spot, and handshakes in memory.

mod choices;
mod identities;
mod policies;

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::Acceptor;
use rustls::{AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConnection};
use tempfile::TempDir;

use super::*;
use crate::provider;

/// The middle of all validity here.
const NOW: i64 = 1_800_000_000;

/// An authority, and a folder for what it signs.
struct Authority {
    files: TempDir,
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("ca.pem"), &pem).unwrap();
        Self { files, params, key, pem }
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Signs a certificate for `hosts`, and stores it with its key as `NAME.pem` and `NAME.key`.
    fn sign(
        &self,
        name: &str,
        hosts: &[&str],
        algorithm: &'static SignatureAlgorithm,
        wish: impl FnOnce(&mut CertificateParams),
    ) -> IdentityFiles {
        let mut params =
            CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2028, 1, 1);
        wish(&mut params);
        let key = KeyPair::generate_for(algorithm).unwrap();
        let signed = params.signed_by(&key, &self.issuer()).unwrap();
        let files = IdentityFiles {
            chain: self.file(&format!("{name}.pem")),
            key: self.file(&format!("{name}.key")),
        };
        std::fs::write(&files.chain, signed.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    fn ecdsa(&self, name: &str, hosts: &[&str]) -> Identity {
        read(&self.sign(name, hosts, &PKCS_ECDSA_P256_SHA256, |_| ())).unwrap()
    }

    fn rsa(&self, name: &str, hosts: &[&str]) -> Identity {
        read(&self.sign(name, hosts, &PKCS_RSA_SHA256, |_| ())).unwrap()
    }

    /// A client that trusts it, and offers `protocols`.
    fn client(&self, protocols: &[&[u8]]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// The same, which shows a certificate.
    fn client_with(&self, identity: &IdentityFiles) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let chain =
            CertificateDer::pem_file_iter(&identity.chain).unwrap().collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(&identity.key).unwrap();
        builder.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap()
    }
}

fn read(files: &IdentityFiles) -> Result<Identity, Vec<ServerFault>> {
    Identity::read(files, &provider(), NOW)
}

fn site(hosts: &[&str], certificates: impl Into<Option<SiteCertificates>>) -> SiteTls {
    SiteTls {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        certificates: certificates.into(),
        policy: ClientPolicy::none(),
    }
}

fn fixed<'a>(identities: impl IntoIterator<Item = &'a Identity>) -> SiteCertificates {
    SiteCertificates::Fixed(identities.into_iter().cloned().collect())
}

fn built(sites: Vec<SiteTls>) -> ServerTls {
    let min_version = larder_http::message::TlsVersion::Tls12;
    let tickets = Some(Arc::new(TicketKeys::random(std::time::Duration::from_secs(3600)).unwrap()));
    ServerTls::new(ServerTlsSettings { sites, min_version, tickets, challenges: None }, &provider()).unwrap()
}

/// Both ends after a handshake.
struct Met {
    client: ClientConnection,
    server: ServerConnection,
    /// What the server sent until then.
    sent_bytes: usize,
}

impl Met {
    fn is_resumed(&self) -> bool {
        self.server.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }

    /// What the client was shown.
    fn shown(&self) -> CertificateDer<'static> {
        self.client.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

/// Hands all that `from` has written to `to`, and tells how much that was.
macro_rules! pass {
    ($from:expr, $to:expr) => {{
        let mut bytes = Vec::new();
        while $from.wants_write() {
            $from.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            $to.read_tls(&mut rest).unwrap();
        }
        bytes.len()
    }};
}

/// A handshake of a client that asks for `name`, or the alert that it gets.
fn meet(client: &Arc<ClientConfig>, name: &str, server: &ServerTls) -> Result<Met, AlertDescription> {
    let mut client = ClientConnection::new(Arc::clone(client), name.to_owned().try_into().unwrap()).unwrap();
    let mut acceptor = Acceptor::default();
    pass!(client, acceptor);
    let accepted = acceptor.accept().map_err(|(error, _)| alert_of(&error)).unwrap().expect("a whole hello");
    let config = match server.choose(&accepted.client_hello()) {
        TlsChoice::Serve { config, .. } | TlsChoice::Prove(config) => config,
        TlsChoice::Refuse(alert) => return Err(alert),
    };
    let mut server = accepted.into_connection(config).map_err(|(error, _)| alert_of(&error))?;
    let mut sent_bytes = 0;
    for _ in 0..4 {
        sent_bytes += pass!(server, client);
        client.process_new_packets().map_err(|error| alert_of(&error))?;
        pass!(client, server);
        if let Err(error) = server.process_new_packets() {
            pass!(server, client);
            return Err(client
                .process_new_packets()
                .err()
                .as_ref()
                .map_or_else(|| panic!("{error}"), alert_of));
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(Met { client, server, sent_bytes })
}

/// The alert that an error stands for.
fn alert_of(error: &rustls::Error) -> AlertDescription {
    match error {
        rustls::Error::AlertReceived(alert) => *alert,
        rustls::Error::NoApplicationProtocol => AlertDescription::NoApplicationProtocol,
        rustls::Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        rustls::Error::General(_) => AlertDescription::AccessDenied,
        error => panic!("{error:?}"),
    }
}
