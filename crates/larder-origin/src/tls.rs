//! TLS towards origins: whom to trust (RFC 8446, RFC 9525).
//!
//! In: the settings. Out: a rustls configuration with the ring provider, ALPN `http/1.1`, and the roots of a file or
//! of the system. One configuration serves all workers, so sessions resume across connections of one origin only.
//! Deliberately absent: client certificates, and HTTP/2, which this crate does not speak.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::SetupError;
use crate::settings::TlsSettings;

/// Builds the configuration; reads files, so it is called at start and reload only.
pub(crate) fn client_config(settings: &TlsSettings) -> Result<ClientConfig, SetupError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = if settings.verify {
        builder.with_root_certificates(roots(settings)?).with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(settings: &TlsSettings) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &settings.ca_file else {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            return Err(SetupError::SystemRoots(reasons.join("; ")));
        }
        return Ok(roots);
    };
    let failed = |reason: String| SetupError::CaFile { path: path.display().to_string(), reason };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| failed(e.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| failed(e.to_string()))?;
        roots.add(certificate).map_err(|e| failed(e.to_string()))?;
    }
    if roots.is_empty() { Err(failed("no certificates in it".to_owned())) } else { Ok(roots) }
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
