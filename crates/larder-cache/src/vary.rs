//! Which of several stored responses a request selects (RFC 9111 4.1).
//!
//! In: the Vary of a response and the request that made it. Out: [`Selecting`], kept with the stored response, which
//! tells for a later request whether it would have made the same one, without allocating; and [`VaryNames`], which
//! can be remembered for a URI and turns a request into a [`SecondaryKey`] before anything is fetched.
//! Values are compared after joining lines and dropping blanks around commas outside of quoted strings. Two fields
//! are known better: of Accept-Language and Accept-Encoding neither the order of members, nor letter case, nor the
//! spelling of a weight means anything. Absent matches absent only.
//! As an option, a response that says its Content-Language is also selected by requests that prefer just that language
//! to all others, whatever else they would take. RFC 9111 4.1 does not go so far: the origin might have more to choose
//! from than it had then.

use std::hash::Hash;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::preference::Preferences;
use larder_http::fields::vary::Vary;

use crate::head::HeadError;
use crate::head::written::{Reading, push};

/// The request fields that a response names in Vary: sorted, each once, never `*`. Clones share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VaryNames(Arc<[HeaderName]>);

impl VaryNames {
    /// Reads Vary; `None` where it is `*` or not understood, so that no later request can match.
    pub fn of(response: &HeaderMap) -> Option<Self> {
        match Vary::read(response) {
            Vary::Any => None,
            Vary::Names(names) => Some(Self(names.into())),
        }
    }

    /// The names.
    pub fn names(&self) -> &[HeaderName] {
        &self.0
    }

    /// Whether the response does not vary.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values that `request` has for these names, as one key.
    pub fn secondary(&self, request: &HeaderMap) -> SecondaryKey {
        let mut key = Vec::new();
        for name in self.names() {
            write_value(request, name, |part| key.extend_from_slice(part));
        }
        SecondaryKey(key.into())
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        let long_names: usize = self.0.iter().map(|name| name.as_str().len()).sum();
        size_of_val::<[HeaderName]>(&self.0) + long_names + 2 * size_of::<usize>()
    }
}

/// The values of a request's selecting fields. Equal keys of the same [`VaryNames`] select the same response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SecondaryKey(Box<[u8]>);

impl SecondaryKey {
    /// All values, one after the other; the same in every process.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Ends a value. Nothing else that is written contains it.
const END: &[u8] = &[0];
/// Stands for a field that the request does not have. No field value contains it.
const ABSENT: &[u8] = &[1];
/// Begins the members of a field whose order means nothing, so that no value that could not be read as one equals it.
const PREFERENCES: &[u8] = &[2];

/// Hands the normalised value of `name` to `part`, piece by piece, and [`END`]. Up to 16 members nothing is allocated.
fn write_value(request: &HeaderMap, name: &HeaderName, mut part: impl FnMut(&[u8])) {
    if let Some(preferences) = preferences(request, name) {
        write_preferences(&preferences, part);
        return;
    }
    let mut lines = request.get_all(name).iter();
    match lines.next() {
        None => part(ABSENT),
        Some(first) => {
            let mut comma = false;
            for line in std::iter::once(first).chain(lines) {
                for member in members(line.as_bytes()) {
                    if std::mem::replace(&mut comma, true) {
                        part(b",");
                    }
                    part(member);
                }
            }
        }
    }
    part(END);
}

/// Whether the field is a list of preferences.
fn is_preference(name: &HeaderName) -> bool {
    matches!(*name, header::ACCEPT_LANGUAGE | header::ACCEPT_ENCODING)
}

/// The members of such a field, where the request has it and it is well formed.
fn preferences<'a>(request: &'a HeaderMap, name: &HeaderName) -> Option<Preferences<'a>> {
    is_preference(name).then(|| Preferences::read(request, name))?
}

