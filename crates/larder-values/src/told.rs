//! What people are told of values: whether larder would write one, and why not. Nothing here can be listed.

use std::path::PathBuf;
use std::sync::Arc;

use larder_cache::StoredHead;
use larder_http::time::Now;
use larder_tier::cursor::NoCursor;
use larder_tier::tier::{ListedEntry, TierPage};
use larder_tier::{CacheKey, HeldBack, Inspect};

use crate::format::{self, NotWritten};
use crate::{HttpCaching, Values};

/// The cursor of the only page, which is empty.
const ONLY_PAGE: &str = "0";

impl Inspect<HttpCaching> for Values {
    fn letter(&self) -> char {
        'v'
    }

    fn first_page(&self) -> String {
        ONLY_PAGE.to_owned()
    }

    fn page(
        self: Arc<Self>,
        from: &str,
        _most: usize,
        _now: Now,
        _wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<TierPage<StoredHead>, NoCursor> {
        match from {
            ONLY_PAGE => Ok(TierPage::default()),
            _ => Err(NoCursor),
        }
    }

    fn under(self: Arc<Self>, _key: &CacheKey, _now: Now) -> Vec<ListedEntry<StoredHead>> {
        Vec::new()
    }

    fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
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
