//! The configuration of a client: built of settings and files, and offered protocols by copy.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::error::SetupError;
use crate::pinned::Named;
use crate::provider::provider;
use crate::settings::{ClientCertificate, TlsSettings};

/// The name of a protocol in ALPN.
pub const HTTP1: &[u8] = b"http/1.1";
/// As above.
pub const HTTP2: &[u8] = b"h2";

/// Builds the configuration, which offers no protocol yet; reads files, so it is called at start and reload only.
///
/// # Errors
/// A file cannot be read, or what is in it cannot be used.
pub fn client_config(settings: &TlsSettings) -> Result<ClientConfig, SetupError> {
    let provider = provider();
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match &settings.ca_file {
        _ if !settings.verify => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        }
        Some(path) => builder.dangerous().with_custom_certificate_verifier(Arc::new(named(path, provider)?)),
        None => builder.with_root_certificates(roots_of_the_system()?),
    };
    match &settings.client {
        None => Ok(builder.with_no_client_auth()),
        Some(client) => identified(builder, client),
    }
}

/// The same configuration, its sessions included, offering `protocols` in this order.
pub fn offering(config: &ClientConfig, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// Whether a handshake failed because the server speaks none of the protocols that were offered (RFC 7301 3.2).
pub fn speaks_nothing_offered(error: &io::Error) -> bool {
    let refusal = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    error.get_ref().and_then(|inner| inner.downcast_ref()) == Some(&refusal)
}

fn roots_of_the_system() -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(SetupError::SystemRoots(reasons.join("; ")));
    }
    Ok(roots)
}

/// Trust in what the file at `path` names.
fn named(path: &Path, provider: Arc<CryptoProvider>) -> Result<Named, SetupError> {
    let failed = |reason: String| SetupError::CaFile { path: path.display().to_string(), reason };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed("no certificates in it".to_owned()));
    }
    Named::new(certificates, provider).map_err(failed)
}

/// A configuration that can say who we are.
fn identified(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    client: &ClientCertificate,
) -> Result<ClientConfig, SetupError> {
    let failed = |path: &Path, reason: String| SetupError::ClientCertificate {
        path: path.display().to_string(),
        reason,
    };
    let chain = CertificateDer::pem_file_iter(&client.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| failed(&client.cert, e.to_string()))?;
    if chain.is_empty() {
        return Err(failed(&client.cert, "no certificates in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&client.key).map_err(|e| match e {
        rustls::pki_types::pem::Error::NoItemsFound => failed(&client.key, "no private key in it".to_owned()),
        other => failed(&client.key, other.to_string()),
    })?;
    builder.with_client_auth_cert(chain, key).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => {
            failed(&client.key, format!("not the key of {}", client.cert.display()))
        }
        rustls::Error::InvalidCertificate(_) => failed(&client.cert, e.to_string()),
        other => failed(&client.key, other.to_string()),
    })
}

/// `verify = false`: takes any certificate, but still insists that the peer holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
