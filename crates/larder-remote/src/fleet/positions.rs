//! What a member knows about responses that members share: how they are judged, and how old they are.
//!
//! In: effects of the protocol with the numbers of this larder's invalidations, and what the server's clock says. Out: positions for
//! numbers and back ([`Applied`]), and the server's time, which all members have in common. It is told by how long ago the server
//! was asked, so no jump of a clock of this machine changes it.

use std::time::Duration;

use larder_fleet::Effect;
use larder_fleet::applied::Applied;

use super::carrier::Purge;
use crate::clock;
use crate::sync::{Mutex, MutexGuard};

/// See the head of the file.
#[derive(Default)]
pub(super) struct Positions {
    applied: Mutex<Applied>,
    clocks: Mutex<Clocks>,
}

#[derive(Clone, Copy, Default)]
struct Clocks {
    /// What the server's clock said, and what this machine's said at the middle of that call.
    read: Option<(Duration, Duration)>,
    /// What it would have said when it was found to be set back.
    set_back_at: Duration,
}

/// A step back that is shorter is how exactly clocks are compared.
const STEP_MIN: Duration = Duration::from_secs(2);

impl Positions {
    pub(super) fn applied(&self) -> MutexGuard<'_, Applied> {
        self.applied.lock()
    }

    /// An effect was carried out, and `number` is that of the last invalidation.
    pub(super) fn note(&self, effect: &Effect<Purge>, number: u64) {
        let mut applied = self.applied.lock();
        match effect {
            Effect::Apply { position, .. } => applied.reach(*position, number, None),
            Effect::Reached { position, own } => applied.reach(*position, number, *own),
            Effect::Placed { id, position } => applied.place(*id, *position),
            Effect::Displaced { id } => applied.displace(*id),
            Effect::Unproven { position } => applied.restart(*position, number),
            Effect::Complete(receipt) => applied.complete(receipt.id),
        }
    }

    /// All effects are carried out, and `number` is that of the last invalidation.
    pub(super) fn keep_up(&self, number: u64) {
        self.applied.lock().keep_up(number);
    }

    /// The clock of the server said this (since 1970) at the moment `middle` of the clock here.
    pub(super) fn note_clock(&self, said: Duration, middle: Duration) {
        let mut clocks = self.clocks.lock();
        if let Some((before, at)) = clocks.read {
            let expected = before.saturating_add(middle.saturating_sub(at));
            if said.saturating_add(STEP_MIN) < expected {
                clocks.set_back_at = expected.max(clocks.set_back_at);
            }
        }
        clocks.read = Some((said, middle));
    }

    /// What the server's clock says now (since 1970). `None` before it was asked, and where it was set back, until it says again what it had
    /// said before: until then nobody knows how old anything is.
    pub(super) fn server_now(&self) -> Option<Duration> {
        let Clocks { read, set_back_at } = *self.clocks.lock();
        let (said, at) = read?;
        let now = said.saturating_add(clock::now().saturating_sub(at));
        Some(now).filter(|now| *now > set_back_at)
    }

    /// What is from this moment or before is older than the server's clock says, which was set back then. Zero where it was not.
    pub(super) fn set_back_at(&self) -> Duration {
        self.clocks.lock().set_back_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_tells_nothing_until_it_has_caught_up() {
        let (positions, at) = (Positions::default(), Duration::from_secs);
        assert_eq!((positions.server_now(), positions.set_back_at()), (None, at(0)));
        let says = |said| positions.note_clock(at(said), clock::now());
        says(1000);
        // Clocks that are compared a little apart.
        says(999);
        assert!(positions.server_now().is_some_and(|now| now >= at(999)) && positions.set_back_at() == at(0));
        says(100);
        assert_eq!(positions.server_now(), None);
        let back = positions.set_back_at();
        assert!(back >= at(999) && back < at(1100), "{back:?}");
        says(101);
        assert_eq!((positions.server_now(), positions.set_back_at()), (None, back));
        says(1101);
        assert!(positions.server_now().is_some() && positions.set_back_at() == back);
    }
}
