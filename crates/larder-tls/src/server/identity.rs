//! A chain of certificates with its key, as clients are shown it, read from files and judged.
//!
//! In: two PEM files, and the hosts of the site that they are for. Out: an [`Identity`], or all that is wrong with it at once. What clients would refuse is
//! refused here, before anybody sees it: a wrong key, a broken chain, a time that is over, a weak key, a name that is missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;

use super::fault::{ServerFault, ServerFile};
use crate::certificate::{CertificateFacts, KeyKind, date};

/// The shortest RSA key that clients accept, in bits.
const RSA_BITS_MIN: usize = 2048;
/// A chain of more certificates is a file that was named by mistake.
const CHAIN_MAX: usize = 16;

/// Where a chain and its key lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityFiles {
    /// The chain (PEM), the site's own certificate first.
    pub chain: PathBuf,
    /// Its private key (PEM: PKCS#8, PKCS#1 or SEC1), without a passphrase.
    pub key: PathBuf,
}

/// What one of the server's identities is made of.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(super) key: Arc<CertifiedKey>,
    /// What stands in its own certificate.
    pub facts: CertificateFacts,
}

impl Identity {
    /// Reads and judges it at the time `now`, in seconds since 1970. Blocks for as long as files take.
    ///
    /// # Errors
    /// Everything that is wrong with it, beside the names: those are for [`uncovered`].
    pub fn read(
        files: &IdentityFiles,
        provider: &CryptoProvider,
        now: i64,
    ) -> Result<Self, Vec<ServerFault>> {
        let (chain, key) = (read_chain(&files.chain), read_key(&files.key));
        match (chain, key) {
            (Ok(chain), Ok(key)) => Self::judged(chain, key, files, provider, now),
            (chain, key) => Err([chain.err(), key.err()].into_iter().flatten().collect()),
        }
    }

    /// The same of what is in memory already.
    ///
    /// # Errors
    /// As [`Self::read`]; the files are named in what is wrong.
    pub fn judged(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        files: &IdentityFiles,
        provider: &CryptoProvider,
        now: i64,
    ) -> Result<Self, Vec<ServerFault>> {
        let of_chain = |found: String| ServerFault::new(ServerFile::Chain, &files.chain, found);
        let of_key = |found: String| ServerFault::new(ServerFile::Key, &files.key, found);
        let Some(all) = chain.iter().map(|der| CertificateFacts::read(der)).collect::<Option<Vec<_>>>()
        else {
            return Err(vec![of_chain("a certificate that cannot be read".to_owned())]);
        };
        let Some(facts) = all.first().cloned() else {
            return Err(vec![of_chain("no certificate in it".to_owned())]);
        };
        let mut faults = judged_alone(&facts, now)
            .into_iter()
            .map(|(found, hint)| ServerFault { hint, ..of_chain(found) })
            .collect::<Vec<_>>();
        if let Err(found) = judged_chain(&chain, &all, provider, now) {
            faults.push(
                of_chain(found).hint(
                    "the site's own certificate comes first, then the one that has signed it, and so on",
                ),
            );
        }
        match CertifiedKey::from_der(chain, key, provider) {
            Ok(key) if faults.is_empty() => return Ok(Self { key: Arc::new(key), facts }),
            Ok(_) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let found = format!("the key of another certificate than {}", files.chain.display());
                faults.push(of_key(found));
            }
            Err(error) => faults.push(of_key(format!("a key that cannot be used: {error}"))),
        }
        Err(faults)
    }

    /// The chain, its own certificate first, in DER.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }

    /// Whether clients that know ECDSA are shown it before others.
    pub(super) fn is_ecdsa(&self) -> bool {
        matches!(self.facts.key, KeyKind::Ecdsa(_))
    }
}

/// The hosts of `hosts` that none of `identities` is for.
pub fn uncovered<'a>(hosts: &'a [String], identities: &[Identity]) -> Vec<&'a str> {
    let is_covered = |host: &str| identities.iter().any(|identity| identity.facts.covers(host));
    hosts.iter().map(String::as_str).filter(|host| !is_covered(host)).collect()
}

