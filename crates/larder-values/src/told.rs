//! What people are told of values: whether larder would write one, and why not. Nothing here can be listed.

use larder_cache::StoredHead;
use larder_tier::{CacheKey, HeldBack, Inspect};

use crate::format::{self, NotWritten};
use crate::{HttpCaching, Values};

impl Inspect<HttpCaching> for Values {
    fn letter(&self) -> char {
        'v'
    }

    fn would_hold_back(&self, key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
        let why = match self.name_to_write(key) {
            // Nobody expects larder to write there.
            Err(NotWritten::ByApplication) => return None,
            Err(why) => why,
            Ok(_) => format::is_fit(&self.settings, head, self.clock.now()).err()?,
        };
        Some(HeldBack { token: why.token(), sentence: why.sentence().into() })
    }

    fn holds_back(&self, key: &CacheKey, head: &StoredHead, _identity: u64) -> Option<HeldBack> {
        self.would_hold_back(key, head)
    }
}
