//! Precedence, the passing of time, and what no input may do.

use proptest::prelude::*;

use super::*;
use crate::example::{DATE, at_ms, at_once, fields};
use crate::policy::Lifetimes;

fn of(status: u16, lines: &[(&str, &str)], policy: &CachePolicy) -> Freshness {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let fields = fields(lines);
    freshness(status, &fields, &EffectiveDirectives::read(&fields, policy), at_once(), policy)
}

fn check(status: u16, lines: &[(&str, &str)], policy: &CachePolicy, seconds: u64, source: LifetimeSource) {
    let found = of(status, lines, policy);
    assert_eq!((found.lifetime, found.source), (Duration::from_secs(seconds), source), "{status} {lines:?}");
}

const HOUR_LATER: &str = "Sun, 06 Nov 1994 09:49:37 GMT";
const DAY_BEFORE: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

#[test]
fn s_maxage_beats_max_age_beats_expires_beats_heuristics() {
    use LifetimeSource::{Expires, Heuristic, MaxAge, Nothing, SMaxage};
    let plain = CachePolicy::default();
    let cc = |value| ("cache-control", value);
    let (date, later, modified) = (("date", DATE), ("expires", HOUR_LATER), ("last-modified", DAY_BEFORE));
    check(200, &[cc("max-age=9, s-maxage=5"), later], &plain, 5, SMaxage);
    check(200, &[cc("s-maxage=9"), cc("max-age=5")], &plain, 9, SMaxage);
    check(599, &[cc("max-age=9"), later, date], &plain, 9, MaxAge);
    check(200, &[cc("max-age=x"), later, date], &plain, 0, MaxAge);
    check(200, &[later, date, modified], &plain, 3600, Expires);
    check(200, &[later], &plain, 3600, Expires);
    check(200, &[later, ("date", "foo")], &plain, 3600, Expires);
    check(200, &[later, ("date", HOUR_LATER)], &plain, 0, Expires);
    check(200, &[("expires", "0"), modified], &plain, 0, Expires);
    check(200, &[later, later], &plain, 0, Expires);
    check(200, &[date, modified], &plain, 8640, Heuristic);
    check(599, &[date, modified, cc("public")], &plain, 8640, Heuristic);
    check(200, &[date, ("last-modified", "Sun, 06 Nov 1904 08:49:37 GMT")], &plain, 86_400, Heuristic);
    check(200, &[date, ("last-modified", HOUR_LATER)], &plain, 0, Nothing);
    check(200, &[date], &plain, 0, Nothing);
    for status in [203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501] {
        check(status, &[date, modified], &plain, 8640, Heuristic);
    }
    for status in [201, 202, 302, 307, 403, 502, 503, 504, 599] {
        check(status, &[date, modified], &plain, 0, Nothing);
    }
}

#[test]
fn a_targeted_field_beats_private_lifetimes_beat_cache_control() {
    use LifetimeSource::{
        Expires, Heuristic, MaxAge, Nothing, SurrogateControl, Targeted, XAccelExpires, XReverseProxyTtl,
    };
    let plain = CachePolicy::default();
    let cdn = |value| ("cdn-cache-control", value);
    let cc = ("cache-control", "max-age=1, s-maxage=2");
    let (date, later) = (("date", DATE), ("expires", HOUR_LATER));
    let surrogate = ("surrogate-control", "max-age=3");
    let (accel, reverse) = (("x-accel-expires", "4"), ("x-reverse-proxy-ttl", "5"));
    check(200, &[cc, later, cdn("max-age=9")], &plain, 9, Targeted);
    check(200, &[cc, later, cdn("max-age=9, s-maxage=8"), surrogate, accel], &plain, 8, Targeted);
    check(200, &[later, date, cdn("max-age=0")], &plain, 0, Targeted);
    check(200, &[cdn("max-age=\"60\""), later], &plain, 0, Targeted);
    check(200, &[cdn("max-age=99999999999")], &plain, 1 << 31, Targeted);
    check(200, &[cc, later, date, cdn("public")], &plain, 0, Nothing);
    check(599, &[cc, date, ("last-modified", DAY_BEFORE), cdn("public")], &plain, 8640, Heuristic);
    check(200, &[later, date, cdn("max-age=10000, &&&&&")], &plain, 3600, Expires);
    check(200, &[cc, later, date, surrogate, accel, reverse], &plain, 3, SurrogateControl);
    check(200, &[cc, later, date, accel, reverse], &plain, 4, XAccelExpires);
    check(200, &[cc, later, date, reverse], &plain, 5, XReverseProxyTtl);
    check(200, &[cc, ("x-accel-expires", "0")], &plain, 0, XAccelExpires);
    check(200, &[("x-accel-expires", "@784111837")], &plain, 60, XAccelExpires);
    check(200, &[later, date, ("x-accel-expires", "off")], &plain, 3600, Expires);
    check(200, &[cdn("public"), accel], &plain, 4, XAccelExpires);
    check(200, &[("cache-control", "max-age=1"), ("x-reverse-proxy-ttl", "x")], &plain, 1, MaxAge);
    // What only shared caches read is still counted with every age.
    assert!(!of(200, &[cdn("max-age=7"), ("age", "7")], &plain).is_fresh(at_ms(0)));
    assert!(of(200, &[accel, ("cache-control", "no-cache")], &plain).no_cache);
}

