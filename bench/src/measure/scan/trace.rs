//! The requests of a replay: a core that follows Zipf's law, and a scan that walks through keys of its own.
//!
//! In: a seed. Out: the same keys in the same order each time, for every cache that is compared.

/// Ranks drawn with a share that goes with 1/rank^exponent.
pub(super) struct Zipf {
    /// The sum of the shares of all ranks so far.
    reach: Vec<f64>,
    random: Random,
}

impl Zipf {
    /// Draws of `keys` ranks, the same for the same seed.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(super) fn new(keys: usize, exponent: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let reach = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { reach: reach.collect(), random: Random(seed) }
    }

    /// The next rank, from 0.
    pub(super) fn draw(&mut self) -> usize {
        let wanted = self.random.draw() * self.reach.last().copied().unwrap_or(0.0);
        self.reach.partition_point(|reach| *reach < wanted).min(self.reach.len().saturating_sub(1))
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers everywhere.
struct Random(u64);

impl Random {
    /// In 0..1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_low_ranks_come_as_often_as_zipf_says() {
        let (mut one, mut same) = (Zipf::new(1000, 0.9, 7), Zipf::new(1000, 0.9, 7));
        let mut first = 0;
        for _ in 0..100_000 {
            let rank = one.draw();
            assert_eq!(rank, same.draw());
            assert!(rank < 1000);
            first += u32::from(rank == 0);
        }
        // The sum of rank^-0.9 over 1000 ranks is 10.52: the first has a share of 9.5 %.
        assert!((9_000..10_000).contains(&first), "{first}");
    }

    #[test]
    fn another_seed_draws_otherwise() {
        let (mut one, mut other) = (Zipf::new(1000, 0.9, 1), Zipf::new(1000, 0.9, 2));
        assert!((0..100).any(|_| one.draw() != other.draw()));
    }
}
