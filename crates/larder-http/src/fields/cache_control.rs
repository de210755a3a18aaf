//! Cache-Control in responses and in requests (RFC 9111 5.2, RFC 5861, RFC 8246).
//!
//! In: all lines of the field. Out: one value with everything larder acts on. Members are split with regard to quoted
//! strings, names compare without regard to case, arguments may be tokens or quoted strings.
//! What is malformed errs towards caution. A lifetime that is not one is zero (stale), and the shortest of several
//! wins. A restricting directive counts whatever hangs behind it, a permitting one only when it stands alone. One
//! that does both restricts in any form and permits in its own. Where a member is malformed, its end is a guess, so
//! that `private`, `no-store` and `no-cache` count wherever they stand in it (`max-age=60; private`). Reading a
//! request's directives allocates nothing. Unknown directives are ignored, as the RFC asks.

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
    /// Something that is none of these, as it stands.
    Malformed(&'a [u8]),
}

impl Argument<'_> {
    fn seconds(self) -> Option<Duration> {
        match self {
            Self::Token(text) | Self::Quoted(text) => delta_seconds(text),
            Self::None | Self::Malformed(_) => None,
        }
    }
}

/// Iterates over the directives of one line: name as sent, argument. A member that starts with no name has an empty one
/// and is malformed as a whole.
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
            if member.is_empty() {
                continue;
            }
            let name_end = member.iter().position(|b| !is_tchar(*b)).unwrap_or(member.len());
            let (name, tail) = member.split_at(name_end);
            return Some(match name {
                [] => (name, Argument::Malformed(tail)),
                _ => (name, argument(tail)),
            });
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
        _ => Argument::Malformed(tail),
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

/// Most fields that a qualified directive may name; with more it is taken as unqualified. Each of them is compared with
/// all fields of a response, and no application names half as many.
pub const NAMES_MAX: usize = 64;

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
            Argument::None | Argument::Malformed(_) => return *self = Self::Whole,
        };
        let mut names = match std::mem::replace(self, Self::Whole) {
            Self::Whole => return,
            Self::Nothing => Vec::new(),
            Self::Fields(names) => names,
        };
        let mut any = false;
        for name in list.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
            match HeaderName::from_bytes(name) {
                Ok(name) if names.contains(&name) => {}
                Ok(name) if names.len() < NAMES_MAX && !INDISPENSABLE.contains(&name) => names.push(name),
                // `Whole` was left in place above.
                Ok(_) | Err(_) => return,
            }
            any = true;
        }
        // An argument without names means the whole response, also behind one that had some.
        if any {
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
    /// Which of the above permit something as well.
    pub permits: Permits,
    /// `must-understand`
    pub must_understand: bool,
    /// `stale-while-revalidate`; zero where it is not a time.
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`; zero where it is not a time.
    pub stale_if_error: Option<Duration>,
}

/// Directives that restrict the use of a response in whatever form they come, and that also say that it may be shared
/// (RFC 9111 3.5), which takes a well-formed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// `must-revalidate`, standing alone.
    pub must_revalidate: bool,
    /// `s-maxage` with a number.
    pub s_maxage: bool,
}

/// Restricting directives that stand where no directive can: inside a malformed member, or as a parameter. Whoever wrote
/// a semicolon for a comma meant them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strays {
    no_cache: bool,
    private: bool,
    no_store: bool,
}

impl Strays {
    pub(super) fn add(&mut self, word: &[u8]) {
        self.no_cache |= word.eq_ignore_ascii_case(b"no-cache");
        self.private |= word.eq_ignore_ascii_case(b"private");
        self.no_store |= word.eq_ignore_ascii_case(b"no-store");
    }

    pub(super) fn restrict(self, said: &mut ResponseDirectives) {
        if self.no_cache {
            said.no_cache = Reach::Whole;
        }
        if self.private {
            said.private = Reach::Whole;
        }
        said.no_store |= self.no_store;
    }
}

/// The shorter of what was said before and what is said now; unusable is zero.
fn shortest(slot: &mut Option<Duration>, argument: Argument<'_>) {
    let said = argument.seconds().unwrap_or_default();
    *slot = Some(slot.map_or(said, |before| before.min(said)));
}

impl ResponseDirectives {
    /// Reads all Cache-Control lines of a response.
    pub fn read(fields: &HeaderMap) -> Self {
        let (mut all, mut strays) = (Self::default(), Strays::default());
        for line in fields.get_all(header::CACHE_CONTROL) {
            for (name, argument) in Directives::new(line.as_bytes()) {
                all.add(name, argument);
                if let Argument::Malformed(tail) = argument {
                    // Single quotes are part of a token, and often meant as the other ones.
                    let words = tail.split(|b| !is_tchar(*b) || *b == b'\'');
                    words.for_each(|word| strays.add(word));
                }
            }
        }
        strays.restrict(&mut all);
        all
    }

    fn add(&mut self, name: &[u8], argument: Argument<'_>) {
        let is = |directive: &str| name.eq_ignore_ascii_case(directive.as_bytes());
        let alone = argument == Argument::None;
        if is("max-age") {
            shortest(&mut self.max_age, argument);
        } else if is("s-maxage") {
            shortest(&mut self.s_maxage, argument);
            self.permits.s_maxage |= argument.seconds().is_some();
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
            self.permits.must_revalidate |= alone;
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
mod tests;