#[test]
fn fields_that_are_switched_off_give_no_lifetime() {
    let controls = crate::policy::Controls {
        targets: Vec::new(),
        surrogate_control: false,
        x_accel_expires: false,
        x_reverse_proxy_ttl: false,
        tags: Default::default(),
        ending: Vec::new(),
    };
    let deaf = CachePolicy { controls, ..CachePolicy::default() };
    for (name, value) in [
        ("cdn-cache-control", "max-age=9"),
        ("surrogate-control", "max-age=9"),
        ("x-accel-expires", "9"),
        ("x-reverse-proxy-ttl", "9"),
    ] {
        let lines = [("cache-control", "max-age=1"), (name, value)];
        check(200, &lines, &deaf, 1, LifetimeSource::MaxAge);
    }
}

#[test]
fn ttl_fills_in_and_override_ttl_replaces() {
    use LifetimeSource::{MaxAge, Nothing, OverrideTtl, Ttl};
    let lifetimes = || Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    let ttl = CachePolicy { ttl: lifetimes(), ..CachePolicy::default() };
    let replaced = CachePolicy { override_ttl: lifetimes(), ..CachePolicy::default() };
    let modified = ("last-modified", DAY_BEFORE);
    check(200, &[modified], &ttl, 7, Ttl);
    check(404, &[], &ttl, 0, Nothing);
    check(206, &[modified], &ttl, 7, Ttl);
    check(200, &[("cdn-cache-control", "max-age=3")], &ttl, 3, LifetimeSource::Targeted);
    check(200, &[("cdn-cache-control", "no-cache")], &ttl, 0, Nothing);
    check(200, &[("cdn-cache-control", "max-age=3, no-cache")], &replaced, 7, OverrideTtl);
    check(200, &[("cache-control", "max-age=3")], &ttl, 3, MaxAge);
    check(200, &[("cache-control", "no-cache")], &ttl, 0, Nothing);
    check(200, &[("cache-control", "max-age=3, no-cache")], &replaced, 7, OverrideTtl);
    assert!(of(200, &[("cache-control", "no-cache")], &ttl).no_cache);
    assert!(!of(200, &[("cache-control", "no-cache")], &replaced).no_cache);
    // Configured lifetimes count from arrival, the origin's own count every age.
    let old = ("age", "100");
    assert!(of(200, &[old], &ttl).is_fresh(at_ms(6_999)));
    assert!(!of(200, &[old], &ttl).is_fresh(at_ms(7_000)));
    assert!(!of(200, &[old, ("cache-control", "max-age=100")], &ttl).is_shareable());
}

#[test]
fn a_lifetime_is_over_when_age_reaches_it() {
    let found = of(200, &[("cache-control", "max-age=2")], &CachePolicy::default());
    for (ms, fresh, age, ttl) in
        [(0, true, 0, 2), (1_999, true, 1, 0), (2_000, false, 2, 0), (5_500, false, 5, -3)]
    {
        let now = at_ms(ms);
        assert_eq!(
            (found.is_fresh(now), found.age(now).as_secs(), found.ttl_seconds(now)),
            (fresh, age, ttl),
            "{ms}"
        );
    }
}

