//! How long a value is to stay, as `SET ... PX` has it.
//!
//! In: a lifetime. Out: milliseconds, of a hundred years at most: Redis adds them to its clock, and refuses what does not fit.

use std::time::Duration;

use larder_http::time::WallTime;

/// The longest lifetime.
const MILLIS_MAX: u64 = 100 * 365 * 24 * 3600 * 1000;

/// The number for `lifetime`. `None` for less than a second, which nobody would read in time.
pub(crate) fn expires(lifetime: Duration, _now: WallTime) -> Option<u64> {
    let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).min(MILLIS_MAX);
    (lifetime >= Duration::from_secs(1)).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_milliseconds_within_bounds() {
        let now = WallTime::from_secs(1_700_000_000);
        let check = |lifetime, expected| assert_eq!(expires(lifetime, now), expected, "{lifetime:?}");
        check(Duration::ZERO, None);
        check(Duration::from_millis(999), None);
        check(Duration::from_millis(1500), Some(1500));
        check(Duration::from_secs(40 * 24 * 3600), Some(3_456_000_000));
        check(Duration::MAX, Some(MILLIS_MAX));
    }
}
