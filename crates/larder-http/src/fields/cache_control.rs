//! Cache-Control in responses and in requests (RFC 9111 5.2, RFC 5861, RFC 8246).
//!
//! In: all lines of the field. Out: one value with everything larder acts on. Members are split with regard to quoted
//! strings, names compare without regard to case, arguments may be tokens or quoted strings.
//! What is malformed errs towards caution: a lifetime that is not one is zero (stale), the shortest of several wins,
//! a restricting directive counts whatever hangs behind it, a permitting one counts only when it stands alone.
//! Reading a request's directives allocates nothing. Unknown directives are ignored, as the RFC asks.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

use super::digits::delta_seconds;

/// What follows the name of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// Nothing.
    None,
    /// A token.
    Token(&'a [u8]),
    /// The inside of a quoted string; escapes are left as they are.
    Quoted(&'a [u8]),
    /// Something that is none of these.
    Malformed,
}

impl Argument<'_> {
    fn seconds(self) -> Option<Duration> {
        match self {
            Self::Token(text) | Self::Quoted(text) => delta_seconds(text),
            Self::None | Self::Malformed => None,
        }
    }
}

/// Iterates over the directives of one line: name as sent, argument.
#[derive(Clone, Debug)]
pub struct Directives<'a> {
    rest: &'a [u8],
}

impl<'a> Directives<'a> {
    /// The directives of `line`.
    pub const fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }
}

/// Where the member that starts `line` ends: at the next comma that is not inside a quoted string.
pub(super) fn member_end(line: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    line.len()
}

pub(super) const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

impl<'a> Iterator for Directives<'a> {
    type Item = (&'a [u8], Argument<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (member, rest) = self.rest.split_at(member_end(self.rest));
            self.rest = rest.get(1..).unwrap_or_default();
            let member = member.trim_ascii();
            let name_end = member.iter().position(|b| !is_tchar(*b)).unwrap_or(member.len());
            if name_end == 0 {
                continue;
            }
            let (name, tail) = member.split_at(name_end);
            return Some((name, argument(tail)));
        }
        None
    }
}

fn argument(tail: &[u8]) -> Argument<'_> {
    match tail {
        [] => Argument::None,
        [b'=', b'"', quoted @ .., b'"'] if is_quoted_inside(quoted) => Argument::Quoted(quoted),
        [b'=', token @ ..] if !token.is_empty() && token.iter().all(|b| is_tchar(*b)) => {
            Argument::Token(token)
        }
        _ => Argument::Malformed,
    }
}

/// Whether no quote in `text` ends the quoted string early and the last one is not escaped.
fn is_quoted_inside(text: &[u8]) -> bool {
    let mut escaped = false;
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return false,
            _ => {}
        }
    }
    !escaped
}

/// How far `no-cache` or `private` reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The directive is absent.
    #[default]
    Nothing,
    /// These fields only; they are not to be stored.
    Fields(Vec<HeaderName>),
    /// The whole response.
    Whole,
}

/// Fields without which a stored response could not be judged or understood. A qualified `no-cache` or `private` that
/// names one of them is taken as unqualified.
const INDISPENSABLE: [HeaderName; 10] = [
    header::AGE,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::DATE,
    header::EXPIRES,
    header::LOCATION,
    header::VARY,
];

impl Reach {
    /// Whether the whole response is meant.
    pub fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// The fields meant, where only some are.
    pub fn fields(&self) -> &[HeaderName] {
        match self {
            Self::Fields(names) => names,
            Self::Nothing | Self::Whole => &[],
        }
    }

    pub(super) fn extend(&mut self, argument: Argument<'_>) {
        let list = match argument {
            Argument::Token(list) | Argument::Quoted(list) => list,
            Argument::None | Argument::Malformed => return *self = Self::Whole,
        };
        let mut names = match std::mem::replace(self, Self::Whole) {
            Self::Whole => return,
            Self::Nothing => Vec::new(),
            Self::Fields(names) => names,
        };
        let before = names.len();
        for name in list.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
            match HeaderName::from_bytes(name) {
                Ok(name) if !INDISPENSABLE.contains(&name) => names.push(name),
                // `Whole` was left in place above.
                Ok(_) | Err(_) => return,
            }
        }
        // An argument without names means the whole response, also behind one that had some.
        if names.len() > before {
            *self = Self::Fields(names);
        }
    }
}

