//! Where to look for a key on one disk, and where its record lies.
//!
//! In: a cache key. Out: an [`Address`], two stable hashes of it under the disk's seed: the same after a restart, unknown to
//! whoever would aim at one shard. A [`Location`] is a segment, an offset and a rough size in one word, so that an entry of
//! the index stays small; later places are larger numbers, which is how the newest of several is known.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use larder_tier::CacheKey;

/// Records begin at multiples of this.
pub(super) const ALIGN: u64 = 8;
/// One granule of a rough size, in bytes.
const SIZE_UNIT: u64 = 64;
const SIZE_BITS: u32 = 8;
const OFFSET_BITS: u32 = 27;
const PENDING: u64 = 1 << 63;
/// The highest segment a place can name.
pub(super) const SEGMENT_MAX: u32 = larder_tier::format::entry::SEGMENT_MAX;

/// The seed of a disk's hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seed(pub(super) [u64; 2]);

impl Seed {
    /// The stable hash of `bytes`; `purpose` keeps hashes for different things apart.
    fn hash(self, purpose: u64, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0] ^ purpose, self.0[1]);
        hasher.write(bytes);
        hasher.finish()
    }

    /// The hash of a base: what an invalidation names.
    pub(super) fn base(self, base: &[u8]) -> u64 {
        self.hash(0, base)
    }

    /// The address of a key given as its two levels.
    pub(super) fn address(self, base: &[u8], variant: &[u8]) -> Address {
        Address { base: self.base(base), variant: (self.hash(1, variant) >> 48) as u16 }
    }

    /// The same of a [`CacheKey`].
    pub(super) fn address_of(self, key: &CacheKey) -> Address {
        self.address(key.base(), key.variant())
    }
}

/// Where a key lies on one disk: the hash of its base, and sixteen bits of its variant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub(super) base: u64,
    pub(super) variant: u16,
}

impl Address {
    /// The tag of one response under this key: its variant, and which of the responses that Vary tells apart.
    pub(super) fn tag(self, identity: u64) -> u32 {
        let folded = identity ^ (identity >> 32);
        let folded = (folded ^ (folded >> 16)) as u16;
        u32::from(self.variant) << 16 | u32::from(folded)
    }

    /// Whether `tag` is of this variant.
    pub(super) fn is_variant_of(self, tag: u32) -> bool {
        tag >> 16 == u32::from(self.variant)
    }
}

/// Where a record is on its disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub(super) u64);

impl Location {
    /// Of a record that is not written yet.
    pub(super) fn pending(sequence: u64) -> Self {
        Self(PENDING | sequence)
    }

    /// Of a record at `offset` of `segment`, whose object takes about `bytes` in all.
    pub(super) fn written(segment: u32, offset: u64, bytes: u64) -> Self {
        let eighth = (offset / ALIGN) & ((1 << OFFSET_BITS) - 1);
        let segment = u64::from(segment.min(SEGMENT_MAX));
        Self(segment << (OFFSET_BITS + SIZE_BITS) | eighth << SIZE_BITS | u64::from(size_class(bytes)))
    }

    /// Whether its record is still to be written.
    pub fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    pub(super) fn segment(self) -> u32 {
        (self.0 >> (OFFSET_BITS + SIZE_BITS)) as u32 & SEGMENT_MAX
    }

    pub(super) fn offset(self) -> u64 {
        ((self.0 >> SIZE_BITS) & ((1 << OFFSET_BITS) - 1)) * ALIGN
    }

    /// The size of the object in bytes, rounded up by at most an eighth.
    pub fn size_at_most(self) -> u64 {
        match self.is_pending() {
            true => 0,
            false => class_bytes((self.0 & 0xff) as u8),
        }
    }
}

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_pending() {
            true => write!(f, "pending {}", self.0 & !PENDING),
            false => write!(f, "{:08x}+{}", self.segment(), self.offset()),
        }
    }
}

/// Eight bits of size: exact in units up to sixteen, then three bits behind the leading one.
fn size_class(bytes: u64) -> u8 {
    let units = bytes.div_ceil(SIZE_UNIT);
    if units < 16 {
        return units as u8;
    }
    let exponent = units.ilog2();
    let steps = (units - (1 << exponent)).div_ceil(1 << (exponent - 3));
    (16 + (u64::from(exponent) - 4) * 8 + steps).min(255) as u8
}

/// The upper end of a size class, in bytes.
fn class_bytes(class: u8) -> u64 {
    if class < 16 {
        return u64::from(class) * SIZE_UNIT;
    }
    let (exponent, steps) = (u32::from(class - 16) / 8 + 4, u64::from((class - 16) % 8));
    ((1 << exponent) + (steps << (exponent - 3))) * SIZE_UNIT
}

/// The base that a piece is of, by its hash on the disk that has the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(super) disk: u64,
    pub(super) base: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_stay_the_same_from_one_build_to_the_next() {
        let address = Seed([1, 2]).address(b"example.org/", b"https");
        assert_eq!(address, Address { base: 15_612_878_890_701_010_575, variant: 15_931 });
    }

    proptest! {
        #[test]
        fn a_place_gives_back_what_it_was_made_of(segment in 0..=SEGMENT_MAX, eighth in 0_u64..1 << 27, bytes in 0_u64..1 << 38) {
            let place = Location::written(segment, eighth * 8, bytes);
            prop_assert!(!place.is_pending());
            prop_assert_eq!((place.segment(), place.offset()), (segment, eighth * 8));
            prop_assert!(place.size_at_most() >= bytes);
            prop_assert!(place.size_at_most() <= bytes + bytes / 8 + SIZE_UNIT);
        }

        #[test]
        fn later_places_are_larger(a in (0..=SEGMENT_MAX, 0_u64..1 << 27), b in (0..=SEGMENT_MAX, 0_u64..1 << 27), sizes in any::<(u32, u32)>()) {
            let place = |at: (u32, u64), size: u32| Location::written(at.0, at.1 * 8, size.into());
            prop_assume!(a != b);
            prop_assert_eq!(a < b, place(a, sizes.0) < place(b, sizes.1));
        }
    }
}
