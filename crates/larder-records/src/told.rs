//! What people are told of records: whether a response is shared, and why not. No walk through a store meets what lies here: people
//! who ask for that get it in pages of its own (`listing.rs`).
//!
//! **Invariant**: a walk through everything that is stored learns that there is more than it has seen. So no predicate is forgotten
//! that a record may still have to be compared with.

use std::sync::Arc;

use larder_cache::StoredHead;
use larder_http::time::Now;
use larder_tier::cursor::NoCursor;
use larder_tier::tier::TierPage;
use larder_tier::{CacheKey, HeldBack, Inspect};

use crate::refusals::NotShared;
use crate::{HttpCaching, Records};

impl Inspect<HttpCaching> for Records {
    fn letter(&self) -> char {
        'r'
    }

    fn every_page(
        self: Arc<Self>,
        from: &str,
        most: usize,
        now: Now,
    ) -> Result<TierPage<StoredHead>, NoCursor> {
        Ok(TierPage { unseen: 1, ..self.page(from, most, now, &|_| true)? })
    }

    fn would_hold_back(&self, key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
        let why = match self.is_fit(key, head) {
            Err(why) => why,
            Ok(_) if self.standing.server_now().is_none() => NotShared::Position,
            Ok(_) => return None,
        };
        Some(why.held_back())
    }

    fn holds_back(&self, key: &CacheKey, head: &StoredHead, _identity: u64) -> Option<HeldBack> {
        self.would_hold_back(key, head)
    }
}
