//! What a disk did not hear of while it was absent.
//!
//! In: bases of keys under which something was stored or taken out meanwhile. Out: the same, once the disk is there, so
//! that what it has under them goes: it would be older than what clients were given since. Which disk has what is unknown as long
//! as its index is not read, so every base counts. Bounded in bytes: beyond that nothing the disk holds is believed.

use std::collections::HashSet;

use foldhash::fast::RandomState;

/// Bases and their overhead, in bytes.
const BYTES_MAX: usize = 4 << 20;
/// What a base takes beside itself.
const BASE_BYTES: usize = 48;

/// Bases of keys.
pub type Bases = HashSet<Box<[u8]>, RandomState>;

/// What was missed since it was last taken.
#[derive(Debug, Default)]
pub struct Missed {
    bases: Bases,
    /// Of all bases since the disk went: taking some out makes no room for others.
    bytes: usize,
    is_everything: bool,
}

impl Missed {
    /// Something under this base has changed.
    pub fn note(&mut self, base: &[u8]) {
        if self.is_everything || self.bases.contains(base) {
            return;
        }
        self.bytes = self.bytes.saturating_add(base.len() + BASE_BYTES);
        if self.bytes > BYTES_MAX {
            return self.note_everything();
        }
        self.bases.insert(base.into());
    }

    /// Anything may have changed.
    pub fn note_everything(&mut self) {
        self.is_everything = true;
        self.bases = Bases::default();
    }

    /// Whether nothing that the disk holds can be believed.
    pub fn is_everything(&self) -> bool {
        self.is_everything
    }

    /// What was noted since the last call.
    pub fn take(&mut self) -> Bases {
        std::mem::take(&mut self.bases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_taken_once_and_too_many_of_them_are_everything() {
        let mut missed = Missed::default();
        for base in ["a", "b", "a"] {
            missed.note(base.as_bytes());
        }
        let taken = missed.take();
        assert!(taken.len() == 2 && taken.contains(&b"a"[..]) && taken.contains(&b"b"[..]), "{taken:?}");
        assert!(missed.take().is_empty() && !missed.is_everything());
        let long = vec![b'x'; 1000];
        for number in 0_u32..4100 {
            assert!(!missed.is_everything() || number > 3900, "{number}");
            missed.note(&[&number.to_le_bytes()[..], &long].concat());
        }
        assert!(missed.is_everything() && missed.take().is_empty());
        missed.note(b"c");
        assert!(missed.take().is_empty(), "nothing is kept any more");
    }
}
