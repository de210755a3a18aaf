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
mod lease;
mod member;
mod own;
mod positions;
mod random;
mod settings;
mod thread;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use larder_fleet::script::Keys;
use larder_fleet::{EntryId, Incarnation, Member, MemberSettings, Position};
use larder_observe::Diagnostics;
use tokio::time::{Instant, timeout_at};

use crate::address::Resolve;
use crate::error::RemoteError;
use crate::redis::Dial;
pub use carrier::{Carrier, Purge, PurgeOutcome};
use member::SharedMember;
pub use member::{FleetReport, MemberReport};
pub use own::OwnPurge;
use random::draw;
pub use settings::FleetSettings;

/// Between two renewals of the lease, and before the next try after a failure.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// The first looks at the others after a purge; later ones come less often.
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
    /// [`RemoteError::Thread`], [`RemoteError::Tls`].
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
            reads_all: settings.shares_responses,
        };
        let dial = Arc::new(Dial::new(
            &settings.server,
            Keys::new(&settings.prefix).hash.as_bytes(),
            names,
            &diagnostics,
        )?);
        let run = Incarnation(draw()?);
        let shared = Arc::new(SharedMember::new(Member::new(member, run), settings.name.clone()));
        thread::start(settings, dial, diagnostics, Arc::clone(&shared), carrier)?;
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

    /// This larder is about to purge something, under a number above `number`, the last one at this moment. Until the purge has its place in
    /// the log, every shared response is older than it.
    pub fn announce(&self, number: u64) -> OwnPurge {
        OwnPurge::new(&self.shared, number)
    }

    /// How far the log was applied here when the last invalidation had this number: what others need to know of a response that was
    /// fetched then. `None` without a lease, and where that is not known any more.
    pub fn position_of(&self, number: u64) -> Option<Position> {
        self.may_use().then(|| self.shared.positions().applied().position_of(number)).flatten()
    }

    /// The number by which a response is judged here that another member has fetched at this position. `None` without a lease, and where
    /// it cannot be judged.
    pub fn number_of(&self, position: Position) -> Option<u64> {
        self.may_use().then(|| self.shared.positions().applied().number_of(position)).flatten()
    }

    /// What the server's clock would have said when it was set back last, and zero where it was not: what is from before is older than that
    /// clock says.
    pub fn set_back_at(&self) -> Duration {
        self.shared.positions().set_back_at()
    }

    /// The time of the server's clock since 1970, by which members tell each other the ages of responses. `None` without a lease,
    /// before it was asked, and for as long as it was set back.
    pub fn server_now(&self) -> Option<Duration> {
        self.may_use().then(|| self.shared.positions().server_now()).flatten()
    }

    /// What has become of a purge of this larder.
    pub fn outcome(&self, id: EntryId) -> PurgeOutcome {
        self.shared.outcome(id)
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
