//! Records that are known to lie in Redis, by the key of their response.
//!
//! In: records that were written, or read. Out: the pieces of a record: the same body, confirmed by its origin, is written under the same
//! id, and those of another body are deleted. And the names of all that lies there for a key.
//! A key has several records where its responses vary. Bounded: beyond [`RECORDS_MAX`] of them the records of some keys are forgotten. Then
//! pieces stay until their time is over, and Redis is not told that they are used.

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_tier::CacheKey;
use larder_tier::key::VARIANTS_MAX;
use larder_tier::rank::{Rank, RankedMutex};

use crate::record::Piece;

/// Records that are remembered. Each takes about 250 bytes, and 8 for each piece.
const RECORDS_MAX: usize = 65_536;

/// Where a body lies in memory, and its length: two bodies at once never have the same.
pub(crate) type Body = (usize, u64);

/// The pieces of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) id: u128,
    pub(crate) all: Vec<Piece>,
    /// `None` for what another larder has written.
    pub(crate) body: Option<Body>,
}

impl Pieces {
    /// Whether it is this very body, in these pieces.
    pub(crate) fn is_of(&self, body: Body, pieces: &[Piece]) -> bool {
        self.body == Some(body) && self.all == pieces
    }
}

#[derive(Debug)]
struct KnownRecord {
    name: Bytes,
    pieces: Option<Pieces>,
}

/// The name of a record, and of its pieces the id and the number.
type Named = (Bytes, Option<(u128, usize)>);

impl KnownRecord {
    fn named(&self) -> Named {
        (self.name.clone(), self.pieces.as_ref().map(|pieces| (pieces.id, pieces.all.len())))
    }
}

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Known(RankedMutex<ByKey>);

#[derive(Debug, Default)]
struct ByKey {
    of_keys: HashMap<u64, Vec<KnownRecord>, RandomState>,
    /// Of all keys.
    records: usize,
}

impl ByKey {
    fn remove(&mut self, hash: u64) -> Vec<KnownRecord> {
        let removed = self.of_keys.remove(&hash).unwrap_or_default();
        self.records -= removed.len();
        removed
    }

    /// The record of this name, new where it was not known.
    fn record(&mut self, hash: u64, name: &Bytes) -> Option<&mut KnownRecord> {
        let is_known =
            self.of_keys.get(&hash).is_some_and(|known| known.iter().any(|known| known.name == *name));
        while !is_known && self.records >= RECORDS_MAX {
            let some = self.of_keys.keys().next().copied()?;
            self.remove(some);
        }
        let of_key = self.of_keys.entry(hash).or_default();
        if !is_known {
            if of_key.len() >= VARIANTS_MAX {
                of_key.remove(0);
                self.records -= 1;
            }
            of_key.push(KnownRecord { name: name.clone(), pieces: None });
            self.records += 1;
        }
        of_key.iter_mut().find(|known| known.name == *name)
    }
}

impl Default for Known {
    fn default() -> Self {
        Self(RankedMutex::new(Rank::Leaf, ByKey::default()))
    }
}

impl Known {
    /// The pieces that are known under the name of a record.
    pub(crate) fn pieces(&self, key: &CacheKey, name: &Bytes) -> Option<Pieces> {
        let all = self.0.lock();
        all.of_keys.get(&key.full_hash())?.iter().find(|known| known.name == *name)?.pieces.clone()
    }

    /// A record lies under this name, or will soon.
    pub(crate) fn note_name(&self, key: &CacheKey, name: &Bytes) {
        self.0.lock().record(key.full_hash(), name);
    }

    /// A record lies under this name, in these pieces.
    pub(crate) fn note(&self, key: &CacheKey, name: &Bytes, pieces: Option<Pieces>) {
        if let Some(known) = self.0.lock().record(key.full_hash(), name) {
            known.pieces = pieces;
        }
    }

    /// Everything that is known under a key, which is forgotten.
    pub(crate) fn take(&self, key: &CacheKey) -> Vec<Named> {
        self.0.lock().remove(key.full_hash()).iter().map(KnownRecord::named).collect()
    }

    /// Everything that is known under a key.
    pub(crate) fn all(&self, key: &CacheKey) -> Vec<Named> {
        let all = self.0.lock();
        all.of_keys.get(&key.full_hash()).into_iter().flatten().map(KnownRecord::named).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_variant_has_pieces_of_its_own_and_keys_are_bounded() {
        let (known, key) = (Known::default(), CacheKey::new("a", "/x"));
        let pieces = |id| {
            let all = vec![Piece::of(b"one").unwrap(), Piece::of(b"two").unwrap()];
            Pieces { id, all, body: Some((1, 6)) }
        };
        let [gzip, br] = [&b"r:gzip"[..], b"r:br"].map(Bytes::from_static);
        known.note(&key, &gzip, Some(pieces(7)));
        known.note(&key, &br, Some(pieces(8)));
        assert_eq!(known.pieces(&key, &gzip), Some(pieces(7)));
        assert!(pieces(7).is_of((1, 6), &pieces(8).all) && !pieces(7).is_of((2, 6), &pieces(7).all));
        assert!(!pieces(7).is_of((1, 6), &pieces(7).all[..1]));
        known.note(&key, &br, None);
        assert_eq!(known.all(&key), [(gzip.clone(), Some((7, 2))), (br, None)]);
        known.note_name(&key, &gzip);
        assert_eq!(known.pieces(&key, &gzip), Some(pieces(7)), "they stay until others take their place");
        for number in 0..2 * VARIANTS_MAX {
            known.note(&key, &Bytes::from(number.to_string()), None);
        }
        assert_eq!(known.all(&key).len(), VARIANTS_MAX);
        for number in 0..RECORDS_MAX + 10 {
            known.note(&CacheKey::new("a", &number.to_string()), &Bytes::new(), None);
        }
        let count = || known.0.lock().of_keys.values().map(Vec::len).sum::<usize>();
        assert_eq!((count(), known.0.lock().records), (RECORDS_MAX, RECORDS_MAX));
        known.take(&key);
        // Many records of few keys are bounded as well.
        for number in 0..RECORDS_MAX {
            known
                .note_name(&CacheKey::new("b", &(number / 60).to_string()), &Bytes::from(number.to_string()));
        }
        // Those of a key go at once, whichever it is.
        assert_eq!(count(), known.0.lock().records);
        assert!((RECORDS_MAX - VARIANTS_MAX..=RECORDS_MAX).contains(&count()), "{}", count());
        known.note_name(&key, &gzip);
        assert_eq!((known.take(&key).len(), known.all(&key).len()), (1, 0));
        assert_eq!(count(), known.0.lock().records);
    }
}
