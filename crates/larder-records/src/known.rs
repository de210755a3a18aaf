//! Records that are known to lie in Redis, by the key of their response.
//!
//! In: records that were written, or read. Out: the pieces of a record: the same body, confirmed by its origin, is written under the same
//! id, and those of another body are deleted. And the names of all that lies there for a key.
//! A key has several records where its responses vary. Bounded: beyond [`KEYS_MAX`] keys some are forgotten. Then pieces stay
//! until their time is over, and Redis is not told that they are used.

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_tier::CacheKey;
use larder_tier::key::VARIANTS_MAX;
use larder_tier::rank::{Rank, RankedMutex};

use crate::record::Piece;

/// Keys with records that are remembered.
const KEYS_MAX: usize = 65_536;

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

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Known(RankedMutex<HashMap<u64, Vec<KnownRecord>, RandomState>>);

impl Default for Known {
    fn default() -> Self {
        Self(RankedMutex::new(Rank::Leaf, HashMap::default()))
    }
}

impl Known {
    /// The pieces that are known under the name of a record.
    pub(crate) fn pieces(&self, key: &CacheKey, name: &Bytes) -> Option<Pieces> {
        let all = self.0.lock();
        all.get(&key.full_hash())?.iter().find(|known| known.name == *name)?.pieces.clone()
    }

    /// A record lies under this name.
    pub(crate) fn note(&self, key: &CacheKey, name: &Bytes, pieces: Option<Pieces>) {
        let (mut all, hash) = (self.0.lock(), key.full_hash());
        if all.len() >= KEYS_MAX && !all.contains_key(&hash) {
            let some = all.keys().next().copied();
            some.into_iter().for_each(|some| _ = all.remove(&some));
        }
        let of_key = all.entry(hash).or_default();
        match of_key.iter_mut().find(|known| known.name == *name) {
            Some(known) => known.pieces = pieces,
            None => {
                if of_key.len() >= VARIANTS_MAX {
                    of_key.remove(0);
                }
                of_key.push(KnownRecord { name: name.clone(), pieces });
            }
        }
    }

    /// Everything that is known under a key: the names of records, and of each its pieces' id and number.
    pub(crate) fn all(&self, key: &CacheKey) -> Vec<(Bytes, Option<(u128, usize)>)> {
        let all = self.0.lock();
        let known = all.get(&key.full_hash()).into_iter().flatten();
        let told = known.map(|known| {
            let pieces = known.pieces.as_ref().map(|pieces| (pieces.id, pieces.all.len()));
            (known.name.clone(), pieces)
        });
        told.collect()
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
        assert_eq!(known.all(&key), [(gzip, Some((7, 2))), (br, None)]);
        for number in 0..2 * VARIANTS_MAX {
            known.note(&key, &Bytes::from(number.to_string()), None);
        }
        assert_eq!(known.all(&key).len(), VARIANTS_MAX);
        for number in 0..KEYS_MAX + 10 {
            known.note(&CacheKey::new("a", &number.to_string()), &Bytes::new(), None);
        }
        assert!(known.0.lock().len() <= KEYS_MAX);
    }
}
