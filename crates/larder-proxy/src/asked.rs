//! A request under the site and rule that took it, and who makes it.
//!
//! In: a head and a place in the plan; a client, or larder in place of one. Out: [`Asked`] and [`Asker`], of which an
//! exchange is made, and a fetch. Neither needs the other: larder asks for things itself, behind a client's back or for a
//! part of a page, and then nobody waits at a connection.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::Guard;
use larder_http::message::{PreparedFields, RequestHead};
use larder_http::target::Target;
use larder_origin::ServerTag;
use larder_store::CacheKey;

use crate::fetch::{self, ClientHop};
use crate::key;
use crate::root::Root;
use crate::route::Site;
use crate::settings::{OriginChoice, RuleSettings};
use crate::versions::{NotKnown, RequestVersions};
use crate::worker_plan::WorkerPlan;

/// What is asked.
pub(crate) struct Asked {
    /// As it will be keyed and sent on: edits and normalisation applied.
    pub(crate) head: RequestHead,
    /// As the client sent it, where that is something else.
    pub(crate) sent_target: Option<Target>,
    pub(crate) route: MatchedRule,
    /// The versions by which its rule tells responses apart; `None` where it has none, or they were not looked at yet.
    pub(crate) versions: Option<Box<RequestVersions>>,
}

impl Asked {
    pub(crate) fn new(head: RequestHead, sent_target: Option<Target>, route: MatchedRule) -> Self {
        Self { head, sent_target, route, versions: None }
    }

    /// The key, once its versions are there. `content` is that of a QUERY.
    #[inline(always)]
    pub(crate) fn key(&self, content: &[u8]) -> CacheKey {
        let versions = self.versions.as_ref().map(|versions| versions.key_text());
        key::key(&self.head, &self.route.settings().key, versions, content)
    }

    /// Takes the versions of its rule as far as they are known without asking. False where they have to be asked for.
    #[inline(always)]
    pub(crate) fn take_known_versions(&mut self) -> bool {
        match &self.route.settings().versions {
            None => true,
            Some(rule) => {
                self.versions = rule.known(&self.head).map(Box::new);
                self.versions.is_some()
            }
        }
    }

    /// Asks for the versions of its rule, where they are not known.
    ///
    /// # Cancel safety
    /// Nothing has changed.
    pub(crate) async fn take_versions(&mut self) {
        if let Some(rule) = &self.route.settings().versions
            && self.versions.is_none()
        {
            self.versions = Some(Box::new(rule.read(&self.head).await));
        }
    }

    /// Why its versions are not known: then nothing that was stored before it came is used without asking the origin.
    #[inline(always)]
    pub(crate) fn versions_not_known(&self) -> Option<NotKnown> {
        self.versions.as_ref()?.not_known
    }

    /// The target byte for byte as it was sent.
    pub(crate) fn raw_target(&self) -> &Target {
        self.sent_target.as_ref().unwrap_or(&self.head.target)
    }

    /// Another request under the same site and rule.
    pub(crate) fn with_head(&self, head: RequestHead) -> Self {
        Self::new(head, None, self.route.again())
    }
}

/// Who asks.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) hop: ClientHop,
    /// The server that the client has met before.
    pub(crate) server: Option<ServerTag>,
    /// The client, as far as trusted peers tell.
    pub(crate) client: IpAddr,
}

impl Asker {
    /// larder itself, behind this client's request: nobody waits, and it need not meet the server that the client has met.
    pub(crate) fn behind(&self) -> Self {
        let hop = ClientHop { is_waiting: false, takes_trailers: false, ..self.hop.clone() };
        Self { hop, server: None, client: self.client }
    }

    /// What an origin's server is chosen by for this request, where the origin has it so.
    pub(crate) fn hash(&self, choice: Option<&OriginChoice>, head: &RequestHead) -> Option<u64> {
        fetch::hash(choice?.hash_by.as_ref()?, head, self.client)
    }
}

/// A site and a rule of the plan that an exchange began with. Neither is held by a count of references of its own: all
/// workers share them, and such a count, written twice per request, would go from core to core. What is held is this
/// worker's plan.
pub(crate) struct MatchedRule {
    worker_plan: Guard<Arc<WorkerPlan>>,
    site: usize,
    rule: usize,
}

impl MatchedRule {
    /// By the numbers that the plan's router gave.
    pub(crate) fn new(worker_plan: Guard<Arc<WorkerPlan>>, site: usize, rule: usize) -> Self {
        Self { worker_plan, site, rule }
    }

    pub(crate) fn worker_plan(&self) -> &Arc<WorkerPlan> {
        &self.worker_plan
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        self.worker_plan.plan.router.at(self.site)
    }

    /// What its site adds to answers over TLS.
    pub(crate) fn secure_fields(&self) -> Option<&Arc<PreparedFields>> {
        self.worker_plan.secure_fields(self.site)
    }

    /// Where its documents are.
    pub(crate) fn root(&self) -> Option<&Root> {
        self.worker_plan.plan.roots.get(self.site)?.as_ref()
    }

    pub(crate) fn settings(&self) -> &Arc<RuleSettings> {
        self.site().settings_at(self.rule)
    }

    /// Whether it is the rule of these numbers.
    pub(crate) fn is(&self, site: usize, rule: usize) -> bool {
        (self.site, self.rule) == (site, rule)
    }

    /// The same once more, for a request that may wait.
    fn again(&self) -> Self {
        Self {
            worker_plan: Guard::from_inner(Arc::clone(&self.worker_plan)),
            site: self.site,
            rule: self.rule,
        }
    }

    /// The same for an exchange that may wait: of what costs nothing to hold a thread has a few only.
    pub(crate) fn for_long(self) -> Self {
        Self { worker_plan: Guard::from_inner(Guard::into_inner(self.worker_plan)), ..self }
    }
}
