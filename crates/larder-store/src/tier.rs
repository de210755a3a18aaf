//! What a store names its tiers by.

use larder_files::HttpCaching;
use larder_tier::Tier;

/// A tier of a store.
pub type StoreTier = dyn Tier<HttpCaching>;
