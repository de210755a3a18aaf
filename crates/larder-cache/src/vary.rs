//! Which of several stored responses a request selects (RFC 9111 4.1).
//!
//! In: the Vary of a response and the request that made it. Out: [`Selecting`], kept with the stored response, which
//! tells for a later request whether it would have made the same one, without allocating; and [`VaryNames`], which
//! can be remembered for a URI and turns a request into a [`SecondaryKey`] before anything is fetched.
//! Values are compared after joining lines and dropping blanks around commas outside of quoted strings; nothing
//! that would need to know the field. Absent matches absent only.

use std::hash::Hash;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use larder_http::fields::vary::Vary;

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

/// Ends a value. No field value contains it.
const END: &[u8] = &[0];
/// Stands for a field that the request does not have. No field value contains it.
const ABSENT: &[u8] = &[1];

/// Hands the normalised value of `name` to `part`, piece by piece, and [`END`].
fn write_value(request: &HeaderMap, name: &HeaderName, mut part: impl FnMut(&[u8])) {
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
}

impl Selecting {
    /// What `request` has for `names`.
    pub fn new(names: VaryNames, request: &HeaderMap) -> Self {
        let key = names.secondary(request);
        Self { names, key }
    }

    /// Whether `request` has the same values. A response that does not vary is selected by every request.
    pub fn selects(&self, request: &HeaderMap) -> bool {
        let mut rest = Some(&*self.key.0);
        for name in self.names.names() {
            write_value(request, name, |part| rest = rest.and_then(|rest| rest.strip_prefix(part)));
            if rest.is_none() {
                return false;
            }
        }
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// The names.
    pub fn names(&self) -> &VaryNames {
        &self.names
    }

    /// The values.
    pub fn key(&self) -> &SecondaryKey {
        &self.key
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        self.names.memory_bytes() + self.key.0.len()
    }
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
        let selecting = Selecting::new(names.clone(), &made);
        assert_eq!(selecting.selects(&asked), expected, "vary {vary}: {made:?} {asked:?}");
        assert_eq!(names.secondary(&made) == names.secondary(&asked), expected, "the keys say the same");
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
            let selecting = Selecting::new(names.clone(), &made);
            prop_assert!(selecting.selects(&made));
            prop_assert_eq!(selecting.selects(&asked), names.secondary(&made) == names.secondary(&asked));
        }
    }
}
