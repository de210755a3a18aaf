//! One figure over time: a value for each slot of each resolution.
//!
//! In: the value of one second. Out: the mean of a slot's known seconds. A slot holds the sum of its seconds, so that a coarse slot is right
//! at every moment. Four bytes a slot. A figure that is not there in each second, such as a percentile, counts the seconds that it has.

use super::resolution::{Resolution, Slot};

/// The values of one resolution.
#[derive(Debug)]
struct Values {
    sums: Box<[f32]>,
    /// Of a figure that is not there in each second: in how many of the slot's it is.
    counts: Option<Box<[u8]>>,
}

/// A figure over time.
#[derive(Debug)]
pub(super) struct Series(Vec<Values>);

impl Series {
    pub(super) fn new(resolutions: &[Resolution], is_sparse: bool) -> Self {
        let values = resolutions.iter().map(|resolution| Values {
            sums: vec![0.0; resolution.slots()].into(),
            counts: is_sparse.then(|| vec![0; resolution.slots()].into()),
        });
        Self(values.collect())
    }

    /// The memory that a series takes.
    pub(super) fn bytes(resolutions: &[Resolution], is_sparse: bool) -> usize {
        let slots: usize = resolutions.iter().map(Resolution::slots).sum();
        slots * (size_of::<f32>() + usize::from(is_sparse)) + resolutions.len() * size_of::<Values>()
    }

    /// Adds the value of a second, for each resolution to its slot; `None` where the figure has none.
    pub(super) fn add(&mut self, slots: &[Slot], value: Option<f32>) {
        for (values, slot) in self.0.iter_mut().zip(slots) {
            let (Some(sum), mut count) = (
                values.sums.get_mut(slot.place),
                values.counts.as_mut().and_then(|counts| counts.get_mut(slot.place)),
            ) else {
                continue;
            };
            if slot.is_fresh {
                *sum = 0.0;
                if let Some(count) = &mut count {
                    **count = 0;
                }
            }
            if let Some(value) = value {
                *sum += value;
                if let Some(count) = count {
                    *count = count.saturating_add(1);
                }
            }
        }
    }

    /// The sum of a slot of a resolution, and of how many seconds it is. `known` is what the resolution says of the slot.
    pub(super) fn sum(&self, resolution: usize, (place, known): (usize, u8)) -> (f64, u32) {
        let Some(values) = self.0.get(resolution) else { return (0.0, 0) };
        let count = values.counts.as_ref().and_then(|counts| counts.get(place)).copied().unwrap_or(known);
        (f64::from(values.sums.get(place).copied().unwrap_or_default()), count.into())
    }
}
