//! The cache key, in the two levels of the index.
//!
//! The base (canonical authority, raw path, raw query) is what an invalidation names and what the index is sorted by.
//! The variant (scheme and the parts a rule adds) tells apart the responses under one base. Both are kept in full
//! and compared in full, so a hash collision is never a hit on a foreign response.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use smallvec::SmallVec;

/// Seeded once per process, so that nobody outside can aim at one shard or one chain.
static HASHER: LazyLock<foldhash::quality::RandomState> =
    LazyLock::new(foldhash::quality::RandomState::default);

/// Variants under one key and variant part; the oldest goes when another comes.
pub const VARIANTS_MAX: usize = 64;

/// Bytes of a key that need no allocation.
const SHORT: usize = 128;

/// A key, built per request; short ones need no allocation.
#[derive(PartialEq, Eq)]
pub struct CacheKey {
    bytes: SmallVec<[u8; SHORT]>,
    base_len: usize,
    hash: u64,
}

/// The part that tells parts of responses from whole ones.
const PARTS: &[u8] = b"parts";

/// What begins the versions of a key.
pub const VERSIONS: &[u8] = b"v";
/// What ends their text.
pub const VERSIONS_END: &[u8] = b"\0";
/// Which rule's versions they are, behind that.
pub const VERSIONS_RULE_BYTES: usize = 8;

/// The part that `bytes` begin with, and what follows on it.
#[inline]
fn first_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Both, one after the other. A short result is put together at once: a vector would be asked for room for each.
fn joined(front: &[u8], back: &[u8]) -> SmallVec<[u8; SHORT]> {
    let (mut short, length) = ([0; SHORT], front.len() + back.len());
    if let Some(both) = short.get_mut(..length) {
        let (in_front, behind) = both.split_at_mut(front.len());
        in_front.copy_from_slice(front);
        behind.copy_from_slice(back);
        return SmallVec::from_buf_and_len(short, length);
    }
    let mut long = SmallVec::with_capacity(length);
    long.extend_from_slice(front);
    long.extend_from_slice(back);
    long
}

impl Clone for CacheKey {
    #[inline]
    fn clone(&self) -> Self {
        // Copied as a whole: what is derived goes byte by byte.
        Self { bytes: SmallVec::from_slice(&self.bytes), ..*self }
    }
}

impl CacheKey {
    /// Starts a key with its base. `target` is raw path and query and begins with `/`, which no authority contains,
    /// so the two can simply follow each other.
    #[inline]
    pub fn new(authority: &str, target: &str) -> Self {
        let bytes = joined(authority.as_bytes(), target.as_bytes());
        let hash = HASHER.hash_one(&bytes[..]);
        Self { base_len: bytes.len(), bytes, hash }
    }

    /// The key of which `base` and `variant` are the levels, as they were kept.
    pub fn of_levels(base: &[u8], variant: &[u8]) -> Self {
        let bytes = joined(base, variant);
        Self { hash: HASHER.hash_one(base), base_len: base.len(), bytes }
    }

    /// The same of both in one piece.
    pub fn of_bytes(bytes: &[u8], base_len: usize) -> Self {
        let (base, variant) = bytes.split_at_checked(base_len).unwrap_or((bytes, &[]));
        Self::of_levels(base, variant)
    }

