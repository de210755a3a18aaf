//! What lies on a disk: a table in memory, built anew at each start, of 24 bytes per object.
//!
//! In: hashes, tags, places. Out: places. An entry is a base's hash, a tag for the variant and the response among those
//! that Vary tells apart, a place, and when it was last used. The hash of a base is the key of the table, so that all of a
//! base is found, and goes, at once; what is in fact another key is told apart when the record is read.
//!
//! Shards, each behind a lock that is held for one look, or for a slice of a walk ([`walk`]); use is marked under the read
//! lock. A table doubles when it is full
//! and shrinks when it is too empty for its bound of 64 bytes per object. Large disks have more shards, so that
//! rebuilding one stays short.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::address::{Address, Location};
use larder_tier::key::VARIANTS_MAX;
use larder_tier::rank::{Rank, RankedRwLock};

/// Memory per object, in bytes, above which a table is rebuilt smaller.
const BYTES_PER_OBJECT_MAX: usize = 60;
/// Objects that a shard is laid out for.
const OBJECTS_PER_SHARD: u64 = 16 * 1024;
/// An object's likely size on a disk, where nothing is known of it yet.
const OBJECT_BYTES_LIKELY: u64 = 4096;
const SHARDS_MIN: u64 = 64;
const SHARDS_MAX: u64 = 4096;
/// Tables below this are not worth rebuilding.
const SHRINK_ABOVE_BYTES: usize = 4096;
/// Responses under one base, whatever their variants: all of them have one hash, so that each costs those that come after it, and
/// whoever asks may choose how many there are (by the content of a QUERY, or a cookie in the key).
const UNDER_ONE_BASE_MAX: usize = 1024;
/// Set in the word of last use once an object was used since it was written.
const USED: u32 = 1 << 31;
/// Set in it where other disks have nothing else of the object: it was written since the start, or compared.
const COMPARED: u32 = 1 << 30;
/// The rest of it.
const SECONDS: u32 = COMPARED - 1;
/// During recovery only: the newest of its identity, and it is dead.
const DEAD: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    base: u64,
    place: Location,
    tag: u32,
    /// Seconds since the disk was opened, [`USED`] and [`COMPARED`].
    last_use: AtomicU32,
}

impl Entry {
    fn new(base: u64, tag: u32, place: Location, last_use: u32) -> Self {
        Self { base, place, tag, last_use: AtomicU32::new(last_use) }
    }

    fn use_word(&self) -> u32 {
        self.last_use.load(Ordering::Relaxed)
    }
}

/// Entries by the hash of their base.
#[derive(Debug, Default)]
struct Shard {
    entries: HashTable<Entry>,
    /// How often the table was, or may have been, rebuilt: then its entries are in other buckets.
    rebuilds: u64,
}

impl Shard {
    fn insert(&mut self, entry: Entry) {
        self.rebuilds += u64::from(self.entries.len() == self.entries.capacity());
        self.entries.insert_unique(entry.base, entry, |entry| entry.base);
    }

    fn reserve(&mut self, more: usize) {
        self.rebuilds += 1;
        self.entries.reserve(more, |entry| entry.base);
    }

    /// Rebuilds a table that has become too empty.
    fn shrink(&mut self) {
        let size = self.entries.allocation_size();
        if size > SHRINK_ABOVE_BYTES && self.entries.len() * BYTES_PER_OBJECT_MAX < size {
            self.rebuilds += 1;
            self.entries.shrink_to(self.entries.len(), |entry| entry.base);
        }
    }
}

/// Where records were found; there is nearly always one.
pub type Locations = SmallVec<[Location; 4]>;

/// A record that was met at recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecoveredRecord {
    pub(super) base: u64,
    pub(super) tag: u32,
    pub(super) place: Location,
    pub(super) is_dead: bool,
}

/// Where a listing goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCursor {
    shard: usize,
    after: u64,
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Places of records, in no order that means anything.
    pub places: Vec<Location>,
    /// Where to go on; `None` at the end.
    pub next: Option<DiskCursor>,
}

/// The table of a disk; shared by all that look up, and the disk's writer.
#[derive(Debug)]
pub(super) struct Index {
    shards: Box<[RankedRwLock<Shard>]>,
    /// Entries whose records are written, and about how many bytes those take.
    objects: AtomicU64,
    bytes: AtomicU64,
    pending: AtomicU64,
}

