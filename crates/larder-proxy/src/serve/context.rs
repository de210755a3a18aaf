//! What every step of a request needs: the worker, its plan, and the origin of the request's site.

use std::sync::Arc;

use bytes::Bytes;

use crate::asked::{Asked, Asker};
use crate::fetch::ClientHop;
use crate::forward::{Candidates, FetchTask};
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// What a request asks for, and who asks the origin for it.
pub(super) struct RequestContext<'a> {
    pub(super) worker: &'a Arc<Worker>,
    pub(super) worker_plan: &'a Arc<WorkerPlan>,
    pub(super) origin: usize,
    /// The content of a QUERY, which is part of its key; else nothing.
    pub(super) content: Bytes,
}

impl RequestContext<'_> {
    /// The fetch that a request causes.
    pub(super) fn task(&self, asked: &Asked, asker: &Asker, offered: Candidates) -> FetchTask {
        let choice = self.worker_plan.choice(self.origin);
        let settings = asked.route.settings();
        let hop = ClientHop {
            via: choice.is_none_or(|choice| choice.via),
            assembles: settings.policy.templates.is_on(),
            ..asker.hop.clone()
        };
        FetchTask {
            worker: Arc::clone(self.worker),
            worker_plan: Arc::clone(self.worker_plan),
            settings: Arc::clone(settings),
            origin: self.origin,
            hash: asker.hash(choice, &asked.head),
            asker: Asker { hop, ..asker.clone() },
            content: self.content.clone(),
            before: offered.selected.clone(),
            since: offered.since,
            offered,
            seldom: false,
            completing: None,
            is_behind: false,
            may_wait_elsewhere: asked.versions_not_known().is_none(),
        }
    }
}
