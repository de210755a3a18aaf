//! A worker's own handles of what it is asked for most.
//!
//! Every look-up in the index writes to the lock word of a shard and to the count of references of what it finds. For a
//! key that all workers serve these lines go from core to core with each hit. So each worker keeps handles of its
//! hottest responses, with counts of their own: a look-up that finds one reads what others write, and writes only what
//! is its worker's.
//!
//! A handle is good for as long as its shard has not changed since it was compared with it ([`CountedShard`](super::CountedShard)
//! counts the changes), and is looked up anew after that. Where entries come and go faster than hits, that is each
//! time, and all is as it would be without. Only what the index knows to be in full use gets a handle, and eviction
//! takes a use away by a change of the shard, after which the hits are counted again.
//!
//! What a handle holds stays counted against the cap after it has left the index, until a look-up meets its slot. The
//! bound on that is a sixteenth of the store for all workers together; their copies that can be sent from
//! ([`Sendable`]) are about as much again.

use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use larder_http::body::{Body, Pieces};
use larder_http::field_block::FieldBlock;
use larder_http::message::{PreparedFields, SharedFields};

use super::sendable::Sendable;
use crate::budget::Reservation;
use crate::key::CacheKey;
use crate::rank::{Rank, RankedMutex};
use crate::stored::StoredResponse;

/// Slots for handles; a power of two. More would be asked for too seldom each to be worth their memory.
const SLOTS: usize = 64;

/// All handles together hold at most this part of a store.
const SHARE_OF_STORE: u64 = 16;

/// All workers' handles together take at most this part of the process's descriptors.
const SHARE_OF_DESCRIPTORS: usize = 8;

/// A key has to be found so many times more than others of its slot before it gets a handle.
const FINDS_MIN: u32 = 16;

/// So many finds of others take the slot of the hottest key.
const FINDS_MAX: u32 = 256;

/// Hits of a handle before its body is worth a copy to send from.
const HITS_FOR_COPY: u32 = 16;

/// A stored response, as a look-up hands it out.
#[derive(Clone, Debug)]
pub enum Held {
    /// By the count that all workers share.
    Shared(Arc<StoredResponse>),
    /// By the count of one worker's handle.
    HotCache(Arc<HotHandle>),
}

/// One worker's handle.
#[derive(Debug)]
pub struct HotHandle {
    stored: Arc<StoredResponse>,
    sendable: OnceLock<Sendable>,
    /// Its fields as HTTP/2 sends them, once it was sent so.
    block: OnceLock<FieldBlock>,
    /// Both levels of it.
    key: Box<[u8]>,
}

impl HotHandle {
    pub(super) fn stored(&self) -> &Arc<StoredResponse> {
        &self.stored
    }

    fn bytes(&self) -> u64 {
        bytes_of(&self.stored)
    }
}

impl Held {
    /// Its fields.
    pub fn fields(&self) -> Arc<dyn SharedFields> {
        match self {
            Self::Shared(stored) => Arc::clone(stored) as Arc<dyn SharedFields>,
            Self::HotCache(handle) => Arc::clone(handle) as Arc<dyn SharedFields>,
        }
    }

    /// `range` of its body, to be sent. `None` where it lies on a disk and is not there any more.
    #[inline]
    pub fn into_body(self, range: Range<u64>) -> Option<Body> {
        match self.body.is_in_memory() && !self.body.may_be_let_go() && !range.is_empty() {
            true => Some(Body::Pieces { owner: self.into_pieces(), range }),
            false => self.body.content(range),
        }
    }

    /// Its body, where it is in memory.
    fn into_pieces(self) -> Arc<dyn Pieces> {
        match self {
            Self::Shared(stored) => stored,
            Self::HotCache(handle) => handle,
        }
    }
}

impl Deref for Held {
    type Target = Arc<StoredResponse>;

    fn deref(&self) -> &Arc<StoredResponse> {
        match self {
            Self::Shared(stored) => stored,
            Self::HotCache(handle) => &handle.stored,
        }
    }
}

impl Pieces for HotHandle {
    fn pieces(&self) -> &[Bytes] {
        self.stored.body.pieces()
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.sendable.get().map(Sendable::file)
    }

    fn digest(&self) -> Option<[u8; 32]> {
        self.stored.body.digest()
    }
}

impl SharedFields for HotHandle {
    fn prepared(&self) -> &PreparedFields {
        &self.stored.head.fields
    }

    fn block(&self) -> Option<&FieldBlock> {
        Some(self.block.get_or_init(|| FieldBlock::new(&self.stored.head.fields.map)))
    }
}

/// The handles of one worker. On lines of its own, like everything that a worker writes; the lock is nobody else's.
#[repr(align(128))]
pub struct HotCache {
    slots: RankedMutex<[HotSlot; SLOTS]>,
    workers: u64,
    /// Copies that are open, also those that only a slow client still holds.
    files: Arc<AtomicUsize>,
    files_max: usize,
}

impl std::fmt::Debug for HotCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HotCache").finish_non_exhaustive()
    }
}

/// The key that was found most often of those that fall here, and its handle.
#[derive(Default)]
struct HotSlot {
    /// Of both levels of the key.
    hash: u64,
    /// Of its base, which chooses the shard.
    base_hash: u64,
    finds: u32,
    handle: Option<Arc<HotHandle>>,
    hits: u32,
    /// Of the store, and of the shard when the handle was compared with it.
    seen: Version,
}