/// The value of `name` byte for byte, where it stands on one line or nowhere.
fn spelling<'a>(request: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut lines = request.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Some(ABSENT),
        (Some(value), None) => Some(value.as_bytes()),
        (Some(_), Some(_)) => None,
    }
}

fn write_preferences(preferences: &Preferences<'_>, mut part: impl FnMut(&[u8])) {
    part(PREFERENCES);
    for (member, weight) in preferences.iter() {
        let mut lower = [0; 32];
        for piece in member.chunks(lower.len()) {
            for (to, from) in lower.iter_mut().zip(piece) {
                *to = from.to_ascii_lowercase();
            }
            part(lower.get(..piece.len()).unwrap_or_default());
        }
        // `;` ends a member, which contains none; four digits end the weight. None of them is END.
        let digit = |power: u16| b'0' + u8::try_from(weight / power % 10).unwrap_or_default();
        part(&[b';', digit(1_000), digit(100), digit(10), digit(1)]);
    }
    part(END);
}

/// The members of a line, split at commas outside of quoted strings, without the blanks around them. An empty line is
/// one empty member.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    line.split(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' => return !quoted,
            _ => {}
        }
        false
    })
    .map(<[u8]>::trim_ascii)
}

/// The selecting fields of a stored response, with the values of the request that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selecting {
    names: VaryNames,
    key: SecondaryKey,
    /// How the preferences among the fields were spelled. Most requests spell them like the one before, and need not be
    /// taken apart.
    spelled: Box<[u8]>,
    /// The language of the response, where those who prefer it may have it.
    language: Option<Box<[u8]>>,
}

impl Selecting {
    /// What `request` has for `names`. With `content_language`, the response's own, requests that prefer that language
    /// select it too, if Accept-Language is among the names and Content-Language is a single tag.
    pub fn new(names: VaryNames, request: &HeaderMap, content_language: Option<&HeaderValue>) -> Self {
        let key = names.secondary(request);
        let language = content_language
            .map(|value| value.as_bytes().trim_ascii())
            .filter(|tag| is_language(tag) && names.names().contains(&header::ACCEPT_LANGUAGE));
        let mut spelled = Vec::new();
        for name in names.names().iter().filter(|name| is_preference(name)) {
            // On several lines: what no request spells.
            spelled.extend_from_slice(spelling(request, name).unwrap_or(PREFERENCES));
            spelled.extend_from_slice(END);
        }
        Self { names, key, spelled: spelled.into(), language: language.map(Into::into) }
    }

