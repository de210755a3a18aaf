//! Accept-Language and Accept-Encoding (RFC 9110 12.4.2, 12.5.3, 12.5.4): what a client prefers, in one form.
//!
//! In: all lines of such a field. Out: its members with their weights, sorted, so that two requests which say the
//! same in another order, letter case or spelling of a weight give equal lists. Or nothing where the field is absent,
//! not well formed, or has more than [`MEMBERS_MAX`] members or parameters that these fields do not have. Then its
//! bytes are compared. `x-gzip` and `x-compress` are `gzip` and `compress` (RFC 9110 8.4.1).
//! Up to [`MEMBERS_INLINE`] members nothing is allocated. Deliberately absent: negotiation; the origin does that.

use http::{HeaderMap, HeaderName, header};
use smallvec::SmallVec;

use super::cache_control::is_tchar;

/// Members beyond which a field is not taken apart.
pub const MEMBERS_MAX: usize = 32;
/// Members up to which no memory is asked for.
pub const MEMBERS_INLINE: usize = 16;

/// A weight of one, in thousandths.
const WHOLE: u16 = 1000;

/// What a client prefers, borrowed from its request.
#[derive(Clone, Debug)]
pub struct Preferences<'a> {
    members: SmallVec<[(&'a [u8], u16); MEMBERS_INLINE]>,
}

impl<'a> Preferences<'a> {
    /// Reads the field `name`, over all its lines; `None` where it is absent or cannot be taken apart. A field without
    /// members, which asks for nothing encoded, is a list of none.
    pub fn read(fields: &'a HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut lines = fields.get_all(name).iter().peekable();
        lines.peek()?;
        let mut members = SmallVec::new();
        for line in lines {
            for text in
                line.as_bytes().split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|text| !text.is_empty())
            {
                if members.len() == MEMBERS_MAX {
                    return None;
                }
                let (member, weight) = member(text)?;
                let member = if *name == header::ACCEPT_ENCODING { coding(member) } else { member };
                members.push((member, weight));
            }
        }
        members.sort_unstable_by(|(a, a_weight): &(&[u8], u16), (b, b_weight)| {
            let lower = |text: &'a [u8]| text.iter().map(u8::to_ascii_lowercase);
            lower(a).cmp(lower(b)).then(a_weight.cmp(b_weight))
        });
        Some(Self { members })
    }

    /// The members as sent, sorted without regard to letter case, with their weights in thousandths.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], u16)> {
        self.members.iter().copied()
    }

    /// The one member that the client prefers to all others; `None` where several share the highest weight, where that
    /// is zero, or where it is that of `*`.
    pub fn preferred(&self) -> Option<&'a [u8]> {
        let highest = self.iter().map(|(_, weight)| weight).max().filter(|weight| *weight > 0)?;
        let mut best = self.iter().filter(|(_, weight)| *weight == highest);
        match (best.next(), best.next()) {
            (Some((member, _)), None) if member != b"*" => Some(member),
            _ => None,
        }
    }
}

/// Two lists are equal where the requests say the same.
impl PartialEq<Preferences<'_>> for Preferences<'_> {
    fn eq(&self, other: &Preferences<'_>) -> bool {
        self.members.len() == other.members.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|((a, a_weight), (b, b_weight))| a_weight == b_weight && a.eq_ignore_ascii_case(b))
    }
}

impl Eq for Preferences<'_> {}

/// The registered name of a coding that has two.
fn coding(name: &[u8]) -> &[u8] {
    if name.eq_ignore_ascii_case(b"x-gzip") {
        b"gzip"
    } else if name.eq_ignore_ascii_case(b"x-compress") {
        b"compress"
    } else {
        name
    }
}

/// `member` or `member;q=0.5`, blanks allowed around the semicolon.
fn member(text: &[u8]) -> Option<(&[u8], u16)> {
    let end = text.iter().position(|b| !is_tchar(*b)).unwrap_or(text.len());
    let (member, tail) = text.split_at_checked(end).filter(|(member, _)| !member.is_empty())?;
    match tail.trim_ascii() {
        [] => Some((member, WHOLE)),
        [b';', parameter @ ..] => match parameter.trim_ascii() {
            [b'q' | b'Q', b'=', value @ ..] => Some((member, weight(value)?)),
            _ => None,
        },
        _ => None,
    }
}

