//! Targeted cache control (RFC 9213): directives for some caches only, such as CDN-Cache-Control.
//!
//! In: all lines of a field whose name the operator listed. Out: the same value that Cache-Control gives, or nothing
//! where the field is absent, empty, or not a Dictionary of RFC 9651: a field that is broken anywhere says nothing at
//! all, and Cache-Control decides. Unlike there, names are lower case and the last of several wins, as Structured Fields
//! have it. A type that does not fit errs towards caution. A lifetime that is no non-negative Integer is zero. A
//! restricting directive counts whatever hangs on it except `?0`, a permitting one only as `?1`. One that does both
//! restricts in any form and permits in its own. Unknown keys are ignored, and so are parameters (RFC 9213 2.1) but
//! for `private`, `no-store` and `no-cache`: those are directives behind a semicolon that was meant as a comma.
//! Deliberately absent: which field comes first, and what it replaces.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::cache_control::{Argument, Reach, ResponseDirectives, Strays};
use super::digits::DELTA_MAX;

/// Reads the directives of the field `name`; `None` where it is absent, empty or not valid.
pub fn read(fields: &HeaderMap, name: &HeaderName) -> Option<ResponseDirectives> {
    let value = super::joined(fields, name)?;
    let members = Parser::new(&value).parse_dictionary_with_visitor(Members::default()).ok()?;
    members.any.then_some(members.directives)
}

/// What has been read of the Dictionary.
#[derive(Default)]
struct Members {
    directives: ResponseDirectives,
    strays: Strays,
    any: bool,
}

/// A member: the slot of its key, if that is known, and where its parameters go.
struct Member<'a> {
    slot: Option<Slot<'a>>,
    parameters: Parameters<'a>,
}

/// Reads the parameters of a member. Unlike those of a key, all of several count.
struct Parameters<'a>(&'a mut Strays);

/// The slot that a known key fills. A later member replaces what an earlier one said.
enum Slot<'a> {
    Lifetime(&'a mut Option<Duration>),
    /// `s-maxage`, and whether it permits.
    SharedLifetime(&'a mut Option<Duration>, &'a mut bool),
    Reach(&'a mut Reach),
    Restricting(&'a mut bool),
    /// `must-revalidate`, and whether it permits.
    Both(&'a mut bool, &'a mut bool),
    Permitting(&'a mut bool),
}

impl<'de> DictionaryVisitor<'de> for Members {
    type Out = Self;
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        self.any = true;
        let said = &mut self.directives;
        let slot = match key.as_str() {
            "max-age" => Some(Slot::Lifetime(&mut said.max_age)),
            "s-maxage" => Some(Slot::SharedLifetime(&mut said.s_maxage, &mut said.permits.s_maxage)),
            "stale-while-revalidate" => Some(Slot::Lifetime(&mut said.stale_while_revalidate)),
            "stale-if-error" => Some(Slot::Lifetime(&mut said.stale_if_error)),
            "no-cache" => Some(Slot::Reach(&mut said.no_cache)),
            "private" => Some(Slot::Reach(&mut said.private)),
            "no-store" => Some(Slot::Restricting(&mut said.no_store)),
            "must-revalidate" => {
                Some(Slot::Both(&mut said.must_revalidate, &mut said.permits.must_revalidate))
            }
            "proxy-revalidate" => Some(Slot::Restricting(&mut said.proxy_revalidate)),
            "public" => Some(Slot::Permitting(&mut said.public)),
            "must-understand" => Some(Slot::Permitting(&mut said.must_understand)),
            _ => None,
        };
        Ok(Member { slot, parameters: Parameters(&mut self.strays) })
    }

    fn finish(mut self) -> Result<Self, Infallible> {
        self.strays.restrict(&mut self.directives);
        Ok(self)
    }
}

impl Slot<'_> {
    /// Takes the value of a member; `None` stands for an inner list.
    fn fill(self, item: Option<&BareItemFromInput<'_>>) {
        let boolean = item.and_then(BareItemFromInput::as_boolean);
        let seconds =
            || item.and_then(BareItemFromInput::as_integer).and_then(|seconds| u64::try_from(seconds).ok());
        let lifetime = |seconds: Option<u64>| Duration::from_secs(seconds.unwrap_or(0)).min(DELTA_MAX);
        match self {
            Self::Lifetime(slot) => *slot = Some(lifetime(seconds())),
            Self::SharedLifetime(slot, permits) => {
                *slot = Some(lifetime(seconds()));
                *permits = seconds().is_some();
            }
            Self::Reach(slot) => {
                *slot = Reach::Nothing;
                match item {
                    _ if boolean == Some(false) => {}
                    _ if boolean == Some(true) => slot.extend(Argument::None),
                    Some(BareItemFromInput::String(list)) => {
                        slot.extend(Argument::Quoted(list.as_str().as_bytes()));
                    }
                    Some(BareItemFromInput::Token(name)) => {
                        slot.extend(Argument::Token(name.as_str().as_bytes()));
                    }
                    _ => slot.extend(Argument::Malformed(b"")),
                }
            }
            Self::Restricting(slot) => *slot = boolean != Some(false),
            Self::Both(slot, permits) => {
                *slot = boolean != Some(false);
                *permits = boolean == Some(true);
            }
            Self::Permitting(slot) => *slot = boolean == Some(true),
        }
    }
}

impl<'de> EntryVisitor<'de> for Member<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        if let Some(slot) = self.slot {
            slot.fill(None);
        }
        Ok(self.parameters)
    }
}

