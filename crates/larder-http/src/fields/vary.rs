//! Vary (RFC 9110 12.5.5): which request fields chose the response.
//!
//! In: all lines of the field. Out: the names, sorted and each once, so that two responses that name the same fields
//! have the same list; or "any", which matches no later request. What is not a list of names is "any" as well: a
//! selection that cannot be understood must not be repeated.

use http::{HeaderMap, HeaderName, header};

/// Names beyond which a Vary is taken as `*`.
pub const NAMES_MAX: usize = 64;

/// What Vary says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// `*`, or not understood: no stored response can be selected again.
    Any,
    /// These request fields; empty where the response does not vary.
    Names(Vec<HeaderName>),
}

impl Vary {
    /// Reads all Vary lines of a response.
    pub fn read(fields: &HeaderMap) -> Self {
        let mut names: Vec<HeaderName> = Vec::new();
        for line in fields.get_all(header::VARY) {
            for member in line.as_bytes().split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                if member.is_empty() {
                    continue;
                }
                match HeaderName::from_bytes(member) {
                    Ok(name) if member != b"*" => {
                        if !names.contains(&name) {
                            names.push(name);
                        }
                    }
                    Ok(_) | Err(_) => return Self::Any,
                }
                if names.len() > NAMES_MAX {
                    return Self::Any;
                }
            }
        }
        names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        Self::Names(names)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn check(lines: &[&str], expected: Option<&[&str]>) {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(header::VARY, HeaderValue::from_str(line).unwrap());
        }
        let names = |names: &[&str]| Vary::Names(names.iter().map(|name| name.parse().unwrap()).collect());
        assert_eq!(Vary::read(&fields), expected.map_or(Vary::Any, names), "{lines:?}");
    }

    #[test]
    fn names_are_collected_from_all_lines() {
        check(&[], Some(&[]));
        check(&[""], Some(&[]));
        check(&["Foo"], Some(&["foo"]));
        check(&["foo, Bar,,FOO", "baz"], Some(&["bar", "baz", "foo"]));
    }

    #[test]
    fn a_star_anywhere_is_any() {
        check(&["*"], None);
        check(&["*, *"], None);
        check(&["*", "*"], None);
        check(&[", *"], None);
        check(&["", "*"], None);
        check(&["*, Foo"], None);
        check(&["Foo, *"], None);
    }

    #[test]
    fn what_is_not_understood_is_any() {
        check(&["foo bar"], None);
        check(&["foo;q=1"], None);
        check(&["\"foo\""], None);
        let many: Vec<String> = (0..1000).map(|n| format!("x-{n}")).collect();
        check(&[&many.join(",")], None);
        check(&[&"x".repeat(70_000)], None);
        check(&[&"x".repeat(300)], Some(&[&"x".repeat(300)]));
    }

    proptest! {
        #[test]
        fn the_order_of_names_does_not_matter(mut names in proptest::collection::vec("[a-zA-Z-]{1,8}", 1..10)) {
            let read = |names: &[String]| {
                let mut fields = HeaderMap::new();
                fields.insert(header::VARY, HeaderValue::from_str(&names.join(",")).unwrap());
                Vary::read(&fields)
            };
            let forward = read(&names);
            names.reverse();
            prop_assert_eq!(forward, read(&names));
        }
    }
}
