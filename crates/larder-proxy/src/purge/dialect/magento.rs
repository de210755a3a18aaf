//! Magento 2, and the extension of elgentos.
//!
//! In: PURGE at the cache's own name, with an expression for tags in `X-Magento-Tags-Pattern`. `X-Pool` has one for the pool that a
//! response says it is of. `.*` names everything. The extension adds `X-Magento-Purge-Soft`.

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::PurgeRequest;

const PATTERNS: [&str; 2] = ["x-magento-tags-pattern", "x-pool"];

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    for name in PATTERNS {
        request.values(name).for_each(|value| names.matching_tags(value));
    }
    PATTERNS.into_iter().any(|name| request.has(name)).then_some(Claim {
        manner: Manner::Purged,
        nameless: "X-Magento-Tags-Pattern or X-Pool header required",
    })
}
