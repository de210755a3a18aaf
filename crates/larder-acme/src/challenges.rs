//! What proves to the authority that a host is larder's, for as long as it is being proven (RFC 8555 8.3, RFC 8737 3).
//!
//! In: proofs, from orders. Out: look-ups for the threads that serve: one atomic number where nothing is pending, no lock elsewhere.
//! A proof is here from before the authority is asked to look until its order has ended, however it ends: [`PendingProof`] removes it.
//! There are at most as many as orders at once. Deliberately absent: answers to clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;

/// Proofs that are pending. Shared between the thread that orders and those that serve.
#[derive(Debug, Default)]
pub struct Challenges {
    pending: ArcSwap<Pending>,
    count: AtomicUsize,
}

#[derive(Clone, Debug, Default)]
struct Pending {
    /// Key authorizations by token.
    http: HashMap<String, Arc<str>>,
    /// Validation certificates by host name.
    tls: HashMap<String, Arc<CertifiedKey>>,
}

impl Challenges {
    /// Whether no proof is pending: then neither look-up finds anything. Costs one load.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The content of `/.well-known/acme-challenge/TOKEN`, of type `application/octet-stream`, as it is sent (RFC 8555 8.3).
    pub fn http(&self, token: &str) -> Option<Arc<str>> {
        self.pending.load().http.get(token).cloned()
    }

    /// What a connection gets whose ClientHello offers `acme-tls/1` alone, by its server name in lower case. Such a connection ends with its
    /// handshake: it carries no request (RFC 8737 3).
    pub fn tls(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.pending.load().tls.get(name).cloned()
    }

    /// Shows `proof` for as long as the value lives.
    pub(crate) fn show(self: &Arc<Self>, proof: Proof) -> PendingProof {
        self.change(|pending| match &proof {
            Proof::Http { token, content } => {
                pending.http.insert(token.clone(), Arc::clone(content));
            }
            Proof::Tls { name, certificate } => {
                pending.tls.insert(name.clone(), Arc::clone(certificate));
            }
        });
        PendingProof { challenges: Arc::clone(self), proof }
    }

    fn change(&self, change: impl Fn(&mut Pending)) {
        self.pending.rcu(|pending| {
            let mut pending = Pending::clone(pending);
            change(&mut pending);
            pending
        });
        // Only the thread that orders changes anything, so that no count can overtake another one.
        let pending = self.pending.load();
        self.count.store(pending.http.len() + pending.tls.len(), Ordering::Release);
    }
}

/// One proof.
#[derive(Clone, Debug)]
pub(crate) enum Proof {
    Http { token: String, content: Arc<str> },
    Tls { name: String, certificate: Arc<CertifiedKey> },
}

impl Proof {
    /// The proof of RFC 8737 for `name`: a certificate that signed itself, with the digest of the key authorization in an extension.
    pub(crate) fn tls(name: &str, digest: &[u8]) -> Result<Self, String> {
        let failed = |error: rcgen::Error| error.to_string();
        let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate().map_err(failed)?;
        let chain = vec![params.self_signed(&key).map_err(failed)?.der().clone()];
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let key = larder_tls::provider().key_provider.load_private_key(key.into());
        // Not compared with the certificate: what compares them refuses the critical extension.
        let certificate = CertifiedKey::new(chain, key.map_err(|error| error.to_string())?);
        Ok(Self::Tls { name: name.to_owned(), certificate: Arc::new(certificate) })
    }
}

/// Ends with the order that needs it.
#[derive(Debug)]
pub(crate) struct PendingProof {
    challenges: Arc<Challenges>,
    proof: Proof,
}

impl Drop for PendingProof {
    fn drop(&mut self) {
        self.challenges.change(|pending| match &self.proof {
            Proof::Http { token, .. } => drop(pending.http.remove(token)),
            Proof::Tls { name, .. } => drop(pending.tls.remove(name)),
        });
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::*;

    use super::*;

    #[test]
    fn a_proof_is_there_for_as_long_as_it_is_pending() {
        let challenges = Arc::new(Challenges::default());
        assert!(
            challenges.is_empty() && challenges.http("t").is_none() && challenges.tls("a.example").is_none()
        );
        let http = challenges.show(Proof::Http { token: "t".to_owned(), content: "t.k".into() });
        let tls = challenges.show(Proof::tls("a.example", &[7; 32]).unwrap());
        assert!(!challenges.is_empty());
        assert_eq!(challenges.http("t").as_deref(), Some("t.k"));
        assert!(challenges.http("a.example").is_none() && challenges.tls("t").is_none());
        drop(http);
        assert!(
            challenges.http("t").is_none() && challenges.tls("a.example").is_some() && !challenges.is_empty()
        );
        drop(tls);
        assert!(challenges.is_empty() && challenges.tls("a.example").is_none());
    }

    #[test]
    fn the_validation_certificate_is_as_the_standard_has_it() {
        let Ok(Proof::Tls { certificate, .. }) = Proof::tls("a.example", &[7; 32]) else {
            panic!("no proof")
        };
        let (rest, parsed) = X509Certificate::from_der(&certificate.cert[0]).unwrap();
        assert!(rest.is_empty());
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names, [GeneralName::DNSName("a.example")]);
        // id-pe-acmeIdentifier: critical, an OCTET STRING of 32 bytes.
        let extension =
            parsed.extensions().iter().find(|e| e.oid.to_id_string() == "1.3.6.1.5.5.7.1.31").unwrap();
        assert!(extension.critical);
        assert_eq!(extension.value, [&[4, 32][..], &[7; 32]].concat());
    }
}
