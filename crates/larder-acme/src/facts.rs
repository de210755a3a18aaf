//! What larder reads in a certificate of its own, and how the authority knows it.
//!
//! In: DER, from files and from an authority, so any bytes. Out: [`OrderedFacts`], or one sentence. Deliberately absent: signatures. What
//! the authority sends comes over TLS, and clients judge the chain.

use instant_acme::CertificateIdentifier;
use larder_http::time::WallTime;
use larder_tls::{CertificateFacts, KeyKind};
use rustls::pki_types::CertificateDer;

use crate::schedule::Lifetime;

/// See the head of the file.
#[derive(Clone, Debug)]
pub(crate) struct OrderedFacts {
    pub(crate) lifetime: Lifetime,
    pub(crate) key: KeyKind,
    /// How the authority knows it when it is asked for its window (RFC 9773 4.1); without one it is not asked.
    pub(crate) identifier: Option<CertificateIdentifier<'static>>,
    facts: CertificateFacts,
}

impl OrderedFacts {
    /// Reads the first certificate of a chain.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let facts = CertificateFacts::read(certificate).ok_or("no certificate that can be read")?;
        let moment = |seconds: i64| WallTime::from_secs(u64::try_from(seconds).unwrap_or(0));
        Ok(Self {
            lifetime: Lifetime { not_before: moment(facts.not_before), not_after: moment(facts.not_after) },
            key: facts.key,
            identifier: CertificateIdentifier::try_from(certificate).ok(),
            facts,
        })
    }

    /// Whether it is for `name`.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.facts.covers(name)
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
        let facts = OrderedFacts::read(&certificate(&["a.example", "*.b.example"])).unwrap();
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
            let _ = OrderedFacts::read(&CertificateDer::from(der));
        }

        #[test]
        fn any_noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(OrderedFacts::read(&CertificateDer::from(noise)).is_err());
        }
    }
}
