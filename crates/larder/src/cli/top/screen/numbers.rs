//! Figures in as few characters as tell them: rates, shares, bytes, lengths of time.

use crate::cli::log::line::length_of_time;
use crate::cli::table::{bytes, count};

/// Stands for what is not known.
pub(super) const UNKNOWN: &str = "-";

/// So many per second.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        of if !of.is_finite() || of < 0.0 => UNKNOWN.to_owned(),
        of if of < 0.005 => "0".to_owned(),
        of if of < 0.995 => format!("{of:.2}"),
        of if of < 99.95 => format!("{of:.1}"),
        of if of < 999_999.5 => count(of.round() as u64),
        of => format!("{:.1} M", of / 1e6),
    }
}

/// A part of a whole, in percent; unknown where there is no whole.
pub(super) fn share(part: f64, whole: f64) -> String {
    match ratio(part, whole) {
        None => UNKNOWN.to_owned(),
        // All is 100 % only where it is all.
        Some(share) if share < 1.0 => format!("{:.1}", (share * 1000.0).floor() / 10.0),
        Some(_) => "100".to_owned(),
    }
}

pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && part.is_finite()).then(|| part / whole)
}

/// Bytes.
pub(super) fn size(of: f64) -> String {
    bytes(if of > 0.0 { of as u64 } else { 0 })
}

/// A length of time in seconds, where it is known.
pub(super) fn span(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), length_of_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (of, expected) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (0.996, "1.0"),
            (22.14, "22.1"),
            (1240.4, "1 240"),
            (2.5e6, "2.5 M"),
            (-1.0, "-"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(rate(of), expected);
        }
        for (part, whole, expected) in
            [(1.0, 0.0, "-"), (0.9999, 1.0, "99.9"), (2.0, 2.0, "100"), (0.0, 5.0, "0.0")]
        {
            assert_eq!(share(part, whole), expected);
        }
        assert_eq!((size(-1.0).as_str(), size(2048.0).as_str()), ("0 B", "2.0 KiB"));
        assert_eq!((span(None).as_str(), span(Some(0.041)).as_str()), ("-", "41 ms"));
    }
}
