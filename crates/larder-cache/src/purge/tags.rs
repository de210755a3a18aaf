//! Tags: the names by which an application purges the responses that it has tagged with them.
//!
//! In: the fields of a response and the names of those that carry tags ([`TagFields`]). Out: [`Tags`], hashes that are
//! small enough for every stored head and quick to look up. The text of the tags stays in the fields. A hash has a seed
//! of the process, so nobody outside can choose two tags that collide; two that do are purged together.
//! Tags are separated by blanks and commas, and compared byte for byte, as Fastly and Varnish compare them. A response
//! with more tags than the bounds allow carries every tag: a purge of any tag takes it, so no named tag is ever missed.
//! Deliberately absent: cache groups (RFC 9875), which belong to an origin; see [`crate::groups`].

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName};

/// Tags of one response; one with more carries every tag.
pub const TAGS_MAX: usize = 1000;
/// The longest tag, in bytes.
pub const TAG_BYTES_MAX: usize = 1024;
/// All tags of one response together, in bytes.
pub const TAGS_BYTES_MAX: usize = 16 * 1024;

/// One for the process: hashes are never written down.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// TYPO3 sends the number of a page and the name of its site, and purges by both together.
const TYPO3_PID: HeaderName = HeaderName::from_static("typo3-pid");
const TYPO3_SITENAME: HeaderName = HeaderName::from_static("typo3-sitename");

/// Which fields of responses carry tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagFields {
    names: Vec<HeaderName>,
    is_passed: bool,
    /// A bit for each name: most other names have another one, and need not be compared.
    bits: u64,
}

impl Default for TagFields {
    fn default() -> Self {
        Self::new(DEFAULT.to_vec(), false)
    }
}

impl TagFields {
    /// The fields of these names. A `TYPO3-Pid` among them gives `pid-N`, a `TYPO3-Sitename` gives `site-S`, and both
    /// together give `site-S/pid-N` as well. With `is_passed` they are sent on to clients, for a second cache behind this
    /// one.
    pub fn new(names: Vec<HeaderName>, is_passed: bool) -> Self {
        let bits = names.iter().map(bit_of).fold(0, |bits, bit| bits | bit);
        Self { names, is_passed, bits }
    }

    /// The names of the fields that carry tags unless a site says otherwise.
    pub(crate) fn known() -> &'static Self {
        static KNOWN: LazyLock<TagFields> = LazyLock::new(TagFields::default);
        &KNOWN
    }

    /// Their names.
    pub fn names(&self) -> &[HeaderName] {
        &self.names
    }

    /// Whether they are sent on to clients. Default no.
    pub fn is_passed(&self) -> bool {
        self.is_passed
    }

    /// Whether a field of this name carries tags.
    #[inline]
    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.bits & bit_of(name) != 0 && self.names.contains(name)
    }

    /// Whether any of these fields carries tags. Hardly any response has one: its names are looked at once, where a
    /// look-up for each name would hash them all.
    pub(crate) fn is_in(&self, fields: &HeaderMap) -> bool {
        fields.keys().any(|name| self.has(name))
    }
}

/// One of 64 bits, by the length of a name and its ends. The factors were searched for: none of sixty names that responses
/// usually have shares a bit with one of the default names.
#[inline]
fn bit_of(name: &HeaderName) -> u64 {
    let name = name.as_str().as_bytes();
    let [first, last] =
        [name.first(), name.last()].map(|byte| usize::from(byte.copied().unwrap_or_default()));
    1 << ((name.len() + first * 12 + last * 31) % 64)
}

/// The names that applications and their purge tools use without further settings.
static DEFAULT: [HeaderName; 8] = [
    HeaderName::from_static("surrogate-key"),
    HeaderName::from_static("xkey"),
    HeaderName::from_static("cache-tag"),
    HeaderName::from_static("cache-tags"),
    HeaderName::from_static("x-cache-tags"),
    HeaderName::from_static("purge-cache-tags"),
    HeaderName::from_static("edge-cache-tag"),
    HeaderName::from_static("x-magento-tags"),
];