/// A state of a shard of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) store: u64,
    pub(super) change: u64,
}

impl HotCache {
    /// None yet, for one of `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            slots: RankedMutex::new(Rank::Leaf, std::array::from_fn(|_| HotSlot::default())),
            workers: workers.max(1) as u64,
            files: Arc::default(),
            files_max: Self::files_max(workers),
        }
    }

    /// The most files that one of `workers` workers keeps open for its handles.
    fn files_max(workers: usize) -> usize {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        Self::files_max_of(limit, workers)
    }

    /// The same where the process may have `limit` descriptors.
    pub fn files_max_of(limit: usize, workers: usize) -> usize {
        (limit / SHARE_OF_DESCRIPTORS / workers.max(1)).min(SLOTS)
    }

    /// The handle under `key`, where its shard is still at `version`, and whether a copy of its body is due:
    /// [`HotCache::copy`] makes it.
    #[inline]
    pub(super) fn find(&self, key: &CacheKey, version: Version) -> Option<(Arc<HotHandle>, bool)> {
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(key)];
        let handle = slot.handle.as_ref().filter(|_| slot.seen == version)?;
        if *handle.key != *key.bytes() {
            return None;
        }
        slot.finds = (slot.finds + 1).min(FINDS_MAX);
        slot.hits = slot.hits.saturating_add(1);
        Some((Arc::clone(handle), slot.hits == HITS_FOR_COPY))
    }

    /// Makes a copy of the body of `handle` that can be sent from, in room that `make_room` gives, where it gains by one. Calls
    /// the system and evicts, so not under a lock.
    #[cold]
    pub(super) fn copy(&self, handle: &HotHandle, make_room: impl FnOnce(u64) -> Option<Reservation>) {
        if self.files.load(Ordering::Relaxed) < self.files_max {
            let copy = Sendable::of(&handle.stored.body, &self.files, make_room);
            let _ = copy.map(|copy| handle.sendable.set(copy));
        }
    }

    /// Takes note of what a look-up under `key` came to in an index at `version`: a response that is in full use and alone
    /// under its key, or anything else. `cap` is that of the store, and `version_of` tells the version of the shard of a hash
    /// now. Gives the handle where there is one now.
    pub(super) fn note(
        &self,
        key: &CacheKey,
        version: Version,
        found: Option<&Arc<StoredResponse>>,
        cap: u64,
        version_of: impl Fn(u64) -> Version,
    ) -> Option<Arc<HotHandle>> {
        // Handles are dropped behind the lock: one may hold the last of a body, and a file.
        let mut _gone = None;
        let mut slots = self.slots.lock();
        let others: u64 = if found.is_some() { held_beside(&*slots, slot_of(key)) } else { 0 };
        let slot = &mut slots[slot_of(key)];
        // What it holds may have left the index; nobody else would let go of it.
        if slot.handle.is_some() && slot.seen != version_of(slot.base_hash) {
            let is_found = |handle: &HotHandle| found.is_some_and(|found| Arc::ptr_eq(&handle.stored, found));
            _gone = slot.handle.take_if(|handle| !is_found(handle));
        }
        let stored = found?;
        let hash = key.full_hash();
        if slot.hash != hash || slot.seen.store != version.store {
            slot.finds = slot.finds.saturating_sub(1);
            if slot.finds == 0 {
                let base_hash = key.hash();
                let new = HotSlot { hash, base_hash, finds: 1, seen: version, ..HotSlot::default() };
                let replaced = std::mem::replace(slot, new);
                drop(slots);
                drop(replaced);
            }
            return None;
        }
        slot.finds = (slot.finds + 1).min(FINDS_MAX);
        slot.seen = version;
        if slot.handle.is_none() && slot.finds >= FINDS_MIN {
            let bytes_max = cap / SHARE_OF_STORE / self.workers;
            slot.hits = 0;
            slot.handle = (others + bytes_of(stored) <= bytes_max).then(|| {
                let (stored, key) = (Arc::clone(stored), key.bytes().into());
                Arc::new(HotHandle { stored, sendable: OnceLock::new(), block: OnceLock::new(), key })
            });
        }
        slot.handle.clone().filter(|handle| *handle.key == *key.bytes())
    }
}

/// Bytes that the handles of the other slots hold.
fn held_beside(slots: &[HotSlot], own: usize) -> u64 {
    let others = slots.iter().enumerate().filter(|(at, _)| *at != own);
    others.filter_map(|(_, slot)| slot.handle.as_deref()).map(HotHandle::bytes).sum()
}

fn bytes_of(stored: &StoredResponse) -> u64 {
    stored.room.bytes() + stored.body.memory_bytes()
}

/// The parts of a variant end the key, so that variants of one base fall on slots of their own.
fn slot_of(key: &CacheKey) -> usize {
    let tail = key.bytes().last_chunk().map_or(0, |tail| u64::from_le_bytes(*tail));
    // Other bits of the hash choose the shard.
    ((key.hash() ^ tail.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as usize % SLOTS
}

#[cfg(test)]
mod tests;
