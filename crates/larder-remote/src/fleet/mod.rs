//! A member of a fleet, over Redis.
//!
//! In: purges of this larder. Out: those of the others ([`Carrier`]), whether stored responses may be used ([`Fleet::may_use`]),
//! and who has applied a purge. `larder-fleet` has the protocol; here are its clock, its two connections and its thread.
//!
//! ```text
//!   any thread: Fleet::purge, receipt, may_use -> SharedMember (the member behind a lock, the lease as a number)
//!   the fleet's thread: next call -> Caller -> script at the server -> answer -> effects -> Carrier, then the lease is published
//! ```
//!
//! **Invariant**: what an answer brings is carried out before the lease counts that the answer has renewed.
//! Deliberately absent: what a purge says, and what is done with it.

mod carrier;
mod member;
mod random;
mod settings;
mod thread;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use larder_fleet::{EntryId, Incarnation, Member, MemberSettings, Position};
use larder_observe::Diagnostics;
use tokio::time::{Instant, timeout_at};

use crate::address::Resolve;
use crate::clock;
use crate::error::RemoteError;
pub use carrier::{Carrier, Purge, PurgeOutcome};
use member::SharedMember;
pub use member::{FleetReport, MemberReport};
use random::draw;
pub use settings::FleetSettings;

/// Between two renewals of the lease, and before the next try after a failure.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// The first look at the others after a purge; each further one takes as long as all before.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The longest that leaving is waited for.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// This larder in its fleet. When it is dropped, the member leaves.
pub struct Fleet {
    shared: Arc<SharedMember>,
}

impl Fleet {
    /// Starts the member's thread. It may use nothing before the server has answered.
    ///
    /// # Errors
    /// [`RemoteError::Thread`].
    pub fn start(
        settings: FleetSettings,
        names: Arc<dyn Resolve>,
        diagnostics: Diagnostics,
        carrier: impl Carrier,
    ) -> Result<Self, RemoteError> {
        let member = MemberSettings {
            name: Arc::clone(&settings.name),
            lease: settings.lease,
            renew_every: RENEW_EVERY,
            look_every: LOOK_EVERY,
        };
        let run = Incarnation(draw()?);
        let shared = Arc::new(SharedMember::new(Member::new(member, run), settings.name.clone()));
        thread::start(settings, names, diagnostics, Arc::clone(&shared), carrier)?;
        Ok(Self { shared })
    }

    /// Whether stored responses may be used without asking the origin.
    pub fn may_use(&self) -> bool {
        self.shared.may_use()
    }

    /// How far everything is applied here. `None` before the first log.
    pub fn position(&self) -> Option<Position> {
        self.shared.member().position()
    }

    /// Shares a purge that is in force here already. `None` where too many are not complete: then all members are told to take everything
    /// out, as soon as there is room again.
    ///
    /// # Errors
    /// [`RemoteError::Thread`]: the system gives no random number.
    pub fn purge(&self, what: Purge) -> Result<Option<EntryId>, RemoteError> {
        let id = EntryId(draw()?);
        let bytes = what.len();
        let has_room = self.shared.member().purge(id, what, bytes);
        if !has_room {
            self.shared.owe_everything();
        }
        self.shared.wake();
        Ok(has_room.then_some(id))
    }

    /// The same of something whose receipt nobody asks for. It has half of the room. It is lost where the log is lost before the others have
    /// read it.
    ///
    /// # Errors
    /// As for [`Fleet::purge`].
    pub fn tell(&self, what: Purge) -> Result<(), RemoteError> {
        let (id, bytes) = (EntryId(draw()?), what.len());
        if !self.shared.member().tell(id, what, bytes) {
            self.shared.owe_everything();
        }
        self.shared.wake();
        Ok(())
    }

    /// What has become of a purge of this larder.
    pub fn outcome(&self, id: EntryId) -> PurgeOutcome {
        let receipt = self.shared.member().receipt(id, clock::now());
        receipt.map_or_else(|| PurgeOutcome::Complete(self.shared.completed(id)), PurgeOutcome::Incomplete)
    }

    /// Waits until it is complete, for so long at most.
    ///
    /// # Cancel safety
    /// Nothing is lost: the purge goes its way.
    pub async fn wait(&self, id: EntryId, limit: Duration) -> PurgeOutcome {
        let until = Instant::now() + limit;
        let mut changes = self.shared.changes();
        loop {
            let outcome = self.outcome(id);
            let is_complete = matches!(outcome, PurgeOutcome::Complete(_));
            if is_complete || timeout_at(until, changes.changed()).await.is_err() {
                return outcome;
            }
        }
    }

    /// Leaves the fleet: nothing stored is used any more, and no purge waits for this member. Where the server does not answer in time, the
    /// others wait for the end of the lease.
    ///
    /// # Cancel safety
    /// It leaves all the same.
    pub async fn leave(&self) {
        self.shared.leave();
        let _ = timeout_at(Instant::now() + LEAVE_MAX, self.shared.left()).await;
    }

    /// What is known of the fleet.
    pub fn report(&self) -> FleetReport {
        self.shared.report()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}
