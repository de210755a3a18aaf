//! What may be used, one table per rule.

use super::*;
use crate::example::{at_ms, request, stored};
use crate::policy::Lifetimes;

type Lines<'a> = &'a [(&'a str, &'a str)];

fn under(wishes: Wishes) -> CachePolicy {
    CachePolicy { request_directives: wishes, ..CachePolicy::default() }
}

fn check(said: Lines<'_>, asked: Lines<'_>, ms: u64, reason: Option<ValidateReason>) {
    check_under(Wishes::Guarded, said, asked, ms, reason);
}

fn check_under(wishes: Wishes, said: Lines<'_>, asked: Lines<'_>, ms: u64, reason: Option<ValidateReason>) {
    let policy = under(wishes);
    let found = reuse(&stored(&[], said, &policy), &request("GET", asked), at_ms(ms), &policy);
    match (found, reason) {
        (Reuse::Fresh { age, .. }, None) => assert!(age <= Duration::from_millis(ms)),
        (Reuse::Validate(found), Some(reason)) => assert_eq!(found, reason, "{said:?} {asked:?}"),
        _ => panic!("{found:?} instead of {reason:?}: {said:?} {asked:?} after {ms} ms"),
    }
}

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

#[test]
fn fresh_is_used_and_stale_is_validated() {
    check(&[FRESH], &[], 0, None);
    check(&[FRESH], &[], 59_999, None);
    check(&[FRESH], &[], 60_000, Some(ValidateReason::Stale));
    check(&[("etag", "\"a\"")], &[], 0, Some(ValidateReason::Stale));
    check(
        &[("cache-control", "max-age=60, no-cache"), ("etag", "\"a\"")],
        &[],
        0,
        Some(ValidateReason::NoCache),
    );
    check(&[("cache-control", "max-age=60, must-revalidate")], &[], 1_000, None);
    check(
        &[FRESH],
        &[("authorization", "Basic eDp5"), ("cookie", "sid=1"), ("pragma", "no-cache")],
        5_000,
        None,
    );
}

#[test]
fn a_wish_causes_a_validation_and_at_most_one_per_second() {
    let wish = |value| [("cache-control", value)];
    for (value, reason) in [
        ("no-cache", Some(ValidateReason::RequestNoCache)),
        ("nothing-to-see-here, max-age=0", Some(ValidateReason::RequestMaxAge)),
        ("max-age=3", None),
        ("max-age=2", Some(ValidateReason::RequestMaxAge)),
        ("min-fresh=57", None),
        ("min-fresh=58", Some(ValidateReason::RequestMinFresh)),
        ("max-stale=10, nothing-to-see-here, no-store", None),
    ] {
        check(&[FRESH], &wish(value), 999, None);
        check(&[FRESH], &wish(value), 3_000, reason);
    }
}

#[test]
fn wishes_are_honoured_at_once_or_ignored_where_the_rule_says_so() {
    for (value, reason) in [
        ("no-cache", Some(ValidateReason::RequestNoCache)),
        ("max-age=0", Some(ValidateReason::RequestMaxAge)),
        ("min-fresh=60", Some(ValidateReason::RequestMinFresh)),
        ("max-stale", None),
    ] {
        check_under(Wishes::Honour, &[FRESH], &[("cache-control", value)], 500, reason);
        check_under(Wishes::Ignore, &[FRESH], &[("cache-control", value)], 5_000, None);
    }
}

#[test]
fn max_stale_is_heard_where_wishes_are_honoured_and_nothing_forbids_stale() {
    let stale = Some(ValidateReason::Stale);
    for (wishes, said, asked, reason) in [
        (Wishes::Honour, "max-age=60", "max-stale", None),
        (Wishes::Honour, "max-age=60", "max-stale=5", None),
        (Wishes::Honour, "max-age=60", "max-stale=\"5\"", None),
        (Wishes::Honour, "max-age=60", "max-stale=99999999999999999999", None),
        (Wishes::Honour, "max-age=60", "max-stale=4", stale),
        (Wishes::Honour, "max-age=60", "max-stale, max-stale=4", stale),
        (Wishes::Honour, "max-age=60", "max-stale=-1", stale),
        (Wishes::Honour, "max-age=60", "max-stale, no-cache", stale),
        (Wishes::Honour, "max-age=60", "max-stale, max-age=64", stale),
        (Wishes::Honour, "max-age=60", "", stale),
        (Wishes::Honour, "max-age=60, must-revalidate", "max-stale", stale),
        (Wishes::Honour, "max-age=60, proxy-revalidate", "max-stale", stale),
        (Wishes::Honour, "s-maxage=60", "max-stale", stale),
        (Wishes::Guarded, "max-age=60", "max-stale", stale),
        (Wishes::Ignore, "max-age=60", "max-stale", stale),
    ] {
        check_under(wishes, &[("cache-control", said)], &[("cache-control", asked)], 65_000, reason);
    }
}