#[test]
fn lifetimes_of_milliseconds_end_to_the_millisecond() {
    for lifetime in [1, 2, 250, 500, 999, 1_000, 1_001] {
        let any = Some(Duration::from_millis(lifetime));
        let ttl = CachePolicy { ttl: Lifetimes { any, by_status: Vec::new() }, ..CachePolicy::default() };
        let found = of(200, &[("age", "100")], &ttl);
        assert!(found.is_shareable(), "{lifetime} ms");
        for ms in [0, 1, lifetime - 1, lifetime, lifetime + 999, lifetime + 1_000] {
            let (now, left) = (at_ms(ms), lifetime.saturating_sub(ms));
            assert_eq!(found.is_fresh(now), ms < lifetime, "{lifetime} ms after {ms}");
            assert_eq!(found.remaining(now), Duration::from_millis(left), "{lifetime} ms after {ms}");
            assert_eq!(found.staleness(now), Duration::from_millis(ms.saturating_sub(lifetime)));
            // Cache-Status and Age know whole seconds only: less than one is zero, to both sides.
            let late = i64::try_from(ms.saturating_sub(lifetime) / 1_000).unwrap_or_default();
            let ttl = i64::try_from(left / 1_000).unwrap_or_default() - late;
            assert_eq!(found.ttl_seconds(now), ttl, "{lifetime} ms after {ms}");
            assert_eq!(found.age(now), Duration::from_millis(100_000 + ms), "{lifetime} ms after {ms}");
        }
    }
}

#[test]
fn a_refresh_begins_ahead_by_what_it_may_take() {
    let found = |lifetime, took| {
        let lifetime = Duration::from_millis(lifetime);
        let found = Freshness { lifetime, ..of(200, &[], &CachePolicy::default()) };
        found.refresh_ahead(Duration::from_millis(took)).as_millis()
    };
    for (lifetime, took, ahead) in [
        (10_000, 0, 500),
        (10_000, 1_000, 2_000),
        (10_000, 3_000, 5_000),
        (10_000, 60_000, 5_000),
        (1_000, 40, 110),
        (2, 500, 1),
        (0, 500, 0),
    ] {
        assert_eq!(found(lifetime, took), ahead, "{took} ms for {lifetime} ms");
    }
    let aged = of(200, &[("cache-control", "max-age=3600"), ("age", "3590")], &CachePolicy::default());
    assert_eq!(aged.refresh_ahead(Duration::from_secs(60)), Duration::from_secs(5));
    assert_eq!(aged.refresh_ahead(Duration::ZERO), Duration::from_millis(500));
    let forever = Freshness { lifetime: Duration::MAX, ..of(200, &[], &CachePolicy::default()) };
    assert_eq!(forever.refresh_ahead(Duration::MAX), Duration::MAX / 2);
}

#[test]
fn what_was_never_fresh_is_not_shared() {
    let shareable = |value| of(200, &[("cache-control", value)], &CachePolicy::default()).is_shareable();
    assert!(shareable("max-age=1"));
    assert!(!shareable("max-age=0"));
    assert!(!shareable("max-age=60, no-cache"));
    assert!(!of(200, &[("etag", "\"a\"")], &CachePolicy::default()).is_shareable());
}

#[test]
fn a_lifetime_that_was_ended_is_over_at_once_and_leaves_a_trace() {
    let ttl = Lifetimes { any: Some(Duration::from_secs(60)), by_status: Vec::new() };
    let with_ttl = CachePolicy { ttl, ..CachePolicy::default() };
    for (lines, policy) in [
        (&[("cache-control", "max-age=60")][..], &CachePolicy::default()),
        (&[("cache-control", "max-age=60"), ("age", "9")], &CachePolicy::default()),
        (&[("age", "9")], &with_ttl),
    ] {
        let found = Freshness { received: at_ms(5_000), ..of(200, lines, policy) };
        // Purged while it was fetched, in the millisecond of its arrival, and later.
        for (purged, asked) in
            [(4_000, 5_000), (4_000, 5_001), (5_000, 5_000), (7_000, 7_000), (7_000, 9_000)]
        {
            let ended = found.ended_at(at_ms(purged).monotonic);
            assert!(
                !ended.is_fresh(at_ms(asked)),
                "{lines:?} purged at {purged} ms, asked for at {asked} ms"
            );
            assert!(!ended.lifetime.is_zero(), "{lines:?} purged at {purged} ms");
            assert_eq!(ended.age(at_ms(asked)).as_secs(), found.age(at_ms(asked)).as_secs());
        }
    }
    let never = of(200, &[("cache-control", "max-age=0")], &CachePolicy::default());
    assert!(never.ended_at(at_ms(0).monotonic).lifetime.is_zero());
}