/// The tags of a response that has at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tags {
    /// In order, each once; none where it carries every tag.
    hashes: Box<[u64]>,
    /// The fields that they were read from, each once.
    names: Box<[HeaderName]>,
    carries_every: bool,
}

impl Tags {
    /// The tags in those `fields` of a response that carry any. `None` where there is no tag.
    pub fn of(fields: &HeaderMap, carriers: &TagFields) -> Option<Box<Self>> {
        if !carriers.is_in(fields) {
            return None;
        }
        let mut present: Vec<HeaderName> = Vec::new();
        for name in carriers.names.iter().filter(|name| fields.contains_key(*name)) {
            if !present.contains(name) {
                present.push(name.clone());
            }
        }
        let (mut hashes, mut carries_every) = (Vec::new(), false);
        for tag in bounded(fields, &present) {
            match tag {
                Some(tag) => hashes.push(Self::hash_of(&tag)),
                None => carries_every = true,
            }
        }
        if carries_every {
            hashes.clear();
        }
        hashes.sort_unstable();
        hashes.dedup();
        let has_tags = carries_every || !hashes.is_empty();
        has_tags.then(|| Box::new(Self { hashes: hashes.into(), names: present.into(), carries_every }))
    }

    /// The hash of one tag.
    pub fn hash_of(tag: &[u8]) -> u64 {
        SEED.hash_one(tag)
    }

    /// The hashes of all of them, in order; none where it [carries every tag](Self::carries_every).
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Whether there were more tags than the bounds allow, so that a purge of any tag takes the response.
    pub fn carries_every(&self) -> bool {
        self.carries_every
    }

    /// The fields that they were read from, each once.
    pub fn names(&self) -> &[HeaderName] {
        &self.names
    }

    /// The tags themselves, joined by commas; `fields` are those of the same response. Beyond the bounds, the first of
    /// them.
    pub fn text(&self, fields: &HeaderMap) -> Vec<u8> {
        let mut text = Vec::new();
        for tag in bounded(fields, &self.names).flatten() {
            if !text.is_empty() {
                text.push(b',');
            }
            text.extend_from_slice(&tag);
        }
        text
    }

    /// Bytes in memory, the struct itself included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val::<[u64]>(&self.hashes) + size_of_val::<[HeaderName]>(&self.names)
    }
}

/// The tags in the value of one field, in order: what stands between blanks and commas.
pub fn split(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| is_separator(*byte)).filter(|tag| !tag.is_empty())
}

/// Whether a byte ends a tag.
pub(crate) fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

/// The tags in order, and `None` in place of the first one that is beyond the bounds.
fn bounded<'a>(
    fields: &'a HeaderMap,
    names: &'a [HeaderName],
) -> impl Iterator<Item = Option<Cow<'a, [u8]>>> {
    let (mut count, mut bytes, mut is_over) = (0, 0, false);
    all(fields, names).map_while(move |tag| {
        if is_over {
            return None;
        }
        (count, bytes) = (count + 1, bytes + tag.len());
        is_over = count > TAGS_MAX || tag.len() > TAG_BYTES_MAX || bytes > TAGS_BYTES_MAX;
        Some((!is_over).then_some(tag))
    })
}

/// Every tag, without a bound: sites times pages may be many.
fn all<'a>(fields: &'a HeaderMap, names: &'a [HeaderName]) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let is_part = |name: &&HeaderName| **name == TYPO3_PID || **name == TYPO3_SITENAME;
    let whole = names.iter().filter(move |name| !is_part(name)).flat_map(|name| words(fields, name));
    let named = |name: HeaderName| {
        let name = names.iter().find(|other| **other == name);
        name.into_iter().flat_map(|name| words(fields, name))
    };
    let pids = move || named(TYPO3_PID).map(|pid| [b"pid-", pid].concat());
    let sites = move || named(TYPO3_SITENAME).map(|site| [b"site-", site].concat());
    let pages = sites().flat_map(move |site| pids().map(move |pid| [&site[..], b"/", &pid].concat()));
    whole.map(Cow::Borrowed).chain(pids().chain(sites()).chain(pages).map(Cow::Owned))
}

fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    fields.get_all(name).into_iter().flat_map(|value| split(value.as_bytes()))
}

#[cfg(test)]
mod tests;