    /// Whether `request` has the same values. A response that does not vary is selected by every request.
    pub fn selects(&self, request: &HeaderMap) -> bool {
        let (mut rest, mut spelled) = (Some(&*self.key.0), &*self.spelled);
        for name in self.names.names() {
            let before = rest;
            if is_preference(name) {
                let (as_before, behind) = first_value(spelled);
                spelled = behind;
                if spelling(request, name) == Some(as_before) {
                    rest = before.map(|key| first_value(key).1);
                    continue;
                }
            }
            write_value(request, name, |part| rest = rest.and_then(|rest| rest.strip_prefix(part)));
            if rest.is_none() {
                let has_language = self.is_in_preferred_language(request, name);
                rest = before.filter(|_| has_language).map(|key| first_value(key).1);
            }
            if rest.is_none() {
                return false;
            }
        }
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// Whether `name` is Accept-Language, and prefers the language of the response to all others.
    fn is_in_preferred_language(&self, request: &HeaderMap, name: &HeaderName) -> bool {
        let Some(language) = self.language.as_deref().filter(|_| *name == header::ACCEPT_LANGUAGE) else {
            return false;
        };
        let preferences = preferences(request, name);
        let preferred = preferences.and_then(|preferences| preferences.preferred());
        preferred.is_some_and(|preferred| preferred.eq_ignore_ascii_case(language))
    }

    /// The names.
    pub fn names(&self) -> &VaryNames {
        &self.names
    }

    /// The values.
    pub fn key(&self) -> &SecondaryKey {
        &self.key
    }

    /// What the request that made the response had for each name, in words for people: normalised, escaped where it is not
    /// printable ASCII, and `None` where it had no such field.
    pub fn told(&self) -> Vec<(HeaderName, Option<String>)> {
        let mut rest = &*self.key.0;
        let value = |name: &HeaderName| {
            let (value, behind) = first_value(rest);
            rest = behind;
            (name.clone(), value_told(value))
        };
        self.names.names().iter().map(value).collect()
    }

    /// Writes it behind what is in `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let names: Vec<&str> = self.names.names().iter().map(HeaderName::as_str).collect();
        push(out, names.join(",").as_bytes());
        push(out, &self.key.0);
        push(out, &self.spelled);
        // No tag is empty.
        push(out, self.language.as_deref().unwrap_or_default());
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(from: &mut Reading<'_>) -> Result<Self, HeadError> {
        let names = from.block()?.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        let names: Result<Arc<[HeaderName]>, _> = names.map(HeaderName::from_bytes).collect();
        Ok(Self {
            names: VaryNames(names.map_err(|_| HeadError::Malformed)?),
            key: SecondaryKey(from.block()?.into()),
            spelled: from.block()?.into(),
            language: Some(from.block()?).filter(|tag| !tag.is_empty()).map(Into::into),
        })
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        let language = self.language.as_ref().map_or(0, |tag| tag.len());
        self.names.memory_bytes() + self.key.0.len() + self.spelled.len() + language
    }
}

/// The first of the values in `written`, and what follows it.
fn first_value(written: &[u8]) -> (&[u8], &[u8]) {
    let end = written.iter().position(|byte| *byte == 0).unwrap_or(written.len());
    let (value, rest) = written.split_at(end);
    (value, rest.strip_prefix(END).unwrap_or_default())
}

/// A value as it was written by [`write_value`], without its end.
fn value_told(value: &[u8]) -> Option<String> {
    if value == ABSENT {
        return None;
    }
    let Some(mut rest) = value.strip_prefix(PREFERENCES) else {
        return Some(value.escape_ascii().to_string());
    };
    let mut told = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b';') {
        let (member, behind) = rest.split_at(end);
        let (weight, behind) = behind.split_at_checked(5).unwrap_or((behind, &[]));
        rest = behind;
        let member = member.escape_ascii();
        told.push(match weight {
            b";1000" => member.to_string(),
            weight => format!("{member};q=0.{}", weight.get(2..).unwrap_or_default().escape_ascii()),
        });
    }
    Some(told.join(", "))
}

