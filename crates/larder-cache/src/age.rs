//! How old a response is on arrival (RFC 9111 4.2.3).
//!
//! In: the response's Age and Date, and when its request was sent and its head came. Out: the corrected initial age,
//! below the second. Residence time is added by [`Freshness`](crate::Freshness), on the monotonic clock.
//! Date is cut to whole seconds where it is written, so the age that it shows is counted from the end of that second.
//! Counted from its start, a response with a lifetime of one second would often arrive nearly expired. What is lost
//! is covered by the response delay, which bounds the true age of a response that came straight from its origin.

use std::time::Duration;

use http::{HeaderMap, header};
use larder_http::fields::age;
use larder_http::fields::date::DateField;
use larder_http::time::{Now, WallTime};

/// When an exchange with the origin happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// When the request was sent.
    pub request: Now,
    /// When the response's head had arrived.
    pub response: Now,
}

impl ExchangeTimes {
    /// How long the answer took.
    pub fn delay(&self) -> Duration {
        self.response.since(&self.request)
    }
}

/// The part of a second that Date cannot say.
const DATE_RESOLUTION_MS: u64 = 999;

/// The corrected initial age. An Age or Date that is absent or not usable does not make a response older.
pub fn initial_age(fields: &HeaderMap, times: ExchangeTimes) -> Duration {
    let received = times.response.wall;
    let apparent = match DateField::read(fields, &header::DATE, received) {
        DateField::At(date) => received.since(WallTime(date.0.saturating_add(DATE_RESOLUTION_MS))),
        DateField::Absent | DateField::Invalid => Duration::ZERO,
    };
    let corrected = age::parse(fields).unwrap_or_default().saturating_add(times.delay());
    apparent.max(corrected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{at_ms, fields};

    /// Date is the example's second 1000; the head arrives `arrival_ms` after it.
    fn check(lines: &[(&str, &str)], arrival_ms: u64, delay_ms: u64, expected_ms: u64) {
        let response = at_ms(arrival_ms);
        let request = at_ms(arrival_ms - delay_ms);
        let age = initial_age(&fields(lines), ExchangeTimes { request, response });
        assert_eq!(age, Duration::from_millis(expected_ms), "{lines:?}");
    }

    #[test]
    fn the_larger_of_apparent_and_corrected_age() {
        let date = ("date", crate::example::DATE);
        check(&[], 5_000, 0, 0);
        check(&[], 5_000, 250, 250);
        check(&[("age", "7")], 5_000, 250, 7_250);
        check(&[date], 0, 0, 0);
        check(&[date], 900, 0, 0);
        check(&[date], 1_999, 0, 1_000);
        check(&[date], 60_999, 250, 60_000);
        check(&[date, ("age", "100")], 60_999, 250, 100_250);
        check(&[date, ("age", "-100")], 60_999, 250, 60_000);
        check(&[("date", "foo"), ("age", "3")], 60_999, 0, 3_000);
    }
}
