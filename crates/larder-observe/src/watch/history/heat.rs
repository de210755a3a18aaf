//! Durations over time: for each slot how many fell into each power of two.
//!
//! In: the durations of one second, counted by [`octaves`](crate::histogram::HistogramSnapshot::octaves). Out: counts of a slot. They are
//! small floats of two bytes, 11 bits of which are the mantissa, so a count is within a two-thousandth. Slots that are still being filled
//! have exact sums beside them.

use super::resolution::{Resolution, Slot};
use crate::histogram::OCTAVES;

/// The smallest count that is told from none is 2^-SMALLEST.
const SMALLEST: i32 = 4;
const MANTISSA_BITS: u32 = 11;
const MANTISSA: u16 = (1 << MANTISSA_BITS) - 1;
/// The exponent of the largest count.
const LARGEST: i32 = 31 - SMALLEST - 1;

type Octaves = [f32; OCTAVES];

#[derive(Debug)]
struct Counts {
    slots: Box<[[u16; OCTAVES]]>,
    /// Of the slot that is being filled.
    open: Octaves,
}

/// Durations over time.
#[derive(Debug)]
pub(super) struct HeatMap(Vec<Counts>);

impl HeatMap {
    pub(super) fn new(resolutions: &[Resolution]) -> Self {
        let counts = resolutions.iter().map(|resolution| Counts {
            slots: vec![[0; OCTAVES]; resolution.slots()].into(),
            open: Octaves::default(),
        });
        Self(counts.collect())
    }

    /// The memory that one takes.
    pub(super) fn bytes(resolutions: &[Resolution]) -> usize {
        let slots: usize = resolutions.iter().map(Resolution::slots).sum();
        slots * size_of::<[u16; OCTAVES]>() + resolutions.len() * size_of::<Counts>()
    }

    /// Adds the counts of one second.
    pub(super) fn add(&mut self, slots: &[Slot], more: &Octaves) {
        for (counts, slot) in self.0.iter_mut().zip(slots) {
            if slot.is_fresh {
                counts.open = Octaves::default();
            }
            counts.open.iter_mut().zip(more).for_each(|(sum, count)| *sum += count);
            if let Some(kept) = counts.slots.get_mut(slot.place) {
                *kept = counts.open.map(small);
            }
        }
    }

    /// The counts of a slot of a resolution.
    pub(super) fn counts(&self, resolution: usize, place: usize) -> Option<Octaves> {
        Some(self.0.get(resolution)?.slots.get(place)?.map(large))
    }
}

/// A count in two bytes. One that is too small becomes 0, and one that is too large the largest.
fn small(value: f32) -> u16 {
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 127;
    if value <= 0.0 || exponent < -SMALLEST {
        return 0;
    }
    if exponent > LARGEST {
        return u16::MAX;
    }
    let mantissa = (bits >> (23 - MANTISSA_BITS)) as u16 & MANTISSA;
    (((exponent + SMALLEST + 1) as u16) << MANTISSA_BITS) | mantissa
}

fn large(small: u16) -> f32 {
    if small == 0 {
        return 0.0;
    }
    let exponent = i32::from(small >> MANTISSA_BITS) - SMALLEST - 1;
    let bits = (((exponent + 127) as u32) << 23) | (u32::from(small & MANTISSA) << (23 - MANTISSA_BITS));
    f32::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn none_is_none_and_the_largest_stays_large() {
        assert_eq!([0.0, -1.0, 0.01].map(|count| large(small(count))), [0.0; 3]);
        assert!(large(small(1e30)) > 1e8 && large(small(f32::INFINITY)) > 1e8);
        assert_eq!([1.0, 2.0, 3.0, 1000.0].map(|count| large(small(count))), [1.0, 2.0, 3.0, 1000.0]);
    }

    proptest! {
        #[test]
        fn a_count_is_within_a_two_thousandth(count in 0.1_f32..6e7) {
            let kept = large(small(count));
            prop_assert!(kept <= count && kept > count * (1.0 - 1.0 / 2000.0), "{count} {kept}");
        }
    }
}
