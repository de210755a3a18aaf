//! Who may be served what is stale, one table per rule.

use proptest::prelude::*;

use super::*;
use crate::example::{at_ms, request, stored};
use crate::freshness::LifetimeSource;
use crate::policy::Lifetimes;

fn check(cc: &str, seconds: u64, expected: Result<StaleReason, StaleForbidden>) {
    check_on(StaleCause::OriginDead, cc, seconds, expected);
}

fn check_on(cause: StaleCause, cc: &str, seconds: u64, expected: Result<StaleReason, StaleForbidden>) {
    check_under(&CachePolicy::default(), cause, cc, seconds, expected);
}

fn check_under(
    policy: &CachePolicy,
    cause: StaleCause,
    cc: &str,
    seconds: u64,
    expected: Result<StaleReason, StaleForbidden>,
) {
    let stored = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], policy);
    let found = may_serve_stale(&stored, at_ms(seconds * 1000), cause, policy);
    assert_eq!(found, expected, "{cc} after {seconds} s, {cause:?}");
}

const DAY: u64 = 24 * 60 * 60;

#[test]
fn a_dead_origin_is_stood_in_for_unless_that_is_forbidden() {
    check("max-age=2", 3, Ok(StaleReason::OriginDead));
    check("max-age=2", 2 + DAY, Ok(StaleReason::OriginDead));
    check("max-age=2", 3 + DAY, Err(StaleForbidden::TooOld));
    check("max-age=2", 1, Ok(StaleReason::StillFresh));
    check("max-age=2, must-revalidate", 1, Ok(StaleReason::StillFresh));
    check("max-age=2, must-revalidate", 3, Err(StaleForbidden::MustRevalidate));
    check("max-age=2, proxy-revalidate", 3, Err(StaleForbidden::MustRevalidate));
    check("max-age=2, no-cache", 1, Err(StaleForbidden::NoCache));
    check("s-maxage=2", 3, Err(StaleForbidden::SMaxage));
    check("s-maxage=2, stale-while-revalidate=1", 3, Ok(StaleReason::OriginDead));
    check("s-maxage=2, stale-if-error=10", 12, Ok(StaleReason::StaleIfError));
    check("max-age=2, stale-if-error=10", 13, Err(StaleForbidden::TooOld));
    check("max-age=2, stale-if-error=x", 3, Err(StaleForbidden::TooOld));
    check("max-age=2, must-revalidate, stale-if-error=10", 3, Err(StaleForbidden::MustRevalidate));
    check("max-age=0", 3, Err(StaleForbidden::NeverFresh));
    check("x", 3, Err(StaleForbidden::NeverFresh));
}

#[test]
fn an_error_is_replaced_only_where_the_response_says_so() {
    let on_error = |cc, seconds, expected| check_on(StaleCause::OriginError, cc, seconds, expected);
    on_error("max-age=2, stale-if-error=10", 12, Ok(StaleReason::StaleIfError));
    on_error("max-age=2, stale-if-error=10", 13, Err(StaleForbidden::TooOld));
    on_error("max-age=2, stale-if-error=10", 1, Ok(StaleReason::StillFresh));
    on_error("s-maxage=2, stale-if-error=10", 3, Ok(StaleReason::StaleIfError));
    on_error("max-age=2, stale-if-error=10, must-revalidate", 3, Err(StaleForbidden::MustRevalidate));
    on_error("max-age=2", 3, Err(StaleForbidden::NotOnError));
    on_error("max-age=2", 1, Err(StaleForbidden::NotOnError));
    on_error("max-age=2, stale-while-revalidate=10", 3, Err(StaleForbidden::NotOnError));
    for (status, expected) in
        [(500, true), (501, false), (502, true), (503, true), (504, true), (505, false), (404, false)]
    {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        assert_eq!(StaleCause::of_status(status).is_some(), expected, "{status}");
    }
}

