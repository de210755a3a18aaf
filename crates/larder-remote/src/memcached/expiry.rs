//! How long a value is to stay, as the protocol writes it.
//!
//! In: a lifetime and the time of day. Out: seconds up to 30 days; beyond that memcached reads the number as a date, so it is one.

use std::time::Duration;

use larder_http::time::WallTime;

/// From here on the number is a date.
const RELATIVE_MAX: u64 = 30 * 24 * 3600;

/// The number for `lifetime`, in whole seconds rounded down. `None` for less than a second: 0 would mean for ever.
pub(crate) fn expires(lifetime: Duration, now: WallTime) -> Option<u64> {
    match lifetime.as_secs() {
        0 => None,
        secs @ 1..=RELATIVE_MAX => Some(secs),
        secs => Some(now.secs().saturating_add(secs).min(u64::from(u32::MAX >> 1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_days_are_seconds_and_more_is_a_date() {
        let now = WallTime::from_secs(1_700_000_000);
        let check = |secs, expected| assert_eq!(expires(Duration::from_secs(secs), now), expected, "{secs}");
        check(0, None);
        check(1, Some(1));
        check(2_592_000, Some(2_592_000));
        check(2_592_001, Some(1_702_592_001));
        check(u64::MAX, Some(2_147_483_647));
        assert_eq!(expires(Duration::from_millis(1999), now), Some(1));
        assert_eq!(expires(Duration::from_millis(999), now), None);
    }
}
