//! TLS to an origin: who is trusted, and what an end without `close_notify` means.
//!
//! Keys and certificates are made by each test and gone with it: there is no private key in the repository.

#![allow(clippy::unwrap_used, missing_docs)]

mod scripted;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use larder_http::body::BodyError;
use larder_origin::{Origin, OriginSettings, ServerAddress, SetupError, Shared};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use scripted::{Larder, Scripted, Step, answer, get, read, send};

/// An authority, and the certificate that it signed for `localhost`. Its files end with it.
struct Trust {
    files: tempfile::TempDir,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Trust {
    fn new() -> Self {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "larder test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_key = KeyPair::generate().unwrap();
        let ca = authority.self_signed(&authority_key).unwrap();

        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &Issuer::from_params(&authority, &authority_key))
            .unwrap();

        let files = tempfile::tempdir().unwrap();
        for (name, text) in
            [("ca.pem", ca.pem()), ("server.pem", server.pem()), ("server.key", key.serialize_pem())]
        {
            std::fs::write(files.path().join(name), text).unwrap();
        }
        Self {
            files,
            certificate: server.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }
}

async fn tls(trust: &Trust, scripts: Vec<Vec<Step>>) -> Scripted {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![trust.certificate.clone()], trust.key.clone_key())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let wrap = move |socket| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(socket).await?;
            assert_eq!(stream.get_ref().1.server_name(), Some("localhost"));
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
            Ok(stream)
        }
    };
    Scripted::start_wrapped(scripts, wrap).await
}

#[tokio::test]
async fn tls_is_verified_against_the_given_authority() {
    let trust = Trust::new();
    let steps = vec![Step::Head, answer("one"), Step::Head, answer("two")];
    let scripted = tls(&trust, vec![steps]).await;
    let larder = Larder::new(&scripted.address, |settings| settings.tls.ca_file = Some(trust.file("ca.pem")));
    for (text, reused) in [("one", false), ("two", true)] {
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(response.reused, reused, "{text}");
        assert_eq!(read(response.body).await.0, text.as_bytes());
    }
    larder.ends_without_leaks().await;

    // What did not sign it: another authority of the same name, and the certificate itself.
    let namesake = Trust::new();
    for other in [namesake.file("ca.pem"), trust.file("server.pem")] {
        let scripted = tls(&trust, vec![]).await;
        let larder = Larder::new(&scripted.address, |settings| settings.tls.ca_file = Some(other.clone()));
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!((error.token(), error.is_dead()), ("tls", true), "{other:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_tls_body_without_length_needs_an_orderly_close() {
    let trust = Trust::new();
    let head = "HTTP/1.1 200 OK\r\n\r\nabc";
    // `Reset` drops the socket without close_notify; `Close` sends it.
    for (end, expected) in [(Step::Close, Ok(())), (Step::Reset, Err(BodyError::Cut))] {
        let scripted = tls(&trust, vec![vec![Step::Head, send(head), end]]).await;
        let larder =
            Larder::new(&scripted.address, |settings| settings.tls.ca_file = Some(trust.file("ca.pem")));
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(read(response.body).await, (b"abc".to_vec(), expected));
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_wrong_ca_file_is_found_at_start() {
    let trust = Trust::new();
    for path in [Path::new("/nonexistent/ca.pem"), &trust.file("server.key")] {
        let address = ServerAddress::Https { host: "localhost".into(), port: 1 };
        let mut settings = OriginSettings::new("app", vec![address]);
        settings.tls.ca_file = Some(path.into());
        let outcome = Origin::new(Arc::new(settings), Shared::new());
        assert!(matches!(outcome, Err(SetupError::CaFile { .. })), "{path:?}");
    }
}
