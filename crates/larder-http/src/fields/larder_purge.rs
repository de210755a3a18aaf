//! Larder-Purge: what the answer to an unsafe request names as outdated, for this cache.
//!
//! In: all lines of the field. Out: its members, each with whether it asks for a soft purge. The field is a List of Strings of RFC
//! 9651: `"tag:news", "prefix:/blog/";soft`. One that is broken anywhere, or has a member of another type, names nothing.
//! Deliberately absent: what a member means, and whose hosts it may reach.

use http::{HeaderMap, HeaderName};
use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};

/// The field.
pub const LARDER_PURGE: HeaderName = HeaderName::from_static("larder-purge");

/// Members that count; those behind them are left out.
pub const MEMBERS_MAX: usize = 1000;

/// A member of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedForPurge {
    /// Such as `tag:news`.
    pub name: String,
    /// It has the parameter `soft`.
    pub soft: bool,
}

/// What a response names.
pub fn named(fields: &HeaderMap) -> Vec<NamedForPurge> {
    let Some(value) = super::joined(fields, &LARDER_PURGE) else { return Vec::new() };
    Parser::new(&value).parse_list_with_visitor(Members::default()).unwrap_or_default()
}

#[derive(Default)]
struct Members(Vec<NamedForPurge>);

/// A member that is not a String; the whole field is ignored.
#[derive(Debug, thiserror::Error)]
#[error("a member is not a string")]
struct NotAString;

impl<'de> ListVisitor<'de> for Members {
    type Out = Vec<NamedForPurge>;
    type Error = NotAString;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, NotAString> {
        Ok(Member { all: &mut self.0 })
    }

    fn finish(self) -> Result<Vec<NamedForPurge>, NotAString> {
        Ok(self.0)
    }
}

struct Member<'a> {
    all: &'a mut Vec<NamedForPurge>,
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
        let member = (self.all.len() < MEMBERS_MAX).then(|| {
            self.all.push(NamedForPurge { name: name.as_str().to_owned(), soft: false });
            self.all.last_mut()
        });
        Ok(Parameters { member: member.flatten() })
    }
}

struct Parameters<'a> {
    /// `None` beyond the bound.
    member: Option<&'a mut NamedForPurge>,
}

impl<'de> ParameterVisitor<'de> for Parameters<'_> {
    type Out = ();
    type Error = NotAString;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), NotAString> {
        if let Some(member) = &mut self.member
            && key.as_str() == "soft"
        {
            member.soft = !matches!(value, BareItemFromInput::Boolean(false));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), NotAString> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[&str]) -> Vec<(String, bool)> {
        let lines = lines.iter().map(|line| (LARDER_PURGE, HeaderValue::from_str(line).unwrap()));
        let fields = HeaderMap::from_iter(lines);
        named(&fields).into_iter().map(|member| (member.name, member.soft)).collect()
    }

    #[test]
    fn members_are_strings_and_each_says_for_itself_whether_it_is_soft() {
        let of = |name: &str, soft| (name.to_owned(), soft);
        assert_eq!(
            read(&[r#""tag:news", "prefix:/blog/";soft"#]),
            [of("tag:news", false), of("prefix:/blog/", true)]
        );
        assert_eq!(read(&[r#""a";soft=?0;x=1"#, r#""b";soft=?1"#]), [of("a", false), of("b", true)]);
        assert_eq!(read(&[]), []);
        for broken in ["tag:news", r#""a", b"#, r#"("a")"#, r#""a""#.trim_end_matches('"'), "?1"] {
            assert_eq!(read(&[r#""x""#, broken]), [], "{broken}");
        }
        let many = vec![r#""a";soft"#; MEMBERS_MAX + 1].join(",");
        assert_eq!(read(&[&many]).len(), MEMBERS_MAX);
    }

    proptest! {
        #[test]
        fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _ = named(&HeaderMap::from_iter([(LARDER_PURGE, value)]));
            }
        }
    }
}