impl<'de> ItemVisitor<'de> for Member<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        if let Some(slot) = self.slot {
            slot.fill(Some(&item));
        }
        Ok(self.parameters)
    }
}

impl<'de> InnerListVisitor<'de> for Parameters<'_> {
    type Error = Infallible;

    fn item(&mut self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(Ignored)
    }

    fn finish(self) -> Result<impl ParameterVisitor<'de>, Infallible> {
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for Parameters<'_> {
    type Out = ();
    type Error = Infallible;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        if value.as_boolean() != Some(false) {
            self.0.add(key.as_str().as_bytes());
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::fields::cache_control::{Directives, Permits};

    const NAME: HeaderName = HeaderName::from_static("cdn-cache-control");

    fn read_lines(lines: &[&str]) -> Option<ResponseDirectives> {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(NAME, HeaderValue::from_str(line).unwrap());
        }
        read(&fields, &NAME)
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn what_is_no_dictionary_says_nothing_at_all() {
        assert_eq!(read_lines(&[]), None);
        for broken in [
            "",
            "   ",
            "max-age=10000, &&&&&",
            "MAX-AGE=3600",
            "max-age =100",
            "max-age= 100",
            "max-age=100,",
            ",max-age=100",
            "max-age=100,,no-store",
            "max-age='3600'",
            "max-age=\"100",
            "max-age=1;",
            "max-age=60;q=(",
            "max-age=1234567890123456",
            "no-store foo",
            "no-store=(1",
        ] {
            assert_eq!(read_lines(&[broken]), None, "{broken:?}");
        }
        assert_eq!(read_lines(&["max-age=1", ""]), None);
        assert_eq!(read_lines(&["max-age=1", "&"]), None);
        assert!(read_lines(&["unknown"]).is_some(), "a valid field replaces Cache-Control, whatever it says");
    }

    #[test]
    fn a_lifetime_is_a_non_negative_integer_and_anything_else_is_zero() {
        for (line, expected) in [
            ("max-age=3600", 3600),
            ("max-age=003600", 3600),
            ("max-age=0", 0),
            ("max-age=99999999999", 1 << 31),
            ("max-age=999999999999999", 1 << 31),
            ("max-age=60;unknown=1", 60),
            ("foo=bar, max-age=60", 60),
            ("foo=\"max-age=9\", max-age=60", 60),
            ("max-age=1, max-age=60", 60),
            ("max-age=60, max-age=1", 1),
            ("max-age=60, max-age", 0),
            ("max-age", 0),
            ("max-age=?0", 0),
            ("max-age=-1", 0),
            ("max-age=1.5", 0),
            ("max-age=\"60\"", 0),
            ("max-age=sixty", 0),
            ("max-age=@60", 0),
            ("max-age=(60)", 0),
            ("max-age=:YQ==:", 0),
        ] {
            assert_eq!(read_lines(&[line]).unwrap().max_age, seconds(expected), "{line}");
        }
        let all = read_lines(&["s-maxage=1, stale-while-revalidate=2", "stale-if-error=3"]).unwrap();
        let expected = ResponseDirectives {
            s_maxage: seconds(1),
            stale_while_revalidate: seconds(2),
            stale_if_error: seconds(3),
            permits: Permits { s_maxage: true, ..Permits::default() },
            ..ResponseDirectives::default()
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn restricting_directives_count_with_any_type_but_false_and_permitting_ones_only_when_true() {
        let one = |line: &str| read_lines(&[line]).unwrap();
        for line in
            ["no-store", "no-store=?1", "no-store=1", "no-store=\"x\"", "no-store=(a b)", "no-store;x"]
        {
            assert!(one(line).no_store, "{line}");
        }
        assert!(!one("no-store=?0").no_store);
        assert!(!one("no-store, no-store=?0").no_store);
        assert!(one("must-revalidate=1").must_revalidate && one("proxy-revalidate").proxy_revalidate);
        assert!(one("public").public && one("must-understand;x=1").must_understand);
        for line in ["public=?0", "public=1", "public=(a)", "public, public=x"] {
            assert!(!one(line).public, "{line}");
        }
    }

    #[test]
    fn what_restricts_and_permits_permits_only_where_it_is_well_formed() {
        for (line, must_revalidate, s_maxage) in [
            ("must-revalidate", true, false),
            ("must-revalidate=?1;x", true, false),
            ("must-revalidate=1", false, false),
            ("must-revalidate=?0", false, false),
            ("must-revalidate=(a)", false, false),
            ("must-revalidate, must-revalidate=1", false, false),
            ("s-maxage=60", false, true),
            ("s-maxage=0", false, true),
            ("s-maxage=x", false, false),
            ("s-maxage=-1", false, false),
            ("s-maxage=60, s-maxage", false, false),
        ] {
            let found = read_lines(&[line]).unwrap();
            assert_eq!(found.permits, Permits { must_revalidate, s_maxage }, "{line}");
        }
    }

    #[test]
    fn restricting_words_count_as_parameters_too() {
        for (line, expected) in [
            ("must-revalidate;private", (true, false, false)),
            ("max-age=60; no-store, no-store=?0", (false, true, false)),
            ("unknown;no-cache=1", (false, false, true)),
            ("private=?0;private, private=?0", (true, false, false)),
            ("max-age=(1 2);private", (true, false, false)),
            ("max-age=60;private=?0", (false, false, false)),
            ("max-age=60;x=private;xprivate", (false, false, false)),
            ("x=private, y=\"no-store\", z=(no-cache a;private)", (false, false, false)),
        ] {
            let found = read_lines(&[line]).unwrap();
            let found = (found.private.is_whole(), found.no_store, found.no_cache.is_whole());
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn qualified_forms_name_fields() {
        let reach = |line: &str| read_lines(&[line]).unwrap().private;
        assert_eq!(reach("private=?0"), Reach::Nothing);
        assert_eq!(reach("private=\"set-cookie, X-B\"").fields(), ["set-cookie", "x-b"]);
        assert_eq!(reach("private=set-cookie").fields(), ["set-cookie"]);
        assert_eq!(reach("private, private=a").fields(), ["a"]);
        for whole in
            ["private", "private=1", "private=(a b)", "private=\"\"", "private=a, private", "private=vary"]
        {
            assert!(reach(whole).is_whole(), "{whole}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics_and_lifetimes_are_bounded(
            lines in proptest::collection::vec("[ -~]{0,40}|(max-age|no-cache|private)=[0-9a-z\"?@():;.-]{0,20}", 0..4)
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            if let Some(said) = read_lines(&lines) {
                prop_assert!(said.max_age.is_none_or(|age| age <= DELTA_MAX));
            }
        }

        #[test]
        fn plain_directives_mean_what_they_mean_in_cache_control(
            members in proptest::collection::btree_set(0..6_usize, 0..6), age in 0..100_000_u32
        ) {
            let known = ["no-store", "public", "must-revalidate", "no-cache", "private=\"x-a\"", "must-understand"];
            let mut line = format!("max-age={age}");
            for member in members {
                line.push_str(", ");
                line.push_str(known[member]);
            }
            let mut fields = HeaderMap::new();
            fields.insert(http::header::CACHE_CONTROL, HeaderValue::from_str(&line).unwrap());
            prop_assert!(Directives::new(line.as_bytes()).count() >= 1);
            prop_assert_eq!(read_lines(&[&line]), Some(ResponseDirectives::read(&fields)));
        }
    }
}