#[test]
fn what_is_stale_is_refreshed_behind_within_its_window() {
    let plain = CachePolicy::default();
    for (cc, seconds, expected) in [
        ("max-age=2, stale-while-revalidate=4", 1, false),
        ("max-age=2, stale-while-revalidate=4", 2, true),
        ("max-age=2, stale-while-revalidate=4", 5, true),
        ("max-age=2, stale-while-revalidate=4", 6, false),
        ("max-age=2, stale-while-revalidate=0", 2, false),
        ("max-age=2, stale-while-revalidate=x", 2, false),
        ("max-age=2", 2, false),
        ("s-maxage=2, stale-while-revalidate=4", 3, true),
        ("max-age=2, stale-while-revalidate=4, no-cache", 3, false),
        ("max-age=2, stale-while-revalidate=4, must-revalidate", 3, false),
        ("max-age=2, stale-while-revalidate=4, proxy-revalidate", 3, false),
        ("max-age=0, stale-while-revalidate=4", 1, false),
    ] {
        let head = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], &plain);
        assert_eq!(
            may_refresh_behind(&head, at_ms(seconds * 1000), &plain),
            expected,
            "{cc} after {seconds} s"
        );
    }
}

#[test]
fn the_extension_of_surrogate_control_allows_both() {
    let policy = CachePolicy::default();
    let head = stored(&[], &[("surrogate-control", "max-age=2+4")], &policy);
    assert!(may_refresh_behind(&head, at_ms(3_000), &policy));
    let found = may_serve_stale(&head, at_ms(3_000), StaleCause::OriginError, &policy);
    assert_eq!(found, Ok(StaleReason::StaleIfError));
}

#[test]
fn override_ttl_replaces_the_revalidate_directives() {
    let lifetimes = Lifetimes { any: Some(Duration::from_secs(1)), by_status: Vec::new() };
    let policy = CachePolicy { override_ttl: lifetimes, ..CachePolicy::default() };
    let stored = stored(&[], &[("cache-control", "s-maxage=1, must-revalidate, no-cache")], &policy);
    let found = may_serve_stale(&stored, at_ms(3_000), StaleCause::OriginDead, &policy);
    assert_eq!(found, Ok(StaleReason::OriginDead));
}

/// A rule that allows four seconds of use while refreshed behind, and ten in place of an error.
fn by_rule() -> CachePolicy {
    CachePolicy {
        stale_while_revalidate: Some(Duration::from_secs(4)),
        stale_if_error: Some(Duration::from_secs(10)),
        ..CachePolicy::default()
    }
}

fn check_behind(policy: &CachePolicy, cc: &str, ms: u64, expected: bool) {
    let head = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], policy);
    assert_eq!(may_refresh_behind(&head, at_ms(ms), policy), expected, "{cc} after {ms} ms");
}

#[test]
fn the_rule_allows_to_refresh_behind_where_the_response_says_nothing() {
    let rule = by_rule();
    for (cc, ms, expected) in [
        ("max-age=2", 1_999, false),
        ("max-age=2", 2_000, true),
        ("max-age=2", 5_999, true),
        ("max-age=2", 6_000, false),
        ("max-age=2, stale-while-revalidate=1", 2_999, true),
        ("max-age=2, stale-while-revalidate=1", 3_000, false),
        ("max-age=2, stale-while-revalidate=0", 2_000, false),
        ("max-age=2, stale-while-revalidate=x", 2_000, false),
        ("max-age=2, stale-while-revalidate=9", 10_000, true),
        ("max-age=2, must-revalidate", 3_000, false),
        ("max-age=2, proxy-revalidate", 3_000, false),
        ("max-age=2, no-cache", 3_000, false),
        ("s-maxage=2", 3_000, true),
        ("s-maxage=2, must-revalidate", 3_000, false),
        ("max-age=0", 1_000, false),
        ("x", 1_000, false),
    ] {
        check_behind(&rule, cc, ms, expected);
    }
    let only_on_error = CachePolicy { stale_while_revalidate: None, ..by_rule() };
    check_behind(&only_on_error, "s-maxage=2", 3_000, false);
    check_behind(&only_on_error, "max-age=2", 3_000, false);
}

