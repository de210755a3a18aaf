//! Cookies that a response sets and that may be somebody's: they are for the client whose request brought it, and no other.
//!
//! In: Set-Cookie. Out: which cookies are somebody's, and by which sign; fields without them; and notes for people of what
//! a stored response carries or came with. A cookie is somebody's where scripts are kept from it, where it is called like a
//! session or a person, or where its value could tell people apart. What is left says the same to all (`lang=de`).
//! What follows for storing is decided in [`mod@crate::storable`], [`mod@crate::update`] and [`crate::head`].

use http::{HeaderMap, HeaderValue, header};
use larder_http::fields::cookie::{SetCookie, set_cookies};

use super::session::{is_session, is_visitors};
use crate::policy::{CachePolicy, SetCookiePolicy};

/// By what a cookie shows that it may be somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnSign {
    /// HttpOnly.
    HttpOnly,
    /// A name that sessions and people have.
    Name,
    /// A value that could tell people apart.
    Value,
}

impl OwnSign {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::HttpOnly => "it is HttpOnly",
            Self::Name => "its name is that of a session or a person",
            Self::Value => "its value could tell people apart",
        }
    }
}

/// Bytes of a value that could name one person among many.
const VALUE_BYTES_MIN: usize = 12;
/// Digits that could.
const DIGITS_MIN: usize = 3;

/// The sign by which `cookie` may be somebody's under this policy, if it has one. What `session_cookies` names counts
/// beside the names that larder knows.
pub fn own_sign(cookie: &SetCookie<'_>, policy: &CachePolicy) -> Option<OwnSign> {
    let is_named = || policy.session_cookies.as_ref().is_some_and(|names| names.matches(cookie.name));
    sign(cookie).or_else(|| is_named().then_some(OwnSign::Name))
}

fn sign(cookie: &SetCookie<'_>) -> Option<OwnSign> {
    if cookie.http_only {
        Some(OwnSign::HttpOnly)
    } else if is_session(cookie.name) || is_visitors(cookie.name) {
        Some(OwnSign::Name)
    } else {
        tells_apart(cookie.value).then_some(OwnSign::Value)
    }
}

fn tells_apart(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let has_letters = value.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    value.len() >= VALUE_BYTES_MIN || digits >= DIGITS_MIN || (digits > 0 && has_letters)
}

impl CachePolicy {
    /// Whether cookies that may be somebody's are kept out of what is stored.
    pub(crate) fn guards_cookies(&self) -> bool {
        self.set_cookie == SetCookiePolicy::Guard && !self.ignore.set_cookie
    }

    /// Whether a line of Set-Cookie is for its client alone.
    pub(crate) fn is_own(&self, line: &HeaderValue) -> bool {
        self.guards_cookies() && own_sign(&SetCookie::of(line.as_bytes()), self).is_some()
    }
}

/// The first cookie of a response that may be somebody's, and by which sign.
pub fn first_own<'a>(fields: &'a HeaderMap, policy: &CachePolicy) -> Option<(&'a [u8], OwnSign)> {
    set_cookies(fields).find_map(|cookie| Some((cookie.name, own_sign(&cookie, policy)?)))
}

/// Takes the lines of Set-Cookie out that `goes` names, and returns the names of their cookies.
pub(crate) fn take_cookies(fields: &mut HeaderMap, goes: impl Fn(&HeaderValue) -> bool) -> Relieved {
    let mut taken = Relieved::default();
    if !fields.contains_key(header::SET_COOKIE) {
        return taken;
    }
    let lines: Vec<HeaderValue> = fields.get_all(header::SET_COOKIE).iter().cloned().collect();
    fields.remove(header::SET_COOKIE);
    for line in lines {
        match goes(&line) {
            true => taken.note(SetCookie::of(line.as_bytes()).name),
            false => drop(fields.append(header::SET_COOKIE, line)),
        }
    }
    taken
}

/// [`take_cookies`] by the names and signs that larder knows, whatever a rule says.
pub(crate) fn take_known(fields: &mut HeaderMap) -> Relieved {
    take_cookies(fields, |line| sign(&SetCookie::of(line.as_bytes())).is_some())
}

/// Names of cookies that a stored response came with and does not carry: for people, and bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relieved(Option<Box<[Box<str>]>>);

impl Relieved {
    /// Names that are kept.
    const NAMES_MAX: usize = 8;
    /// Bytes of a name that are kept.
    const NAME_BYTES_MAX: usize = 64;

    /// The names, printable.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(|name| &**name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a name, once.
    pub fn note(&mut self, name: &[u8]) {
        let name = printable(name);
        let mut names = self.0.take().map(<[_]>::into_vec).unwrap_or_default();
        if names.len() < Self::NAMES_MAX && !names.iter().any(|known| **known == *name) {
            names.push(name.into_boxed_str());
        }
        self.0 = Some(names.into_boxed_slice());
    }

