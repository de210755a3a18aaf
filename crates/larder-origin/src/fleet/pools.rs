//! One worker's connections to all endpoints.
//!
//! In: an endpoint. Out: its pool, made at first use. When an endpoint leaves the fleet its pool is let go of, which
//! closes the connections that nobody uses; those in use end with their exchange.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::endpoint::Endpoint;
use crate::pool::Pool;
use crate::resources::OriginResources;
use crate::settings::OriginSettings;

pub(crate) struct Pools {
    /// By the endpoint's number. Held for a look-up.
    of: Mutex<HashMap<u64, Arc<Pool>>>,
    settings: Arc<OriginSettings>,
    resources: Arc<OriginResources>,
}

impl Pools {
    pub(super) fn new(settings: Arc<OriginSettings>, resources: Arc<OriginResources>) -> Self {
        Self { of: Mutex::default(), settings, resources }
    }

    /// The pool of `endpoint`; one that ends with its lease where the endpoint has left.
    pub(crate) fn of(&self, endpoint: &Endpoint) -> Arc<Pool> {
        let new = || Pool::new(self.settings.max_idle, self.settings.idle, self.resources.clone());
        let mut of = self.of.lock();
        // Asked under the lock: who leaves is marked first and forgotten then.
        match endpoint.is_retired() {
            true => new(),
            false => of.entry(endpoint.id()).or_insert_with(new).clone(),
        }
    }

    pub(super) fn forget(&self, endpoint: &Endpoint) {
        let pool = self.of.lock().remove(&endpoint.id());
        drop(pool);
    }
}
