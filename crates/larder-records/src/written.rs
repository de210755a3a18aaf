//! Pieces of bodies that are known to lie in Redis, by the key of their response.
//!
//! In: what was written or read last under a key. Out: the id under which a body is written: that of before where it is the same body, which
//! was confirmed by its origin; and the pieces of another body that it takes the place of. Bounded: beyond [`KEYS_MAX`] some are
//! forgotten, and then pieces stay until their time is over.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_tier::CacheKey;
use larder_tier::rank::{Rank, RankedMutex};

/// Keys with pieces that are remembered.
const KEYS_MAX: usize = 4096;

/// Where a body lies in memory, and its length: two bodies at once never have the same.
type Body = (usize, u64);

#[derive(Debug)]
struct Pieces {
    id: u128,
    count: usize,
    /// `None` for what another larder has written.
    body: Option<Body>,
}

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Written(RankedMutex<HashMap<u64, Pieces, RandomState>>);

impl Default for Written {
    fn default() -> Self {
        Self(RankedMutex::new(Rank::Leaf, HashMap::default()))
    }
}

impl Written {
    /// Another larder's pieces were found.
    pub(crate) fn note(&self, key: &CacheKey, id: u128, count: usize) {
        self.set(key, |known| match known {
            Some(known) if known.id == id => known,
            _ => Pieces { id, count, body: None },
        });
    }

    /// The id for a body in so many pieces, and the pieces of another body under the key.
    pub(crate) fn replace(
        &self,
        key: &CacheKey,
        body: Body,
        count: usize,
        draw: impl FnOnce() -> Option<u128>,
    ) -> (Option<u128>, Option<(u128, usize)>) {
        let (mut id, mut former) = (None, None);
        self.set(key, |known| {
            let is_same = |known: &Pieces| known.body == Some(body) && known.count == count;
            let known = match known {
                Some(known) if is_same(&known) => known,
                known => {
                    former = known.map(|known| (known.id, known.count));
                    Pieces { id: draw().unwrap_or_default(), count, body: Some(body) }
                }
            };
            id = (known.id != 0).then_some(known.id);
            known
        });
        (id, former)
    }

    /// The pieces that are known under a key: their id, and the number of each.
    pub(crate) fn pieces(&self, key: &CacheKey) -> impl Iterator<Item = (u128, usize)> + use<> {
        let known = self.0.lock().get(&key.full_hash()).map(|known| (known.id, known.count));
        known.into_iter().flat_map(|(id, count)| (0..count).map(move |number| (id, number)))
    }

    fn set(&self, key: &CacheKey, change: impl FnOnce(Option<Pieces>) -> Pieces) {
        let (mut all, hash) = (self.0.lock(), key.full_hash());
        if all.len() >= KEYS_MAX && !all.contains_key(&hash) {
            let some = all.keys().next().copied();
            some.into_iter().for_each(|some| _ = all.remove(&some));
        }
        let known = all.remove(&hash);
        all.insert(hash, change(known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_id_and_another_one_takes_its_place() {
        let (written, key) = (Written::default(), CacheKey::new("a", "/x"));
        let replace = |body, count, drawn| written.replace(&key, body, count, || drawn);
        assert_eq!(replace((1, 9), 2, Some(7)), (Some(7), None));
        assert_eq!(replace((1, 9), 2, Some(8)), (Some(7), None));
        assert_eq!(replace((2, 9), 3, Some(8)), (Some(8), Some((7, 2))));
        written.note(&key, 8, 3);
        assert_eq!(replace((2, 9), 3, Some(9)), (Some(8), None));
        written.note(&key, 5, 4);
        assert_eq!(written.pieces(&key).collect::<Vec<_>>(), [(5, 0), (5, 1), (5, 2), (5, 3)]);
        assert_eq!(replace((2, 9), 3, Some(9)), (Some(9), Some((5, 4))));
        assert_eq!(replace((3, 9), 3, None), (None, Some((9, 3))));
        for number in 0..2 * KEYS_MAX {
            written.note(&CacheKey::new("a", &number.to_string()), 1, 1);
        }
        assert!(written.0.lock().len() <= KEYS_MAX);
    }
}
