//! What a tier has that no look-up of a key finds, for purges: files that people put there.
//!
//! In: a URI, or a path and the hosts that are wanted. Out: whether there was any, and its removal, which waits for the disk.

use std::sync::Arc;

use larder_tier::TargetUri;
use larder_tier::tier::{CountRemoved, Failure, WantedHosts};

use crate::store::Store;

impl Store {
    /// Whether something lies under `uri` that only [`purge_outside`](Self::purge_outside) takes out. May wait for a disk.
    pub fn has_outside(&self, uri: &TargetUri<'_>) -> bool {
        self.tiers().iter().any(|tier| tier.has_apart(uri))
    }

    /// Removes that, whoever put it there, and waits until it is gone for good; for a pool. Whether there was any.
    ///
    /// # Errors
    /// It may still be there.
    pub fn purge_outside(&self, uri: &TargetUri<'_>) -> Result<bool, Failure> {
        let mut purged = Ok(false);
        for tier in self.tiers() {
            // Each of them is asked, whatever becomes of another.
            let is = tier.purge(uri);
            purged = purged.and_then(|was| Ok(is? || was));
        }
        purged
    }

    /// The same for everything below a canonical path at the hosts that are wanted. `removed` may hear of it later.
    ///
    /// # Errors
    /// Something may still be there.
    pub fn purge_trees_outside(
        &self,
        path: &str,
        wanted: &Arc<WantedHosts>,
        removed: &Arc<CountRemoved>,
    ) -> Result<(), Failure> {
        self.tiers().iter().map(|tier| tier.purge_tree(path, wanted, removed)).fold(Ok(()), Result::and)
    }
}
