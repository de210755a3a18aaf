//! What larder reads in a certificate of its own (RFC 5280 4.1): from when to when it is valid, for which names, with which key.
//!
//! In: DER, from files and from an authority, so any bytes. Out: [`CertificateFacts`], or one sentence. Deliberately absent: signatures. What
//! the authority sends comes over TLS, and clients judge the chain.

use instant_acme::CertificateIdentifier;
use larder_http::time::WallTime;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;

use crate::schedule::Lifetime;

/// The key of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA, with the bits of its curve.
    Ecdsa(usize),
    /// RSA, with the bits of its modulus.
    Rsa(usize),
    /// Any other one.
    Other,
}

impl std::fmt::Display for KeyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ecdsa(bits) => write!(f, "ECDSA P-{bits}"),
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Other => f.write_str("other"),
        }
    }
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFacts {
    pub(crate) lifetime: Lifetime,
    pub(crate) key: KeyKind,
    /// How the authority knows it when it is asked for its window (RFC 9773 4.1); without one it is not asked.
    pub(crate) identifier: Option<CertificateIdentifier<'static>>,
    names: Vec<String>,
}

impl CertificateFacts {
    /// Reads the first certificate of a chain.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = X509Certificate::from_der(certificate);
        let (_, parsed) = parsed.map_err(|error| format!("no certificate: {error}"))?;
        let moment = |seconds: i64| WallTime::from_secs(u64::try_from(seconds).unwrap_or(0));
        let validity = parsed.validity();
        let key = match parsed.public_key().parsed() {
            Ok(PublicKey::EC(point)) => KeyKind::Ecdsa(point.key_size()),
            Ok(PublicKey::RSA(key)) => KeyKind::Rsa(key.key_size()),
            _ => KeyKind::Other,
        };
        let names = match parsed.subject_alternative_name() {
            Ok(Some(names)) => &names.value.general_names[..],
            _ => &[],
        };
        Ok(Self {
            lifetime: Lifetime {
                not_before: moment(validity.not_before.timestamp()),
                not_after: moment(validity.not_after.timestamp()),
            },
            key,
            identifier: CertificateIdentifier::try_from(certificate).ok(),
            names: names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                })
                .collect(),
        })
    }

    /// Whether it is for `name`, by itself or by a wildcard for one label (RFC 9525 6.3).
    pub(crate) fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names
            .iter()
            .any(|own| own == name || own.strip_prefix("*.").is_some_and(|own| Some(own) == parent))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2026, 1, 2);
        params.not_after = date_time_ymd(2051, 3, 4);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn what_a_certificate_says() {
        let facts = CertificateFacts::read(&certificate(&["a.example", "*.b.example"])).unwrap();
        assert_eq!(facts.lifetime.not_before, WallTime::from_secs(1_767_312_000));
        assert_eq!(facts.lifetime.not_after, WallTime::from_secs(2_561_500_800));
        assert_eq!(facts.key.to_string(), "ECDSA P-256");
        for (name, expected) in [
            ("a.example", true),
            ("x.b.example", true),
            ("b.example", false),
            ("x.y.b.example", false),
            ("x.a.example", false),
            ("", false),
        ] {
            assert_eq!(facts.covers(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(at in 0_usize..2000, with in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut der = certificate(&["a.example"]).to_vec();
            let at = at % der.len();
            let end = (at + with.len()).min(der.len());
            der.splice(at..end, with);
            let _ = CertificateFacts::read(&CertificateDer::from(der));
        }

        #[test]
        fn any_noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(CertificateFacts::read(&CertificateDer::from(noise)).is_err());
        }
    }
}
