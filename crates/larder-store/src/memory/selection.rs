//! What a look-up found.

use std::sync::Arc;

use smallvec::SmallVec;

use super::hot::Held;
use crate::stored::StoredResponse;

/// What a look-up found.
#[derive(Debug)]
pub enum Selection {
    /// A stored response that the request selects.
    Selected(Held),
    /// Responses under this key, none of which the request selects (RFC 9111 4.1); newest first.
    VaryMiss(SmallVec<[Arc<StoredResponse>; 4]>),
    /// A mark: lately nothing shareable came for this key, so nobody waits for anybody.
    HitForMiss,
    /// Responses under this URL, all for other variants of the key.
    OtherVariant,
    /// Nothing under this URL.
    Absent,
}
