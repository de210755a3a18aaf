//! When certificates expire, and whether that is soon.
//!
//! In: certificates, a setting, and the time. Out: days, and sentences for those that need somebody. Pure.

use std::time::Duration;

use larder_http::time::WallTime;
use larder_tls::date;

use crate::wire::tls::KnownCertificate;

/// Of a certificate's life, the last part in which it is warned of at most.
const WARNING_PART: i64 = 6;

/// Seconds since 1970.
pub(super) fn seconds(now: WallTime) -> i64 {
    i64::try_from(now.secs()).unwrap_or(i64::MAX)
}

/// Whether it expires within `warning`, or within the last sixth of its life where that is less.
pub(super) fn is_expiring(known: &KnownCertificate, warning: Duration, now: WallTime) -> bool {
    is_near(known.facts.not_before, known.facts.not_after, warning, now)
}

/// The same for a certificate of these times.
pub(super) fn is_near(not_before: i64, not_after: i64, warning: Duration, now: WallTime) -> bool {
    let warning = i64::try_from(warning.as_secs()).unwrap_or(i64::MAX);
    let life = not_after.saturating_sub(not_before);
    not_after.saturating_sub(seconds(now)) < warning.min(life / WARNING_PART)
}

/// A sentence on each that expires soon.
pub(in crate::server) fn expiry_warnings(
    all: &[KnownCertificate],
    warning: Duration,
    now: WallTime,
) -> Vec<(String, String)> {
    let soon = all.iter().filter(|known| is_expiring(known, warning, now));
    let told = soon.map(|known| {
        let path = known.path.display().to_string();
        let (left, day) = (days_left(known, now), date(known.facts.not_after));
        let sentence = format!("the certificate {path} of site {} expires in {left} d, on {day}", known.site);
        (path, sentence)
    });
    told.collect()
}

/// Whole days until it expires.
pub(super) fn days_left(known: &KnownCertificate, now: WallTime) -> i64 {
    known.facts.not_after.saturating_sub(seconds(now)).div_euclid(24 * 60 * 60)
}