/// Whether `text` is one language tag, as far as its characters say (RFC 5646 2.1).
fn is_language(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::example::fields;

    fn check(vary: &str, made: &[(&str, &str)], asked: &[(&str, &str)], expected: bool) {
        let names = VaryNames::of(&fields(&[("vary", vary)])).unwrap();
        let (made, asked) = (fields(made), fields(asked));
        let selecting = Selecting::new(names.clone(), &made, None);
        assert_eq!(selecting.selects(&asked), expected, "vary {vary}: {made:?} {asked:?}");
        assert_eq!(names.secondary(&made) == names.secondary(&asked), expected, "the keys say the same");
    }

    #[test]
    fn values_are_told_in_words() {
        let names = VaryNames::of(&fields(&[("vary", "accept-language, foo, x-b, x-c")])).unwrap();
        let made = [("accept-language", "en;q=0.5, DE"), ("foo", "1 ,  2"), ("x-c", "")];
        let told = Selecting::new(names, &fields(&made), None).told();
        let told: Vec<_> = told.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        let expected = [
            ("accept-language", Some("de, en;q=0.500")),
            ("foo", Some("1,2")),
            ("x-b", None),
            ("x-c", Some("")),
        ];
        assert_eq!(told, expected);
        assert!(Selecting::default().told().is_empty());
    }

    #[test]
    fn all_named_fields_must_match_and_absent_matches_absent_only() {
        check("", &[("foo", "1")], &[("foo", "2")], true);
        check("foo", &[("foo", "1")], &[("foo", "1"), ("bar", "2")], true);
        check("foo", &[("foo", "1")], &[("foo", "2")], false);
        check("foo", &[("foo", "1")], &[], false);
        check("foo", &[], &[("foo", "1")], false);
        check("foo", &[], &[("foo", "")], false);
        check("foo", &[], &[], true);
        check("foo, bar", &[("foo", "1"), ("bar", "2")], &[("bar", "2"), ("foo", "1")], true);
        check("foo, bar", &[("foo", "1"), ("bar", "2")], &[("bar", "1"), ("foo", "2")], false);
        check("foo, bar", &[("foo", "12")], &[("foo", "1"), ("bar", "2")], false);
        check("foo", &[("foo", "1")], &[("foo", "11")], false);
        check("foo", &[("foo", "11")], &[("foo", "1")], false);
        check("foo", &[("foo", "a")], &[("foo", "A")], false);
    }

    #[test]
    fn joined_lines_and_blanks_around_commas_do_not_matter() {
        check("foo", &[("foo", "1, 2")], &[("foo", "1"), ("foo", "2")], true);
        check("foo", &[("foo", "1 ,\t2")], &[("foo", "1,2")], true);
        check("foo", &[("foo", "1 2")], &[("foo", "1  2")], false);
        check("foo", &[("foo", "\"1, 2\"")], &[("foo", "\"1,2\"")], false);
        check("foo", &[("foo", "\"1\\\", 2\"")], &[("foo", "\"1\\\",2\"")], false);
        check("foo", &[("foo", "2, 1")], &[("foo", "1, 2")], false);
        check("foo", &[("foo", "1, 2")], &[("foo", "12")], false);
    }

    #[test]
    fn preferences_are_the_same_in_any_order_case_and_spelling() {
        let languages = |made: &str, asked: &str, expected: bool| {
            check("accept-language", &[("accept-language", made)], &[("accept-language", asked)], expected);
        };
        languages("en, de", "de, en", true);
        languages("en, de", "EN,De", true);
        languages("en-GB;q=0.5, de", "de;q=1.000,en-gb ; q=0.50", true);
        languages("en, de", "en, de;q=0.9", false);
        languages("en, de", "en", false);
        languages("en;q=0.9", "en;q=0.90", true);
        languages("en", "en, en", false);
        languages("en;q=2, de", "de, en;q=2", false);
        languages("en;q=2,de", "en;q=2, de", true);
        languages("en;q=2", "en;Q=2", false);
        let long = "a".repeat(70);
        languages(&long, &long.to_uppercase(), true);
        languages(&long, &"a".repeat(71), false);
        let many = |reverse: bool| {
            let mut tags: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
            if reverse {
                tags.reverse();
            }
            tags.join(",")
        };
        languages(&many(false), &many(false), true);
        // Too many to be put in order.
        languages(&many(false), &many(true), false);
        let codings = |made: &str, asked: &str, expected: bool| {
            check("accept-encoding", &[("accept-encoding", made)], &[("accept-encoding", asked)], expected);
        };
        codings("br, gzip", "X-GZIP, br", true);
        codings("identity, x-gzip", "gzip, identity", true);
        codings("gzip;q=0", "gzip", false);
        codings("", "", true);
        check("accept-encoding", &[("accept-encoding", "")], &[], false);
        check(
            "accept-language",
            &[("accept-language", "en"), ("accept-language", "de")],
            &[("accept-language", "de,en")],
            true,
        );
        check("accept", &[("accept", "a/b, c/d")], &[("accept", "c/d, a/b")], false);
    }

    #[test]
    fn the_preferred_language_selects_where_that_is_asked_for() {
        let check =
            |language: &'static str, made: &[(&str, &str)], asked: &[(&str, &str)], expected: bool| {
                let names = VaryNames::of(&fields(&[("vary", "accept-language, foo")])).unwrap();
                let (made, asked) = (fields(made), fields(asked));
                let language = HeaderValue::from_static(language);
                let selecting = Selecting::new(names.clone(), &made, Some(&language));
                assert!(selecting.selects(&made));
                assert_eq!(selecting.selects(&asked), expected, "{language:?}: {made:?} {asked:?}");
            };
        let made = [("accept-language", "en, de"), ("foo", "1")];
        let asked = |languages| [("accept-language", languages), ("foo", "1")];
        for (language, languages, expected) in [
            ("de", "fr;q=0.5, de;q=1.0", true),
            ("DE", "fr;q=0.5, de", true),
            (" de ", "de", true),
            ("de", "fr, de", false),
            ("de", "fr, de;q=0.9", false),
            ("de", "de-CH", false),
            ("de-CH", "de", false),
            ("de", "*", false),
            ("*", "*", false),
            ("de, en", "de", false),
            ("", "de", false),
            ("de", "de;q=0", false),
            ("de", "de;level=1", false),
            ("fr", "de, en", true),
        ] {
            check(language, &made, &asked(languages), expected);
        }
        check("de", &made, &[("accept-language", "de"), ("foo", "2")], false);
        check("de", &made, &[("accept-language", "de")], false);
        check("de", &made, &[("foo", "1")], false);
        check("de", &[("foo", "1")], &asked("de"), true);
        let elsewhere = VaryNames::of(&fields(&[("vary", "foo")])).unwrap();
        let language = HeaderValue::from_static("de");
        let selecting = Selecting::new(elsewhere, &fields(&made), Some(&language));
        assert!(!selecting.selects(&fields(&[("accept-language", "de"), ("foo", "2")])));
    }

    #[test]
    fn star_selects_nothing() {
        assert_eq!(VaryNames::of(&fields(&[("vary", ""), ("vary", "foo, *")])), None);
    }

    proptest! {
        #[test]
        fn selecting_and_keys_agree(
            made in proptest::collection::vec(("[abc]", "[ab\", \\\\]{0,4}"), 0..4),
            asked in proptest::collection::vec(("[abc]", "[ab\", \\\\]{0,4}"), 0..4),
        ) {
            let map = |lines: &[(String, String)]| {
                fields(&lines.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>())
            };
            let (made, asked) = (map(&made), map(&asked));
            let names = VaryNames::of(&fields(&[("vary", "a, b")])).unwrap();
            let selecting = Selecting::new(names.clone(), &made, None);
            prop_assert!(selecting.selects(&made));
            prop_assert_eq!(selecting.selects(&asked), names.secondary(&made) == names.secondary(&asked));
        }

        #[test]
        fn preferences_and_keys_agree(
            made in "((en|EN|de|x-gzip|gzip)(;q=(0|0[.]5|0[.]50|1|2))?, ?){0,3}",
            asked in "((en|EN|de|x-gzip|gzip)(;q=(0|0[.]5|0[.]50|1|2))?, ?){0,3}",
        ) {
            let names = VaryNames::of(&fields(&[("vary", "accept-encoding, accept-language")])).unwrap();
            let map = |value: &str| fields(&[("accept-encoding", value), ("accept-language", value)]);
            let (made, asked) = (map(made.trim()), map(asked.trim()));
            let selecting = Selecting::new(names.clone(), &made, None);
            prop_assert!(selecting.selects(&made));
            prop_assert_eq!(selecting.selects(&asked), names.secondary(&made) == names.secondary(&asked));
            for name in names.names() {
                let read = |fields| Preferences::read(fields, name);
                if let (Some(a), Some(b)) = (read(&made), read(&asked)) {
                    let same = VaryNames(Arc::from([name.clone()]));
                    prop_assert_eq!(a == b, same.secondary(&made) == same.secondary(&asked));
                }
            }
        }
    }
}
