//! A rate: at most so many requests in a length of time.
//!
//! In: `50/s`, `300/min`, `1000/h`. Out: the time between two requests. Requests are spaced evenly, and what was not used of a rate is
//! not made up for, so that an origin never gets a burst.

use std::time::Duration;

use tokio::time::Instant;

/// The most requests of a rate.
const COUNT_MAX: u32 = 1_000_000;

const UNITS: [(&str, u64); 3] = [("s", 1), ("min", 60), ("h", 3600)];

/// The time between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Interval(Duration);

impl Interval {
    /// Reads a rate.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a number of requests per s, min or h, such as 50/s".to_owned();
        let (count, unit) = text.split_once('/').ok_or_else(expected)?;
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?;
        match count.parse::<u32>() {
            Ok(0) => Err("a rate of 0 never ends".to_owned()),
            Ok(count @ 1..=COUNT_MAX) => Ok(Self(Duration::from_secs(*seconds) / count)),
            Ok(_) => Err(format!("at most {COUNT_MAX}")),
            Err(_) => Err(expected()),
        }
    }

    /// When the request may be sent that comes after those until `due`, and when the next one is due.
    pub(super) fn take(self, due: Instant, now: Instant) -> (Instant, Instant) {
        let at = due.max(now);
        (at, at + self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_with_a_unit() {
        for (text, millis) in [("50/s", 20), ("1/s", 1000), ("300/min", 200), ("2/h", 1_800_000)] {
            assert_eq!(Interval::parse(text), Ok(Interval(Duration::from_millis(millis))), "{text}");
        }
        for (text, part) in [
            ("50", "such as 50/s"),
            ("/s", "such as 50/s"),
            ("-1/s", "such as 50/s"),
            ("1/day", "such as 50/s"),
            ("0/s", "never ends"),
            ("1000001/s", "at most 1000000"),
        ] {
            assert!(Interval::parse(text).is_err_and(|said| said.contains(part)), "{text}");
        }
    }

    #[test]
    fn what_was_not_used_is_not_made_up_for() {
        let (interval, start) = (Interval(Duration::from_millis(20)), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(interval.take(start, after(0)), (after(0), after(20)));
        assert_eq!(interval.take(after(20), after(1)), (after(20), after(40)));
        assert_eq!(interval.take(after(40), after(1000)), (after(1000), after(1020)));
    }
}