/// A response's directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `max-age`; zero where it is not a lifetime.
    pub max_age: Option<Duration>,
    /// `s-maxage`; zero where it is not a lifetime.
    pub s_maxage: Option<Duration>,
    /// `no-cache`, perhaps for some fields.
    pub no_cache: Reach,
    /// `private`, perhaps for some fields.
    pub private: Reach,
    /// `no-store`
    pub no_store: bool,
    /// `public`
    pub public: bool,
    /// `must-revalidate`
    pub must_revalidate: bool,
    /// `proxy-revalidate`
    pub proxy_revalidate: bool,
    /// `must-understand`
    pub must_understand: bool,
    /// `stale-while-revalidate`; zero where it is not a time.
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`; zero where it is not a time.
    pub stale_if_error: Option<Duration>,
}

/// The shorter of what was said before and what is said now; unusable is zero.
fn shortest(slot: &mut Option<Duration>, argument: Argument<'_>) {
    let said = argument.seconds().unwrap_or_default();
    *slot = Some(slot.map_or(said, |before| before.min(said)));
}

impl ResponseDirectives {
    /// Reads all Cache-Control lines of a response.
    pub fn read(fields: &HeaderMap) -> Self {
        let mut all = Self::default();
        for line in fields.get_all(header::CACHE_CONTROL) {
            for (name, argument) in Directives::new(line.as_bytes()) {
                all.add(name, argument);
            }
        }
        all
    }

    fn add(&mut self, name: &[u8], argument: Argument<'_>) {
        let is = |directive: &str| name.eq_ignore_ascii_case(directive.as_bytes());
        let alone = argument == Argument::None;
        if is("max-age") {
            shortest(&mut self.max_age, argument);
        } else if is("s-maxage") {
            shortest(&mut self.s_maxage, argument);
        } else if is("no-cache") {
            self.no_cache.extend(argument);
        } else if is("private") {
            self.private.extend(argument);
        } else if is("no-store") {
            self.no_store = true;
        } else if is("public") {
            self.public |= alone;
        } else if is("must-revalidate") {
            self.must_revalidate = true;
        } else if is("proxy-revalidate") {
            self.proxy_revalidate = true;
        } else if is("must-understand") {
            self.must_understand |= alone;
        } else if is("stale-while-revalidate") {
            shortest(&mut self.stale_while_revalidate, argument);
        } else if is("stale-if-error") {
            shortest(&mut self.stale_if_error, argument);
        }
    }
}

/// A request's directives. Those that are not usable are ignored: they are wishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `only-if-cached`
    pub only_if_cached: bool,
    /// `max-age`
    pub max_age: Option<Duration>,
    /// `min-fresh`
    pub min_fresh: Option<Duration>,
}

impl RequestDirectives {
    /// Reads all Cache-Control lines of a request, without allocating.
    pub fn read(fields: &HeaderMap) -> Self {
        let mut all = Self::default();
        for line in fields.get_all(header::CACHE_CONTROL) {
            for (name, argument) in Directives::new(line.as_bytes()) {
                let is = |directive: &str| name.eq_ignore_ascii_case(directive.as_bytes());
                if is("no-cache") {
                    all.no_cache = true;
                } else if is("no-store") {
                    all.no_store = true;
                } else if is("only-if-cached") {
                    all.only_if_cached = true;
                } else if is("max-age") {
                    let said = argument.seconds();
                    all.max_age =
                        all.max_age.map_or(said, |before| Some(said.map_or(before, |s| s.min(before))));
                } else if is("min-fresh") {
                    all.min_fresh = all.min_fresh.max(argument.seconds());
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn fields(lines: &[&str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(header::CACHE_CONTROL, HeaderValue::from_str(line).unwrap());
        }
        fields
    }

    fn response(line: &str) -> ResponseDirectives {
        ResponseDirectives::read(&fields(&[line]))
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn a_lifetime_that_is_not_one_is_zero() {
        for (line, expected) in [
            ("", None),
            ("nothing-to-see-here", None),
            ("max-age=3600", seconds(3600)),
            ("MaX-aGe=3600", seconds(3600)),
            ("foobar, max-age=3600", seconds(3600)),
            ("max-age=003600", seconds(3600)),
            ("max-age=\"3600\"", seconds(3600)),
            ("max-age=99999999999", seconds(1 << 31)),
            ("max-age", seconds(0)),
            ("max-age=", seconds(0)),
            ("max-age='3600'", seconds(0)),
            ("max-age=-3600", seconds(0)),
            ("max-age=3600.0", seconds(0)),
            ("max-age=a100", seconds(0)),
            ("max-age=100a", seconds(0)),
            ("max-age =100", seconds(0)),
            ("max-age= 100", seconds(0)),
            ("max-age=\"100", seconds(0)),
            ("max-age=100;foo", seconds(0)),
            ("max-age=1, max-age=3600", seconds(1)),
            ("max-age=3600, max-age=1", seconds(1)),
            ("extension=\"max-age=3600\"", None),
            ("extension=\"max-age=3600\", max-age=1", seconds(1)),
            ("max-age=1, extension=\"max-age=3600\"", seconds(1)),
            ("extension=\"a\\\", max-age=3600\", max-age=1", seconds(1)),
            (",,, max-age=5 ,", seconds(5)),
        ] {
            assert_eq!(response(line).max_age, expected, "{line:?}");
        }
    }

    #[test]
    fn all_lines_count() {
        let all = ResponseDirectives::read(&fields(&["max-age=5", "S-MAXAGE=7", "", "No-Store, public"]));
        assert_eq!((all.max_age, all.s_maxage), (seconds(5), seconds(7)));
        assert!(all.no_store && all.public);
    }

    #[test]
    fn restricting_directives_count_whatever_follows_them_and_permitting_ones_only_alone() {
        assert!(response("private; max-age=0").private.is_whole());
        assert!(response("no-store foo").no_store);
        assert!(response("no-cache=\"unclosed").no_cache.is_whole());
        assert!(response("must-revalidate=1").must_revalidate);
        assert!(!response("public=1").public);
        assert!(!response("must-understand=1").must_understand);
        assert!(!response("xno-store, no-storex").no_store);
    }

    #[test]
    fn qualified_forms_name_fields() {
        let names = |line: &str| response(line).no_cache;
        assert_eq!(
            names("no-cache=\"a, B\""),
            Reach::Fields(vec!["a".parse().unwrap(), "b".parse().unwrap()])
        );
        assert_eq!(names("no-cache=a"), Reach::Fields(vec!["a".parse().unwrap()]));
        assert_eq!(names("no-cache=\"a\", no-cache=b").fields().len(), 2);
        for whole in [
            "no-cache=\"a\", no-cache=\"\"",
            "no-cache=\"\", no-cache=\"a\"",
            "no-cache",
            "no-cache=\"a\", no-cache",
            "no-cache, no-cache=\"a\"",
            "no-cache=\"\"",
            "no-cache=\",\"",
            "no-cache=\"a b\"",
            "no-cache=\"vary\"",
            "no-cache=\"x, Cache-Control\"",
        ] {
            assert_eq!(names(whole), Reach::Whole, "{whole}");
        }
    }

    #[test]
    fn unusable_wishes_are_ignored() {
        let request = |line: &str| RequestDirectives::read(&fields(&[line]));
        assert_eq!(request("max-age=abc, min-fresh=-1"), RequestDirectives::default());
        assert_eq!(request("nothing-to-see-here, max-age=0").max_age, seconds(0));
        assert_eq!(request("max-age=abc, max-age=3").max_age, seconds(3));
        assert_eq!(request("max-age=4, max-age=3, max-age=x").max_age, seconds(3));
        assert_eq!(request("min-fresh=4, min-fresh=5").min_fresh, seconds(5));
        assert!(request("ONLY-IF-CACHED").only_if_cached);
        assert!(request("no-cache, no-store").no_cache);
    }

    proptest! {
        #[test]
        fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut fields = HeaderMap::new();
                fields.insert(header::CACHE_CONTROL, value);
                let _ = (ResponseDirectives::read(&fields), RequestDirectives::read(&fields));
            }
        }

        #[test]
        fn no_quoted_text_hides_a_directive_behind_it_or_becomes_one(inside in "[ -~]{0,20}", age in 0..1000_u64) {
            let escaped = inside.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("x=\"{escaped}\", max-age={age}, y=\"{escaped}\"");
            let expected = ResponseDirectives { max_age: seconds(age), ..ResponseDirectives::default() };
            prop_assert_eq!(response(&line), expected);
        }
    }
}
