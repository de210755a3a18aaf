//! Bringing a stored response up to date with the 304 that confirmed it (RFC 9111 3.2, 4.3.4), or with the 200 to a HEAD
//! that describes it (4.3.5).
//!
//! In: what is stored, the request that was sent on, the new fields. Out: a new head to store in its place, or the
//! merged fields for this one answer where a 304 now forbids storing. New fields replace all stored lines of
//! the same name; what they do not mention stays. The exceptions describe the stored bytes, and those have not
//! changed: Content-Encoding, Content-Length, Content-Range, and the digests. All rules of storing are asked again, with the stored
//! response's private control fields, which no client sees.

use http::{HeaderMap, HeaderName, StatusCode, header};
use larder_http::fields::date::{self, DateField};
use larder_http::fields::etag::EntityTag;
use larder_http::message::RequestHead;

use crate::directives::{Directives, strip};
use crate::freshness::ExchangeTimes;
use crate::head::{StoredHead, kept_back};
use crate::policy::CachePolicy;
use crate::storable::{NotStorable, Storability, is_its_clients_alone, is_personal, storable_as_get};

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
        /// The merged fields for this answer, without private control fields.
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
    let Some(fields) = renewed(&stored.all_fields(), not_modified, times) else {
        return Updated::TooLarge;
    };
    match storable_as_get(request, stored.status, &fields, times, policy) {
        Storability::Storable(freshness) => {
            Updated::Stored(Box::new(StoredHead::new(request, stored.status, fields, freshness, policy)))
        }
        Storability::NotStorable(reason) => {
            let mut fields = fields;
            strip(&mut fields, &policy.controls);
            Updated::NoLongerStorable { fields, reason }
        }
    }
}

/// The lines of a 304 that are for the client alone that caused the validation of `stored`: those that the directives in
/// force after the update keep from being stored. They are the 304's own where it has any, else the stored ones, and
/// those of the field that decides. [`withheld`](crate::withheld) is the same for a whole response. Empty where the update is
/// [`TooLarge`](Updated::TooLarge); what is [no longer storable](Updated::NoLongerStorable) has them among its fields.
pub fn withheld_by_update(stored: &StoredHead, not_modified: &HeaderMap, policy: &CachePolicy) -> HeaderMap {
    let after = merged(&stored.all_fields(), not_modified, |_| true).unwrap_or_default();
    kept_back(&Directives::read(&after, policy).said, not_modified, policy)
}

/// What a 200 to HEAD makes of a stored response.
#[derive(Clone, Debug)]
pub enum HeadUpdate {
    /// It lives on with these fields.
    Updated(Box<StoredHead>),
    /// The origin would send something else now: it is to be removed.
    Outdated,
    /// It stays as it is: the HEAD says nothing that could be kept.
    Unchanged,
}

