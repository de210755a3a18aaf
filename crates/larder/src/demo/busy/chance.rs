//! Chance for the busy demo: the same draws for the same seed, and popularity after Zipf.
//!
//! In: a seed. Out: numbers, times between arrivals (exponential), and indexes of which the first ones come most often. The generator is
//! SplitMix64, which passes the usual tests and has one word of state.
//! Deliberately absent: unpredictability. Nothing here protects anything.

use std::time::Duration;

/// A sequence of draws.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(mixed(seed))
    }

    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number from 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `bound`, and 0 where that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// The time to the next of arrivals that do not know of each other, at `rate` of them per second.
    pub(super) fn gap(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.unit()).ln() / rate.max(0.001))
    }
}

/// A number that has nothing to do with its neighbours: the output function of SplitMix64.
pub(super) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// How often each of some things is asked for: the n-th in proportion to 1/n to the power of an exponent.
#[derive(Clone, Debug)]
pub(super) struct Popularity {
    /// The share of each thing and of those before it.
    shares: Vec<f64>,
}

impl Popularity {
    /// That of `count` things.
    pub(super) fn zipf(count: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        });
        let mut shares: Vec<f64> = sums.collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Self { shares }
    }

    /// One of them, from 0.
    pub(super) fn draw(&self, chance: &mut Chance) -> usize {
        let drawn = chance.unit();
        self.shares.partition_point(|share| *share <= drawn).min(self.shares.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_sequence_and_another_seed_another() {
        let drawn = |seed| {
            let mut chance = Chance::new(seed);
            [chance.number(), chance.number(), chance.number()]
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert_eq!(Chance::new(1).number(), 0xbfef_8030_ddc2_d772, "another sequence on this machine");
    }

    #[test]
    fn arrivals_come_at_their_rate() {
        let mut chance = Chance::new(3);
        let all: Duration = (0..20_000).map(|_| chance.gap(50.0)).sum();
        assert!((380.0..420.0).contains(&all.as_secs_f64()), "{all:?}");
    }

    #[test]
    fn the_second_of_a_zipf_comes_half_as_often_as_the_first() {
        let (popularity, mut chance) = (Popularity::zipf(100, 1.0), Chance::new(5));
        let mut drawn = [0_u32; 100];
        (0..100_000).for_each(|_| drawn[popularity.draw(&mut chance)] += 1);
        // The hundredth harmonic number is 5.187.
        for (rank, share) in [(1, 0.1928), (2, 0.0964), (10, 0.0193)] {
            let found = f64::from(drawn[rank - 1]) / 100_000.0;
            assert!((found - share).abs() < share / 10.0, "{rank}: {found} and not {share}");
        }
        assert!(drawn[99] > 0);
    }

    #[test]
    fn of_one_thing_that_one_is_drawn() {
        let (one, mut chance) = (Popularity::zipf(1, 1.0), Chance::new(5));
        assert!((0..100).all(|_| one.draw(&mut chance) == 0));
    }
}
