//! What the cache nearest to the client did, as its answer says it in Cache-Status.
//!
//! In: the fields of a response. Out: what the last member of the list says (RFC 9211 2), since each cache on the way adds its member
//! at the end. Nothing where the field is missing or is no list. Parameters of unknown names or types are ignored.
//! Deliberately absent: members of the caches behind it, and the parameters that only people read.

use std::convert::Infallible;

use http::HeaderMap;
use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::CACHE_STATUS;

/// The last member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearestCache {
    /// It answered from what it had stored.
    pub hit: bool,
    /// It stored the answer.
    pub stored: bool,
    /// Its own word, a token or a string.
    pub detail: Option<String>,
}

impl NearestCache {
    /// Reads the field.
    pub fn read(fields: &HeaderMap) -> Option<Self> {
        let value = super::super::joined(fields, &CACHE_STATUS)?;
        Parser::new(&value).parse_list_with_visitor(Members::default()).ok()?
    }
}

#[derive(Default)]
struct Members {
    last: Option<NearestCache>,
}

impl<'de> ListVisitor<'de> for Members {
    type Out = Option<NearestCache>;
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Member(self.last.insert(NearestCache::default())))
    }

    fn finish(self) -> Result<Option<NearestCache>, Infallible> {
        Ok(self.last)
    }
}

struct Member<'a>(&'a mut NearestCache);

impl<'de> EntryVisitor<'de> for Member<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Member<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        _: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for Member<'_> {
    type Out = ();
    type Error = Infallible;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        match (key.as_str(), value) {
            ("hit", BareItemFromInput::Boolean(hit)) => self.0.hit = hit,
            ("stored", BareItemFromInput::Boolean(stored)) => self.0.stored = stored,
            ("detail", BareItemFromInput::Token(detail)) => self.0.detail = Some(detail.as_str().to_owned()),
            ("detail", BareItemFromInput::String(detail)) => self.0.detail = Some(detail.as_str().to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::super::{CacheStatus, Forward, Outcome};
    use super::*;

    fn check(lines: &[&str], expected: Option<(bool, bool, Option<&str>)>) {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(CACHE_STATUS, HeaderValue::from_str(line).expect("a value"));
        }
        let expected = expected.map(|(hit, stored, detail)| NearestCache {
            hit,
            stored,
            detail: detail.map(str::to_owned),
        });
        assert_eq!(NearestCache::read(&fields), expected, "{fields:?}");
    }

    #[test]
    fn the_last_member_is_the_nearest_cache() {
        check(&["larder; hit; ttl=5"], Some((true, false, None)));
        check(&["inner; hit, larder; fwd=miss; stored"], Some((false, true, None)));
        check(
            &["inner; hit; detail=x", "larder; fwd=bypass; detail=no-store"],
            Some((false, false, Some("no-store"))),
        );
        check(&["\"a cache, of ours\"; hit=?0; detail=\"in words\""], Some((false, false, Some("in words"))));
        check(&["larder; stored=1; detail=?1; later=(1)"], None);
        check(&["larder; stored=1; detail=?1"], Some((false, false, None)));
        check(&["larder; hit, (a b); hit"], Some((false, false, None)));
        check(&[], None);
        check(&[""], None);
        check(&["larder; hit,"], None);
    }

    #[test]
    fn what_larder_writes_is_read() {
        let status = CacheStatus {
            forward_status: Some(StatusCode::OK),
            stored: true,
            ttl_seconds: Some(60),
            detail: Some("cookies-withheld"),
            ..CacheStatus::new(Outcome::Forwarded(Forward::UriMiss))
        };
        let fields = HeaderMap::from_iter([(CACHE_STATUS, status.value_with_key("http://a/\"; hit"))]);
        let read = NearestCache { hit: false, stored: true, detail: Some("cookies-withheld".to_owned()) };
        assert_eq!(NearestCache::read(&fields), Some(read));
    }
}
