//! An authority with the certificates that it signed, made by each test and gone with it: there is no private key in the repository.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{BasicConstraints, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _};
pub use rcgen::{CertificateParams, SanType};
use tempfile::TempDir;
use tokio_rustls::rustls;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// What is special about a certificate.
pub type Wish = fn(&mut CertificateParams);

/// `ca.pem`; `server.pem` with `server.key`; and `client.pem` with `client.key`, which has the authority behind it. The files end with this
/// value.
#[derive(Debug)]
pub struct Certificates {
    files: TempDir,
    /// The authority, in DER.
    pub authority: Vec<u8>,
    /// The server's certificate, in DER.
    pub server: Vec<u8>,
    /// Its key, in DER (PKCS#8).
    pub server_key: Vec<u8>,
    /// Its public half, in DER (SubjectPublicKeyInfo).
    server_public_key: Vec<u8>,
    issuer: CertificateParams,
    issuer_key: KeyPair,
}

impl Certificates {
    /// For a server called `localhost`.
    pub fn new() -> Self {
        Self::with("localhost", |_| ())
    }

    /// For a server called `name` whose certificate is as `wish` has it.
    pub fn with(name: &str, wish: Wish) -> Self {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "larder test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_key = KeyPair::generate().unwrap();
        let ca = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::from_params(&authority, &authority_key);
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new([name.to_owned()]).unwrap();
            wish(&mut params);
            (params.signed_by(&key, &issuer).unwrap(), key)
        };
        let (server, key) = signed(name);
        let (client, client_key) = signed("larder");
        let files = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("ca.pem", ca.pem()),
            ("server.pem", server.pem()),
            ("server.key", key.serialize_pem()),
            ("client.pem", client.pem() + &ca.pem()),
            ("client.key", client_key.serialize_pem()),
        ] {
            std::fs::write(files.path().join(name), text).unwrap();
        }
        Self {
            files,
            authority: ca.der().to_vec(),
            server: server.der().to_vec(),
            server_key: key.serialize_der(),
            server_public_key: key.subject_public_key_info(),
            issuer: authority,
            issuer_key: authority_key,
        }
    }

    /// Another certificate of the same authority, for a server called `name`, and its key, both in PEM.
    pub fn another(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &Issuer::from_params(&self.issuer, &self.issuer_key)).unwrap();
        (signed.pem(), key.serialize_pem())
    }

    /// What a server with the server's certificate speaks with. It agrees on no protocol.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let chain = vec![CertificateDer::from(self.server.clone())];
        let key = PrivatePkcs8KeyDer::from(self.server_key.clone());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key.into()).unwrap())
    }

    /// What stands for the server's key where a program pins it: the digest (SHA-256) of its public half, in base64.
    pub fn server_pin(&self) -> String {
        BASE64.encode(digest(&SHA256, &self.server_public_key))
    }

    /// What a client speaks with that trusts the authority and offers these protocols. It remembers no session.
    pub fn client_config(&self, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        Arc::new(self.client_config_with(rustls::crypto::aws_lc_rs::default_provider(), protocols))
    }

    /// The same with a provider of the test's own, and still to be changed.
    pub fn client_config_with(&self, provider: CryptoProvider, protocols: &[&[u8]]) -> ClientConfig {
        let mut trusted = RootCertStore::empty();
        trusted.add(CertificateDer::from(self.authority.clone())).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = builder.with_root_certificates(trusted).with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }

    /// Where a file is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Where all of them are.
    pub fn folder(&self) -> &Path {
        self.files.path()
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}
