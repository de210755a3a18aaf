//! What a disk did not keep up with when a body was completed for a client, fetched once more behind it.
//!
//! In: a fetch for the gaps of a body, of which some are left. Out: one more for those, at most, with nobody to be kept waiting:
//! the disk sets its pace. A body that is asked for only once is not fetched twice for the store's sake: the fetch that leaves
//! the first gaps is followed by none. Nor is the one behind, whatever clients join it, so that each request of a client
//! causes one at most. One that the origin answered with everything is followed by none either: the next would be as well.

use std::sync::Arc;

use larder_cache::Verdict;
use larder_http::message::RequestHead;
use larder_observe::CacheId;
use larder_store::{CacheKey, StoredResponse};

use super::task::{Candidates, FetchTask};
use crate::background::BackgroundSlot;
use crate::collapse::{FlightGuard, FlightRequest, Role};
use crate::fetch;
use crate::invalidation::Forgotten;
use crate::labels::RefreshKind;

/// What is stored of a body with gaps, and in which store.
pub(super) type KeptPart = (Arc<StoredResponse>, CacheId);

/// A fetch that may follow another.
pub(super) struct Behind {
    task: FetchTask,
    key: CacheKey,
    request: Arc<RequestHead>,
}

impl Behind {
    /// What follows a fetch for a client that others may share; nothing follows one that is behind another.
    // Boxed: every fetch would be so much larger.
    pub(super) fn after(task: &FetchTask, guard: &FlightGuard) -> Option<Box<Self>> {
        if task.is_behind || !guard.is_shared() {
            return None;
        }
        let next = FetchTask {
            worker: Arc::clone(&task.worker),
            worker_plan: Arc::clone(&task.worker_plan),
            settings: Arc::clone(&task.settings),
            origin: task.origin,
            asker: task.asker.behind(),
            hash: task.hash,
            content: task.content.clone(),
            offered: Candidates::default(),
            before: None,
            since: Forgotten::default(),
            seldom: false,
            completing: None,
            is_behind: true,
            may_wait_elsewhere: false,
        };
        let request = Arc::new(fetch::for_refresh(guard.request(), None));
        Some(Box::new(Self { task: next, key: guard.key().clone(), request }))
    }

    /// The fetch for what `part` lacks; `None` where somebody else is at it, the origin has no time for it, the part is not
    /// there any more, or a reload has replaced the plan.
    pub(super) fn board(
        self: Box<Self>,
        (part, store): KeptPart,
    ) -> Option<(FetchTask, FlightGuard, BackgroundSlot)> {
        let Self { task, key, request } = *self;
        let proxy = &task.worker.proxy;
        let is_in_force = Arc::ptr_eq(&task.worker.worker_plan.load(), &task.worker_plan);
        let gap = part.head.part.as_ref()?.gap(part.body.length())?;
        if !is_in_force
            || !larder_cache::may_refresh_with(&request, &part.head, &task.settings.policy)
            || !task.worker_plan.has_prospect(task.origin)
        {
            return None;
        }
        let place = proxy.background.place_for_gaps(store)?;
        let now = proxy.clock.now();
        let flight_request = FlightRequest {
            key: &key,
            rule: task.settings.number,
            request: &request,
            expected: Some(part.head.vary.names().clone()),
            wants_content: true,
            number: &|| proxy.invalidations.current(),
            arrived: proxy.invalidations.current(),
            begun: now,
        };
        let of_parts = key.of_parts();
        let since = proxy.invalidations.forgotten();
        let is_there = || {
            let verdict = proxy.invalidations.verdict(&of_parts, &part, since);
            let is_good = verdict == Some(Verdict::Good) && part.body.is_there();
            let mut stores = task.settings.stores();
            is_good
                && stores.any(|(store, _)| {
                    let (parts, _) = store.responses(&of_parts, now.monotonic);
                    parts.iter().any(|other| other.is_same(&part))
                })
        };
        let Role::Lead(guard) = proxy.flights.board(flight_request, |_| true, is_there) else {
            return None;
        };
        task.worker.metrics.refreshed(&RefreshKind::Gaps);
        Some((FetchTask { completing: Some((part, gap)), ..task }, guard, place))
    }
}
