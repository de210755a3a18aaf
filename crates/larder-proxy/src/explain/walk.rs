//! A request that is explained: what is known of it on its way, and what the way came to.

use std::sync::Arc;

use larder_http::fields::cache_status::CacheStatus;
use larder_http::time::Now;

use super::explanation::Decision;
use super::question::Question;
use crate::plan::Plan;
use crate::route::Site;
use crate::settings::RuleSettings;
use crate::versions::RequestVersions;
use crate::worker::Worker;

/// A request on its walk.
pub(super) struct Walk<'a> {
    pub(super) worker: &'a Worker,
    pub(super) plan: &'a Plan,
    pub(super) site: &'a Arc<Site>,
    pub(super) settings: &'a Arc<RuleSettings>,
    pub(super) question: Question,
    /// Those of its rule, where it has some.
    pub(super) versions: Option<RequestVersions>,
    pub(super) now: Now,
    /// Whether a larder that runs is asked, not a config alone.
    pub(super) running: bool,
}

/// What the walk came to.
pub(super) struct Outlook {
    pub(super) decision: Decision,
    pub(super) status: CacheStatus,
    /// Whether only the origin's answer tells what comes of it.
    pub(super) needs_origin: bool,
    /// There is a mark, so the client's own conditions and range go out.
    pub(super) marked: bool,
    /// Its URL was asked for too seldom for what comes to be stored.
    pub(super) seldom: bool,
    /// A HEAD that is fetched with GET.
    pub(super) as_get: bool,
}