#[test]
fn the_rule_lets_an_error_be_replaced_where_the_response_says_nothing() {
    use StaleReason::{StaleIfError, StillFresh};
    let rule = by_rule();
    for (cc, seconds, expected) in [
        ("max-age=2", 1, Ok(StillFresh)),
        ("max-age=2", 12, Ok(StaleIfError)),
        ("max-age=2", 13, Err(StaleForbidden::TooOld)),
        ("max-age=2, stale-if-error=3", 5, Ok(StaleIfError)),
        ("max-age=2, stale-if-error=3", 6, Err(StaleForbidden::TooOld)),
        ("max-age=2, stale-if-error=0", 3, Err(StaleForbidden::TooOld)),
        ("max-age=2, stale-if-error=99", 99, Ok(StaleIfError)),
        ("max-age=2, must-revalidate", 3, Err(StaleForbidden::MustRevalidate)),
        ("max-age=2, proxy-revalidate", 3, Err(StaleForbidden::MustRevalidate)),
        ("max-age=2, no-cache", 1, Err(StaleForbidden::NoCache)),
        ("s-maxage=2", 3, Ok(StaleIfError)),
        ("max-age=0", 3, Err(StaleForbidden::NeverFresh)),
    ] {
        check_under(&rule, StaleCause::OriginError, cc, seconds, expected);
    }
    let only_behind = CachePolicy { stale_if_error: None, ..by_rule() };
    check_under(&only_behind, StaleCause::OriginError, "max-age=2", 3, Err(StaleForbidden::NotOnError));
}

#[test]
fn a_dead_origin_has_the_rules_longer_window() {
    use StaleReason::{OriginDead, StaleIfError};
    let dead = |policy: &CachePolicy, cc, seconds, expected| {
        check_under(policy, StaleCause::OriginDead, cc, seconds, expected);
    };
    let rule = by_rule();
    dead(&rule, "max-age=2", 13, Ok(OriginDead));
    dead(&rule, "max-age=2", 2 + DAY, Ok(OriginDead));
    dead(&rule, "max-age=2", 3 + DAY, Err(StaleForbidden::TooOld));
    dead(&rule, "max-age=2, stale-if-error=3", 5, Ok(StaleIfError));
    dead(&rule, "max-age=2, stale-if-error=3", 6, Err(StaleForbidden::TooOld));
    dead(&rule, "max-age=2, must-revalidate", 3, Err(StaleForbidden::MustRevalidate));
}

#[test]
fn what_is_known_to_fail_is_not_waited_for_where_stale_use_is_allowed() {
    use StaleCause::{OriginDead, OriginError};
    let check = |policy: &CachePolicy, cause, cc: &str, seconds: u64, expected| {
        let stored = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], policy);
        let found = may_stand_in(&stored, at_ms(seconds * 1000), cause, policy);
        assert_eq!(found, expected, "{cc} after {seconds} s, {cause:?}");
    };
    let (plain, rule) = (CachePolicy::default(), by_rule());
    check(&plain, OriginDead, "max-age=2", 3, Some(StaleReason::OriginDown));
    check(&plain, OriginDead, "max-age=2, stale-if-error=5", 3, Some(StaleReason::OriginDown));
    check(&plain, OriginDead, "max-age=2, stale-if-error=5", 8, None);
    check(&plain, OriginDead, "max-age=2, must-revalidate", 3, None);
    check(&plain, OriginDead, "max-age=2", 1, None);
    check(&plain, OriginError, "max-age=2", 3, None);
    check(&plain, OriginError, "max-age=2, stale-if-error=5", 3, Some(StaleReason::StaleIfError));
    check(&rule, OriginError, "max-age=2", 3, Some(StaleReason::StaleIfError));
    check(&rule, OriginError, "max-age=2", 13, None);
    check(&rule, OriginError, "max-age=2", 1, None);
}

#[test]
fn s_maxage_forbids_unless_the_rule_speaks_of_stale_use() {
    let dead = |policy: &CachePolicy, expected| {
        check_under(policy, StaleCause::OriginDead, "s-maxage=2", 3, expected);
    };
    dead(&CachePolicy::default(), Err(StaleForbidden::SMaxage));
    dead(&CachePolicy { stale_if_error: None, ..by_rule() }, Ok(StaleReason::OriginDead));
    dead(&CachePolicy { stale_while_revalidate: None, ..by_rule() }, Ok(StaleReason::OriginDead));
}

