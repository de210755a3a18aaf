//! What an origin fetch needs, and the stored responses that the origin may confirm.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use larder_cache::part::Gap;
use larder_cache::{Confirmed, Offered, StoredHead};
use larder_observe::RuleId;
use larder_origin::Affinity;
use larder_store::StoredResponse;
use smallvec::SmallVec;

use crate::asked::Asker;
use crate::background::ORPHAN_TIMES;
use crate::collapse::FlightGuard;
use crate::fetch::ClientHop;
use crate::invalidation::Forgotten;
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// What a fetch needs.
pub(crate) struct FetchTask {
    pub(crate) worker: Arc<Worker>,
    pub(crate) worker_plan: Arc<WorkerPlan>,
    pub(crate) settings: Arc<RuleSettings>,
    pub(crate) origin: usize,
    /// For whom the origin is asked.
    pub(crate) asker: Asker,
    /// What the origin's server is chosen by, where the origin has it so.
    pub(crate) hash: Option<u64>,
    /// The content of a QUERY.
    pub(crate) content: Bytes,
    /// What the origin may confirm.
    pub(crate) offered: Candidates,
    /// What was stored for the request: what it brings takes its place, or ends it.
    pub(crate) before: Option<Arc<StoredResponse>>,
    /// How far predicates had been forgotten before that was looked for.
    pub(crate) since: Forgotten,
    /// The URL has not been asked for often enough for its response to be stored.
    pub(crate) seldom: bool,
    /// A stored part, and what of the whole is asked for: only the rest.
    pub(crate) completing: Option<(Arc<StoredResponse>, Gap)>,
    /// It follows a client's fetch, for what that could not keep.
    pub(crate) is_behind: bool,
    /// What other larders have fetched may be used in its place.
    pub(crate) may_wait_elsewhere: bool,
}

impl FetchTask {
    /// The origin that is asked, and for which rule.
    pub(super) fn asks(&self) -> (usize, RuleId) {
        (self.origin, self.settings.rule_id)
    }

    /// Whether it is for gaps that nobody is waiting for: then the whole is not asked for in their place.
    pub(super) fn is_unwanted(&self, guard: &FlightGuard) -> bool {
        self.is_behind && guard.audience().waiters() == 0
    }

    /// How long the fetch continues without a waiting client: longer where no client caused it.
    pub(super) fn orphan_time(&self) -> Duration {
        let times = if self.asker.hop.is_waiting { 1 } else { ORPHAN_TIMES };
        self.worker_plan.plan.orphan_time.saturating_mul(times)
    }

    /// For whom the origin is asked, and which of its servers.
    pub(super) fn to(&self) -> (ClientHop, Affinity) {
        (self.asker.hop.clone(), Affinity { hash: self.hash, server: self.asker.server })
    }
}

/// Stored responses that the origin may confirm.
#[derive(Clone, Default)]
pub(crate) struct Candidates {
    /// The one that the request selects.
    pub(crate) selected: Option<Arc<StoredResponse>>,
    /// Those of other requests to the same key, newest first.
    pub(crate) others: SmallVec<[Arc<StoredResponse>; 4]>,
    /// How far predicates had been forgotten before they were looked for.
    pub(crate) since: Forgotten,
}

impl Candidates {
    pub(super) fn is_empty(&self) -> bool {
        self.selected.is_none() && self.others.is_empty()
    }

    /// Lets `look` see them as the rules do.
    pub(super) fn offered<R>(&self, look: impl FnOnce(Offered<'_>) -> R) -> R {
        let others: SmallVec<[&StoredHead; 4]> = self.others.iter().map(|stored| &*stored.head).collect();
        let selected = self.selected.as_ref().map(|stored| &*stored.head);
        look(Offered { selected, others: &others })
    }

    /// The one that a 304 with these fields confirms.
    pub(super) fn confirmed_by(&self, fields: &HeaderMap) -> Option<Arc<StoredResponse>> {
        match self.offered(|offered| larder_cache::matches_304(offered, fields))? {
            Confirmed::Selected => self.selected.clone(),
            Confirmed::Other(index) => self.others.get(index).cloned(),
        }
    }
}