/// Updates `stored`, a whole response that `request`, a HEAD, selects and that was answered by 200 with `fields`. What
/// the HEAD names of ETag and Last-Modified has to be what is stored; a stored response with another status is not what
/// a GET would get any more. Its Content-Length, which is not kept among a response's fields, is for the caller to
/// compare with the body. A HEAD that is somebody's own says nothing about what all others get.
pub fn update_by_head(
    stored: &StoredHead,
    request: &RequestHead,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> HeadUpdate {
    let is_own =
        is_personal(request, policy) || is_its_clients_alone(&request.fields, &stored.freshness, policy);
    if stored.part.is_some() || is_own {
        return HeadUpdate::Unchanged;
    }
    if stored.status != StatusCode::OK || !is_described_by(stored, fields) {
        return HeadUpdate::Outdated;
    }
    let Some(fields) = renewed(&stored.all_fields(), fields, times) else {
        return HeadUpdate::Unchanged;
    };
    match storable_as_get(request, stored.status, &fields, times, policy) {
        Storability::Storable(freshness) => {
            HeadUpdate::Updated(Box::new(StoredHead::new(request, stored.status, fields, freshness, policy)))
        }
        Storability::NotStorable(reason) if reason.lies_in_request() => HeadUpdate::Unchanged,
        Storability::NotStorable(_) => HeadUpdate::Outdated,
    }
}

/// Whether the validators in `fields` are those of what is stored. Tags are compared weakly, as for a 304: a server that
/// compresses weakens them. Where the HEAD names none, or nothing is stored to compare it with, it describes what is stored:
/// RFC 9111 4.3.5 asks that the validators received have matching ones, and a page without any would otherwise never be
/// brought up to date.
fn is_described_by(stored: &StoredHead, fields: &HeaderMap) -> bool {
    let validators = &stored.validators;
    let same_tag = !fields.contains_key(header::ETAG) || {
        let own = validators.etag.as_ref().and_then(|value| EntityTag::new(value.as_bytes()));
        own.zip(EntityTag::of(fields)).is_some_and(|(own, said)| own.equals_weakly(&said))
    };
    let same_date = !fields.contains_key(header::LAST_MODIFIED)
        || validators.last_modified.as_ref().is_some_and(|(value, modified)| {
            let said = DateField::read(fields, &header::LAST_MODIFIED, stored.freshness.received.wall);
            said == DateField::At(*modified) || fields.get(header::LAST_MODIFIED) == Some(value)
        });
    same_tag && same_date
}

/// Fields that say what the content hashes to (RFC 9530, RFC 2616 14.15).
const DIGESTS: [&str; 3] = ["content-md5", "content-digest", "repr-digest"];

/// The stored fields brought up to date; `None` where they are too large.
fn renewed(stored: &HeaderMap, newer: &HeaderMap, times: ExchangeTimes) -> Option<HeaderMap> {
    let mut fields = merged(stored, newer, |name| match *name {
        header::CONTENT_ENCODING | header::CONTENT_LENGTH | header::CONTENT_RANGE => false,
        // The two are the same but perhaps for their strength, and that of the stored bytes is known.
        header::ETAG => !stored.contains_key(header::ETAG),
        // Digests are of the stored bytes.
        _ if DIGESTS.iter().any(|digest| name == digest) => !stored.contains_key(name),
        _ => true,
    })?;
    if !newer.contains_key(header::DATE) {
        // The stored Date would make the confirmed response as old as it was before.
        fields.insert(header::DATE, date::format(times.response.wall));
    }
    Some(fields)
}

/// `stored` with the lines of `newer` in place of those of the same name, for the names that `replaces` allows. `None`
/// where the sum is larger than a response's head may be: each answer may bring new names, without end.
pub(crate) fn merged(
    stored: &HeaderMap,
    newer: &HeaderMap,
    replaces: impl Fn(&HeaderName) -> bool,
) -> Option<HeaderMap> {
    let kept = stored.iter().filter(|(name, _)| !(replaces(name) && newer.contains_key(*name)));
    let new = newer.iter().filter(|(name, _)| replaces(name));
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
        check(&[("content-digest", "sha-256=:AA==:")], "content-digest", &["sha-256=:AA==:"]);
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
    fn private_control_fields_are_judged_again_and_never_seen() {
        let policy = CachePolicy::default();
        let was = stored(&[], &[("x-accel-expires", "30"), ("etag", "\"a\"")], &policy);
        let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_000) };
        let updated = |said| update(&was, &request("GET", &[]), &fields(said), times, &policy);
        let Updated::Stored(head) = updated(&[]) else { panic!("not stored") };
        assert!(head.freshness.is_fresh(at_ms(39_000)) && !head.freshness.is_fresh(at_ms(41_000)));
        assert!(!head.fields.map.contains_key("x-accel-expires"));
        assert_eq!(head.all_fields().get("x-accel-expires"), was.all_fields().get("x-accel-expires"));
        let Updated::Stored(head) = updated(&[("x-accel-expires", "5")]) else { panic!("not stored") };
        assert!(!head.freshness.is_fresh(at_ms(16_000)));
        let Updated::NoLongerStorable { fields, .. } = updated(&[("vary", "*")]) else { panic!("stored") };
        assert!(!fields.contains_key("x-accel-expires"));
    }

    #[test]
    fn a_part_stays_the_part_that_it_is() {
        let policy = CachePolicy::default();
        let asked = request("GET", &[("range", "bytes=0-4")]);
        let said =
            fields(&[("cache-control", "max-age=2"), ("etag", "\"a\""), ("content-range", "bytes 0-4/10")]);
        let times = ExchangeTimes { request: at_ms(0), response: at_ms(0) };
        let found = crate::storable(&asked, StatusCode::PARTIAL_CONTENT, &said, times, &policy);
        let Storability::Storable(freshness) = found else { panic!("{found:?}") };
        let head = StoredHead::new(&asked, StatusCode::PARTIAL_CONTENT, said, freshness, &policy);
        let not_modified = fields(&[("etag", "\"a\""), ("content-range", "bytes 5-9/10")]);
        match update(&head, &asked, &not_modified, times, &policy) {
            Updated::Stored(updated) => assert_eq!(updated.part, head.part),
            other => panic!("{other:?}"),
        }
        let by_head = update_by_head(&head, &request("HEAD", &[]), &fields(&[]), times, &policy);
        assert!(matches!(by_head, HeadUpdate::Unchanged));
    }

    #[test]
    fn lines_of_a_304_that_are_not_stored_are_for_its_client() {
        let policy = CachePolicy::default();
        let check = |was: &str, said: &[(&str, &str)], expected: &[(&str, &str)]| {
            let was = stored(&[], &[("cache-control", was), ("etag", "\"a\""), ("x-a", "0")], &policy);
            assert_eq!(withheld_by_update(&was, &fields(said), &policy), fields(expected), "{said:?}");
        };
        let (own, a) = (("set-cookie", "sid=2"), ("x-a", "1"));
        check("max-age=2", &[own, a], &[]);
        check("max-age=2, no-cache=\"set-cookie\"", &[own, a], &[own]);
        check("max-age=2, no-cache=\"x-a\", private=\"set-cookie, x-a\"", &[own, a, own], &[a, own, own]);
        check("max-age=2, no-cache=\"x-a\"", &[own], &[]);
        check("max-age=2, no-cache=\"x-a\"", &[a, ("cache-control", "max-age=9")], &[]);
        check("max-age=2", &[own, a, ("cache-control", "private=x-a")], &[a]);
        check("max-age=2, private=\"x-a\"", &[own, a, ("cdn-cache-control", "private=set-cookie")], &[own]);
        let targeted = [("cdn-cache-control", "max-age=2, private=x-a"), ("etag", "\"a\"")];
        let found = withheld_by_update(
            &stored(&[], &targeted, &policy),
            &fields(&[own, a, ("cache-control", "private=\"set-cookie\"")]),
            &policy,
        );
        assert_eq!(found, fields(&[a]));
        let long = "v".repeat(BYTES_MAX);
        check("max-age=2, private=\"x-a\"", &[("x-a", &long)], &[]);
        let strip = CachePolicy { set_cookie: crate::SetCookie::Strip, ..policy };
        let was = stored(&[], &[("cache-control", "max-age=2, private=\"set-cookie\"")], &strip);
        assert!(withheld_by_update(&was, &fields(&[own]), &strip).is_empty());
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

    #[test]
    fn a_head_updates_what_it_describes_and_ends_what_it_does_not() {
        const FOR_LONG: &[(&str, &str)] =
            &[("cache-control", "max-age=9"), ("x-a", "3"), ("content-encoding", "br")];
        let tagged = [("cache-control", "max-age=2"), ("etag", "\"a\""), ("last-modified", DATE)];
        let plain = [("cache-control", "max-age=2"), ("content-encoding", "gzip"), ("x-b", "1")];
        let updated = |was: &[(&str, &str)], asked: &[(&str, &str)], said: &[(&str, &str)]| {
            let policy = CachePolicy::default();
            let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_500) };
            let (stored, request) = (stored(&[], was, &policy), request("HEAD", asked));
            update_by_head(&stored, &request, &fields(said), times, &policy)
        };
        let with = |more: &[(&'static str, &'static str)]| [FOR_LONG, more].concat();
        for (was, said) in [
            (&plain[..], with(&[])),
            (&tagged, with(&[])),
            (&tagged, with(&[("etag", "\"a\"")])),
            (&tagged, with(&[("etag", "W/\"a\""), ("last-modified", DATE)])),
            (&tagged, with(&[("last-modified", "Sunday, 06-Nov-94 08:49:37 GMT")])),
        ] {
            let HeadUpdate::Updated(head) = updated(was, &[], &said) else { panic!("{was:?} {said:?}") };
            assert!(head.freshness.is_fresh(at_ms(18_900)) && !head.freshness.is_fresh(at_ms(19_100)));
            let field = |name| head.fields.map.get(name);
            assert_eq!(field("x-a"), fields(&said).get("x-a"));
            for kept in ["x-b", "content-encoding", "etag"] {
                assert_eq!(field(kept), fields(was).get(kept), "{kept}");
            }
        }
        for (was, said) in [
            (&plain[..], with(&[("etag", "\"a\"")])),
            (&plain, with(&[("last-modified", DATE)])),
            (&tagged, with(&[("etag", "\"b\"")])),
            (&tagged, with(&[("etag", "\"a\""), ("last-modified", "Sun, 06 Nov 1994 08:49:36 GMT")])),
            (&tagged, vec![("cache-control", "no-store")]),
            (&tagged, vec![("cache-control", "private")]),
        ] {
            assert!(matches!(updated(was, &[], &said), HeadUpdate::Outdated), "{was:?} {said:?}");
        }
        let own = [("authorization", "x")];
        assert!(matches!(updated(&tagged, &own, FOR_LONG), HeadUpdate::Unchanged));
        let other_tag = [("etag", "\"b\"")];
        for own in [("authorization", "x"), ("cache-control", "no-store")] {
            let found = updated(&tagged, &[own], &other_tag);
            assert!(matches!(found, HeadUpdate::Unchanged), "nobody ends by it what others get: {own:?}");
        }
        let session = [("cookie", "sid=1")];
        assert!(matches!(updated(&tagged, &session, &other_tag), HeadUpdate::Outdated));
        let guessed = [("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("date", DATE)];
        assert!(matches!(updated(&guessed, &session, &other_tag), HeadUpdate::Unchanged));
        assert!(matches!(updated(&guessed, &[], &other_tag), HeadUpdate::Outdated));
        let long = "v".repeat(BYTES_MAX);
        assert!(matches!(updated(&tagged, &[], &[("x-long", &long)]), HeadUpdate::Unchanged));
    }

    #[test]
    fn a_head_ends_what_was_stored_with_another_status() {
        let policy = CachePolicy::default();
        let mut gone = stored(&[], &STORED, &policy);
        gone.status = StatusCode::GONE;
        let times = ExchangeTimes { request: at_ms(0), response: at_ms(0) };
        let found = update_by_head(&gone, &request("HEAD", &[]), &fields(&STORED), times, &policy);
        assert!(matches!(found, HeadUpdate::Outdated));
    }
}
