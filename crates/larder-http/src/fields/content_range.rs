//! Content-Range with the unit `bytes` (RFC 9110 14.4).
//!
//! In: the field of a 206 or 416. Out: which bytes of how many, checked (first not beyond last, last within the
//! complete length), or nothing. And the other way, for answers made here.

use std::fmt::Write as _;
use std::ops::Range;

use http::{HeaderMap, HeaderValue, header};

use super::digits::number;

/// What Content-Range says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes first-last/complete`, the range half open; the complete length may be unknown (`*`).
    Bytes {
        /// The bytes enclosed; never empty.
        range: Range<u64>,
        /// The length of the whole representation.
        complete: Option<u64>,
    },
    /// `bytes */complete`: none of the asked ranges lies within the representation.
    Unsatisfied {
        /// The length of the whole representation.
        complete: u64,
    },
}

impl ContentRange {
    /// Reads the field; `None` where it is absent, of another unit, not valid, or stands on several lines.
    pub fn read(fields: &HeaderMap) -> Option<Self> {
        let mut lines = fields.get_all(header::CONTENT_RANGE).iter();
        match (lines.next(), lines.next()) {
            (Some(value), None) => Self::parse(value.as_bytes()),
            _ => None,
        }
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = rest.iter().position(|b| *b == b'/')?;
        let (range, complete) = (rest.get(..slash)?, rest.get(slash + 1..)?);
        if range == b"*" {
            return Some(Self::Unsatisfied { complete: number(complete)? });
        }
        let complete = if complete == b"*" { None } else { Some(number(complete)?) };
        let dash = range.iter().position(|b| *b == b'-')?;
        let (first, last) = (number(range.get(..dash)?)?, number(range.get(dash + 1..)?)?);
        // A last position of u64::MAX has saturated or has no end in u64: neither can be a real body.
        let end = last.checked_add(1)?;
        let valid = first <= last && complete.is_none_or(|complete| end <= complete);
        valid.then_some(Self::Bytes { range: first..end, complete })
    }

    /// The field value that says this.
    pub fn format(&self) -> HeaderValue {
        let mut text = String::with_capacity(48);
        let written = match self {
            Self::Bytes { range, complete: Some(complete) } => {
                write!(text, "bytes {}-{}/{complete}", range.start, range.end.saturating_sub(1))
            }
            Self::Bytes { range, complete: None } => {
                write!(text, "bytes {}-{}/*", range.start, range.end.saturating_sub(1))
            }
            Self::Unsatisfied { complete } => write!(text, "bytes */{complete}"),
        };
        debug_assert!(written.is_ok(), "a String takes everything");
        HeaderValue::try_from(text).expect("digits and punctuation are a field value")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<ContentRange>) {
        let mut fields = HeaderMap::new();
        fields.insert(header::CONTENT_RANGE, HeaderValue::from_str(text).unwrap());
        assert_eq!(ContentRange::read(&fields), expected, "{text:?}");
    }

    #[test]
    fn only_consistent_positions_are_read() {
        check("bytes 0-4/10", Some(ContentRange::Bytes { range: 0..5, complete: Some(10) }));
        check("Bytes 4-9/*", Some(ContentRange::Bytes { range: 4..10, complete: None }));
        check("bytes */10", Some(ContentRange::Unsatisfied { complete: 10 }));
        for invalid in [
            "",
            "bytes",
            "bytes 0-4",
            "bytes 5-4/10",
            "bytes 0-10/10",
            "bytes */*",
            "bytes=0-4/10",
            "lines 0-4/10",
            "bytes 0-4/10/10",
            "bytes 0-4/-10",
            "bytes -4/10",
            "bytes 4-/10",
            "bytes 0-4 /10",
            "bytes  0-4/10",
            "bytes 0-18446744073709551615/*",
            "bytes 0-99999999999999999999/99999999999999999999",
        ] {
            check(invalid, None);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            first in 0..1_u64 << 62, length in 1..1_u64 << 62, more in proptest::option::of(0..1_u64 << 62)
        ) {
            let range = first..first + length;
            let said = ContentRange::Bytes { complete: more.map(|more| range.end + more), range };
            check(said.format().to_str().unwrap(), Some(said.clone()));
        }

        #[test]
        fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = ContentRange::parse(&bytes);
        }
    }
}
