//! When a certificate is asked for next, and why then (RFC 9773 4.2, 4.3).
//!
//! In: what is known of a certificate, the time, random numbers; all of them arguments. Out: a moment with its reason, or a wait.
//! The moment by chance in the authority's window spreads the load of the authority. Waits after failures grow quickly to an hour, since
//! authorities allow few failed proofs per name and hour, and no further, since every hour of a lifetime of days counts.
//! Deliberately absent: clocks, and all knowledge of ACME's messages.

use std::time::Duration;

use larder_http::time::WallTime;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Waits after the first failures in a row. Each further one waits as long as the last, give or take a tenth.
const WAITS: [Duration; 4] = [MINUTE, Duration::from_secs(5 * 60), Duration::from_secs(15 * 60), HOUR];
/// Longest wait that an authority may ask for. The longest rate limits that are known are of a week.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// A shorter lifetime is renewed at its half, a longer one at two thirds.
const SHORT_LIFETIME: Duration = Duration::from_secs(10 * 24 * 3600);
/// How often an authority is asked for its window where it does not say.
const ASK_DEFAULT: Duration = Duration::from_secs(6 * 3600);

/// From when to when a certificate is valid, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first moment.
    pub not_before: WallTime,
    /// The last one.
    pub not_after: WallTime,
}

impl Lifetime {
    fn length(self) -> Duration {
        self.not_after.since(self.not_before)
    }

    /// When it is renewed without an authority's word: at two thirds, at the half where it is below ten days.
    fn share(self) -> WallTime {
        let length = self.length();
        let used = if length < SHORT_LIFETIME { length / 2 } else { length / 3 * 2 };
        later(self.not_before, used)
    }

    /// Least time between two certificates for a name. Without it a window that lies in the past, or a wrong clock, would cause orders
    /// without end.
    fn gap(self) -> Duration {
        (self.length() / 10).min(DAY)
    }
}

/// The window in which the authority wants a renewal (RFC 9773 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RenewalWindow {
    /// Its begin.
    pub start: WallTime,
    /// Its end, later than its begin.
    pub end: WallTime,
}

/// A window, and the moment in it that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suggestion {
    /// As the authority gave it.
    pub window: RenewalWindow,
    /// By chance, once for each window: a new choice with each answer would prefer early moments.
    pub moment: WallTime,
}

/// The last attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureWait {
    /// When.
    pub failed: WallTime,
    /// How long nothing is tried.
    pub wait: Duration,
}

/// What is known of one certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Of the certificate that is there.
    pub lifetime: Option<Lifetime>,
    /// It comes from an authority that is not the configured one.
    pub other_authority: bool,
    /// What the authority wants for this certificate.
    pub suggestion: Option<Suggestion>,
    /// When larder stored it.
    pub issued: Option<WallTime>,
    /// Since the last success.
    pub failure: Option<FailureWait>,
    /// An operator wants a new one now.
    pub asked: bool,
    /// The same, and it has failed since: it is tried again when its wait is over, although the certificate may be good for long.
    pub asked_before: bool,
}

/// Why a certificate is asked for at its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// An operator wants it.
    Asked,
    /// There is none.
    Missing,
    /// The one that is there comes from another authority.
    OtherAuthority,
    /// Its share of the lifetime will have passed.
    Lifetime,
    /// The authority's window.
    Suggested,
    /// The certificate is so new that the moment was put off.
    TooNew,
    /// The wait after a failure ends.
    Retry,
}

impl Why {
    /// For people: lower case, a fragment.
    pub fn words(self) -> &'static str {
        match self {
            Self::Asked => "asked for by an operator",
            Self::Missing => "there is no certificate",
            Self::OtherAuthority => "the certificate is of another authority",
            Self::Lifetime => "its share of the lifetime is over then",
            Self::Suggested => "in the window that the authority suggests (ARI)",
            Self::TooNew => "the certificate is too new to be replaced earlier",
            Self::Retry => "the wait after a failure is over then",
        }
    }
}

/// When, and why then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The moment; it may have passed.
    pub at: WallTime,
    /// Its reason.
    pub why: Why,
}

/// When a certificate is asked for next.
pub(crate) fn next(known: &Known, now: WallTime) -> Next {
    if known.asked {
        return Next { at: now, why: Why::Asked };
    }
    let wanted = wanted(known, now);
    match known.failure {
        // Where the clock went back since, the wait begins anew rather than to last until that moment comes again.
        Some(failure) => {
            let retry = later(failure.failed.min(now), failure.wait);
            if retry > wanted.at { Next { at: retry, why: Why::Retry } } else { wanted }
        }
        None => wanted,
    }
}

