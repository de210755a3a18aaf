//! From a disk into memory: what a look-up did not find there, and a disk's index says may be there.
//!
//! In: a key, and which of its responses the request selects. Out: those responses in memory's index. The key and the
//! head of each record are compared and checked before anything is believed. Small bodies come whole; large ones stay
//! where they are, and their stored response reads them piece by piece.
//! One client per key looks, the others wait for it and find what it brought. A disk that takes longer than
//! [`WAIT_MAX`] counts as one that has nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use larder_cache::StoredHead;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::time::Now;
use larder_tier::rank::RankedMutex;
use larder_tier::{Candidate, Loaded, LoadedContent, Unreadable};

use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::stored::{StoredBody, StoredResponse};
use crate::tier::StoreTier;

/// How long a request waits for a disk before it asks the origin instead.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often it is looked again for what has moved meanwhile.
const LOOKS_MAX: usize = 3;

/// What a look on the disks brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// Something is in memory now that was not.
    Something,
    /// Nothing that the request selects.
    Nothing,
    /// No answer within the bound.
    TooLate,
}

/// Who is looking for which key.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    looking: RankedMutex<HashMap<u64, Weak<tokio::sync::Mutex<Turn>>, foldhash::fast::RandomState>>,
}

/// What those who wait for a look learn of it, beside what is in memory then.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// When the last look ended that found nothing for anybody.
    pub(crate) empty_at: Option<tokio::time::Instant>,
    /// When the last look ended that brought something into memory.
    pub(crate) found_at: Option<tokio::time::Instant>,
}

impl Gate {
    /// The turn for `key`; whoever has it locked is looking.
    pub(crate) fn turn(&self, key: &CacheKey) -> Arc<tokio::sync::Mutex<Turn>> {
        let mut looking = self.looking.lock();
        if let Some(turn) = looking.get(&key.full_hash()).and_then(Weak::upgrade) {
            return turn;
        }
        // Ended ones are swept when there are as many as live ones may be, so the table stays as small as its use.
        if looking.len() == looking.capacity() {
            looking.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        looking.insert(key.full_hash(), Arc::downgrade(&turn));
        turn
    }
}

/// See [`crate::Store::recall`].
pub(crate) async fn recall(
    (memory, tier, gate): (&Arc<MemoryStore>, &Arc<StoreTier>, &Gate),
    key: &CacheKey,
    all: bool,
    now: Now,
    selects: impl Fn(&StoredResponse) -> bool,
) -> Recalled {
    let looked = async {
        let turn = gate.turn(key);
        let _turn = match turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => {
                // Somebody looks already: what is selected is most likely the same.
                let turn = turn.lock().await;
                let (there, _) = memory.responses(key, now.monotonic);
                if there.iter().any(|stored| selects(stored)) {
                    return Recalled::Something;
                }
                turn
            }
        };
        Arc::clone(tier).settle_versions(key).await;
        for _ in 0..LOOKS_MAX {
            let mut recalled = Recalled::Nothing;
            // What is used is written elsewhere when its segment is given up.
            let mut has_moved = false;
            for candidate in Arc::clone(tier).candidates(key) {
                let loaded = match candidate.load(key).await {
                    Ok(loaded) => loaded,
                    Err(error) => {
                        let is_there = candidate.is_held();
                        has_moved |= !is_there;
                        if is_there && error == Unreadable::ForGood {
                            candidate.forget();
                        }
                        continue;
                    }
                };
                let stored = restored(memory, key, &*candidate, loaded, now);
                let Some(stored) = stored.filter(|stored| selects(stored)) else { continue };
                if keep(memory, key, &*candidate, stored) {
                    recalled = Recalled::Something;
                    if !all {
                        return recalled;
                    }
                } else {
                    has_moved |= !candidate.is_held();
                }
            }
            if recalled == Recalled::Something || !has_moved {
                return recalled;
            }
        }
        Recalled::Nothing
    };
    tokio::time::timeout(WAIT_MAX, looked).await.unwrap_or(Recalled::TooLate)
}

/// The response that a record holds, with room in memory for what of it lies there from now on.
fn restored(
    memory: &Arc<MemoryStore>,
    key: &CacheKey,
    candidate: &dyn Candidate,
    loaded: Loaded,
    now: Now,
) -> Option<StoredResponse> {
    let (scheme, authority) = origin(key)?;
    let head = match StoredHead::from_bytes(&loaded.head, now, (scheme, &authority)) {
        Ok(head) => head,
        Err(_) => {
            candidate.forget();
            return None;
        }
    };
    let body = match loaded.content {
        LoadedContent::Inline(bytes) if bytes.is_empty() => StoredBody::empty(),
        LoadedContent::Inline(bytes) => {
            let room = memory.reserve(bytes.len() as u64 + crate::stored::PIECE_OVERHEAD_BYTES)?;
            // Copied: it is a slice of the whole record.
            StoredBody::new(vec![Bytes::copy_from_slice(&bytes)], room)
        }
        LoadedContent::Source(source) => StoredBody::outside(memory, source)?,
    };
    let room = memory.reserve(StoredResponse::overhead_bytes(&head, key))?;
    let stored = StoredResponse::new(Arc::new(head), Arc::new(body), loaded.number, room);
    if stored.identity() != loaded.identity {
        // Stored by a version that told responses apart otherwise: what takes its place would not find it.
        candidate.forget();
        return None;
    }
    Some(stored)
}

/// Puts it into memory's index, unless it has gone from the disk's meanwhile, or something newer is there.
fn keep(memory: &MemoryStore, key: &CacheKey, candidate: &dyn Candidate, stored: StoredResponse) -> bool {
    let identity = stored.identity();
    candidate.note_use();
    memory.insert(key, Arc::new(stored), |other| other.identity() == identity, || candidate.is_held())
}

/// The scheme and the authority that a key is of.
pub(crate) fn origin(key: &CacheKey) -> Option<(Scheme, Authority)> {
    let scheme = match key.first_part()? {
        b"http" => Scheme::Http,
        b"https" => Scheme::Https,
        _ => return None,
    };
    let end = key.base().iter().position(|byte| *byte == b'/')?;
    let authority = Bytes::copy_from_slice(key.base().get(..end)?);
    Some((scheme, Authority::parse(authority, scheme).ok()?))
}
