//! The tiers that a store is made of, as one type for all of them.

use larder_cache::{CachePolicy, StoredHead};
use larder_tier::{Tier, VocabularyOf};

/// The rules of caching, as [`larder_cache`] has them.
pub type HttpCaching = VocabularyOf<StoredHead, CachePolicy>;

/// A tier of a store.
pub type StoreTier = dyn Tier<HttpCaching>;
