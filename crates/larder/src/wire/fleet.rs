//! The fleet of the config, put to work: this larder as a member of it.
//!
//! In: what the config says of it, and a worker that carries purges out. Out: the member, and the proxy that asks it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use larder_fleet::{Effect, EntryId, SharedPurge};
use larder_observe::Diagnostics;
use larder_proxy::{Membership, OwnPurge, Placing, Proxy, Worker};
use larder_remote::fleet::{Carrier, Fleet, FleetSettings, Purge, PurgeOutcome};
use larder_remote::{RemoteError, SystemNames};

use super::member::member_name;
use super::records::FleetStanding;

/// The largest reply part that a value of a store could have; a fleet has none.
const NO_VALUES: u64 = 0;

/// The member, with what the config says of purges.
struct Member {
    fleet: Arc<Fleet>,
    patience: Duration,
}

struct Own(larder_remote::fleet::OwnPurge);

impl OwnPurge for Own {
    fn share(&self, what: Purge) -> Option<EntryId> {
        // Without random numbers nothing can be shared, as with too many purges.
        self.0.share(what).ok().flatten()
    }

    fn tell(&self, what: Purge) -> Option<Placing> {
        // As above.
        let placing = self.0.tell(what).ok().flatten()?;
        Some(Box::pin(placing))
    }
}

impl Membership for Member {
    fn may_use(&self) -> bool {
        self.fleet.may_use()
    }

    fn announce(&self, number: u64) -> Box<dyn OwnPurge> {
        Box::new(Own(self.fleet.announce(number)))
    }

    fn receipt(&self, id: EntryId) -> Option<(SharedPurge, bool)> {
        match self.fleet.outcome(id) {
            PurgeOutcome::Complete(receipt) => receipt.map(|receipt| (receipt, true)),
            PurgeOutcome::Incomplete(receipt) => Some((receipt, false)),
        }
    }

    fn wait(&self, id: EntryId, limit: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.fleet.wait(id, limit).await;
        })
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

/// Does what the fleet's log says.
struct Hands {
    proxy: Weak<Proxy>,
    worker: Weak<Worker>,
}

impl Carrier for Hands {
    async fn carry_out(&mut self, effect: &Effect<Purge>) -> u64 {
        // Where larder is ending, nothing is used any more.
        let (Some(proxy), Some(worker)) = (self.proxy.upgrade(), self.worker.upgrade()) else { return 0 };
        match effect {
            Effect::Apply { what, .. } => worker.purge_of_fleet(what).await,
            Effect::Unproven { .. } => proxy.doubt_stored(),
            // They concern the positions of responses that members share.
            Effect::Reached { .. }
            | Effect::Placed { .. }
            | Effect::Displaced { .. }
            | Effect::Complete(_) => {}
        }
        proxy.last_invalidation()
    }

    fn last_invalidation(&self) -> u64 {
        self.proxy.upgrade().map_or(0, |proxy| proxy.last_invalidation())
    }
}

/// Makes this larder a member, where the config says so.
///
/// # Errors
/// There is no thread.
pub(crate) fn start(
    config: &larder_config::Config,
    standing: &FleetStanding,
    (proxy, worker): (&Arc<Proxy>, &Arc<Worker>),
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<Fleet>>, RemoteError> {
    let Some((said, server)) = config.membership() else { return Ok(None) };
    let settings = FleetSettings {
        name: member_name(&said),
        lease: said.lease,
        server: super::redis::settings(server, said.timeout, NO_VALUES),
        prefix: said.prefix.as_str().to_owned(),
        shares_responses: config.shares_responses(),
    };
    let hands = Hands { proxy: Arc::downgrade(proxy), worker: Arc::downgrade(worker) };
    let fleet = Arc::new(Fleet::start(settings, Arc::new(SystemNames), diagnostics.clone(), hands)?);
    standing.join(&fleet);
    proxy.join(Arc::new(Member { fleet: Arc::clone(&fleet), patience: said.wait }));
    Ok(Some(fleet))
}
