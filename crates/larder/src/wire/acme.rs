//! Certificates that are ordered: what `[acme]` says as the crate for it wants it, and where certificates and proofs go.
//!
//! In: a config, and the host of what is shown to clients. Out: settings, and a store that the listeners read. What is built here stays over reloads.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use larder_acme::{AcmeSettings, Certificates, ChallengeKind, Challenges, ExternalAccount};
use larder_config::{AcmeChallenge, Config, Errors, Places, SiteTls};
use larder_observe::Diagnostics;
use larder_proxy::settings::HttpProofs;
use larder_tls::provider;
use larder_tls::server::{CertificateStore, ChallengeCertificates};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Below `$STATE_DIRECTORY`, or here.
const STATE: &str = "/var/lib/larder";

/// Where certificates and proofs lie, from start to end.
#[derive(Clone, Default)]
pub(crate) struct OrderedCertificates {
    pub(crate) store: Arc<CertificateStore>,
    pub(crate) challenges: Arc<Challenges>,
}

/// Puts certificates in the store.
pub(crate) struct Installing {
    pub(crate) store: Arc<CertificateStore>,
    pub(crate) diagnostics: Diagnostics,
}

impl Certificates for Installing {
    fn install(&self, name: &str, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) {
        match CertifiedKey::from_der(chain, key, &provider()) {
            Ok(key) => self.store.install(name, Arc::new(key)),
            Err(error) => {
                let message =
                    format_args!("the certificate that was ordered for {name} cannot be used: {error}");
                self.diagnostics.warn("certificate", name, message);
            }
        }
    }
}

/// Proofs in handshakes (RFC 8737).
#[derive(Debug)]
pub(crate) struct Proofs(pub(crate) Arc<Challenges>);

impl ChallengeCertificates for Proofs {
    fn proof(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        self.0.tls(&host.to_ascii_lowercase())
    }
}

impl HttpProofs for Proofs {
    fn proof(&self, token: &str) -> Option<Arc<str>> {
        if self.0.is_empty() { None } else { self.0.http(token) }
    }
}

/// Whether some site has ordered certificates.
pub(crate) fn is_wanted(config: &Config) -> bool {
    config.sites.iter().any(|site| site.tls == Some(SiteTls::Acme))
}

/// What is to be ordered; `None` where nothing is. Reads the key of an external account.
///
/// # Errors
/// That key cannot be read.
pub(crate) fn settings(config: &Config, places: &Places) -> Result<Option<AcmeSettings>, Errors> {
    if !is_wanted(config) {
        return Ok(None);
    }
    let ordered = config.sites.iter().filter(|site| site.tls == Some(SiteTls::Acme));
    let mut names: Vec<_> =
        ordered.flat_map(|site| site.hosts.iter().map(|host| host.as_str().to_owned())).collect();
    names.sort();
    names.dedup();
    let acme = &config.acme;
    let account = acme.external_account.as_ref().map(|account| {
        let text = std::fs::read_to_string(&account.key_file).map_err(|error| error.to_string());
        let key = text.and_then(|text| decoded(text.trim()).ok_or_else(|| "it is not base64url".to_owned()));
        let key = key.map_err(|why| {
            let found = format!("{}: {why}", account.key_file.display());
            Errors(vec![places.problem("acme.external_account.key_file", found)])
        });
        Ok(ExternalAccount { id: account.id.as_str().to_owned(), key: key? })
    });
    Ok(Some(AcmeSettings {
        directory_url: acme.directory.url().to_owned(),
        ca_file: acme.ca_file.as_ref().map(|file| file.0.clone()),
        contact: acme.contact.iter().map(|contact| contact.as_str().to_owned()).collect(),
        dir: acme.dir.as_ref().map_or_else(default_dir, |dir| dir.0.clone()),
        names,
        challenges: acme.challenges.iter().map(kind).collect(),
        profile: acme.profile.as_ref().map(|profile| profile.as_str().to_owned()),
        external_account: account.transpose()?,
    }))
}

fn kind(challenge: &AcmeChallenge) -> ChallengeKind {
    match challenge {
        AcmeChallenge::TlsAlpn01 => ChallengeKind::TlsAlpn01,
        AcmeChallenge::Http01 => ChallengeKind::Http01,
    }
}

/// Where systemd has made a directory for it, else the usual place.
fn default_dir() -> PathBuf {
    let state = std::env::var_os("STATE_DIRECTORY").filter(|state| !state.is_empty());
    // Where there are several, they are separated by colons.
    let first = state.and_then(|state| state.to_string_lossy().split(':').next().map(PathBuf::from));
    first.unwrap_or_else(|| PathBuf::from(STATE)).join("acme")
}

/// The bytes of base64url (RFC 4648 5), with padding or without, as authorities give keys out. None is `None`.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_authorities_write_it() {
        for (text, expected) in [
            ("Zm9v", Some(&b"foo"[..])),
            ("Zm8", Some(b"fo")),
            ("Zm8=", Some(b"fo")),
            ("_-8", Some(b"\xff\xef")),
            ("", None),
            ("Z", None),
            ("Zm+v", None),
        ] {
            assert_eq!(decoded(text).as_deref(), expected, "{text}");
        }
    }
}