fn wanted(known: &Known, now: WallTime) -> Next {
    let Some(lifetime) = known.lifetime else {
        return Next { at: now, why: Why::Missing };
    };
    if known.asked_before {
        return Next { at: now, why: Why::Retry };
    }
    if known.other_authority {
        return Next { at: now, why: Why::OtherAuthority };
    }
    let wanted = match known.suggestion {
        // A window behind the end of the certificate is no help.
        Some(suggestion) if suggestion.moment < lifetime.not_after => {
            Next { at: suggestion.moment, why: Why::Suggested }
        }
        _ => Next { at: lifetime.share(), why: Why::Lifetime },
    };
    match known.issued.filter(|issued| *issued <= now).map(|issued| later(issued, lifetime.gap())) {
        Some(soonest) if soonest > wanted.at => Next { at: soonest, why: Why::TooNew },
        _ => wanted,
    }
}

/// How long nothing is tried after `failures` failures in a row, the last included. `asked` is the authority's `Retry-After`, heeded up to
/// seven days; `random` is evenly drawn.
pub(crate) fn wait(failures: u32, asked: Option<Duration>, random: u64) -> Duration {
    let place = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    let own = match WAITS.get(place) {
        Some(wait) => *wait,
        None => HOUR.mul_f64(0.9 + 0.2 * fraction(random)),
    };
    own.max(asked.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// How long until the authority is asked for its window again; `asked` is its `Retry-After`. From one hour to a day (RFC 9773 4.3.2).
pub(crate) fn ask_again(asked: Option<Duration>) -> Duration {
    asked.unwrap_or(ASK_DEFAULT).clamp(HOUR, DAY)
}

/// What is made of the authority's window: the moment that was chosen before where the window is the same, else one by chance. `None`
/// where the window has no length.
pub(crate) fn choose(window: RenewalWindow, before: Option<Suggestion>, random: u64) -> Option<Suggestion> {
    if window.end <= window.start {
        return None;
    }
    match before {
        Some(before) if before.window == window => Some(before),
        _ => {
            let into = window.end.since(window.start).mul_f64(fraction(random));
            Some(Suggestion { window, moment: later(window.start, into) })
        }
    }
}

/// From 0 to 1, of a number that is evenly drawn from all.
fn fraction(random: u64) -> f64 {
    // 53 bits, which a float has.
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Saturates.
pub(crate) fn later(moment: WallTime, by: Duration) -> WallTime {
    WallTime(moment.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_secs(1_800_000_000);

    fn days(days: u64) -> Duration {
        DAY * u32::try_from(days).expect("few days")
    }

    /// Valid from so many days ago for so many days.
    fn lifetime(ago: u64, length: u64) -> Option<Lifetime> {
        let not_before = WallTime(NOW.0 - ago * 86_400_000);
        Some(Lifetime { not_before, not_after: later(not_before, days(length)) })
    }

    fn suggestion(in_days: u64) -> Option<Suggestion> {
        let moment = later(NOW, days(in_days));
        Some(Suggestion { window: RenewalWindow { start: moment, end: later(moment, DAY) }, moment })
    }

    #[track_caller]
    fn check(known: &Known, expected: Duration, why: Why) {
        assert_eq!(next(known, NOW), Next { at: later(NOW, expected), why });
    }

    #[test]
    fn what_is_missing_is_asked_for_at_once() {
        check(&Known::default(), Duration::ZERO, Why::Missing);
        let other = Known { lifetime: lifetime(1, 90), other_authority: true, ..Known::default() };
        check(&other, Duration::ZERO, Why::OtherAuthority);
        let asked = Known { lifetime: lifetime(1, 90), asked: true, ..Known::default() };
        check(&asked, Duration::ZERO, Why::Asked);
    }

    #[test]
    fn two_thirds_of_a_long_lifetime_and_half_of_a_short_one() {
        for (length, expected) in [(90, 60 * 24), (45, 30 * 24), (10, 160), (6, 72), (2, 24)] {
            let known = Known { lifetime: lifetime(0, length), ..Known::default() };
            let at = next(&known, NOW);
            assert_eq!(at.why, Why::Lifetime);
            assert_eq!(at.at.since(NOW).as_secs() / 3600, expected, "{length}");
        }
    }

    #[test]
    fn the_window_of_the_authority_goes_before_the_share_of_the_lifetime() {
        let known = Known { lifetime: lifetime(10, 90), suggestion: suggestion(3), ..Known::default() };
        check(&known, days(3), Why::Suggested);
        // One behind the end of the certificate does not.
        let known = Known { lifetime: lifetime(10, 90), suggestion: suggestion(80), ..Known::default() };
        check(&known, days(50), Why::Lifetime);
    }

    #[test]
    fn a_new_certificate_is_not_replaced_again_at_once() {
        let early = Suggestion {
            window: RenewalWindow { start: WallTime(0), end: WallTime(9) },
            moment: WallTime(5),
        };
        for (length, gap) in [(90, DAY), (6, Duration::from_secs(6 * 8640))] {
            let lifetime = lifetime(0, length);
            let known = Known { lifetime, suggestion: Some(early), issued: Some(NOW), ..Known::default() };
            check(&known, gap, Why::TooNew);
            // A clock that is far ahead of the certificate causes no storm of orders either.
            let known = Known {
                lifetime: Some(Lifetime {
                    not_before: WallTime(0),
                    not_after: WallTime(length * 86_400_000),
                }),
                ..known
            };
            check(&known, gap, Why::TooNew);
        }
        // Stored in what is the future now: the clock was wrong then.
        let issued = Some(later(NOW, DAY));
        let known = Known { lifetime: lifetime(70, 90), issued, ..Known::default() };
        assert_eq!(next(&known, NOW).why, Why::Lifetime);
    }

    #[test]
    fn after_a_failure_nothing_is_tried_until_its_wait_is_over() {
        let failure = |ago: u64, wait| Some(FailureWait { failed: WallTime(NOW.0 - ago * 1000), wait });
        let missing = Known { failure: failure(10, MINUTE), ..Known::default() };
        check(&missing, Duration::from_secs(50), Why::Retry);
        let over = Known { failure: failure(61, MINUTE), ..Known::default() };
        assert!(next(&over, NOW).at <= NOW);
        // Nothing is hurried by it.
        let later_anyway =
            Known { lifetime: lifetime(0, 90), failure: failure(10, MINUTE), ..Known::default() };
        assert_eq!(next(&later_anyway, NOW).why, Why::Lifetime);
        // The clock went back by a day.
        let ahead = FailureWait { failed: later(NOW, DAY), wait: HOUR };
        check(&Known { failure: Some(ahead), ..Known::default() }, HOUR, Why::Retry);
        let asked = Known { failure: failure(10, MINUTE), asked: true, ..Known::default() };
        check(&asked, Duration::ZERO, Why::Asked);
        let asked_before = Known { asked_before: true, ..later_anyway };
        check(&asked_before, Duration::from_secs(50), Why::Retry);
        check(&Known { failure: failure(61, MINUTE), ..asked_before }, Duration::ZERO, Why::Retry);
    }

    #[test]
    fn waits_grow_to_an_hour_and_then_vary_by_a_tenth() {
        for (failures, random, minutes) in [
            (1, 0, 1),
            (2, 0, 5),
            (3, 0, 15),
            (4, u64::MAX, 60),
            (5, 0, 54),
            (5, 1 << 63, 60),
            (900, u64::MAX, 66),
        ] {
            let wait = wait(failures, None, random);
            assert_eq!((wait.as_secs_f64() / 60.0).round() as u64, minutes, "{failures}");
        }
    }

    #[test]
    fn the_authority_may_ask_for_longer_waits_not_for_shorter_ones() {
        for (asked, expected) in [(0, MINUTE), (30, MINUTE), (7200, HOUR * 2), (u64::MAX, RETRY_AFTER_MAX)] {
            assert_eq!(wait(1, Some(Duration::from_secs(asked)), 0), expected);
        }
    }

    #[test]
    fn the_window_is_asked_for_again_within_an_hour_and_a_day() {
        for (asked, expected) in
            [(None, 6), (Some(0), 1), (Some(60), 1), (Some(7200), 2), (Some(u64::MAX), 24)]
        {
            assert_eq!(ask_again(asked.map(Duration::from_secs)), HOUR * expected);
        }
    }

    #[test]
    fn a_moment_is_chosen_once_for_each_window() {
        let window = RenewalWindow { start: NOW, end: later(NOW, DAY) };
        let first = choose(window, None, 1 << 63).expect("a window");
        assert_eq!(first.moment, later(NOW, DAY / 2));
        assert_eq!(choose(window, Some(first), 0), Some(first), "the same window keeps its moment");
        let moved = RenewalWindow { start: NOW, end: later(NOW, HOUR) };
        assert_eq!(choose(moved, Some(first), 0).map(|s| s.moment), Some(NOW));
        for end in [NOW, WallTime(0)] {
            assert_eq!(choose(RenewalWindow { start: NOW, end }, None, 7), None, "no length");
        }
    }

    #[test]
    fn no_number_is_too_large() {
        let all = Lifetime { not_before: WallTime(0), not_after: WallTime(u64::MAX) };
        let known = Known { lifetime: Some(all), issued: Some(WallTime(u64::MAX)), ..Known::default() };
        assert!(next(&known, WallTime(u64::MAX)).at > NOW);
        let window = RenewalWindow { start: WallTime(0), end: WallTime(u64::MAX) };
        assert!(choose(window, None, u64::MAX).is_some());
    }
}
