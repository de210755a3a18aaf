//! How much of a configured lifetime is left unused, so that what was stored together does not expire together.
//!
//! In: a response's freshness, the request that brought it, the rule's settings. Out: the freshness with up to
//! `jitter_percent` of its lifetime taken off. Nothing is drawn: the part follows from the request's target and the moment
//! of arrival, so that the same inputs always give the same lifetime, and explaining a response gives the one it has.
//! Only lifetimes of the rule (`ttl`, `override_ttl`) are shortened, and nothing is ever lengthened: the origin's lifetimes
//! are its own, and a heuristic one spreads by itself. Deliberately absent: a secret, since nobody gains by choosing when
//! a response of their own making expires.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use larder_http::message::RequestHead;
use larder_http::time::Now;

use crate::freshness::Freshness;
use crate::policy::{CachePolicy, JITTER_MAX};

/// `freshness` of what answers `request`, with its jitter taken off.
pub(crate) fn jittered(freshness: Freshness, request: &RequestHead, policy: &CachePolicy) -> Freshness {
    if policy.jitter_percent == 0 || !freshness.source.is_configured() {
        return freshness;
    }
    let taken = share(request.target.as_bytes(), freshness.received);
    Freshness { lifetime: shortened(freshness.lifetime, policy.jitter_percent, taken), ..freshness }
}

/// `lifetime` less `taken`, in 0..1, of what `percent` allows to take. Zero only where it was zero.
fn shortened(lifetime: Duration, percent: u8, taken: f64) -> Duration {
    let off = lifetime.mul_f64(taken * f64::from(percent.min(JITTER_MAX)) / 100.0);
    // Shorter than some nanoseconds, rounding could take all of it.
    lifetime.saturating_sub(off).max(lifetime.min(Duration::from_nanos(1)))
}

/// The shortest that jitter may have made of `lifetime`.
pub(crate) fn shortest(lifetime: Duration, percent: u8) -> Duration {
    shortened(lifetime, percent, 1.0)
}

/// A number in 0..1 that is spread evenly over targets, and over moments.
fn share(target: &[u8], received: Now) -> f64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(target);
    hasher.write_u128(received.monotonic.as_nanos());
    let high = u32::try_from(hasher.finish() >> 32).unwrap_or(u32::MAX);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests;