#[test]
fn stale_while_revalidate_is_used_at_once_and_refreshed_behind() {
    let found = |wishes, said, asked: Lines<'_>, ms| {
        let policy = under(wishes);
        let said = [("cache-control", said), ("etag", "\"a\"")];
        reuse(&stored(&[], &said, &policy), &request("GET", asked), at_ms(ms), &policy)
    };
    let said = "max-age=60, stale-while-revalidate=10";
    let refresh = |seconds| Reuse::Refresh {
        age: Duration::from_secs(60 + seconds),
        staleness: Duration::from_secs(seconds),
    };
    let stale = Reuse::Validate(ValidateReason::Stale);
    assert_eq!(found(Wishes::Guarded, said, &[], 60_000), refresh(0));
    assert_eq!(found(Wishes::Guarded, said, &[], 65_000), refresh(5));
    assert_eq!(found(Wishes::Guarded, said, &[], 71_000), stale);
    assert_eq!(found(Wishes::Guarded, said, &[("authorization", "x")], 65_000), stale);
    for (value, hears) in
        [("no-cache", true), ("max-age=1", true), ("min-fresh=1", true), ("max-stale", false)]
    {
        let asked = [("cache-control", value)];
        let expected = if hears { stale } else { refresh(5) };
        assert_eq!(found(Wishes::Guarded, said, &asked, 65_000), expected, "{value}");
        assert_eq!(found(Wishes::Honour, said, &asked, 65_000), expected, "{value}");
        assert_eq!(found(Wishes::Ignore, said, &asked, 65_000), refresh(5), "{value}");
    }
    for said in [
        "max-age=60, stale-while-revalidate=10, must-revalidate",
        "max-age=60, stale-while-revalidate=10, no-cache",
        "max-age=0, stale-while-revalidate=100",
    ] {
        assert_eq!(found(Wishes::Guarded, said, &[], 65_000), stale, "{said}");
    }
}

#[test]
fn configured_lifetimes_hear_no_wish_and_are_not_for_persons() {
    let lifetimes = Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    let policy = CachePolicy { ttl: lifetimes, ..CachePolicy::default() };
    let stored = stored(&[], &[("age", "100")], &policy);
    let found = |asked: Lines<'_>, ms| reuse(&stored, &request("GET", asked), at_ms(ms), &policy);
    let fresh = Reuse::Fresh { age: Duration::from_secs(103), ttl: Duration::from_secs(4) };
    assert_eq!(found(&[("cache-control", "no-cache"), ("cookie", "_ga=1; _gid=2")], 3_000), fresh);
    assert_eq!(found(&[("cookie", "_ga=1; theme=1")], 3_000), Reuse::Unusable(UnusableReason::SessionCookie));
    for name in ["x-api-key", "x-auth-token", "x-access-token"] {
        assert_eq!(found(&[(name, "1")], 3_000), Reuse::Unusable(UnusableReason::Authorization), "{name}");
    }
    assert_eq!(found(&[("cookie", "sid=1")], 3_000), Reuse::Unusable(UnusableReason::SessionCookie));
    assert_eq!(found(&[("authorization", "x")], 9_000), Reuse::Unusable(UnusableReason::Authorization));
    assert_eq!(found(&[], 7_000), Reuse::Validate(ValidateReason::Stale));
}

#[test]
fn what_is_only_guessed_is_for_strangers_too_and_what_the_origin_says_is_for_all() {
    let policy = CachePolicy::default();
    let guessed = stored(&[], &[("last-modified", "Fri, 04 Nov 1994 08:49:37 GMT")], &policy);
    let explicit = stored(&[], &[("cache-control", "max-age=60")], &policy);
    for (asked, reason) in [
        (&[][..], None),
        (&[("cookie", "_fbp=1; OptanonConsent=2")], None),
        (&[("cookie", "_fbp=1; x=2")], Some(UnusableReason::SessionCookie)),
        (&[("authorization", "x")], Some(UnusableReason::Authorization)),
        (&[("x-auth-token", "x")], Some(UnusableReason::Authorization)),
    ] {
        let found = |stored| reuse(stored, &request("GET", asked), at_ms(1_000), &policy);
        match reason {
            Some(reason) => assert_eq!(found(&guessed), Reuse::Unusable(reason), "{asked:?}"),
            None => assert!(matches!(found(&guessed), Reuse::Fresh { .. }), "{asked:?}"),
        }
        assert!(matches!(found(&explicit), Reuse::Fresh { .. }), "{asked:?}");
    }
}

#[test]
fn the_rules_window_is_used_like_the_responses_own() {
    let ms = Duration::from_millis;
    let lifetimes = Lifetimes { any: Some(ms(500)), by_status: Vec::new() };
    let behind = Some(ms(200));
    let policy = CachePolicy { ttl: lifetimes, stale_while_revalidate: behind, ..CachePolicy::default() };
    let stored = stored(&[], &[], &policy);
    let found = |asked: Lines<'_>, ms| reuse(&stored, &request("GET", asked), at_ms(ms), &policy);
    assert_eq!(found(&[], 499), Reuse::Fresh { age: ms(499), ttl: ms(1) });
    assert_eq!(found(&[], 500), Reuse::Refresh { age: ms(500), staleness: ms(0) });
    assert_eq!(found(&[], 699), Reuse::Refresh { age: ms(699), staleness: ms(199) });
    assert_eq!(found(&[], 700), Reuse::Validate(ValidateReason::Stale));
    assert_eq!(found(&[("cache-control", "no-cache")], 600), found(&[], 600));
    assert_eq!(found(&[("authorization", "x")], 600), Reuse::Unusable(UnusableReason::Authorization));
    assert_eq!(found(&[("cookie", "sid=1")], 600), Reuse::Unusable(UnusableReason::SessionCookie));
}

#[test]
fn only_if_cached_is_heard() {
    let asked = request("GET", &[("cache-control", "a, Only-If-Cached")]);
    assert!(only_if_cached(&asked, &under(Wishes::Guarded)));
    assert!(only_if_cached(&asked, &under(Wishes::Honour)));
    assert!(!only_if_cached(&asked, &under(Wishes::Ignore)));
    assert!(!only_if_cached(&request("GET", &[]), &under(Wishes::Guarded)));
}
