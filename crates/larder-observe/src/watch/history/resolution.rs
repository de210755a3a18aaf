//! One resolution of the history: how many seconds each of its slots knows.
//!
//! In: seconds as they pass. Out: the slot of a second, whether it has just begun, and for a slot how many of its seconds are known. Slots
//! are a ring; a slot that was passed over, or that is older than the ring, knows nothing, whatever a series still has in it.

/// The resolutions: seconds of a slot, and slots of the ring. 10 minutes, 3 hours, 24 hours.
pub(super) const LEVELS: [(u64, usize); 3] = [(1, 600), (10, 1080), (60, 1440)];

/// Where one second is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) place: usize,
    /// What was there before is of another time.
    pub(super) is_fresh: bool,
}

/// The slots of one resolution, without the values in them.
#[derive(Debug)]
pub(super) struct Resolution {
    /// Seconds of a slot.
    pub(super) step: u64,
    known: Vec<u8>,
    /// The number of the slot that was written last, counted from second 0.
    newest: Option<u64>,
}

impl Resolution {
    pub(super) fn new(step: u64, slots: usize) -> Self {
        Self { step, known: vec![0; slots.max(1)], newest: None }
    }

    /// The resolutions that a history of so many seconds needs; none for 0.
    pub(super) fn all(history: u64) -> Vec<Self> {
        let mut spans = 0;
        LEVELS
            .iter()
            .filter_map(|(step, slots)| {
                let is_needed = history > spans;
                spans = step * *slots as u64;
                let wanted = usize::try_from(history.div_ceil(*step)).unwrap_or(*slots);
                is_needed.then(|| Self::new(*step, wanted.min(*slots)))
            })
            .collect()
    }

    pub(super) fn slots(&self) -> usize {
        self.known.len()
    }

    /// So many seconds lie in it.
    pub(super) fn span(&self) -> u64 {
        self.step * self.known.len() as u64
    }

    fn place(&self, slot: u64) -> usize {
        usize::try_from(slot % self.known.len() as u64).unwrap_or_default()
    }

    /// The slot of a second that is known now. Seconds do not go back.
    pub(super) fn note(&mut self, second: u64) -> Slot {
        let slot = second / self.step;
        let place = self.place(slot);
        let is_fresh = self.newest != Some(slot);
        if is_fresh {
            let len = self.known.len() as u64;
            let passed = self.newest.map_or(slot, |newest| newest + 1).max(slot.saturating_sub(len - 1));
            for other in passed..=slot {
                let place = self.place(other);
                if let Some(known) = self.known.get_mut(place) {
                    *known = 0;
                }
            }
            self.newest = Some(slot);
        }
        if let Some(known) = self.known.get_mut(place) {
            *known = known.saturating_add(1);
        }
        Slot { place, is_fresh }
    }

    /// Where the values of a slot are, and how many of its seconds are known; `None` where none is.
    pub(super) fn known(&self, slot: u64) -> Option<(usize, u8)> {
        let newest = self.newest?;
        let is_there = slot <= newest && newest - slot < self.known.len() as u64;
        let place = self.place(slot);
        let known = self.known.get(place).copied().filter(|known| is_there && *known > 0)?;
        Some((place, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_has_the_resolutions_that_it_needs() {
        let all = |history| Resolution::all(history).iter().map(|l| (l.step, l.slots())).collect::<Vec<_>>();
        assert_eq!(all(0), []);
        assert_eq!(all(60), [(1, 60)]);
        assert_eq!(all(601), [(1, 600), (10, 61)]);
        assert_eq!(all(86_400), LEVELS);
        assert_eq!(all(1_000_000), LEVELS);
    }

    #[test]
    fn what_was_passed_over_or_is_older_than_the_ring_is_not_known() {
        let mut resolution = Resolution::new(10, 3);
        assert_eq!(resolution.known(0), None);
        assert_eq!(resolution.note(100), Slot { place: 1, is_fresh: true });
        assert_eq!(resolution.note(101), Slot { place: 1, is_fresh: false });
        assert_eq!(resolution.known(10), Some((1, 2)));
        assert_eq!((resolution.known(9), resolution.known(11)), (None, None));
        assert_eq!(resolution.note(125), Slot { place: 0, is_fresh: true });
        assert_eq!(
            [10, 11, 12, 13].map(|slot| resolution.known(slot)),
            [Some((1, 2)), None, Some((0, 1)), None]
        );
        resolution.note(130);
        assert_eq!([10, 11, 12, 13].map(|slot| resolution.known(slot).is_some()), [false, false, true, true]);
        resolution.note(1_000_000);
        assert_eq!([12, 13, 99_999].map(|slot| resolution.known(slot).is_some()), [false; 3]);
        assert!(resolution.known(100_000).is_some());
    }
}
