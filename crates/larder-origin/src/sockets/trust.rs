//! Authorities, certificates and acceptors, made by each test and gone with it: there is no private key in the
//! repository.

use std::path::PathBuf;
use std::sync::Arc;

use larder_testkit::certificates::{Certificates, Wish};
use larder_tls::ClientCertificate;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// An authority, and the certificates that it signed for a server and a client. Its files end with it.
pub struct Trust {
    made: Certificates,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Trust {
    /// For a server called `localhost`.
    pub fn new() -> Self {
        Self::of("localhost")
    }

    /// For a server called `name`.
    pub fn of(name: &str) -> Self {
        Self::with(name, |_| ())
    }

    /// A server called `localhost` that signed its own certificate, as an authority would, so that `server.pem` is all there
    /// is to trust.
    pub fn self_signed() -> Self {
        let mut trust = Self::new();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(trust.file("server.pem"), certificate.pem()).unwrap();
        trust.certificate = certificate.der().clone();
        trust.key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        trust
    }

    /// For a server called `name` whose certificate is as `wish` has it.
    pub fn with(name: &str, wish: Wish) -> Self {
        let made = Certificates::with(name, wish);
        let certificate = made.server.clone().into();
        let key = PrivatePkcs8KeyDer::from(made.server_key.clone()).into();
        Self { made, certificate, key }
    }

    /// A server called `localhost` whose certificate this server's key signed.
    pub fn signed_by_the_server(&self) -> Self {
        let own = std::fs::read_to_string(self.file("server.key")).unwrap();
        let issuer_key = KeyPair::from_pem(&own).unwrap();
        // All of them go by the same name here.
        let issuer = Issuer::new(CertificateParams::default(), issuer_key);
        let key = KeyPair::generate().unwrap();
        let signed =
            CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        Self {
            made: Certificates::new(),
            certificate: signed.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.made.file(name)
    }

    /// What larder shows.
    pub fn client(&self) -> ClientCertificate {
        ClientCertificate { cert: self.file("client.pem"), key: self.file("client.key") }
    }

    /// A server that chooses among `protocols`.
    pub fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let builder = builder().with_no_client_auth();
        self.finish(builder.with_single_cert(vec![self.certificate.clone()], self.key.clone_key()), protocols)
    }

    /// The same, but it wants to know who asks, and believes this authority alone.
    pub fn asking_acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(self.made.authority.clone().into()).unwrap();
        let provider = larder_tls::provider();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let builder = builder().with_client_cert_verifier(verifier);
        self.finish(builder.with_single_cert(vec![self.certificate.clone()], self.key.clone_key()), protocols)
    }

    fn finish(&self, config: Result<ServerConfig, rustls::Error>, protocols: &[&str]) -> TlsAcceptor {
        let mut config = config.unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config).into()
    }
}

fn builder() -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    let provider = larder_tls::provider();
    ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap()
}
