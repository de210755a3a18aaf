//! The fleet of the config, put to work: this larder as a member of it.
//!
//! In: what the config says of it, and a worker that carries purges out. Out: the member, and the proxy that asks it. Members are known by
//! name; without one in the config that is the name of the host.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use larder_fleet::{Effect, EntryId, SharedPurge};
use larder_observe::Diagnostics;
use larder_proxy::{Membership, Proxy, Worker};
use larder_remote::fleet::{Carrier, Fleet, FleetSettings, Purge, PurgeOutcome};
use larder_remote::{RemoteError, SystemNames};

/// The largest reply part that a value of a store could have; a fleet has none.
const NO_VALUES: u64 = 0;

/// The member, with what the config says of purges.
struct Member {
    fleet: Arc<Fleet>,
    patience: Duration,
}

impl Membership for Member {
    fn may_use(&self) -> bool {
        self.fleet.may_use()
    }

    fn share(&self, what: Purge) -> Option<EntryId> {
        // Without random numbers nothing can be shared, as with too many purges.
        self.fleet.purge(what).ok().flatten()
    }

    fn tell(&self, what: Purge) {
        // As above.
        let _ = self.fleet.tell(what);
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
    async fn carry_out(&mut self, effect: Effect<Purge>) {
        // Where larder is ending, nothing is used any more.
        let (Some(proxy), Some(worker)) = (self.proxy.upgrade(), self.worker.upgrade()) else { return };
        match effect {
            Effect::Apply { what, .. } => worker.purge_of_fleet(&what).await,
            Effect::Unproven => proxy.doubt_stored(),
            // They concern what members share beside purges.
            Effect::Placed { .. } | Effect::Displaced { .. } | Effect::Complete(_) => {}
        }
    }
}

/// Makes this larder a member, where the config says so.
///
/// # Errors
/// There is no thread.
pub(crate) fn start(
    config: Option<&larder_config::Fleet>,
    (proxy, worker): (&Arc<Proxy>, &Arc<Worker>),
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<Fleet>>, RemoteError> {
    let Some(config) = config else { return Ok(None) };
    let settings = FleetSettings {
        name: config.name.as_ref().map_or_else(host_name, |name| name.as_str().into()),
        lease: config.lease,
        server: super::values::redis(&config.redis, config.timeout, NO_VALUES),
        prefix: config.prefix.as_str().to_owned(),
    };
    let hands = Hands { proxy: Arc::downgrade(proxy), worker: Arc::downgrade(worker) };
    let fleet = Arc::new(Fleet::start(settings, Arc::new(SystemNames), diagnostics.clone(), hands)?);
    proxy.join(Arc::new(Member { fleet: Arc::clone(&fleet), patience: config.wait }));
    Ok(Some(fleet))
}

fn host_name() -> Arc<str> {
    rustix::system::uname().nodename().to_string_lossy().into()
}