pub(super) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerFault> {
    certificates(path, ServerFile::Chain)
}

/// The certificates in a file, at least one.
pub(super) fn certificates(
    path: &Path,
    file: ServerFile,
) -> Result<Vec<CertificateDer<'static>>, ServerFault> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| ServerFault::new(file, path, told(error)))?;
    match all.len() {
        0 => Err(ServerFault::new(file, path, "no certificate in it")
            .hint("PEM is read: text between BEGIN CERTIFICATE and END CERTIFICATE")),
        count if file == ServerFile::Chain && count > CHAIN_MAX => {
            Err(ServerFault::new(file, path, format!("{count} certificates, which is no chain")))
        }
        _ => Ok(all),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, ServerFault> {
    let failed = |found: String| ServerFault::new(ServerFile::Key, path, found);
    match PrivateKeyDer::from_pem_file(path) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => {
            let has_passphrase = std::fs::read_to_string(path).is_ok_and(|text| text.contains("ENCRYPTED"));
            Err(match has_passphrase {
                true => failed("a key with a passphrase".to_owned())
                    .hint("larder cannot ask for it: store the key without one, readable for larder alone"),
                false => failed("no private key in it".to_owned())
                    .hint("PEM is read: text between BEGIN PRIVATE KEY and END PRIVATE KEY"),
            })
        }
        Err(error) => Err(failed(told(error))),
    }
}

/// What a PEM file could not be read for.
pub(super) fn told(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        error => format!("no PEM: {error}"),
    }
}

/// What is wrong with the first certificate of a chain.
fn judged_alone(facts: &CertificateFacts, now: i64) -> Vec<(String, Option<&'static str>)> {
    let mut wrong = Vec::new();
    if now < facts.not_before {
        wrong.push((
            format!("not valid before {}", date(facts.not_before)),
            Some("is this machine's clock right?"),
        ));
    }
    if now > facts.not_after {
        wrong.push((format!("expired on {}", date(facts.not_after)), None));
    }
    if let KeyKind::Rsa(bits) = facts.key
        && bits < RSA_BITS_MIN
    {
        wrong.push((format!("an RSA key of {bits} bits"), Some("clients refuse fewer than 2048")));
    }
    if facts.has_broken_signature {
        wrong.push(("a signature by SHA-1 or MD5".to_owned(), Some("clients refuse those")));
    }
    if facts.is_must_staple {
        let hint = "order a certificate without the extension of RFC 7633: larder staples no OCSP answers";
        wrong.push(("it asks for a stapled OCSP answer".to_owned(), Some(hint)));
    }
    wrong
}

/// Whether each certificate is signed by the next.
fn judged_chain(
    chain: &[CertificateDer<'static>],
    all: &[CertificateFacts],
    provider: &CryptoProvider,
    now: i64,
) -> Result<(), String> {
    for (index, pair) in all.windows(2).enumerate() {
        if let [signed, signer] = pair
            && signed.issuer != signer.subject
        {
            return Err(format!(
                "certificate {} is not the one that has signed certificate {}",
                index + 2,
                index + 1
            ));
        }
    }
    let (Some(first), [_, between @ .., last]) = (all.first(), chain) else { return Ok(()) };
    let mut anchors = RootCertStore::empty();
    anchors.add(last.clone()).map_err(|error| format!("certificate {} cannot sign: {error}", chain.len()))?;
    let own = chain.first().ok_or("empty")?;
    let own = ParsedCertificate::try_from(own).map_err(|error| error.to_string())?;
    // Of a certificate that is over, that is told already.
    let at = now.clamp(first.not_before, first.not_after);
    let at =
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(at).unwrap_or_default()));
    let algorithms = provider.signature_verification_algorithms.all;
    verify_server_cert_signed_by_trust_anchor(&own, &anchors, between, at, algorithms)
        .map_err(|error| format!("the chain does not hold: {error}"))
}
