//! What an operator says about certificates by ACME.
//!
//! In: values, from a config that was read elsewhere. Out: the same, checked. A name becomes part of a path, so it is one only if its
//! characters are those of host names. Deliberately absent: the terms of service. Settings are made only where an operator has agreed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::error::AcmeError;

/// Most names. One certificate each: so many cost an authority's patience before they cost larder's memory.
pub const NAMES_MAX: usize = 10_000;

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Where the authority's directory is: an `https` URL.
    pub directory_url: String,
    /// Trust these authorities (PEM) for the connection to it, in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// URLs for the authority's messages, such as `mailto:ops@example.com`.
    pub contact: Vec<String>,
    /// Where accounts, certificates and keys are stored.
    pub dir: PathBuf,
    /// Host names in lower case, one certificate each.
    pub names: Vec<String>,
    /// Proofs in the order in which they are tried, one in each attempt. An empty list means both, TLS-ALPN-01 first.
    pub challenges: Vec<ChallengeKind>,
    /// The profile of certificate that is asked for, one of those that the authority names.
    pub profile: Option<String>,
    /// An account elsewhere at the authority that larder's belongs to (RFC 8555 7.3.4).
    pub external_account: Option<ExternalAccount>,
}

impl AcmeSettings {
    /// Whether larder can work by them.
    ///
    /// # Errors
    /// The directory is no `https` URL, a name cannot be used or is there twice, or there are too many.
    pub(crate) fn checked(&self) -> Result<(), AcmeError> {
        let url = self.directory_url.parse::<Uri>().ok();
        if url.is_none_or(|url| url.scheme_str() != Some("https") || url.host().is_none_or(str::is_empty)) {
            return Err(AcmeError::Directory(self.directory_url.clone()));
        }
        if self.names.len() > NAMES_MAX {
            return Err(AcmeError::TooManyNames(self.names.len()));
        }
        let mut seen = BTreeSet::new();
        for name in &self.names {
            if !is_host_name(name) || !seen.insert(name) {
                return Err(AcmeError::Name(name.clone()));
            }
        }
        Ok(())
    }

    /// The proofs, in the order in which they are tried.
    pub(crate) fn proofs(&self) -> &[ChallengeKind] {
        match self.challenges.is_empty() {
            true => &[ChallengeKind::TlsAlpn01, ChallengeKind::Http01],
            false => &self.challenges,
        }
    }
}

/// How the authority checks that a host is larder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// A certificate on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    /// A file on port 80 (RFC 8555 8.3).
    #[serde(rename = "http-01")]
    Http01,
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Http01 => "http-01",
        })
    }
}

/// An account that the authority knows otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Its name, as the authority gave it.
    pub id: String,
    /// Its key for HMAC-SHA-256: bytes, not their base64.
    pub key: Vec<u8>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whether `name` may be asked for: letters, digits, hyphens and dots, neither an address nor a wildcard.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let last_is_letters =
        name.rsplit('.').next().is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()));
    name.len() <= 253 && last_is_letters && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn settings(url: &str, names: &[&str]) -> AcmeSettings {
        AcmeSettings {
            directory_url: url.to_owned(),
            ca_file: None,
            contact: Vec::new(),
            dir: PathBuf::from("acme"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            challenges: Vec::new(),
            profile: None,
            external_account: None,
        }
    }

    #[test]
    fn names_are_host_names_and_nothing_else() {
        for (name, expected) in [
            ("example.com", true),
            ("a", true),
            ("xn--bcher-kva.example", true),
            ("1.example", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a..b", false),
            ("a/b", false),
            ("../a", false),
            ("Example.com", false),
            ("*.example.com", false),
            ("192.0.2.1", false),
            ("[::1]", false),
            ("-a.example", false),
            ("a\0", false),
            (&"a".repeat(64), false),
            (&"abcd.".repeat(60), false),
        ] {
            assert_eq!(settings("https://ca.example/dir", &[name]).checked().is_ok(), expected, "{name:?}");
        }
        assert!(settings("https://ca.example/dir", &["a.example", "a.example"]).checked().is_err(), "twice");
    }

    #[test]
    fn the_authority_is_asked_over_tls_alone() {
        for url in ["http://ca.example/dir", "ca.example", "", "https:///dir", "https://"] {
            assert!(settings(url, &[]).checked().is_err(), "{url}");
        }
        assert!(settings("https://127.0.0.1:14000/dir", &[]).checked().is_ok());
    }

    #[test]
    fn a_key_is_not_printed() {
        let account = ExternalAccount { id: "one".to_owned(), key: vec![77; 32] };
        assert!(!format!("{account:?}").contains("77"));
    }
}
