//! Random choices that a seed brings back.
//!
//! In: a seed. Out: the same numbers each time, on every machine. The generator is xorshift64*, which is no good for secrets.

/// See the head of the file.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Those of this seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of small seeds are alike.
        for _ in 0..8 {
            dice.draw();
        }
        dice
    }

    /// A number of 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.draw() >> 11) % end.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number of 128 bits.
    pub fn name(&mut self) -> u128 {
        u128::from(self.draw()) << 64 | u128::from(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_brings_its_numbers_back_and_another_one_others() {
        let drawn = |seed| {
            std::iter::repeat_with({
                let mut dice = Dice::new(seed);
                move || dice.below(1000)
            })
            .take(20)
            .collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert_ne!(drawn(0), drawn(1));
        assert!(drawn(1).iter().all(|number| *number < 1000));
    }
}