/// A weight in thousandths: `0` or `1`, perhaps with up to three decimals, never more than one.
fn weight(text: &[u8]) -> Option<u16> {
    let (whole, decimals) = match text {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut sum = u16::from(whole - b'0');
    for place in 0..3 {
        let digit = decimals.get(place).copied().unwrap_or(b'0');
        sum = sum * 10 + u16::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    (sum <= WHOLE).then_some(sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};
    use proptest::prelude::*;

    use super::*;

    fn fields(name: &HeaderName, lines: &[&str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(name, HeaderValue::from_str(line).unwrap());
        }
        fields
    }

    fn check(name: &HeaderName, lines: &[&str], expected: Option<&[(&str, u16)]>) {
        let fields = fields(name, lines);
        let found = Preferences::read(&fields, name);
        let found: Option<Vec<_>> =
            found.map(|found| found.iter().map(|(m, q)| (str::from_utf8(m).unwrap(), q)).collect());
        assert_eq!(found.as_deref(), expected, "{lines:?}");
    }

    #[test]
    fn members_are_sorted_with_their_weights() {
        check(&ACCEPT_LANGUAGE, &[], None);
        check(&ACCEPT_LANGUAGE, &[""], Some(&[]));
        check(&ACCEPT_LANGUAGE, &["en"], Some(&[("en", 1000)]));
        check(&ACCEPT_LANGUAGE, &["en, de"], Some(&[("de", 1000), ("en", 1000)]));
        check(&ACCEPT_LANGUAGE, &["en,, de ,"], Some(&[("de", 1000), ("en", 1000)]));
        check(&ACCEPT_LANGUAGE, &["en", "De;q=0.5"], Some(&[("De", 500), ("en", 1000)]));
        check(&ACCEPT_LANGUAGE, &["en ; Q=0.123,*;q=0"], Some(&[("*", 0), ("en", 123)]));
        check(
            &ACCEPT_LANGUAGE,
            &["en;q=1.000, en;q=0., EN;q=0.5"],
            Some(&[("en", 0), ("EN", 500), ("en", 1000)]),
        );
        check(&ACCEPT_ENCODING, &["X-Gzip, br"], Some(&[("br", 1000), ("gzip", 1000)]));
        check(&ACCEPT_ENCODING, &["x-compress;q=0.1"], Some(&[("compress", 100)]));
        check(&ACCEPT_LANGUAGE, &["x-gzip"], Some(&[("x-gzip", 1000)]));
    }

    #[test]
    fn what_cannot_be_taken_apart_is_nothing() {
        for line in [
            ";q=1",
            "en;",
            "en;q",
            "en;q=",
            "en;q=2",
            "en;q=1.001",
            "en;q=0.1234",
            "en;q=.5",
            "en;q=0,5;x",
            "en;q=0.x",
            "en;q=-1",
            "en;q=\"1\"",
            "en;q =1",
            "en;q= 1",
            "en;level=1",
            "en;q=1;q=1",
            "en;q=1;x=y",
            "en de",
            "\"en\"",
            "en=1",
        ] {
            check(&ACCEPT_LANGUAGE, &[line], None);
        }
        check(&ACCEPT_LANGUAGE, &["en", "de;x"], None);
        check(&ACCEPT_LANGUAGE, &[&vec!["a"; MEMBERS_MAX].join(",")], Some(&[("a", 1000); MEMBERS_MAX]));
        check(&ACCEPT_LANGUAGE, &[&vec!["a"; MEMBERS_MAX + 1].join(",")], None);
    }

    #[test]
    fn only_a_unique_highest_weight_is_preferred() {
        for (line, expected) in [
            ("", None),
            ("de", Some("de")),
            ("fr;q=0.5, de;q=1.0", Some("de")),
            ("fr;q=0.5, de;q=0.6, *;q=0.1", Some("de")),
            ("de, fr", None),
            ("de;q=0.5, fr;q=0.50", None),
            ("*", None),
            ("de, *", None),
            ("de;q=0.9, *", None),
            ("de;q=0", None),
        ] {
            let fields = fields(&ACCEPT_LANGUAGE, &[line]);
            let found = Preferences::read(&fields, &ACCEPT_LANGUAGE).unwrap();
            assert_eq!(found.preferred(), expected.map(str::as_bytes), "{line}");
        }
    }

    #[test]
    fn nothing_is_allocated_for_as_many_members_as_browsers_send() {
        let line = vec!["en-GB;q=0.5"; MEMBERS_INLINE].join(", ");
        let fields = fields(&ACCEPT_LANGUAGE, &[&line]);
        assert!(!Preferences::read(&fields, &ACCEPT_LANGUAGE).unwrap().members.spilled());
    }

    proptest! {
        #[test]
        fn no_value_panics_and_bounds_hold(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let fields = HeaderMap::from_iter([(ACCEPT_LANGUAGE, value)]);
                if let Some(found) = Preferences::read(&fields, &ACCEPT_LANGUAGE) {
                    prop_assert!(found.iter().count() <= MEMBERS_MAX);
                    prop_assert!(found.iter().all(|(member, weight)| !member.is_empty() && weight <= WHOLE));
                }
            }
        }

        #[test]
        fn order_letter_case_lines_and_spelling_do_not_matter(
            members in proptest::collection::vec(("[a-cA-C]{1,2}", 0..=10_u16), 1..20), split in any::<bool>()
        ) {
            let tenths = |q: u16| if q == 10 { "1".to_owned() } else { format!("0.{q}") };
            let plain: Vec<String> = members.iter().map(|(m, q)| format!("{m};q={}", tenths(*q))).collect();
            let other: Vec<String> = members
                .iter()
                .rev()
                .map(|(m, q)| format!("{} ;\tQ={}", m.to_uppercase(), if *q == 10 { "1.000".into() } else { format!("0.{q}00") }))
                .collect();
            let one = fields(&ACCEPT_LANGUAGE, &[&plain.join(",")]);
            let other = if split {
                fields(&ACCEPT_LANGUAGE, &other.iter().map(String::as_str).collect::<Vec<_>>())
            } else {
                fields(&ACCEPT_LANGUAGE, &[&other.join(" ,")])
            };
            let read = |fields| Preferences::read(fields, &ACCEPT_LANGUAGE).unwrap();
            prop_assert_eq!(read(&one), read(&other));
        }

        #[test]
        fn another_weight_is_another_preference(a in 0..=1000_u16, b in 0..=1000_u16) {
            let of = |q: u16| fields(&ACCEPT_LANGUAGE, &[&format!("en;q={}.{:03}", q / 1000, q % 1000)]);
            let (one, other) = (of(a), of(b));
            let read = |fields| Preferences::read(fields, &ACCEPT_LANGUAGE).unwrap();
            prop_assert_eq!(read(&one) == read(&other), a == b);
        }
    }
}
