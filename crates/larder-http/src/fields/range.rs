//! Range with the unit `bytes` (RFC 9110 14.1.2, 14.2).
//!
//! In: the field of a request. Out: what it asks for, or that it is to be ignored: another unit, bad syntax, several
//! lines, or more than [`SPECS_MAX`] ranges. A number too large to hold saturates, which gives the same answer as the
//! number itself would: beyond every representation. Deliberately absent: multipart answers.

use std::ops::Range;

use http::{HeaderMap, header};

use super::digits::number;

/// Ranges in one request; a field with more is ignored and answered with the whole.
pub const SPECS_MAX: usize = 16;

/// One range-spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-last`, both inclusive, first not beyond last.
    Between(u64, u64),
    /// `first-`
    From(u64),
    /// `-length`: so many bytes from the end.
    Suffix(u64),
}

impl RangeSpec {
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|b| *b == b'-')?;
        let (first, last) = (text.get(..dash)?, text.get(dash + 1..)?);
        match (first, last) {
            ([], length) => Some(Self::Suffix(number(length)?)),
            (first, []) => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// The bytes meant of a representation of `complete` bytes, never empty; `None` where it has none of them.
    pub fn within(self, complete: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::Between(first, last) => first..last.saturating_add(1).min(complete),
            Self::From(first) => first..complete,
            Self::Suffix(length) => complete.saturating_sub(length)..complete,
        };
        (range.start < range.end).then_some(range)
    }
}

/// What a request's Range says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeField {
    /// No such field.
    Absent,
    /// A field that is to be ignored.
    Ignored,
    /// One to [`SPECS_MAX`] ranges, in the client's order.
    Bytes(Vec<RangeSpec>),
}

impl RangeField {
    /// Reads the field.
    pub fn read(fields: &HeaderMap) -> Self {
        let mut lines = fields.get_all(header::RANGE).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::parse(value.as_bytes()).unwrap_or(Self::Ignored),
            (Some(_), Some(_)) => Self::Ignored,
        }
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let (unit, set) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut specs = Vec::new();
        for member in set.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty()) {
            if specs.len() == SPECS_MAX {
                return None;
            }
            specs.push(RangeSpec::parse(member)?);
        }
        (!specs.is_empty()).then_some(Self::Bytes(specs))
    }

    /// Whether exactly `bytes=0-` is asked: everything, as a 206.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Bytes(specs) if specs[..] == [RangeSpec::From(0)])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::RangeSpec::{Between, From, Suffix};
    use super::*;

    fn check(text: &str, expected: Option<&[RangeSpec]>) {
        let mut fields = HeaderMap::new();
        fields.insert(header::RANGE, HeaderValue::from_str(text).unwrap());
        let expected = expected.map_or(RangeField::Ignored, |specs| RangeField::Bytes(specs.to_vec()));
        assert_eq!(RangeField::read(&fields), expected, "{text:?}");
    }

    #[test]
    fn byte_ranges_are_read_and_everything_else_is_ignored() {
        check("bytes=0-1", Some(&[Between(0, 1)]));
        check("Bytes=0-", Some(&[From(0)]));
        check("bytes=-5", Some(&[Suffix(5)]));
        check("bytes= 0-1 , ,-1,", Some(&[Between(0, 1), Suffix(1)]));
        check("bytes=0-99999999999999999999", Some(&[Between(0, u64::MAX)]));
        check("bytes=99999999999999999999-", Some(&[From(u64::MAX)]));
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes =0-1",
            "bytes=1-0",
            "bytes=-",
            "bytes=--1",
            "bytes=0-1-2",
            "bytes=a-b",
            "bytes=0x0-1",
            "bytes=+0-1",
            "bytes=0-1;x",
            "bytes=0 - 1",
            "bytes=0-1,x",
            "lines=0-1",
            "bytes:0-1",
            "bytes=1",
            "bytes=-1.0",
        ] {
            check(ignored, None);
        }
        check(&format!("bytes={}", vec!["0-0"; 16].join(",")), Some(&[Between(0, 0); 16]));
        check(&format!("bytes={}", vec!["0-0"; 17].join(",")), None);
    }

    #[test]
    fn ranges_are_cut_to_the_representation() {
        for (spec, complete, expected) in [
            (Between(0, 1), 10, Some(0..2)),
            (Between(8, 99), 10, Some(8..10)),
            (Between(0, u64::MAX), u64::MAX, Some(0..u64::MAX)),
            (Between(10, 11), 10, None),
            (From(9), 10, Some(9..10)),
            (From(10), 10, None),
            (From(0), 0, None),
            (From(u64::MAX), u64::MAX, None),
            (Suffix(3), 10, Some(7..10)),
            (Suffix(99), 10, Some(0..10)),
            (Suffix(0), 10, None),
            (Suffix(5), 0, None),
        ] {
            assert_eq!(spec.within(complete), expected, "{spec:?} of {complete}");
        }
    }

    fn any_spec() -> impl Strategy<Value = RangeSpec> {
        prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| Between(a.min(b), a.max(b))),
            (0..20_u64, 0..20_u64).prop_map(|(a, b)| Between(a.min(b), a.max(b))),
            prop_oneof![any::<u64>(), 0..20_u64].prop_map(From),
            prop_oneof![any::<u64>(), 0..20_u64].prop_map(Suffix),
        ]
    }

    fn print(specs: &[RangeSpec]) -> String {
        let members: Vec<String> = specs
            .iter()
            .map(|spec| match spec {
                Between(first, last) => format!("{first}-{last}"),
                From(first) => format!("{first}-"),
                Suffix(length) => format!("-{length}"),
            })
            .collect();
        format!("bytes={}", members.join(", "))
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(specs in proptest::collection::vec(any_spec(), 1..=SPECS_MAX)) {
            check(&print(&specs), Some(&specs));
        }

        #[test]
        fn a_range_covers_exactly_the_bytes_it_names(spec in any_spec(), complete in 0..30_u64) {
            let meant = |position: u64| match spec {
                Between(first, last) => (first..=last).contains(&position),
                From(first) => position >= first,
                Suffix(length) => complete - position <= length,
            };
            let covered = spec.within(complete).unwrap_or(0..0);
            for position in 0..complete {
                prop_assert_eq!(covered.contains(&position), meant(position), "{:?} {}", spec, position);
            }
            prop_assert!(covered.end <= complete);
        }
    }
}
