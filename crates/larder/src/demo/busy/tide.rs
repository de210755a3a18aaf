//! How many requests the busy demo sends per second, over time: slow waves as of days, and sales.
//!
//! In: the rate of a usual moment, and the time since the start. Out: the rate of that time. The waves last minutes, so that a picture of ten
//! minutes shows some of them.
//! Deliberately absent: chance, which belongs to the single arrivals.

use std::f64::consts::TAU;
use std::time::Duration;

/// From one wave to the next, in seconds, and how much it adds at most. Two that never meet make no two waves alike.
const WAVES: [(f64, f64); 2] = [(240.0, 0.3), (67.0, 0.1)];
/// From one sale to the next, in seconds.
const SALE_EVERY: u64 = 180;
/// When the first one begins, and how long each lasts.
const SALE_AT: u64 = 60;
const SALE_SECONDS: u64 = 20;
/// How many times as many requests come during one.
const SALE_FACTOR: f64 = 2.0;

/// A rate over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tide {
    usual: f64,
}

impl Tide {
    /// One around `usual` requests per second.
    pub(super) fn new(usual: u32) -> Self {
        Self { usual: usual.into() }
    }

    /// Requests per second at `time` since the start.
    pub(super) fn rate(&self, time: Duration) -> f64 {
        let seconds = time.as_secs_f64();
        let waves: f64 = WAVES.iter().map(|(period, height)| height * (TAU * seconds / period).sin()).sum();
        let sale = if is_sale(time) { SALE_FACTOR } else { 1.0 };
        self.usual * (1.0 + waves) * sale
    }
}

fn is_sale(time: Duration) -> bool {
    (SALE_AT..SALE_AT + SALE_SECONDS).contains(&(time.as_secs() % SALE_EVERY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(seconds: impl Iterator<Item = u64>) -> Vec<f64> {
        let tide = Tide::new(200);
        seconds.map(|second| tide.rate(Duration::from_secs(second))).collect()
    }

    #[test]
    fn the_rate_moves_around_the_usual_one() {
        let quiet = rates((0..7200).filter(|second| !is_sale(Duration::from_secs(*second))));
        let (least, most) =
            quiet.iter().fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        assert!((120.0..135.0).contains(&least) && (265.0..=280.0).contains(&most), "{least} to {most}");
        let mean = quiet.iter().sum::<f64>() / quiet.len() as f64;
        assert!((190.0..210.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_sale_of_20_s_doubles_it_each_3_minutes() {
        assert_eq!((0..1800).filter(|second| is_sale(Duration::from_secs(*second))).count(), 10 * 20);
        let around = rates([59, 60, 79, 80].into_iter());
        assert!(around[1] > 1.9 * around[0] && around[2] > 1.9 * around[3], "{around:?}");
    }
}