    /// Adds those of `other`.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        other.names().for_each(|name| self.note(name.as_bytes()));
        self
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.names().map(|name| name.len() + size_of::<Box<str>>()).sum()
    }
}

/// A cookie's name with nothing in it that could steer a terminal, cut where it is long.
fn printable(name: &[u8]) -> String {
    let visible = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' };
    name.iter().take(Relieved::NAME_BYTES_MAX).map(visible).collect()
}

/// The names of the cookies that a response sets, printable, for people.
pub fn cookies_of(fields: &HeaderMap) -> Vec<String> {
    set_cookies(fields).map(|cookie| printable(cookie.name)).collect()
}

/// What keeps a stored response from being used before the origin has confirmed it under the rules that hold now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caution {
    /// A version of larder wrote it that took fewer cookies for a session, and it lives by a lifetime that is not the
    /// application's.
    pub older_rules: bool,
    /// It carries cookies that may be somebody's, which the rule that it was stored under allowed.
    pub own_cookies: bool,
}

impl Caution {
    /// Whether it has to be confirmed first under this policy.
    pub(crate) fn holds(self, policy: &CachePolicy) -> bool {
        self.older_rules || (self.own_cookies && policy.guards_cookies())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::fields;
    use crate::policy::{Ignored, SessionNames};

    fn sign_of(line: &str) -> Option<OwnSign> {
        own_sign(&SetCookie::of(line.as_bytes()), &CachePolicy::default())
    }

    #[test]
    fn a_value_that_could_tell_people_apart_makes_a_cookie_somebodys() {
        for (line, expected) in [
            ("a=c", None),
            ("lang=de", None),
            ("theme=dark; Path=/; Max-Age=99999999", None),
            ("tab=12", None),
            ("size=big-and-red", None),
            ("a=", None),
            ("a", None),
            ("a=abcdefghijkl", Some(OwnSign::Value)),
            ("a=abcdefghijk", None),
            ("a=------------", Some(OwnSign::Value)),
            ("a=a1", Some(OwnSign::Value)),
            ("a=\u{e9}1", Some(OwnSign::Value)),
            ("a=1-2", None),
            ("a=123", Some(OwnSign::Value)),
            ("a=1.2.3", Some(OwnSign::Value)),
            ("lang=de; HttpOnly", Some(OwnSign::HttpOnly)),
            ("sid=; Max-Age=0", Some(OwnSign::Name)),
            ("user=bob", Some(OwnSign::Name)),
            ("CookieConsent=true", Some(OwnSign::Name)),
        ] {
            assert_eq!(sign_of(line), expected, "{line}");
        }
    }

    #[test]
    fn session_cookies_adds_names_and_takes_none_away() {
        let names = SessionNames { exact: vec!["basket".to_owned()], ..SessionNames::default() };
        let policy = CachePolicy { session_cookies: Some(names), ..CachePolicy::default() };
        let sign = |line: &str| own_sign(&SetCookie::of(line.as_bytes()), &policy);
        assert_eq!(sign("basket=x"), Some(OwnSign::Name));
        assert_eq!(sign("PHPSESSID=x"), Some(OwnSign::Name));
        assert_eq!(sign("lang=de"), None);
    }

    #[test]
    fn only_the_guard_keeps_cookies_out() {
        let line = HeaderValue::from_static("sid=1");
        let under = |set_cookie, ignore| CachePolicy { set_cookie, ignore, ..CachePolicy::default() };
        let none = Ignored::default();
        assert!(under(SetCookiePolicy::Guard, none).is_own(&line));
        assert!(!under(SetCookiePolicy::Guard, Ignored { set_cookie: true, ..none }).is_own(&line));
        assert!(!under(SetCookiePolicy::Store, none).is_own(&line));
    }

    #[test]
    fn what_is_taken_out_is_noted_and_the_rest_stays_in_order() {
        let mut said = fields(&[("set-cookie", "a=b"), ("set-cookie", "sid=1"), ("set-cookie", "c=d")]);
        let taken = take_known(&mut said);
        assert_eq!(taken.names().collect::<Vec<_>>(), ["sid"]);
        assert_eq!(cookies_of(&said), ["a", "c"]);
    }

    #[test]
    fn the_notes_are_few_short_printable_and_each_is_there_once() {
        let mut all = Relieved::default();
        (0..50).for_each(|n| all.note(format!("{n}\u{1b}\u{e9}{}", "x".repeat(500)).as_bytes()));
        let is_fit = |name: &str| name.len() == 64 && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        assert!(all.names().count() == 8 && all.names().all(is_fit));
        let (mut one, mut other) = (Relieved::default(), Relieved::default());
        [b"sid", b"uid", b"sid"].iter().for_each(|name| one.note(*name));
        [b"uid", b"cid"].iter().for_each(|name| other.note(*name));
        assert_eq!(one.names().collect::<Vec<_>>(), ["sid", "uid"]);
        assert_eq!(one.and(&other).names().collect::<Vec<_>>(), ["sid", "uid", "cid"]);
    }
}