impl Index {
    /// An index for a disk that may hold `disk_bytes`.
    pub(super) fn new(disk_bytes: u64) -> Self {
        let likely = disk_bytes / OBJECT_BYTES_LIKELY / OBJECTS_PER_SHARD;
        let shards = likely.clamp(SHARDS_MIN, SHARDS_MAX).next_power_of_two();
        Self {
            shards: (0..shards).map(|_| RankedRwLock::new(Rank::DiskIndex, Shard::default())).collect(),
            objects: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pending: AtomicU64::new(0),
        }
    }

    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// There is a power of two of them, 64 at least.
    fn shard_number(&self, base: u64) -> usize {
        // The table inside uses the low bits and the top seven; these lie between.
        (base >> 40) as usize & (self.shards.len() - 1)
    }

    fn shard(&self, base: u64) -> &RankedRwLock<Shard> {
        &self.shards[self.shard_number(base)]
    }

    fn count_in(&self, place: Location) {
        match place.is_pending() {
            true => self.pending.fetch_add(1, Ordering::Relaxed),
            false => {
                self.bytes.fetch_add(place.size_at_most(), Ordering::Relaxed);
                self.objects.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    fn count_out(&self, place: Location) {
        match place.is_pending() {
            true => self.pending.fetch_sub(1, Ordering::Relaxed),
            false => {
                self.bytes.fetch_sub(place.size_at_most(), Ordering::Relaxed);
                self.objects.fetch_sub(1, Ordering::Relaxed)
            }
        };
    }

    /// Puts an object in whose record is still to be written; says what it replaced, and tells `note` of it before anybody
    /// else can find the new one. Where it is one too many of its variant, or of its base, the oldest of those go, and
    /// `surplus` hears of them: each is read before it is known which of them a request selects, and whoever asks may choose
    /// how many there are.
    pub(super) fn insert_pending(
        &self,
        base: u64,
        tag: u32,
        place: Location,
        now: u32,
        note: impl FnOnce(Location),
        surplus: &mut Locations,
    ) -> Option<Location> {
        self.count_in(place);
        let now = now.min(SECONDS) | COMPARED;
        let mut shard = self.shard(base).write();
        let is_same = |entry: &Entry| entry.base == base && entry.tag == tag;
        if let Some(entry) = shard.entries.find_mut(base, is_same) {
            let replaced = std::mem::replace(entry, Entry::new(base, tag, place, now)).place;
            note(replaced);
            self.count_out(replaced);
            return Some(replaced);
        }
        shard.insert(Entry::new(base, tag, place, now));
        let is_variant = |entry: &Entry| entry.base == base && entry.tag >> 16 == tag >> 16;
        let variants =
            shard.entries.iter_hash(base).filter(|entry| is_variant(entry)).map(|entry| entry.place);
        let mut variants: SmallVec<[Location; VARIANTS_MAX]> = variants.collect();
        if variants.len() > VARIANTS_MAX {
            variants.sort_unstable();
            surplus.extend(variants.iter().copied().take(variants.len() - VARIANTS_MAX));
        } else {
            let under = || shard.entries.iter_hash(base).filter(|entry| entry.base == base);
            if under().count() > UNDER_ONE_BASE_MAX {
                surplus.extend(under().map(|entry| entry.place).min());
            }
        }
        if !surplus.is_empty() {
            for gone in &*surplus {
                if let Ok(found) =
                    shard.entries.find_entry(base, |entry| entry.base == base && entry.place == *gone)
                {
                    found.remove();
                    self.count_out(*gone);
                }
            }
        }
        None
    }

    /// Puts `new` where `old` is, if that is still there; says whether it was. Use is forgotten where the record begins
    /// another life, the time of it is not.
    pub(super) fn settle(&self, base: u64, old: Location, new: Location) -> bool {
        self.put_at(base, (old, new), !old.is_pending())
    }

    /// The same for an object of which a part is written again: its life goes on.
    pub(super) fn settle_part(&self, base: u64, old: Location, new: Location) -> bool {
        self.put_at(base, (old, new), false)
    }

    fn put_at(&self, base: u64, (old, new): (Location, Location), is_another_life: bool) -> bool {
        let mut shard = self.shard(base).write();
        let Some(entry) = shard.entries.find_mut(base, |entry| entry.base == base && entry.place == old)
        else {
            return false;
        };
        entry.place = new;
        if is_another_life {
            *entry.last_use.get_mut() &= !USED;
        }
        self.count_out(old);
        self.count_in(new);
        true
    }

    /// Takes an entry out; says whether it was there.
    pub(super) fn remove(&self, base: u64, place: Location) -> bool {
        let mut shard = self.shard(base).write();
        match shard.entries.find_entry(base, |entry| entry.base == base && entry.place == place) {
            Ok(found) => {
                found.remove();
                self.count_out(place);
                shard.shrink();
                true
            }
            Err(_) => false,
        }
    }

    /// Takes out the response that `tag` names, if there is one.
    pub(super) fn remove_tag(&self, base: u64, tag: u32) -> Option<Location> {
        let mut shard = self.shard(base).write();
        let (entry, _) =
            shard.entries.find_entry(base, |entry| entry.base == base && entry.tag == tag).ok()?.remove();
        self.count_out(entry.place);
        shard.shrink();
        Some(entry.place)
    }

    /// Takes everything of a base out.
    pub(super) fn remove_base(&self, base: u64) -> Locations {
        let mut gone = Locations::new();
        let mut shard = self.shard(base).write();
        while let Ok(found) = shard.entries.find_entry(base, |entry| entry.base == base) {
            gone.push(found.remove().0.place);
        }
        gone.iter().for_each(|place| self.count_out(*place));
        if !gone.is_empty() {
            shard.shrink();
        }
        gone
    }

    /// The written records of a variant, newest place first.
    pub(super) fn find(&self, at: &Address) -> Locations {
        let shard = self.shard(at.base).read();
        let mut places: Locations = shard
            .entries
            .iter_hash(at.base)
            .filter(|entry| entry.base == at.base && at.is_variant_of(entry.tag) && !entry.place.is_pending())
            .map(|entry| entry.place)
            .collect();
        drop(shard);
        places.sort_unstable_by(|one, other| other.cmp(one));
        places
    }

    /// Everything of a base, written or not.
    pub(super) fn of_base(&self, base: u64) -> Locations {
        let shard = self.shard(base).read();
        shard.entries.iter_hash(base).filter(|entry| entry.base == base).map(|entry| entry.place).collect()
    }

    pub(super) fn has_base(&self, base: u64) -> bool {
        self.shard(base).read().entries.find(base, |entry| entry.base == base).is_some()
    }

    pub(super) fn holds(&self, base: u64, place: Location) -> bool {
        let shard = self.shard(base).read();
        shard.entries.find(base, |entry| entry.base == base && entry.place == place).is_some()
    }

    /// Notes that an object was used `now`, in seconds since the disk was opened.
    pub(super) fn note_use(&self, base: u64, place: Location, now: u32) {
        let shard = self.shard(base).read();
        if let Some(entry) = shard.entries.find(base, |entry| entry.base == base && entry.place == place) {
            let compared = entry.use_word() & COMPARED;
            entry.last_use.store(now.min(SECONDS) | USED | compared, Ordering::Relaxed);
        }
    }

    /// At recovery: of several of one identity the one in the latest place stays, dead or alive, whatever their order.
    pub(super) fn recover(&self, mut records: Vec<RecoveredRecord>) {
        // Shard by shard: the table at hand stays in the processor's cache, and its lock is taken once.
        records.sort_unstable_by_key(|record| self.shard_number(record.base));
        for records in
            records.chunk_by(|one, other| self.shard_number(one.base) == self.shard_number(other.base))
        {
            let Some(first) = records.first() else { continue };
            let mut shard = self.shard(first.base).write();
            for &RecoveredRecord { base, tag, place, is_dead } in records {
                let last_use = if is_dead { DEAD } else { 0 };
                let new = Entry::new(base, tag, place, last_use);
                match shard.entries.find_mut(base, |entry| entry.base == base && entry.tag == tag) {
                    Some(entry) if entry.place < place => *entry = new,
                    Some(_) => {}
                    None => shard.insert(new),
                }
            }
        }
    }

    /// At the end of recovery: takes the dead out, and what `is_removed` names, and counts the rest. Says how many there
    /// are in each segment.
    pub(super) fn finish_recovery(
        &self,
        is_removed: impl Fn(Location) -> bool,
    ) -> HashMap<u32, u32, RandomState> {
        let mut live = HashMap::default();
        let (mut objects, mut bytes) = (0, 0);
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.entries.retain(|entry| {
                let is_alive = entry.use_word() != DEAD && !is_removed(entry.place);
                if is_alive {
                    objects += 1;
                    bytes += entry.place.size_at_most();
                    *live.entry(entry.place.segment()).or_insert(0) += 1;
                }
                is_alive
            });
            shard.shrink();
        }
        self.objects.fetch_add(objects, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        live
    }

    /// Makes room for about `objects` entries.
    pub(super) fn reserve(&self, objects: usize) {
        let each = objects / self.shards.len();
        self.shards.iter().for_each(|shard| shard.write().reserve(each));
    }

    /// Written objects, and about how many bytes they take.
    pub(super) fn objects(&self) -> (u64, u64) {
        (self.objects.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Objects whose records are still to be written.
    pub(super) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Memory of the tables, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let own = self.shards.len() * size_of::<RankedRwLock<Shard>>();
        let tables: usize = self.shards.iter().map(|shard| shard.read().entries.allocation_size()).sum();
        (own + tables) as u64
    }
}

mod holding;
mod use_word;
mod walk;

#[cfg(test)]
mod tests;
