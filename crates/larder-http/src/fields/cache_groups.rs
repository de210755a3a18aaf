//! Cache-Groups and Cache-Group-Invalidation (RFC 9875): which stored responses fall together.
//!
//! In: all lines of either field. Out: the names of groups, each once, in the order they came; compared byte for byte.
//! Both fields are Lists of Strings of RFC 9651: a field that is broken anywhere, or has a member of another type,
//! names no group. Parameters are ignored. The RFC asks for at least 32 groups of 32 characters; names and members
//! beyond the bounds here are left out. Deliberately absent: the origin that a group belongs to, and the invalidation.

use http::{HeaderMap, HeaderName};
use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, Parser};

/// On a response: the groups that it belongs to.
pub const CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
/// On the answer to an unsafe request: the groups that are no longer valid.
pub const CACHE_GROUP_INVALIDATION: HeaderName = HeaderName::from_static("cache-group-invalidation");

/// Members of one field that count; those behind them are left out.
pub const GROUPS_MAX: usize = 128;
/// Characters in the name of a group; a longer one is left out.
pub const NAME_MAX: usize = 128;

/// The groups that a response belongs to.
pub fn groups(fields: &HeaderMap) -> Vec<String> {
    read(fields, &CACHE_GROUPS)
}

/// The groups that a response invalidates. Whether it may is for the caller: only the answer to an unsafe request does.
pub fn invalidated(fields: &HeaderMap) -> Vec<String> {
    read(fields, &CACHE_GROUP_INVALIDATION)
}

fn read(fields: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let Some(value) = super::joined(fields, name) else { return Vec::new() };
    Parser::new(&value).parse_list_with_visitor(Groups::default()).unwrap_or_default()
}

#[derive(Default)]
struct Groups {
    names: Vec<String>,
    /// How many have been seen, with those that were left out.
    members: usize,
}

/// A member that is not a String; the whole field is ignored.
#[derive(Debug, thiserror::Error)]
#[error("a member is not a string")]
struct NotAString;

impl<'de> ListVisitor<'de> for Groups {
    type Out = Vec<String>;
    type Error = NotAString;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, NotAString> {
        self.members = self.members.saturating_add(1);
        let counts = self.members <= GROUPS_MAX;
        Ok(Member { names: &mut self.names, counts })
    }

    fn finish(self) -> Result<Vec<String>, NotAString> {
        Ok(self.names)
    }
}

struct Member<'a> {
    names: &'a mut Vec<String>,
    counts: bool,
}

impl<'de> EntryVisitor<'de> for Member<'_> {
    type Error = NotAString;

    fn item(self) -> Result<impl ItemVisitor<'de>, NotAString> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, NotAString> {
        Err::<Ignored, _>(NotAString)
    }
}

impl<'de> ItemVisitor<'de> for Member<'_> {
    type Out = ();
    type Error = NotAString;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, NotAString> {
        let BareItemFromInput::String(name) = item else { return Err(NotAString) };
        let name = name.as_str();
        if self.counts && name.len() <= NAME_MAX && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        Ok(Ignored)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn check(lines: &[&str], expected: &[&str]) {
        for (name, read) in
            [(CACHE_GROUPS, groups as fn(&HeaderMap) -> Vec<String>), (CACHE_GROUP_INVALIDATION, invalidated)]
        {
            let mut fields = HeaderMap::new();
            for line in lines {
                fields.append(&name, HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(read(&fields), expected, "{lines:?}");
        }
    }

    #[test]
    fn groups_are_strings_each_once() {
        check(&[], &[]);
        check(&[""], &[]);
        check(&[r#""scripts""#], &["scripts"]);
        check(&[r#""a" ,"b", "a""#], &["a", "b"]);
        check(&[r#""a""#, r#""b", "A""#], &["a", "b", "A"]);
        check(&[r#""a";x=1;y, "b""#], &["a", "b"]);
        check(&[r#""with \"quotes\" and \\""#], &[r#"with "quotes" and \"#]);
        check(&[r#""a, b", """#], &["a, b", ""]);
    }

    #[test]
    fn a_field_that_is_broken_anywhere_names_no_group() {
        for broken in [
            "a",
            r#""a", b"#,
            r#""a", 1"#,
            r#"("a" "b")"#,
            r#""a","#,
            r#""a" "b""#,
            r#""a"#,
            r#""a\n""#,
            "\"\u{e9}\"",
            "?1",
        ] {
            check(&[broken], &[]);
        }
        check(&[r#""a""#, ""], &[]);
    }

    #[test]
    fn what_is_beyond_the_bounds_is_left_out() {
        let (fits, too_long) = ("x".repeat(NAME_MAX), "x".repeat(NAME_MAX + 1));
        check(&[&format!("\"{too_long}\", \"{fits}\"")], &[&fits]);
        let names: Vec<String> = (0..=GROUPS_MAX).map(|n| n.to_string()).collect();
        let line = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let expected: Vec<&str> = names.iter().take(GROUPS_MAX).map(String::as_str).collect();
        check(&[&line], &expected);
        check(&[&format!("{line}, broken")], &[]);
    }

    proptest! {
        #[test]
        fn no_value_panics_and_bounds_hold(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let found = groups(&HeaderMap::from_iter([(CACHE_GROUPS, value)]));
                prop_assert!(found.len() <= GROUPS_MAX && found.iter().all(|name| name.len() <= NAME_MAX));
            }
        }

        #[test]
        fn what_is_printed_is_read_back(names in proptest::collection::btree_set("[ -~]{0,20}", 0..20)) {
            let members: Vec<String> = names
                .iter()
                .map(|name| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")))
                .collect();
            check(&[&members.join(",")], &names.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