fn any_freshness() -> impl Strategy<Value = Freshness> {
    let sources = [
        LifetimeSource::MaxAge,
        LifetimeSource::Targeted,
        LifetimeSource::XAccelExpires,
        LifetimeSource::Ttl,
        LifetimeSource::Heuristic,
    ];
    (0..u64::MAX, 0..10_000_u64, 0..5_usize, any::<bool>()).prop_map(move |(lifetime, age, source, short)| {
        let lifetime = if short { lifetime % 10_000 } else { lifetime };
        Freshness {
            lifetime: Duration::from_millis(lifetime),
            source: sources[source],
            initial_age: Duration::from_millis(age),
            received: at_ms(0),
            no_cache: false,
        }
    })
}

#[test]
fn a_copy_is_used_for_so_long_at_most_and_a_lifetime_that_was_assumed_stays_that() {
    let (plain, second) = (CachePolicy::default(), Duration::from_secs(1));
    let ttl = Lifetimes { any: Some(Duration::from_secs(60)), by_status: Vec::new() };
    let with_ttl = CachePolicy { ttl, ..CachePolicy::default() };
    let old = [("cache-control", "max-age=60"), ("age", "50")];
    for (lines, policy, most, left, source) in [
        (&[("cache-control", "max-age=60")][..], &plain, second, second, LifetimeSource::Remote),
        (&old, &plain, second, second, LifetimeSource::Remote),
        (&old, &plain, Duration::from_secs(20), Duration::from_secs(10), LifetimeSource::MaxAge),
        (
            &[("cache-control", "max-age=5"), ("age", "9")],
            &plain,
            second,
            Duration::ZERO,
            LifetimeSource::MaxAge,
        ),
        (&[], &with_ttl, second, second, LifetimeSource::Ttl),
    ] {
        let copy = of(200, lines, policy).of_copy(most);
        assert_eq!((copy.remaining(copy.received), copy.source), (left, source), "{lines:?}");
        assert_eq!(copy.age(copy.received), of(200, lines, policy).age(copy.received));
    }
    assert!(LifetimeSource::Remote.is_explicit() && !LifetimeSource::Remote.is_assumed());
}

proptest! {
    #[test]
    fn never_fresh_after_its_lifetime(found in any_freshness(), ms in 0..30_000_u64) {
        let now = at_ms(ms);
        if found.resident(now) >= found.lifetime {
            prop_assert!(!found.is_fresh(now));
        }
        prop_assert_eq!(found.is_fresh(now), found.remaining(now) > Duration::ZERO);
        prop_assert!(!(found.is_fresh(now) && found.staleness(now) > Duration::ZERO));
    }

    #[test]
    fn no_jump_of_the_wall_clock_makes_stale_fresh(
        found in any_freshness(), ms in 0..30_000_u64, more in 0..30_000_u64, wall in any::<u64>()
    ) {
        let later = Now { wall: WallTime(wall), ..at_ms(ms + more) };
        prop_assert!(found.is_fresh(at_ms(ms)) || !found.is_fresh(later));
        prop_assert_eq!(found.age(later), found.age(at_ms(ms + more)));
    }

    #[test]
    fn no_lines_panic_or_outlive_the_clamp(
        cc in "[a-z0-9=, \"-]{0,40}", cdn in "[ -~]{0,30}", expires in "[ -~]{0,33}", age in "[0-9,-]{0,12}", status in 100..999_u16
    ) {
        let lines = [
            ("cache-control", cc.as_str()),
            ("cdn-cache-control", &cdn),
            ("surrogate-control", &cdn),
            ("x-accel-expires", &age),
            ("expires", &expires),
            ("age", &age),
            ("date", DATE),
        ];
        let found = of(status, &lines, &CachePolicy::default());
        prop_assert!(!found.source.is_configured());
        let _ = (found.ttl_seconds(at_ms(5)), found.is_shareable());
    }
}
