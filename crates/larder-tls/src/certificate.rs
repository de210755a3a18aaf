//! The few parts of a certificate that pinning needs (RFC 5280 4.1): when it is valid, and whether it is an authority's.
//!
//! In: DER from a file that the operator named, so errors here are the operator's to see and no attack. Out: [`Facts`].
//! Deliberately absent: names and signatures, which rustls checks.

/// Whether it is one that signs others, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// It may sign other certificates: basicConstraints says so, or it is of version 1, which could not say.
    pub(super) is_authority: bool,
    /// Seconds since 1970, both included.
    pub(super) not_before: i64,
    pub(super) not_after: i64,
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// Reads `certificate`; `None` where it is none.
pub(super) fn facts(certificate: &[u8]) -> Option<Facts> {
    let (_, whole, _) = element(certificate)?;
    let (_, mut rest, _) = element(whole)?;
    let has_version = rest.first() == Some(&VERSION);
    if has_version {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (tag, validity, mut rest) = element(rest)?;
    let (first_tag, first, second) = element(validity)?;
    let (second_tag, second, _) = element(second)?;
    if tag != SEQUENCE {
        return None;
    }
    let mut is_authority = !has_version;
    while let Some((tag, value, next)) = element(rest) {
        if tag == EXTENSIONS {
            is_authority = element(value).is_some_and(|(_, list, _)| says_authority(list));
        }
        rest = next;
    }
    Some(Facts { is_authority, not_before: time(first_tag, first)?, not_after: time(second_tag, second)? })
}

fn says_authority(mut extensions: &[u8]) -> bool {
    while let Some((_, extension, next)) = element(extensions) {
        extensions = next;
        let Some((OBJECT, name, rest)) = element(extension) else { continue };
        if name != BASIC_CONSTRAINTS {
            continue;
        }
        let rest = match element(rest) {
            // `critical`.
            Some((BOOLEAN, _, rest)) => rest,
            _ => rest,
        };
        let constraints = match element(rest) {
            Some((OCTETS, octets, _)) => element(octets).map(|(_, constraints, _)| constraints),
            _ => None,
        };
        return matches!(constraints.and_then(element), Some((BOOLEAN, [value], _)) if *value != 0);
    }
    false
}

/// Tag and value of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short if short < 0x80 => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((*tag, value, rest))
}

/// Seconds since 1970 of `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 4.1.2.5).
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, rest) = match tag {
        UTC_TIME if text.len() == 12 => {
            let year = number(0, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        GENERALIZED_TIME if text.len() == 14 => (number(0, 4)?, 4),
        _ => return None,
    };
    let part = |place: usize| number(rest + 2 * place, rest + 2 * place + 2);
    let (month, day, hour, minute, second) = (part(0)?, part(1)?, part(2)?, part(3)?, part(4)?);
    Some(((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin with March.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn times_are_read_as_both_forms_write_them() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "260228235959Z", Some(1_772_323_199)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "7001010000Z", None),
            (GENERALIZED_TIME, "2050010100000xZ", None),
        ] {
            assert_eq!(time(tag, text.as_bytes()), expected, "{text}");
        }
    }

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
            let told = facts(certificate.der()).unwrap();
            assert_eq!(told.is_authority, expected, "{is_ca:?}");
            assert_eq!((told.not_before, told.not_after), (1_767_312_000, 2_561_500_800));
            // Cut anywhere, it is none.
            for length in 0..certificate.der().len() {
                assert_eq!(facts(&certificate.der()[..length]), None, "{length}");
            }
        }
    }
}
