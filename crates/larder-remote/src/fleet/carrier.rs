//! What a purge of the fleet is, and who does what the log says.
//!
//! In: effects of the protocol, in their order. Out: they are done. Deliberately absent: what the bytes of a purge mean.

use std::future::Future;
use std::sync::Arc;

use larder_fleet::{Effect, SharedPurge};

/// What a purge says, in larder's own bytes.
pub type Purge = Arc<[u8]>;

/// What has become of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeOutcome {
    /// No member uses anything any more that it names and that was fetched before. How the others stood then; `None` where that is not
    /// remembered any more.
    Complete(Option<SharedPurge>),
    /// Not yet, for these reasons.
    Incomplete(SharedPurge),
}

/// Who does what the log says.
pub trait Carrier: Send + 'static {
    /// Does it, and says under which number this larder has counted its last invalidation then. The next effect comes when this one is done,
    /// and so does the next renewal of the lease.
    fn carry_out(&mut self, effect: &Effect<Purge>) -> impl Future<Output = u64> + Send;

    /// The number of the last invalidation now.
    fn last_invalidation(&self) -> u64;
}
