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
    /// What the server's clock said, and what this machine's said at the middle of that call.
    clocks: Mutex<Option<(Duration, Duration)>>,
}

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

    /// The server was asked at `sent`, has answered now, and its clock said this (since 1970).
    pub(super) fn note_clock(&self, said: Duration, sent: Duration) {
        let middle = sent + clock::now().saturating_sub(sent) / 2;
        *self.clocks.lock() = Some((said, middle));
    }

    /// What the server's clock says now (since 1970). `None` before it was asked.
    pub(super) fn server_now(&self) -> Option<Duration> {
        let (said, at) = (*self.clocks.lock())?;
        Some(said.saturating_add(clock::now().saturating_sub(at)))
    }
}
