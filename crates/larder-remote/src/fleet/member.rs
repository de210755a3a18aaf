//! What the fleet's thread and all others share.
//!
//! In: the member, whenever it has changed. Out: its lease as one number, so that asking for it takes no lock; what is known of the
//! fleet, in words; and wakings in both directions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use larder_fleet::{Effect, EntryId, Lane, Member, Position, SharedPurge};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use super::carrier::{Purge, PurgeOutcome};
use super::lease::Lease;
use super::positions::Positions;
use crate::clock;

/// Complete purges that are remembered.
const COMPLETED_MAX: usize = 1024;

/// Another member, as this one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberReport {
    /// Its name.
    pub name: Arc<str>,
    /// The number of the last entry that it has applied, as it said last.
    pub applied: u64,
    /// How long it may use what it has, as far as is known. `None`: for ever.
    pub left: Option<Duration>,
}

/// What is known of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetReport {
    /// This member's name.
    pub name: Arc<str>,
    /// How far it has applied the log; `None` before the first.
    pub position: Option<Position>,
    /// How long it may use what it has without hearing from the server; zero where it may use nothing. `None`: for ever.
    pub left: Option<Duration>,
    /// The others that may use what they have, by name.
    pub others: Vec<MemberReport>,
    /// Purges of this member that are not complete.
    pub incomplete: usize,
    /// Why the last call came to nothing. `None` where the server has answered since.
    pub failure: Option<String>,
}

/// See the head of the file.
pub(super) struct SharedMember {
    name: Arc<str>,
    member: Mutex<Member<Purge>>,
    lease: Lease,
    /// The last purges that became complete, the oldest first.
    completed: Mutex<VecDeque<SharedPurge>>,
    /// Why the last call of each lane failed.
    failures: Mutex<BTreeMap<Lane, String>>,
    waker: Notify,
    changes: watch::Sender<()>,
    /// There was no room for a purge.
    owes_everything: AtomicBool,
    has_left: watch::Sender<bool>,
    positions: Positions,
}

impl SharedMember {
    pub(super) fn new(member: Member<Purge>, name: Arc<str>) -> Self {
        Self {
            name,
            member: Mutex::new(member),
            lease: Lease::new(),
            completed: Mutex::default(),
            failures: Mutex::default(),
            waker: Notify::new(),
            changes: watch::Sender::new(()),
            owes_everything: AtomicBool::new(false),
            has_left: watch::Sender::new(false),
            positions: Positions::default(),
        }
    }

    pub(super) fn member(&self) -> MutexGuard<'_, Member<Purge>> {
        self.member.lock()
    }

    pub(super) fn positions(&self) -> &Positions {
        &self.positions
    }

    pub(super) fn may_use(&self) -> bool {
        self.lease.may_use(clock::now())
    }

    /// Everything that the member has asked for is done: its lease counts, unless this larder leaves.
    pub(super) fn publish(&self) {
        let until = self.member().held_until().unwrap_or_default();
        self.lease.publish(until);
    }

    /// The log has answered, or could not be had: all that wait for a purge look again.
    pub(super) fn tell_of_changes(&self) {
        self.changes.send_replace(());
    }

    /// What is to be done next. A purge that is complete is remembered before the member forgets it.
    pub(super) fn next_effect(&self) -> Option<Effect<Purge>> {
        let mut member = self.member();
        let effect = member.effect()?;
        if let Effect::Complete(receipt) = &effect {
            let mut completed = self.completed.lock();
            if completed.len() == COMPLETED_MAX {
                completed.pop_front();
            }
            completed.push_back(receipt.clone());
        }
        Some(effect)
    }

    /// What has become of a purge of this member.
    pub(super) fn outcome(&self, id: EntryId) -> PurgeOutcome {
        let member = self.member();
        if let Some(receipt) = member.receipt(id, clock::now()) {
            return PurgeOutcome::Incomplete(receipt);
        }
        let known = || self.completed.lock().iter().find(|receipt| receipt.id == id).cloned();
        PurgeOutcome::Complete(member.completing(id).cloned().or_else(known))
    }

    /// What comes of the next call may depend on what has just changed.
    pub(super) fn wake(&self) {
        self.waker.notify_one();
    }

    /// Waits until a purge lies in the log. Not where the log cannot be had: it is appended once that is there again.
    ///
    /// # Cancel safety
    /// Nothing is lost: the purge goes its way.
    pub(super) async fn placed(&self, id: EntryId) {
        let mut changes = self.changes();
        while !self.member().is_placed(id) && !self.failures.lock().contains_key(&Lane::Control) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) async fn woken(&self) {
        self.waker.notified().await;
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn leave(&self) {
        // From now on nothing is used, whatever the thread is waiting for or about to publish.
        self.lease.leave();
        self.wake();
    }

    /// The thread has told the server, or could not.
    pub(super) fn note_left(&self) {
        self.has_left.send_replace(true);
    }

    /// Waits for that.
    pub(super) async fn left(&self) {
        // The sender is there as long as this is.
        let _ = self.has_left.subscribe().wait_for(|has_left| *has_left).await;
    }

    /// A purge was not shared.
    pub(super) fn owe_everything(&self) {
        self.owes_everything.store(true, Ordering::Release);
    }

    /// Purges everything elsewhere, where a purge was not shared and there is room again. An empty entry stands for everything.
    pub(super) fn pay(&self, id: EntryId) {
        // Taken back first: one that finds no room after this one is owed anew.
        if !self.owes_everything.swap(false, Ordering::AcqRel) {
            return;
        }
        self.positions.applied().pay(id);
        let has_room = self.member().purge(id, Purge::from([]), 0);
        if !has_room {
            self.positions.applied().owe_for(id);
            self.owe_everything();
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.lease.is_leaving()
    }

    /// Notes why the last call of a lane failed, or that it did not. True where all was well before and is not now, or the other way.
    pub(super) fn note_failure(&self, lane: Lane, why: Option<String>) -> bool {
        let mut failures = self.failures.lock();
        let was_well = failures.is_empty();
        match why {
            Some(why) => failures.insert(lane, why),
            None => failures.remove(&lane),
        };
        was_well != failures.is_empty()
    }

    pub(super) fn report(&self) -> FleetReport {
        let now = clock::now();
        let member = self.member();
        let others = member.others(now).map(|(name, applied, left)| MemberReport { name, applied, left });
        FleetReport {
            name: Arc::clone(&self.name),
            position: member.position(),
            // Not what the member holds: that counts only once all that it rests on is carried out.
            left: self.lease.left(now),
            others: others.collect(),
            incomplete: member.incomplete(),
            failure: self.failures.lock().values().next().cloned(),
        }
    }
}
