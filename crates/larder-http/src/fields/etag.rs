//! Entity tags and the fields that hold them (RFC 9110 8.8.3, 13.1.1, 13.1.2, 13.1.5).
//!
//! In: ETag of a response, If-None-Match and If-Range of a request. Out: tags that compare strongly or weakly.
//! Some servers send tags without quotes or with a lower-case `w/`. Such an odd tag is kept as it came and equals
//! only a field that is the same byte for byte; it never takes part in a list, and is neither weak nor strong.

use http::{HeaderMap, HeaderValue, header};

/// One entity tag, borrowed from its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    kind: Kind,
    /// With the quotes, without `W/`; an odd tag as it came.
    opaque: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Strong,
    Weak,
    Odd,
}

impl<'a> EntityTag<'a> {
    /// Takes a whole field value as one tag; `None` where it is empty.
    pub fn new(value: &'a [u8]) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        match Self::at_start(value) {
            Some((tag, [])) => Some(tag),
            _ => Some(Self { kind: Kind::Odd, opaque: value }),
        }
    }

    /// The well-formed tag that `text` begins with, and what follows it.
    fn at_start(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (kind, quoted) = match text {
            [b'W', b'/', quoted @ ..] => (Kind::Weak, quoted),
            _ => (Kind::Strong, text),
        };
        let [b'"', inside @ ..] = quoted else { return None };
        let length = inside.iter().position(|b| *b == b'"')?;
        let is_etagc = |b: &u8| *b == 0x21 || (0x23..=0x7e).contains(b) || *b >= 0x80;
        if !inside.iter().take(length).all(is_etagc) {
            return None;
        }
        let (opaque, rest) = quoted.split_at(length + 2);
        Some((Self { kind, opaque }, rest))
    }

    /// The tag of a response; `None` where there is none, or several lines contradict each other.
    pub fn of(fields: &'a HeaderMap) -> Option<Self> {
        let mut lines = fields.get_all(header::ETAG).iter();
        let first = lines.next()?;
        lines.all(|other| other == first).then(|| Self::new(first.as_bytes()))?
    }

    /// Well-formed and without `W/`.
    pub fn is_strong(&self) -> bool {
        self.kind == Kind::Strong
    }

    /// Well-formed and with `W/`.
    pub fn is_weak(&self) -> bool {
        self.kind == Kind::Weak
    }

    /// Strong comparison (RFC 9110 8.8.3.2): the same bytes are meant.
    pub fn equals_strongly(&self, other: &EntityTag<'_>) -> bool {
        self.is_strong() && other.is_strong() && self.opaque == other.opaque
    }

    /// Weak comparison: an equivalent representation is meant. Odd tags equal odd tags only.
    pub fn equals_weakly(&self, other: &EntityTag<'_>) -> bool {
        (self.kind == Kind::Odd) == (other.kind == Kind::Odd) && self.opaque == other.opaque
    }
}

/// What If-None-Match says about a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoneMatch {
    /// The request has no such field.
    Absent,
    /// The representation is among those that the client has: for GET and HEAD, 304.
    Listed,
    /// It is not: the representation is to be sent.
    Unlisted,
}

/// Evaluates If-None-Match, over all its lines, against the tag of the selected representation.
pub fn none_match(request: &HeaderMap, current: Option<EntityTag<'_>>) -> NoneMatch {
    let mut answer = NoneMatch::Absent;
    for line in request.get_all(header::IF_NONE_MATCH) {
        answer = NoneMatch::Unlisted;
        if line == "*" || current.is_some_and(|current| lists(line, &current)) {
            return NoneMatch::Listed;
        }
    }
    answer
}

