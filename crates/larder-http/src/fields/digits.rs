//! `1*DIGIT`: lengths, positions and delta-seconds (RFC 9110 5.6.2, RFC 9111 1.2.2).
//!
//! In: bytes. Out: a number that saturates, never wraps; anything but ASCII digits, a sign included, is no number.

use std::time::Duration;

/// The largest delta-seconds that is told apart, 2^31 s: what RFC 9111 1.2.2 names for values that overflow.
pub const DELTA_MAX: Duration = Duration::from_secs(1 << 31);

/// The number that `text` spells, at most [`u64::MAX`]; `None` unless it is one or more digits.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit))
    })
}

/// The delta-seconds that `text` spells, at most [`DELTA_MAX`]; leading zeros are fine.
pub fn delta_seconds(text: &[u8]) -> Option<Duration> {
    number(text).map(|seconds| Duration::from_secs(seconds).min(DELTA_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_only_and_saturating() {
        for (text, expected) in [
            ("0", Some(0)),
            ("003600", Some(3600)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("1.0", None),
            ("0x10", None),
            ("1_0", None),
            (" 1", None),
            ("'1'", None),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(delta_seconds(b"99999999999"), Some(DELTA_MAX));
    }
}
