//! What a store holds, for people: a page at a time, or all that lies under one URL.
//!
//! In: where the last page ended. Out: stored responses without their bodies, each once, wherever and however often it lies:
//! first what is in tiers behind memory, then what is in memory alone, then tiers before it. The order means nothing. What is put in or taken out meanwhile
//! may be missed, or met twice.
//! The work of a page is bounded, no lock is held for more than a few hundred entries, and nothing counts as use. Heads of
//! what lies on disks are read by the thread that asks: never an event loop's.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use larder_cache::StoredHead;
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::Scheme;
use larder_http::time::Now;
use smallvec::SmallVec;

use crate::key::CacheKey;
use crate::memory::MemoryCursor;
use crate::recall;
use crate::store::Store;
use crate::stored::StoredResponse;
use crate::tier::StoreTier;
use larder_tier::cursor::NoCursor;
use larder_tier::shared_page::SharedEntry;
use larder_tier::tier::{ListedEntry, ListedHead};
use larder_tier::{Candidate, LoadedContent};

/// Where a listing goes on. Has a form as text, which is to be handed back as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(At);

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    /// In a tier: its number among the store's, what stands before its own cursors, and such a one.
    Tier(usize, char, String),
    Memory(MemoryCursor),
}

/// A page of a listing.
#[derive(Debug, Default)]
pub struct Page {
    /// What was found; may be nothing although there is more.
    pub entries: Vec<ListedResponse>,
    /// Records on disks that could not be read.
    pub unreadable: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// A stored response without its body.
#[derive(Debug)]
pub struct ListedResponse {
    /// Its full key.
    pub key: CacheKey,
    /// The scheme that is part of it.
    pub scheme: Scheme,
    /// The authority that is part of it.
    pub authority: Authority,
    /// Status, fields, times.
    pub head: Arc<StoredHead>,
    /// The length of its body.
    pub body_bytes: u64,
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// Whether its body is in memory.
    pub is_in_memory: bool,
    /// The folders of the disks on which it lies.
    pub disks: SmallVec<[PathBuf; 2]>,
    /// The plain file that it is.
    pub file: Option<PlainFile>,
    /// Whether it lies where larders share it.
    pub is_shared: bool,
    /// Whether it is not used here: it is shared, and this larder cannot judge it, or has removed it.
    pub is_void: bool,
    source: Source,
}

pub use larder_tier::shared_page::{NoSharedPage, SharedBounds, SharedPage};
pub use larder_tier::tier::PlainFile;

#[derive(Debug)]
enum Source {
    Memory(Arc<StoredResponse>),
    Tier(Box<dyn Candidate>),
    /// What larders share is not opened.
    Shared,
}

impl ListedResponse {
    /// Path and query, as they are part of the key.
    pub fn target(&self) -> &[u8] {
        self.key.base().get(self.authority.as_str().len()..).unwrap_or_default()
    }
}

impl Store {
    /// The next stored responses whose key's base (authority, path, query) is `wanted`, at most `most` (at least 1) of them.
    /// Waits for the disks; not for an event loop.
    ///
    /// # Errors
    /// `from` is in a tier of this store, and no page of that tier ended with it.
    pub fn list(
        &self,
        from: Option<Cursor>,
        most: usize,
        now: Now,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Page, NoCursor> {
        let most = most.max(1);
        let behind = |number: &usize| self.tiers().get(*number).is_some_and(|tier| !tier.is_before_memory());
        match from.map(|cursor| cursor.0) {
            Some(At::Memory(from)) => Ok(self.list_memory(from, most, wanted)),
            Some(At::Tier(number, letter, from)) => {
                self.list_tier((number, letter), from, (most, now), wanted)
            }
            None => match (0..self.tiers().len()).find(behind) {
                Some(first) => self.list_first(first, (most, now), wanted),
                None => Ok(self.list_memory(MemoryCursor::default(), most, wanted)),
            },
        }
    }

    /// The beginning of a tier.
    fn beginning(&self, number: usize) -> Option<At> {
        let tier = self.tiers().get(number)?;
        Some(At::Tier(number, tier.letter(), tier.first_page()))
    }

    fn list_first(
        &self,
        number: usize,
        (most, now): (usize, Now),
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Page, NoCursor> {
        match self.beginning(number) {
            Some(At::Tier(number, letter, from)) => {
                self.list_tier((number, letter), from, (most, now), wanted)
            }
            _ => Ok(Page::default()),
        }
    }

    /// What lies behind memory comes before it: what is met there is not met again in memory. What is in memory until it is in a
    /// tier before it comes before that: it may be met twice, and is not missed.
    fn list_tier(
        &self,
        (number, letter): (usize, char),
        from: String,
        (most, now): (usize, Now),
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Page, NoCursor> {
        // A cursor of before a restart, with which the store has other tiers: what is in memory is met once more, and not missed.
        let Some(tier) = self.tiers().get(number).filter(|tier| tier.letter() == letter) else {
            return Ok(self.list_memory(MemoryCursor::default(), most, wanted));
        };
        let page = Arc::clone(tier).page(&from, most, now, wanted)?;
        let is_before_memory = tier.is_before_memory();
        let is_next = |other: &usize| {
            let tier = self.tiers().get(*other);
            *other > number && tier.is_some_and(|tier| tier.is_before_memory() == is_before_memory)
        };
        let next_tier = (0..self.tiers().len()).find(is_next);
        let next = match (page.next, next_tier) {
            (Some(next), _) => Some(At::Tier(number, letter, next)),
            (None, Some(next)) => self.beginning(next),
            (None, None) => (!is_before_memory).then(|| At::Memory(MemoryCursor::default())),
        };
        Ok(Page {
            entries: page.entries.into_iter().filter_map(|listed| self.listed(tier, listed, now)).collect(),
            unreadable: page.unreadable,
            next: next.map(Cursor),
        })
    }

    fn list_memory(&self, from: MemoryCursor, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> Page {
        let (found, next) = self.memory().page(from, most, wanted);
        // What is behind memory was met there.
        let was_met = |(key, stored): &(CacheKey, Arc<StoredResponse>)| {
            self.tiers().iter().any(|tier| tier.lists(key, stored.identity()))
        };
        let alone = found.into_iter().filter(|found| !was_met(found));
        let entries = alone.filter_map(|(key, stored)| self.entry(key, stored)).collect();
        let first = || self.tiers().iter().position(|tier| tier.is_before_memory());
        let after = || self.beginning(first()?);
        Page { entries, unreadable: 0, next: next.map(At::Memory).or_else(after).map(Cursor) }
    }

    /// Everything stored under the base of `key`, whatever its variant, in no order that means anything. Waits for the disks;
    /// not for an event loop.
    pub fn under(&self, key: &CacheKey, now: Now) -> Vec<ListedResponse> {
        let found = self.memory().under(key).into_iter();
        let mut entries: Vec<ListedResponse> =
            found.filter_map(|(key, stored)| self.entry(key, stored)).collect();
        for tier in self.tiers() {
            for listed in Arc::clone(tier).under(key, now) {
                let is_here = |stored: &Arc<StoredResponse>| Some(stored.identity()) == listed.identity;
                let (here, _) = self.memory().responses(&listed.key, now.monotonic);
                if !here.iter().any(is_here) {
                    entries.extend(self.listed(tier, listed, now));
                }
            }
        }
        entries
    }

    /// A page of what larders share in a tier, for people; `from` is where one before ended. `None` where the store has no such tier.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn list_shared(
        &self,
        from: Option<&str>,
        bounds: SharedBounds,
        wanted: &(dyn Fn(&[u8]) -> bool + Send + Sync),
    ) -> Option<Result<SharedPage<ListedResponse>, NoSharedPage>> {
        let (tier, _) = self.anew()?;
        let page = match tier.shared_page(from, bounds, wanted).await? {
            Ok(page) => page,
            Err(why) => return Some(Err(why)),
        };
        let SharedPage { entries, unreadable, looked_at, names, next } = page;
        let entries = entries.into_iter().filter_map(shared).collect();
        Some(Ok(SharedPage { entries, unreadable, looked_at, names, next }))
    }

    /// The body of an entry, from wherever it lies; `None` where it is gone or damaged.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn body_of(&self, entry: &ListedResponse) -> Option<Body> {
        match &entry.source {
            Source::Shared => None,
            Source::Memory(stored) => stored.body.content(0..stored.body.length()),
            Source::Tier(candidate) => match candidate.load(&entry.key).await.ok()?.content {
                LoadedContent::Inline(bytes) => Some(bytes.into()),
                LoadedContent::Source(source) => {
                    let length = source.length();
                    Some(Body::Stream { length: Some(length), stream: source.reader(0..length)? })
                }
            },
        }
    }

    fn entry(&self, key: CacheKey, stored: Arc<StoredResponse>) -> Option<ListedResponse> {
        let (scheme, authority) = recall::origin(&key)?;
        let disks = self.disks_of(&key, &stored);
        Some(ListedResponse {
            key,
            scheme,
            authority,
            head: Arc::clone(&stored.head),
            body_bytes: stored.body.length(),
            number: stored.number,
            is_in_memory: stored.body.is_in_memory(),
            disks,
            file: None,
            is_shared: false,
            is_void: false,
            source: Source::Memory(stored),
        })
    }

    /// What a tier has. What memory has of the same is newer, or the same with its head in force.
    fn listed(
        &self,
        tier: &Arc<StoreTier>,
        listed: ListedEntry<StoredHead>,
        now: Now,
    ) -> Option<ListedResponse> {
        let ListedEntry { key, origin, identity, head, body_bytes, number, file, at } = listed;
        if let Some(identity) = identity {
            let (here, _) = self.memory().responses(&key, now.monotonic);
            if let Some(stored) = here.into_iter().find(|stored| stored.identity() == identity) {
                return self.entry(key, stored);
            }
        }
        let (scheme, authority) = origin.or_else(|| recall::origin(&key))?;
        let head = match head {
            ListedHead::Bytes(bytes) => StoredHead::from_bytes(&bytes, now, (scheme, &authority)).ok()?,
            ListedHead::Made(head) => *head,
        };
        Some(ListedResponse {
            disks: identity.map(|identity| tier.folders_of(&key, identity)).unwrap_or_default(),
            key,
            scheme,
            authority,
            head: Arc::new(head),
            body_bytes,
            number,
            is_in_memory: false,
            file,
            is_shared: false,
            is_void: false,
            source: Source::Tier(at),
        })
    }
}

/// What larders share, listed.
fn shared(of: SharedEntry<StoredHead>) -> Option<ListedResponse> {
    let SharedEntry { key, head, body_bytes, number } = of;
    let (scheme, authority) = recall::origin(&key)?;
    Some(ListedResponse {
        key,
        scheme,
        authority,
        head: Arc::new(head),
        body_bytes,
        number: number.unwrap_or_default(),
        is_in_memory: false,
        disks: SmallVec::new(),
        file: None,
        is_shared: true,
        is_void: number.is_none(),
        source: Source::Shared,
    })
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            At::Memory(MemoryCursor { shard, slot }) => write!(f, "m{shard:x}-{slot:x}"),
            At::Tier(number, letter, from) => {
                // The first tier of a store needs no number.
                if *number > 0 {
                    write!(f, "{number}")?;
                }
                write!(f, "{letter}{from}")
            }
        }
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let number = |text: &str| usize::from_str_radix(text, 16).map_err(|_| NoCursor);
        let at = if let Some(rest) = text.strip_prefix('m') {
            let (shard, slot) = rest.split_once('-').ok_or(NoCursor)?;
            At::Memory(MemoryCursor { shard: number(shard)?, slot: number(slot)? })
        } else {
            let letter_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(NoCursor)?;
            let (digits, rest) = text.split_at(letter_at);
            let number = match digits {
                "" => 0,
                digits => digits.parse().map_err(|_| NoCursor)?,
            };
            let letter = rest.chars().next().filter(char::is_ascii_lowercase).ok_or(NoCursor)?;
            // Whether a page of such a tier ended with it is for that tier to say, when it is listed.
            let own = Some(&rest[letter.len_utf8()..]).filter(|own| !own.is_empty()).ok_or(NoCursor)?;
            At::Tier(number, letter, own.to_owned())
        };
        Ok(Self(at))
    }
}

#[cfg(test)]
mod tests;