fn lists(line: &HeaderValue, current: &EntityTag<'_>) -> bool {
    if EntityTag::new(line.as_bytes()).is_some_and(|whole| whole.equals_weakly(current)) {
        return true;
    }
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        rest = rest.trim_ascii_start();
        if let Some((tag, after)) = EntityTag::at_start(rest) {
            // A tag counts only when it is a member of its own, followed by a comma or the end.
            let after = after.trim_ascii_start();
            if matches!(after, [] | [b',', ..]) && tag.equals_weakly(current) {
                return true;
            }
            rest = after;
        } else if matches!(rest, [b'"', ..] | [b'W', b'/', b'"', ..]) {
            // A broken quoted string: where the next member begins can only be guessed.
            return false;
        }
        let next = rest.iter().position(|b| *b == b',').map_or(rest.len(), |comma| comma + 1);
        rest = rest.get(next..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn tag(text: &str) -> EntityTag<'_> {
        EntityTag::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn comparison_follows_the_table_of_rfc_9110() {
        for (a, b, strongly, weakly) in [
            (r#"W/"1""#, r#"W/"1""#, false, true),
            (r#"W/"1""#, r#"W/"2""#, false, false),
            (r#"W/"1""#, r#""1""#, false, true),
            (r#""1""#, r#""1""#, true, true),
            ("abc", "abc", false, true),
            ("abc", r#""abc""#, false, false),
            (r#"w/"1""#, r#"w/"1""#, false, true),
            (r#"w/"1""#, r#"W/"1""#, false, false),
            (r#"w/"1""#, r#""1""#, false, false),
            (r#""""#, r#""""#, true, true),
        ] {
            assert_eq!(tag(a).equals_strongly(&tag(b)), strongly, "{a} {b}");
            assert_eq!(tag(a).equals_weakly(&tag(b)), weakly, "{a} {b}");
        }
    }

    fn check(lines: &[&str], current: Option<&str>, expected: NoneMatch) {
        let mut request = HeaderMap::new();
        for line in lines {
            request.append(header::IF_NONE_MATCH, HeaderValue::from_str(line).unwrap());
        }
        let current = current.map(tag);
        assert_eq!(none_match(&request, current), expected, "{lines:?} {current:?}");
    }

    #[test]
    fn a_list_matches_at_any_position_and_nothing_else_does() {
        use NoneMatch::{Absent, Listed, Unlisted};
        let a = Some(r#""a""#);
        check(&[], a, Absent);
        check(&[r#""a""#], a, Listed);
        check(&[r#"W/"a""#], a, Listed);
        check(&[r#""a", "b""#], a, Listed);
        check(&[r#""b","a" , "c""#], a, Listed);
        check(&[r#", ,"b", "a""#], a, Listed);
        check(&[r#""b""#, r#""a""#], a, Listed);
        check(&["*"], a, Listed);
        check(&["*"], None, Listed);
        check(&[r#""a""#], None, Unlisted);
        check(&[""], a, Unlisted);
        check(&["a"], a, Unlisted);
        check(&[r#""b, "a""#], a, Unlisted);
        check(&[r#""b"a"""#], a, Unlisted);
        check(&[r#"x"a""#], a, Unlisted);
        check(&[r#"odd, "a""#], a, Listed);
        check(&[r#""a,b", "c""#], Some(r#""a,b""#), Listed);
        check(&["odd"], Some("odd"), Listed);
        check(&[r#"odd, "b""#], Some("odd"), Unlisted);
        check(&[r#""a\""#], Some(r#""a\""#), Listed);
    }

    #[test]
    fn contradicting_tags_are_no_tag() {
        let mut fields = HeaderMap::new();
        fields.append(header::ETAG, HeaderValue::from_static("\"a\""));
        fields.append(header::ETAG, HeaderValue::from_static("\"a\""));
        assert_eq!(EntityTag::of(&fields), Some(tag("\"a\"")));
        fields.append(header::ETAG, HeaderValue::from_static("\"b\""));
        assert_eq!(EntityTag::of(&fields), None);
    }

    proptest! {
        #[test]
        fn a_tag_is_found_in_every_list_that_holds_it(
            tags in proptest::collection::vec("(W/)?\"[!#-~]{0,6}\"", 1..8), pick in any::<proptest::sample::Index>()
        ) {
            let mut request = HeaderMap::new();
            request.insert(header::IF_NONE_MATCH, HeaderValue::from_str(&tags.join(" ,\t")).unwrap());
            prop_assert_eq!(none_match(&request, Some(tag(pick.get::<String>(&tags)))), NoneMatch::Listed);
        }

        #[test]
        fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut request = HeaderMap::new();
                request.insert(header::IF_NONE_MATCH, value);
                let _ = none_match(&request, Some(tag("\"a\"")));
            }
        }
    }
}
