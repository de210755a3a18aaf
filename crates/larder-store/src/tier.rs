//! The tiers that a store is made of, as one type for all of them.

use larder_files::HttpCaching;
use larder_tier::Tier;

/// A tier of a store.
pub type StoreTier = dyn Tier<HttpCaching>;
