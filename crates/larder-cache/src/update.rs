//! Bringing a stored response up to date with the 304 that confirmed it (RFC 9111 3.2, 4.3.4).
//!
//! In: what is stored, the request that was sent on, the 304's fields. Out: a new head to store in its place, or the
//! merged fields for this one answer where the 304 now forbids storing. Fields of the 304 replace all stored lines of
//! the same name; what it does not mention stays. The exceptions describe the stored bytes, and those have not
//! changed: Content-Encoding, Content-Length, Content-Range. All rules of storing are asked again.

use http::{HeaderMap, header};
use larder_http::fields::date;
use larder_http::message::RequestHead;

use crate::freshness::ExchangeTimes;
use crate::head::StoredHead;
use crate::policy::CachePolicy;
use crate::storable::{NotStorable, Storability, storable_as_get};

/// Fields of one response, as towards origins.
const FIELDS_MAX: usize = 256;
/// Their names and values together, in bytes.
const BYTES_MAX: usize = 128 * 1024;

/// What became of a stored response.
#[derive(Clone, Debug)]
pub enum Updated {
    /// It lives on.
    Stored(Box<StoredHead>),
    /// The 304 brings more fields than a response may have: it is not used, and the request repeated without
    /// conditions.
    TooLarge,
    /// It answers this request once more. Where the reason [lies in the request](NotStorable::lies_in_request), what
    /// is stored stays as it was; otherwise it is to be removed.
    NoLongerStorable {
        /// The merged fields for this answer.
        fields: HeaderMap,
        /// The rule that forbids storing it.
        reason: NotStorable,
    },
}

/// Updates `stored`, which a 304 with the fields `not_modified` confirmed in answer to `request`.
pub fn update(
    stored: &StoredHead,
    request: &RequestHead,
    not_modified: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Updated {
    let Some(mut fields) = merged(&stored.fields.map, not_modified) else {
        return Updated::TooLarge;
    };
    if !not_modified.contains_key(header::DATE) {
        // The stored Date would make the confirmed response as old as it was before.
        fields.insert(header::DATE, date::format(times.response.wall));
    }
    match storable_as_get(&request.fields, stored.status, &fields, times, policy) {
        Storability::Storable(freshness) => {
            Updated::Stored(Box::new(StoredHead::new(request, stored.status, fields, freshness)))
        }
        Storability::NotStorable(reason) => Updated::NoLongerStorable { fields, reason },
    }
}

/// `None` where the sum is larger than a response's head may be: each 304 may bring new names, without end.
fn merged(stored: &HeaderMap, not_modified: &HeaderMap) -> Option<HeaderMap> {
    let replaces = |name: &http::HeaderName| match *name {
        header::CONTENT_ENCODING | header::CONTENT_LENGTH | header::CONTENT_RANGE => false,
        // The two are the same but perhaps for their strength, and that of the stored bytes is known.
        header::ETAG => !stored.contains_key(header::ETAG),
        _ => true,
    };
    let kept = stored.iter().filter(|(name, _)| !(replaces(name) && not_modified.contains_key(*name)));
    let new = not_modified.iter().filter(|(name, _)| replaces(name));
    let mut fields = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in kept.chain(new) {
        bytes += name.as_str().len() + value.len();
        if fields.len() == FIELDS_MAX || bytes > BYTES_MAX {
            return None;
        }
        fields.append(name, value.clone());
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DATE, at_ms, fields, request, stored};

    const STORED: [(&str, &str); 7] = [
        ("cache-control", "max-age=2"),
        ("etag", "\"a\""),
        ("x-a", "1"),
        ("x-a", "2"),
        ("content-encoding", "gzip"),
        ("content-type", "text/plain"),
        ("date", DATE),
    ];

    fn updated(asked: &[(&str, &str)], said: &[(&str, &str)]) -> Updated {
        let policy = CachePolicy::default();
        let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_500) };
        update(&stored(&[], &STORED, &policy), &request("GET", asked), &fields(said), times, &policy)
    }

    fn check(said: &[(&str, &str)], name: &str, expected: &[&str]) {
        match updated(&[], said) {
            Updated::Stored(head) => {
                let found: Vec<_> = head.fields.map.get_all(name).iter().collect();
                assert_eq!(found, expected, "{said:?}");
            }
            other => panic!("{other:?}: {said:?}"),
        }
    }

    #[test]
    fn fields_of_the_304_replace_and_all_others_stay() {
        check(&[], "x-a", &["1", "2"]);
        check(&[("x-a", "3")], "x-a", &["3"]);
        check(&[("x-b", "3"), ("x-b", "4")], "x-b", &["3", "4"]);
        check(&[("content-foo", "3")], "content-foo", &["3"]);
        check(&[("content-type", "text/html")], "content-type", &["text/html"]);
        check(&[("cache-control", "max-age=9")], "cache-control", &["max-age=9"]);
    }

    #[test]
    fn what_describes_the_stored_bytes_stays() {
        check(&[("content-encoding", "br")], "content-encoding", &["gzip"]);
        check(&[("content-length", "99")], "content-length", &[]);
        check(&[("content-range", "bytes 0-1/2")], "content-range", &[]);
    }

    #[test]
    fn a_tag_keeps_the_strength_that_it_was_stored_with() {
        check(&[("etag", "W/\"a\"")], "etag", &["\"a\""]);
    }

    #[test]
    fn fields_do_not_add_up_without_end() {
        let many: Vec<String> = (0..300).map(|n| format!("x-new-{n}")).collect();
        let said: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
        assert!(matches!(updated(&[], &said), Updated::TooLarge));
        let long = "v".repeat(BYTES_MAX);
        assert!(matches!(updated(&[], &[("x-long", &long)]), Updated::TooLarge));
    }

    #[test]
    fn age_starts_anew() {
        for said in [&[("cache-control", "max-age=9")][..], &[("cache-control", "max-age=9"), ("age", "4")]] {
            let Updated::Stored(head) = updated(&[], said) else { panic!("not stored") };
            let from_304 = if said.len() > 1 { 4_500 } else { 500 };
            assert_eq!(head.freshness.initial_age.as_millis(), from_304);
            assert!(head.freshness.is_fresh(at_ms(11_000)));
            assert!(!head.freshness.is_fresh(at_ms(20_000)));
            assert!(!head.fields.map.contains_key(header::AGE));
        }
        check(&[], "date", &["Sun, 06 Nov 1994 08:49:47 GMT"]);
        check(&[("date", "Sun, 06 Nov 1994 08:49:46 GMT")], "date", &["Sun, 06 Nov 1994 08:49:46 GMT"]);
    }

    #[test]
    fn all_rules_of_storing_are_asked_again() {
        let check =
            |asked: &[(&str, &str)], said: &[(&str, &str)], expected: NotStorable| match updated(asked, said)
            {
                Updated::NoLongerStorable { reason, fields } => {
                    assert_eq!(reason, expected);
                    assert_eq!(fields.get_all("x-a").iter().count(), 2);
                }
                other => panic!("{other:?}: {asked:?} {said:?}"),
            };
        check(&[], &[("cache-control", "no-store")], NotStorable::NoStore);
        check(&[], &[("cache-control", "private")], NotStorable::Private);
        check(&[], &[("vary", "*")], NotStorable::VaryAny);
        check(&[], &[("set-cookie", "sid=1")], NotStorable::SetSessionCookie);
        check(&[("authorization", "x")], &[], NotStorable::Authorization);
    }
}
