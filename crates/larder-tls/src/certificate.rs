//! What stands in a certificate (RFC 5280 4.1), as far as larder decides by it or tells of it.
//!
//! In: DER from a file that the operator named, or from an authority that the operator chose. Out: [`CertificateFacts`].
//! Deliberately absent: chains and signatures, which rustls checks.

use std::net::IpAddr;

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::Oid;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// It may sign other certificates: basicConstraints says so, or it is of a version that could not say.
    pub is_authority: bool,
    /// From when it is valid, in seconds since 1970, included.
    pub not_before: i64,
    /// Until when, in the same way.
    pub not_after: i64,
    /// The DNS names that it is for, in lower case, some with a `*` as their first label.
    pub names: Vec<String>,
    /// The addresses that it is for.
    pub addresses: Vec<IpAddr>,
    /// Of the public key.
    pub key: KeyKind,
    /// The signature below it is of an algorithm that is broken: SHA-1 or MD5.
    pub has_broken_signature: bool,
    /// Clients shall refuse it without a stapled OCSP answer (RFC 7633), which larder does not give.
    pub is_must_staple: bool,
    /// Who it is for, in DER.
    pub(crate) subject: Vec<u8>,
    /// Who has signed it, in DER.
    pub(crate) issuer: Vec<u8>,
}

/// The kind and size of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA, with the bits of its modulus.
    Rsa(usize),
    /// ECDSA, with the bits of its curve.
    Ecdsa(usize),
    /// Ed25519.
    Ed25519,
    /// Any other.
    Other,
}

impl std::fmt::Display for KeyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Ecdsa(bits) => write!(f, "ECDSA P-{bits}"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Other => f.write_str("unknown"),
        }
    }
}

/// id-pe-tlsfeature (RFC 7633 6).
const TLS_FEATURE: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 24];
/// md5WithRSAEncryption, sha-1WithRSAEncryption (RFC 8017), ecdsa-with-SHA1 (RFC 5758).
const BROKEN_SIGNATURES: [&[u64]; 3] =
    [&[1, 2, 840, 113_549, 1, 1, 4], &[1, 2, 840, 113_549, 1, 1, 5], &[1, 2, 840, 10045, 4, 1]];
/// id-Ed25519 (RFC 8410).
const ED25519: &[u64] = &[1, 3, 101, 112];

fn is(oid: &Oid<'_>, arcs: &[u64]) -> bool {
    oid.iter().is_some_and(|found| found.eq(arcs.iter().copied()))
}

impl CertificateFacts {
    /// Reads `certificate`, in DER; `None` where it is none.
    pub fn read(certificate: &[u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(certificate).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let mut facts = Self {
            is_authority: parsed.version() == X509Version::V1,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            names: Vec::new(),
            addresses: Vec::new(),
            key: key_kind(&parsed),
            has_broken_signature: BROKEN_SIGNATURES
                .iter()
                .any(|arcs| is(&parsed.signature_algorithm.algorithm, arcs)),
            is_must_staple: false,
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
        };
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::BasicConstraints(constraints) => facts.is_authority |= constraints.ca,
                ParsedExtension::SubjectAlternativeName(alternative) => {
                    alternative.general_names.iter().for_each(|name| facts.add_name(name));
                }
                _ => facts.is_must_staple |= is(&extension.oid, TLS_FEATURE),
            }
        }
        Some(facts)
    }

    fn add_name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.names.push(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => {
                let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                self.addresses.extend(v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok());
            }
            _ => {}
        }
    }

    /// Whether it is for `host`: a name, a `*.` and a domain, or an address, in lower case. A name in it that begins with `*.` stands for one
    /// label (RFC 9525 6.3).
    pub fn covers(&self, host: &str) -> bool {
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let domain = host.split_once('.').map(|(_, domain)| domain);
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            _ if name == host => true,
            Some(parent) => !host.starts_with("*.") && domain == Some(parent),
            None => false,
        })
    }
}

/// The day of a time in seconds since 1970, as in 2027-01-31.
pub fn date(seconds: i64) -> String {
    match ASN1Time::from_timestamp(seconds) {
        Ok(time) => time.to_datetime().date().to_string(),
        Err(_) => format!("{seconds} s after 1970"),
    }
}

fn key_kind(parsed: &X509Certificate<'_>) -> KeyKind {
    let key = parsed.public_key();
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => KeyKind::Rsa(rsa.key_size()),
        Ok(PublicKey::EC(point)) => KeyKind::Ecdsa(point.key_size()),
        _ if is(&key.algorithm.algorithm, ED25519) => KeyKind::Ed25519,
        _ => KeyKind::Other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn what_a_certificate_is_and_until_when() {
        for (is_ca, expected) in [
            (IsCa::NoCa, false),
            (IsCa::ExplicitNoCa, false),
            (IsCa::Ca(BasicConstraints::Unconstrained), true),
            (IsCa::Ca(BasicConstraints::Constrained(0)), true),
        ] {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.is_ca = is_ca;
            params.not_before = date_time_ymd(2026, 1, 2);
            params.not_after = date_time_ymd(2051, 3, 4);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let told = CertificateFacts::read(certificate.der()).unwrap();
            assert_eq!(told.is_authority, expected, "{is_ca:?}");
            assert_eq!((told.not_before, told.not_after), (1_767_312_000, 2_561_500_800));
            // Cut anywhere, it is none.
            for length in 0..certificate.der().len() {
                assert_eq!(CertificateFacts::read(&certificate.der()[..length]), None, "{length}");
            }
        }
    }
}
