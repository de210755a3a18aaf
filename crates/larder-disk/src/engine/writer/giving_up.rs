//! A segment that is being given up, and what of it goes on elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use crate::engine::address::{Location, Owner};
use crate::engine::format::record::PieceRef;
use crate::engine::format::toc::TocEntry;
use crate::engine::segment::Segment;
use crate::engine::state::DiskState;

/// A segment that is being given up.
pub(super) struct Reclaim {
    pub(super) segment: Arc<Segment>,
    pub(super) entries: Vec<TocEntry>,
    pub(super) next: usize,
    /// Bytes that may still be written again.
    pub(super) allowance: u64,
    /// Whose pieces were met.
    pub(super) met: HashSet<Owner>,
    pub(super) moves: Moves,
}

/// A record that is to list pieces in other places.
pub(super) struct Due {
    pub(super) home: Arc<DiskState>,
    pub(super) base: u64,
    pub(super) place: Location,
}

/// What of a segment was written again for objects that lie on several disks.
#[derive(Default)]
pub(super) struct Moves {
    /// Where the pieces were, and where they are.
    pub(super) moved: HashMap<PieceRef, PieceRef>,
    /// The same, as far as it is in the batch.
    pub(super) staged: Vec<(PieceRef, PieceRef)>,
    pub(super) due: Vec<Due>,
    pub(super) objects: HashSet<Owner>,
    /// Held by each record that is on its way.
    pub(super) under_way: Arc<()>,
    pub(super) tries: u32,
    pub(super) until: Option<Instant>,
}

impl Moves {
    pub(super) fn are_under_way(&self) -> bool {
        Arc::strong_count(&self.under_way) > 1
    }
}
