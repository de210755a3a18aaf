//! Whom to trust where a file says so: authorities, and single certificates of servers.
//!
//! In: the certificates of `ca_file`. Out: a verifier. An authority vouches for what it has signed. Any other certificate
//! vouches for itself alone: the server has to show exactly that one, byte for byte, and nothing that its key may sign is
//! believed. A certificate that signed itself is both, where it says that it is an authority. Names and times are checked in
//! each case, as curl and Go do it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::certificate::CertificateFacts;

/// Trusts what a file names.
#[derive(Debug)]
pub(super) struct Named {
    /// Where the file names an authority.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    pinned: Vec<(CertificateDer<'static>, CertificateFacts)>,
    provider: Arc<CryptoProvider>,
}

impl Named {
    /// Trusts `certificates`.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let mut pinned = Vec::new();
        for certificate in certificates {
            let facts = CertificateFacts::read(&certificate).ok_or("a certificate that cannot be read")?;
            if facts.is_authority {
                roots.add(certificate.clone()).map_err(|error| error.to_string())?;
            } else {
                // It has to be one that a server could show.
                ParsedCertificate::try_from(&certificate).map_err(|error| error.to_string())?;
            }
            pinned.push((certificate, facts));
        }
        let authorities = match roots.is_empty() {
            true => None,
            false => {
                let builder =
                    WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
                Some(builder.build().map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { authorities, pinned, provider })
    }
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some((_, facts)) = self.pinned.iter().find(|(pinned, _)| pinned == end_entity) {
            let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
            if now < facts.not_before {
                return Err(CertificateError::NotValidYet.into());
            }
            if now > facts.not_after {
                return Err(CertificateError::Expired.into());
            }
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(authorities) => {
                authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
