//! One version of the config, compiled. Shared by all workers; a reload makes a new one and requests that are on their
//! way keep the one they began with.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use larder_origin::OriginSettings;

use crate::purges::access::Access;
use crate::root::Root;
use crate::route::Router;
use crate::settings::{OriginChoice, ProxySettings, SiteSettings};

/// Why a config that was checked still cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A pattern is too large for the automaton of its site.
    #[error("path pattern")]
    Pattern(#[from] regex::Error),
    /// A document root went away since the check.
    #[error("root {0}")]
    Root(PathBuf, #[source] std::io::Error),
}

/// A compiled config.
pub struct Plan {
    pub(crate) router: Router,
    /// By site, in the router's order.
    pub(crate) roots: Vec<Option<Root>>,
    pub(crate) origins: Vec<OriginChoice>,
    pub(crate) trusted: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    pub(crate) orphan_time: Duration,
    pub(crate) hit_for_miss: Duration,
    /// Purges that may be under way at once.
    pub(crate) purges: usize,
    /// A GET may be a purge at some site.
    pub(crate) has_purge_locations: bool,
    /// Some site lets somebody purge.
    pub(crate) has_open_purges: bool,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

impl Plan {
    /// Compiles patterns and opens document roots.
    ///
    /// # Errors
    /// See [`PlanError`]; nothing has been changed then.
    pub fn new(settings: ProxySettings) -> Result<Arc<Self>, PlanError> {
        let open = |path: &PathBuf| Root::open(path).map_err(|error| PlanError::Root(path.clone(), error));
        let roots = settings.sites.iter().map(|site| site.root.as_ref().map(open).transpose());
        let has_location =
            |site: &SiteSettings| matches!(&site.purge, Access::Open(rules) if rules.location.is_some());
        let is_open = |site: &SiteSettings| matches!(&site.purge, Access::Open(_));
        Ok(Arc::new(Self {
            has_open_purges: settings.sites.iter().any(is_open),
            has_purge_locations: settings.sites.iter().any(has_location),
            roots: roots.collect::<Result<_, _>>()?,
            router: Router::new(settings.sites)?,
            origins: settings.origins,
            trusted: settings.trusted,
            orphan_time: settings.orphan_time,
            hit_for_miss: settings.hit_for_miss,
            purges: settings.purges,
        }))
    }

    /// The origins, in the order that sites name them.
    pub fn origins(&self) -> impl Iterator<Item = &Arc<OriginSettings>> {
        self.origins.iter().map(|origin| &origin.settings)
    }
}
