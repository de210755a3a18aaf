//! What outcomes and checks make of an endpoint, at given times.

use super::*;

const NONE: Duration = Duration::ZERO;
const EJECTION: Ejection =
    Ejection { failures: 3, time: Duration::from_secs(1), time_max: Duration::from_secs(5) };

fn at(begun: Instant, millis: u64) -> Instant {
    begun + Duration::from_millis(millis)
}

/// One request that fails.
fn fail(condition: &Condition, now: Instant) -> Change {
    let part = condition.begin(now);
    condition.failed(part, now, &EJECTION)
}

fn succeed(condition: &Condition, now: Instant) -> Change {
    let part = condition.begin(now);
    condition.succeeded(part, now)
}

fn ejected(now: Instant) -> Condition {
    let condition = Condition::default();
    for expected in [Change::Nothing, Change::Nothing, Change::Ejected] {
        assert_eq!(fail(&condition, now), expected);
    }
    condition
}

#[test]
fn only_failures_in_a_row_eject() {
    let now = Instant::now();
    let condition = Condition::default();
    for outcomes in ["ffs", "ffs", "ff"] {
        for outcome in outcomes.chars() {
            let change = if outcome == 'f' { fail(&condition, now) } else { succeed(&condition, now) };
            assert_eq!(change, Change::Nothing);
        }
    }
    assert_eq!(fail(&condition, now), Change::Ejected);
    assert_eq!(condition.usable(now, NONE, true), Use::Ejected(at(now, 1000)));
}

#[test]
fn each_ejection_in_a_row_lasts_twice_as_long_up_to_the_longest() {
    let mut now = Instant::now();
    let condition = ejected(now);
    for millis in [1000, 2000, 4000, 5000, 5000] {
        let until = at(now, millis);
        assert_eq!(condition.usable(until - Duration::from_millis(1), NONE, true), Use::Ejected(until));
        assert_eq!(condition.usable(until, NONE, true), Use::Probe);
        now = until;
        assert_eq!(fail(&condition, now), Change::Ejected);
    }
    now = at(now, 5000);
    assert_eq!(succeed(&condition, now), Change::Recovered);
    // A new row.
    for _ in 0..EJECTION.failures {
        fail(&condition, now);
    }
    assert_eq!(condition.usable(now, NONE, true), Use::Ejected(at(now, 1000)));
}

#[test]
fn one_request_probes_and_a_cancelled_one_makes_room_for_the_next() {
    let begun = Instant::now();
    let condition = ejected(begun);
    let now = at(begun, 1000);
    let probe = condition.begin(now);
    assert_eq!(condition.usable(now, NONE, true), Use::Ejected(now));
    // Somebody who is sent all the same does not end the probe, whatever becomes of it.
    assert_eq!(fail(&condition, now), Change::Nothing);
    condition.abandoned(condition.begin(now));
    assert_eq!(condition.usable(now, NONE, true), Use::Ejected(now));
    condition.abandoned(probe);
    assert_eq!(condition.usable(now, NONE, true), Use::Probe);
    assert_eq!(succeed(&condition, now), Change::Recovered);
}

#[test]
fn what_was_sent_before_an_ejection_says_nothing_about_the_time_after() {
    let now = Instant::now();
    let condition = Condition::default();
    let early = [condition.begin(now), condition.begin(now)];
    for _ in 0..EJECTION.failures {
        fail(&condition, now);
    }
    assert_eq!(condition.succeeded(early[0], now), Change::Nothing);
    assert_eq!(condition.failed(early[1], now, &EJECTION), Change::Nothing);
    assert_eq!(condition.usable(now, NONE, true), Use::Ejected(at(now, 1000)));
    // What was sent during it, because nobody else could be asked, does.
    assert_eq!(succeed(&condition, now), Change::Recovered);
}

#[test]
fn ejection_can_be_switched_off() {
    let now = Instant::now();
    let never = Ejection { failures: 0, ..EJECTION };
    let condition = Condition::default();
    for _ in 0..100 {
        assert_eq!(condition.failed(condition.begin(now), now, &never), Change::Nothing);
    }
    assert_eq!(condition.usable(now, NONE, true), Use::Share(1.0));
    // Switched off while a probe is out.
    let condition = ejected(now);
    let now = at(now, 1000);
    condition.failed(condition.begin(now), now, &never);
    assert_eq!(condition.usable(now, NONE, true), Use::Probe);
}

#[test]
fn a_slow_start_grows_from_a_tenth_after_coming_back_and_not_at_the_start() {
    let slow = Duration::from_secs(10);
    let begun = Instant::now();
    let condition = ejected(begun);
    let now = at(begun, 1000);
    assert_eq!(Condition::default().usable(now, slow, true), Use::Share(1.0));
    assert_eq!(Condition::new(Some(now)).usable(now, slow, true), Use::Share(0.1));
    succeed(&condition, now);
    for (millis, expected) in [(0, 0.1), (5000, 0.55), (10_000, 1.0), (99_000, 1.0)] {
        let Use::Share(share) = condition.usable(at(now, millis), slow, true) else { panic!("up") };
        assert!((share - expected).abs() < 1e-9, "{millis}: {share}");
    }
    assert_eq!(condition.usable(now, NONE, true), Use::Share(1.0));
}

#[test]
fn unhealthy_and_ejected_do_not_lift_each_other() {
    let begun = Instant::now();
    let condition = ejected(begun);
    assert!(condition.set_healthy(false, begun) && !condition.set_healthy(false, begun));
    assert_eq!(condition.usable(begun, NONE, true), Use::Unhealthy);
    let now = at(begun, 1000);
    succeed(&condition, now);
    assert_eq!(condition.usable(now, NONE, true), Use::Unhealthy);
    assert!(condition.set_healthy(true, now) && !condition.set_healthy(true, now));
    assert_eq!(condition.usable(now, Duration::from_secs(1), true), Use::Share(0.1));
}

#[test]
fn an_upload_that_trickles_keeps_others_from_finding_out_for_a_time_only() {
    let begun = Instant::now();
    let condition = ejected(begun);
    let now = at(begun, 1000);
    let slow = condition.begin(now);
    let later = now + PROBE_TIME_MIN;
    assert_eq!(condition.usable(later - Duration::from_millis(1), NONE, true), Use::Ejected(now));
    assert_eq!(condition.usable(later, NONE, true), Use::Probe);
    let next = condition.begin(later);
    assert!(slow.is_probe() && next.is_probe());
    // The slow one makes no room that the next has taken.
    condition.abandoned(slow);
    assert_eq!(condition.usable(later, NONE, true), Use::Ejected(now));
    assert_eq!(condition.succeeded(next, later), Change::Recovered);
}

#[test]
fn what_checks_have_found_counts_only_while_somebody_checks() {
    let now = Instant::now();
    let condition = Condition::default();
    assert!(!condition.set_healthy(true, now), "believed until asked");
    assert_eq!(condition.usable(now, Duration::from_secs(1), true), Use::Share(1.0));
    assert!(condition.set_healthy(false, now));
    assert_eq!(condition.checks(), Checks::Unhealthy { was_healthy: true });
    assert_eq!(condition.usable(now, NONE, true), Use::Unhealthy);
    assert_eq!(condition.usable(now, NONE, false), Use::Share(1.0));
    condition.forget_checks();
    assert_eq!(condition.usable(now, NONE, true), Use::Share(1.0));
}