    /// Adds a part to the variant. Parts carry their length, so that no two lists of parts look alike.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        let length = (part.len() as u64).to_le_bytes();
        // Most parts are a few bytes, and go in at once with their length.
        let mut both = [0; 24];
        match both.get_mut(..length.len() + part.len()) {
            Some(both) => {
                let (front, back) = both.split_at_mut(length.len());
                front.copy_from_slice(&length);
                back.copy_from_slice(part);
                self.bytes.extend_from_slice(both);
            }
            None => {
                self.bytes.extend_from_slice(&length);
                self.bytes.extend_from_slice(part);
            }
        }
    }

    /// Adds bytes of the caller's own between parts. They have to tell themselves apart from each other and from the
    /// length that begins a part.
    #[inline]
    pub fn push_marks(&mut self, marks: &'static [u8]) {
        self.bytes.extend_from_slice(marks);
    }

    /// Adds the versions by which a rule tells responses apart, right behind the scheme. No other part begins like this. Behind
    /// [`VERSIONS_END`] may stand [which rule's](VERSIONS_RULE_BYTES) they are, and what tells them apart from others that read the same.
    #[inline]
    pub fn push_versions(&mut self, versions: &[u8]) {
        self.push_marks(VERSIONS);
        self.push_part(versions);
    }

    /// The text of the versions, where the rule has some.
    pub fn versions(&self) -> Option<&[u8]> {
        let behind = self.behind_scheme()?.strip_prefix(VERSIONS)?;
        first_part(behind)?.0.split(|byte| *byte == 0).next()
    }

    /// Whether the key tells its versions apart from others that read the same.
    pub fn has_marked_versions(&self) -> bool {
        let part = || Some(first_part(self.behind_scheme()?.strip_prefix(VERSIONS)?)?.0);
        let unmarked = self.versions().map_or(0, <[u8]>::len) + VERSIONS_END.len() + VERSIONS_RULE_BYTES;
        part().is_some_and(|part| part.len() > unmarked)
    }

    /// Whether anything but the scheme and versions tells apart what lies under the base.
    pub fn has_more_parts_than_versions(&self) -> bool {
        let more = || match self.behind_scheme()? {
            [] => Some(false),
            rest => Some(!first_part(rest.strip_prefix(VERSIONS)?)?.1.is_empty()),
        };
        more().unwrap_or(true)
    }

    fn behind_scheme(&self) -> Option<&[u8]> {
        Some(first_part(self.variant())?.1)
    }

    /// The key under which parts of this key's response are kept (206), apart from whole ones: a look-up for a whole
    /// never meets them, and an invalidation of the base takes both. No part that a rule adds begins like this.
    #[inline]
    pub fn of_parts(&self) -> Self {
        let mut parts = self.clone();
        parts.push_part(PARTS);
        parts
    }

    /// Whether it is such a key.
    pub fn is_of_parts(&self) -> bool {
        let length = (PARTS.len() as u64).to_le_bytes();
        self.variant().strip_suffix(PARTS).is_some_and(|rest| rest.ends_with(&length))
    }

    /// Authority, path and query.
    #[inline]
    pub fn base(&self) -> &[u8] {
        self.bytes.get(..self.base_len).unwrap_or_default()
    }

    /// Scheme and configured parts.
    #[inline]
    pub fn variant(&self) -> &[u8] {
        self.bytes.get(self.base_len..).unwrap_or_default()
    }

    /// The first part of the variant.
    #[inline]
    pub fn first_part(&self) -> Option<&[u8]> {
        Some(first_part(self.variant())?.0)
    }

    /// Whether anything but the scheme tells apart what lies under the base.
    #[inline]
    pub fn has_more_parts(&self) -> bool {
        self.first_part().is_none_or(|part| self.variant().len() > size_of::<u64>() + part.len())
    }

    /// The hash of the base.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash of the base that such bytes are.
    #[inline]
    pub fn hash_of_base(base: &[u8]) -> u64 {
        HASHER.hash_one(base)
    }

    /// Both levels, one after the other.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of both levels.
    #[inline]
    pub fn full_hash(&self) -> u64 {
        HASHER.hash_one((self.hash, self.variant()))
    }
}

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CacheKey({} + {})", self.base().escape_ascii(), self.variant().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_join_to_the_same_bytes_stay_apart() {
        let key = |parts: &[&str]| {
            let mut key = CacheKey::new("a", "/");
            parts.iter().for_each(|part| key.push_part(part.as_bytes()));
            key
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["", "a"]), key(&["a", ""]));
        assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
    }

    #[test]
    fn a_key_is_the_same_again_from_its_levels() {
        let mut key = CacheKey::new("a", "/x?y");
        key.push_part(b"http");
        assert_eq!(CacheKey::of_levels(key.base(), key.variant()), key);
        assert_eq!(CacheKey::of_bytes(key.bytes(), key.base().len()), key);
    }

    #[test]
    fn parts_lie_under_the_same_base_and_another_key() {
        let mut key = CacheKey::new("a", "/x");
        key.push_part(b"http");
        let parts = key.of_parts();
        assert_eq!((parts.base(), parts.hash()), (key.base(), key.hash()));
        assert_eq!((key.is_of_parts(), parts.is_of_parts()), (false, true));
        assert_ne!(parts, key);
    }

    #[test]
    fn versions_stand_behind_the_scheme_and_are_read_again() {
        let key = |versions: Option<&str>, more: &[&str]| {
            let mut key = CacheKey::new("a", "/x");
            key.push_part(b"http");
            versions.into_iter().for_each(|versions| key.push_versions(versions.as_bytes()));
            more.iter().for_each(|part| key.push_part(part.as_bytes()));
            key
        };
        let of = |key: CacheKey| {
            let versions = key.versions().map(|versions| String::from_utf8_lossy(versions).into_owned());
            (versions, key.has_more_parts(), key.has_more_parts_than_versions())
        };
        assert_eq!(of(key(None, &[])), (None, false, false));
        assert_eq!(of(key(Some("7.1"), &[])), (Some("7.1".into()), true, false));
        assert_eq!(of(key(Some(""), &["x"])), (Some(String::new()), true, true));
        assert_eq!(of(key(None, &["x"])), (None, true, true));
        assert_eq!(of(key(Some("7"), &[]).of_parts()), (Some("7".into()), true, true));
        assert_eq!(of(key(Some("7\0x"), &[])), (Some("7".into()), true, false));
        assert_ne!(key(Some("7"), &[]), key(Some("7\0x"), &[]));
        assert!(
            !key(Some("7\0--rule--"), &[]).has_marked_versions() && !key(None, &[]).has_marked_versions()
        );
        assert!(key(Some("7\0--rule--x"), &[]).has_marked_versions());
        assert_ne!(key(Some("7"), &[]), key(Some("8"), &[]));
        assert_eq!(of(CacheKey::new("a", "/")), (None, true, true));
    }

    #[test]
    fn the_hash_is_of_the_base_alone() {
        let mut key = CacheKey::new("a", "/x?y");
        let before = key.hash();
        key.push_part(b"https");
        assert_eq!(key.hash(), before);
        assert_eq!(key.base(), b"a/x?y");
    }
}