#[test]
fn under_override_ttl_the_rules_windows_hold_whatever_the_origin_forbids() {
    let ttl = |ms| Lifetimes { any: Some(Duration::from_millis(ms)), by_status: Vec::new() };
    let rule = CachePolicy { override_ttl: ttl(2_000), ..by_rule() };
    let said = "s-maxage=1, must-revalidate, proxy-revalidate, no-cache";
    check_behind(&rule, said, 1_999, false);
    check_behind(&rule, said, 2_000, true);
    check_behind(&rule, said, 6_000, false);
    check_under(&rule, StaleCause::OriginError, said, 12, Ok(StaleReason::StaleIfError));
    check_under(&rule, StaleCause::OriginError, said, 13, Err(StaleForbidden::TooOld));
    let never_fresh = CachePolicy { override_ttl: ttl(0), ..by_rule() };
    check_behind(&never_fresh, said, 1_000, false);
    check_under(&never_fresh, StaleCause::OriginError, said, 1, Err(StaleForbidden::NeverFresh));
}

#[test]
fn windows_follow_lifetimes_of_milliseconds_to_the_millisecond() {
    let ttl = Lifetimes { any: Some(Duration::from_millis(250)), by_status: Vec::new() };
    let behind = Some(Duration::from_millis(50));
    let rule = CachePolicy { ttl, stale_while_revalidate: behind, ..CachePolicy::default() };
    for (ms, expected) in [(249, false), (250, true), (299, true), (300, false)] {
        check_behind(&rule, "public", ms, expected);
    }
}

#[test]
fn nobodys_own_request_refreshes_for_others() {
    let policy = CachePolicy::default();
    let explicit = stored(&[], &[("cache-control", "max-age=60")], &policy);
    let guessed = stored(&[], &[("last-modified", "Fri, 04 Nov 1994 08:49:37 GMT")], &policy);
    assert_eq!(guessed.freshness.source, LifetimeSource::Heuristic);
    for (asked, of_explicit, of_guessed) in [
        (&[][..], true, true),
        (&[("cookie", "_ga=GA1.1.1")], true, true),
        (&[("cookie", "theme=dark")], true, false),
        (&[("cookie", "sid=1")], true, false),
        (&[("x-api-key", "1")], true, false),
        (&[("authorization", "x")], false, false),
    ] {
        let request = request("GET", asked);
        assert_eq!(may_refresh_with(&request, &explicit, &policy), of_explicit, "{asked:?}");
        assert_eq!(may_refresh_with(&request, &guessed, &policy), of_guessed, "{asked:?}");
    }
}

proptest! {
    #[test]
    fn the_rules_words_forbid_nothing_and_lift_no_directive(
        lifetime in 0..5_u64, own in proptest::option::of(0..9_u64), ms in 0..20_000_u64,
        behind in proptest::option::of(0..9_u64), error in proptest::option::of(0..9_u64),
        word in prop::sample::select(vec!["public", "must-revalidate", "proxy-revalidate", "no-cache"]),
        shared in any::<bool>(),
    ) {
        let name = if shared { "s-maxage" } else { "max-age" };
        let own = own.map(|s| format!(", stale-while-revalidate={s}, stale-if-error={s}")).unwrap_or_default();
        let cc = format!("{name}={lifetime}, {word}{own}");
        let rule = CachePolicy {
            stale_while_revalidate: behind.map(Duration::from_secs),
            stale_if_error: error.map(Duration::from_secs),
            ..CachePolicy::default()
        };
        let plain = CachePolicy::default();
        let head = stored(&[], &[("cache-control", &cc), ("etag", "\"a\"")], &rule);
        let now = at_ms(ms);
        for cause in [StaleCause::OriginDead, StaleCause::OriginError] {
            let (with, without) =
                (may_serve_stale(&head, now, cause, &rule), may_serve_stale(&head, now, cause, &plain));
            prop_assert!(with.is_ok() || without.is_err(), "{}", cc);
            if !head.freshness.is_fresh(now) && (word != "public" || lifetime == 0) {
                prop_assert!(with.is_err(), "{}", cc);
            }
        }
        prop_assert!(may_refresh_behind(&head, now, &rule) || !may_refresh_behind(&head, now, &plain));
        if !own.is_empty() {
            prop_assert_eq!(may_refresh_behind(&head, now, &rule), may_refresh_behind(&head, now, &plain));
        }
        if word != "public" || lifetime == 0 || head.freshness.is_fresh(now) {
            prop_assert!(!may_refresh_behind(&head, now, &rule), "{}", cc);
        }
    }
}
