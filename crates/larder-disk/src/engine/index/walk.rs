//! Walks through the index: for what was not used for long, for a segment that cannot be read, and for the pages of a listing.
//!
//! In: a shard. Out: places. The lock of a shard is held for a slice of its table at a time, so that look-ups and writes go on
//! meanwhile. A rebuild of the table between two slices moves entries. A listing then begins with that shard again; a sweep
//! finds what it missed the next time.

use std::ops::Range;

use super::{DiskCursor, Entry, Index, Listing, SECONDS, Shard};
use crate::engine::address::Location;
use larder_tier::rank::RankedRwLock;

/// Buckets of a table that are looked at under one hold of its lock.
const SLICE_BUCKETS: usize = 256;
/// How often a page walks through one shard while that is rebuilt again and again.
const WALKS_MAX: usize = 8;

impl Shard {
    /// The buckets from `from` on that are looked at now, and where the next slice begins.
    pub(super) fn slice(&self, from: usize) -> (Range<usize>, Option<usize>) {
        let end = self.entries.num_buckets();
        let to = end.min(from.saturating_add(SLICE_BUCKETS));
        (from..to, (to < end).then_some(to))
    }
}

impl Index {
    /// Takes out of one shard what was last used before `oldest`, in seconds since the disk was opened.
    pub(in crate::engine) fn sweep(&self, shard: usize, oldest: u32) -> Vec<Location> {
        let Some(shard) = self.shards.get(shard) else { return Vec::new() };
        let is_idle = |entry: &Entry| !entry.place.is_pending() && entry.use_word() & SECONDS < oldest;
        let (mut gone, mut from) = (Vec::new(), Some(0));
        while let Some(start) = from {
            let mut shard = shard.write();
            let (slice, next) = shard.slice(start);
            for bucket in slice {
                if let Ok(found) = shard.entries.get_bucket_entry(bucket)
                    && is_idle(found.get())
                {
                    let place = found.remove().0.place;
                    self.count_out(place);
                    gone.push(place);
                }
            }
            from = next;
        }
        if !gone.is_empty() {
            shard.write().shrink();
        }
        gone
    }

    /// Takes everything out that lies in a segment; says how much that was. Each shard is held as long as for a rebuild, so that
    /// nothing is missed.
    pub(in crate::engine) fn remove_segment(&self, segment: u32) -> u64 {
        let mut gone = 0;
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.entries.retain(|entry| {
                let is_there = !entry.place.is_pending() && entry.place.segment() == segment;
                if is_there {
                    self.count_out(entry.place);
                    gone += 1;
                }
                !is_there
            });
            shard.shrink();
        }
        gone
    }

    /// Written records from `from` on, about `most` of them.
    pub(in crate::engine) fn list(&self, from: Option<DiskCursor>, most: usize) -> Listing {
        let mut at = from.unwrap_or(DiskCursor { shard: 0, after: 0 });
        let mut places = Vec::new();
        while let Some(shard) = self.shards.get(at.shard) {
            let mut here = written_after(shard, at.after);
            let room = most.max(1).saturating_sub(places.len());
            if here.len() > room {
                here.truncate(room);
                let after = here.last().map_or(at.after, |place| place.0);
                places.append(&mut here);
                return Listing { places, next: Some(DiskCursor { shard: at.shard, after }) };
            }
            places.append(&mut here);
            at = DiskCursor { shard: at.shard + 1, after: 0 };
        }
        Listing { places, next: None }
    }
}

impl Index {
    /// The same for a walk that must miss nothing: a page is of one shard, and a shard is left when nothing new has come behind
    /// what was found. A record that is written again lies behind all that were there before.
    pub(in crate::engine) fn list_all(&self, from: Option<DiskCursor>, most: usize) -> Listing {
        let mut at = from.unwrap_or(DiskCursor { shard: 0, after: 0 });
        while let Some(shard) = self.shards.get(at.shard) {
            let mut places = written_after(shard, at.after);
            places.truncate(most.max(1));
            if let Some(last) = places.last() {
                let next = Some(DiskCursor { shard: at.shard, after: last.0 });
                return Listing { places, next };
            }
            at = DiskCursor { shard: at.shard + 1, after: 0 };
        }
        Listing::default()
    }

    /// Whether a record waits to be written that was there when `pending` was the last of those.
    pub(in crate::engine) fn awaits_up_to(&self, pending: Location) -> bool {
        self.pending() > 0
            && self.shards.iter().any(|shard| {
                let mut from = Some(0);
                while let Some(start) = from {
                    let shard = shard.read();
                    let (mut slice, next) = shard.slice(start);
                    let is_it = |entry: &Entry| entry.place.is_pending() && entry.place <= pending;
                    if slice.any(|bucket| shard.entries.get_bucket(bucket).is_some_and(is_it)) {
                        return true;
                    }
                    from = next;
                }
                false
            })
    }
}

/// The places of written records behind `after`, in order.
fn written_after(shard: &RankedRwLock<Shard>, after: u64) -> Vec<Location> {
    let mut places = Vec::new();
    for _ in 0..WALKS_MAX {
        places.clear();
        if walk(shard, after, &mut places) {
            break;
        }
    }
    places.sort_unstable();
    places
}

/// The same in no order; false where the table was rebuilt meanwhile.
fn walk(shard: &RankedRwLock<Shard>, after: u64, places: &mut Vec<Location>) -> bool {
    let (mut from, mut rebuilds) = (Some(0), None);
    while let Some(start) = from {
        let shard = shard.read();
        if *rebuilds.get_or_insert(shard.rebuilds) != shard.rebuilds {
            return false;
        }
        let (slice, next) = shard.slice(start);
        let found = slice.filter_map(|bucket| shard.entries.get_bucket(bucket)).map(|entry| entry.place);
        places.extend(found.filter(|place| !place.is_pending() && place.0 > after));
        from = next;
    }
    true
}
