//! What a store holds, for people: a page at a time, or all that lies under one URL.
//!
//! In: where the last page ended. Out: stored responses without their bodies, each once, wherever and however often it lies:
//! first what is on disks, then what is in memory alone, then plain files. The order means nothing. What is put in or taken out meanwhile
//! may be missed, or met twice.
//! The work of a page is bounded, no lock is held for more than a few hundred entries, and nothing counts as use. Heads of
//! what lies on disks are read by the thread that asks: never an event loop's.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use larder_cache::{CachePolicy, Freshness, StoredHead};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Now;
use smallvec::SmallVec;

use crate::disks::{Candidate, Disks, DisksCursor, ListedRecord, LoadedContent};
use crate::files::{FileStore, FilesCursor, Listed, TargetUri, freshness_by_hand};
use crate::key::CacheKey;
use crate::memory::MemoryCursor;
use crate::recall;
use crate::store::Store;
use crate::stored::{StoredBody, StoredResponse};
use larder_tier::cursor::NoCursor;

/// Records whose heads are read for one page.
const RECORDS_MAX: usize = 128;

/// Where a listing goes on. Has a form as text, which is to be handed back as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(At);

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    Disks(DisksCursor),
    Memory(MemoryCursor),
    Files(FilesCursor),
}

/// A page of a listing.
#[derive(Debug, Default)]
pub struct Page {
    /// What was found; may be nothing although there is more.
    pub entries: Vec<Entry>,
    /// Records on disks that could not be read.
    pub unreadable: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// A stored response without its body.
#[derive(Debug)]
pub struct Entry {
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
    source: Source,
}

/// A plain file that stands for a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether somebody put it there, or changed it: then it answers for both schemes.
    pub is_by_hand: bool,
}

#[derive(Debug)]
enum Source {
    Memory(Arc<StoredResponse>),
    Disk(Candidate),
    File,
}

impl Entry {
    /// Path and query, as they are part of the key.
    pub fn target(&self) -> &[u8] {
        self.key.base().get(self.authority.as_str().len()..).unwrap_or_default()
    }
}

impl Store {
    /// The next stored responses whose key's base (authority, path, query) is `wanted`, at most `most` (at least 1) of them.
    /// Waits for the disks; not for an event loop.
    pub fn list(&self, from: Option<Cursor>, most: usize, now: Now, wanted: &dyn Fn(&[u8]) -> bool) -> Page {
        let most = most.max(1);
        let at = from.map_or(At::Disks(DisksCursor::default()), |cursor| cursor.0);
        match (at, self.disks()) {
            (At::Disks(from), Some(disks)) => {
                let page = disks.page(from, most.min(RECORDS_MAX), wanted);
                let next = page.next.map_or(At::Memory(MemoryCursor::default()), At::Disks);
                Page {
                    entries: page
                        .kept
                        .into_iter()
                        .filter_map(|kept| self.kept_entry(disks, kept, now))
                        .collect(),
                    unreadable: page.unreadable,
                    next: Some(Cursor(next)),
                }
            }
            (At::Disks(_), None) => self.list_memory(MemoryCursor::default(), most, wanted),
            (At::Memory(from), _) => self.list_memory(from, most, wanted),
            (At::Files(from), _) => self.list_files(from, most, now, wanted),
        }
    }

    /// What is in memory until it is a file comes before the files: it may be met twice, and is not missed.
    fn list_files(&self, from: FilesCursor, most: usize, now: Now, wanted: &dyn Fn(&[u8]) -> bool) -> Page {
        let Some(files) = self.files() else { return Page::default() };
        let page = files.list(from, most, wanted);
        let entries =
            page.files.into_iter().filter_map(|listed| self.filed_entry(files, listed, now)).collect();
        Page { entries, unreadable: 0, next: page.next.map(|next| Cursor(At::Files(next))) }
    }

    fn list_memory(&self, from: MemoryCursor, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> Page {
        let (found, next) = self.memory().page(from, most, wanted);
        // What is on a disk was met there.
        let was_met = |(key, stored): &(CacheKey, Arc<StoredResponse>)| {
            self.disks().is_some_and(|disks| disks.lists(key, stored.identity()))
        };
        let alone = found.into_iter().filter(|found| !was_met(found));
        let entries = alone.filter_map(|(key, stored)| self.entry(key, stored)).collect();
        let files = || self.files().map(|_| At::Files(FilesCursor::default()));
        Page { entries, unreadable: 0, next: next.map(At::Memory).or_else(files).map(Cursor) }
    }

    /// Everything stored under the base of `key`, whatever its variant, in no order that means anything. Waits for the disks;
    /// not for an event loop.
    pub fn under(&self, key: &CacheKey, now: Now) -> Vec<Entry> {
        let found = self.memory().under(key).into_iter();
        let mut entries: Vec<Entry> = found.filter_map(|(key, stored)| self.entry(key, stored)).collect();
        if let Some(disks) = self.disks() {
            for kept in disks.under(key) {
                let is_here = |stored: &Arc<StoredResponse>| stored.identity() == kept.record.identity;
                let (here, _) = self.memory().responses(&kept.key, now.monotonic);
                if !here.iter().any(is_here) {
                    entries.extend(self.kept_entry(disks, kept, now));
                }
            }
        }
        if let (Some(files), Some(uri)) = (self.files(), TargetUri::of_base(key, Scheme::Http)) {
            entries.extend(files.under(&uri).and_then(|listed| self.filed_entry(files, listed, now)));
        }
        entries
    }

    /// The body of an entry, from wherever it lies; `None` where it is gone or damaged.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn body_of(&self, entry: &Entry) -> Option<Body> {
        match &entry.source {
            Source::Memory(stored) => stored.body.content(0..stored.body.length()),
            Source::File => {
                let (files, key, scheme) = (Arc::clone(self.files()?), entry.key.clone(), entry.scheme);
                let open = move || files.open_unused(&TargetUri::of_base(&key, scheme)?);
                let file = tokio::task::spawn_blocking(open).await.ok().flatten()?;
                let body = Arc::new(StoredBody::of_file(&file));
                body.content(0..body.length())
            }
            Source::Disk(candidate) => {
                let loaded = self.disks()?.load(&entry.key, candidate).await.ok()?;
                match loaded.content {
                    LoadedContent::Inline(bytes) => Some(bytes.into()),
                    LoadedContent::Pieces(pieces) => {
                        let length = pieces.length();
                        let stream = Box::pin(pieces.reader(0..length)?);
                        Some(Body::Stream { length: Some(length), stream })
                    }
                }
            }
        }
    }

    fn entry(&self, key: CacheKey, stored: Arc<StoredResponse>) -> Option<Entry> {
        let (scheme, authority) = recall::origin(&key)?;
        let disks = self.disks().map(|disks| disks.folders_of(&key, stored.identity()));
        Some(Entry {
            key,
            scheme,
            authority,
            head: Arc::clone(&stored.head),
            body_bytes: stored.body.length(),
            number: stored.number,
            is_in_memory: stored.body.is_in_memory(),
            disks: disks.unwrap_or_default(),
            file: None,
            source: Source::Memory(stored),
        })
    }

    /// What a disk has. What memory has of the same is newer, or the same with its head in force.
    fn kept_entry(&self, disks: &Disks, kept: ListedRecord, now: Now) -> Option<Entry> {
        let ListedRecord { key, record, at } = kept;
        let (here, _) = self.memory().responses(&key, now.monotonic);
        if let Some(stored) = here.into_iter().find(|stored| stored.identity() == record.identity) {
            return self.entry(key, stored);
        }
        let (scheme, authority) = recall::origin(&key)?;
        let head = StoredHead::from_bytes(&record.head, now, (scheme, &authority)).ok()?;
        Some(Entry {
            disks: disks.folders_of(&key, record.identity),
            key,
            scheme,
            authority,
            head: Arc::new(head),
            body_bytes: record.content_bytes,
            number: record.number,
            is_in_memory: false,
            file: None,
            source: Source::Disk(at),
        })
    }

    /// A plain file as what it is served as. One by hand is listed under `http`, and as old as it lies there unchanged.
    fn filed_entry(&self, files: &FileStore, listed: Listed, now: Now) -> Option<Entry> {
        let fields = files.fields_of(&listed);
        let (path, is_by_hand) = (files.path_of(&listed), listed.meta.is_none());
        let (name, target, query) = listed.uri?;
        let target = query.map_or_else(|| target.clone(), |query| format!("{target}?{query}"));
        let scheme = listed.scheme.unwrap_or(Scheme::Http);
        let mut key = CacheKey::new(&name, &target);
        key.push_part(scheme.as_str().as_bytes());
        // What no request can ask for is not served.
        let authority = Authority::parse(Bytes::from(name.clone()), scheme).ok()?;
        let target = Target::parse(Bytes::from(target)).ok()?;
        (authority.as_str() == name).then_some(())?;
        let (freshness, number) = match &listed.meta {
            Some(meta) => (meta.times.freshness(now), meta.number),
            None => {
                let lain = now.wall.since(listed.modified).min(now.monotonic);
                let since = Now { wall: listed.modified, monotonic: now.monotonic.saturating_sub(lain) };
                let initial_age = now.wall.since(listed.modified).saturating_sub(lain);
                (Freshness { initial_age, ..freshness_by_hand(since) }, 0)
            }
        };
        let request = RequestHead {
            method: Method::GET,
            scheme,
            authority: authority.clone(),
            target,
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        };
        let mut head = StoredHead::new(&request, StatusCode::OK, fields, freshness, &CachePolicy::default());
        if let Some(meta) = &listed.meta {
            head.relieved = meta.relieved.clone().and(&head.relieved);
        }
        Some(Entry {
            key,
            scheme,
            authority,
            // As where it is served: a file is the same for everybody.
            head: Arc::new(StoredHead { vary: Default::default(), ..head }),
            body_bytes: listed.size,
            number,
            is_in_memory: false,
            disks: SmallVec::new(),
            file: Some(PlainFile { path, is_by_hand }),
            source: Source::File,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            At::Memory(MemoryCursor { shard, slot }) => write!(f, "m{shard:x}-{slot:x}"),
            At::Files(from) => write!(f, "f{from}"),
            At::Disks(DisksCursor { disk, from: None }) => write!(f, "d{disk:x}"),
            At::Disks(DisksCursor { disk, from: Some(from) }) => write!(f, "d{disk:x}-{from}"),
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
        } else if let Some(rest) = text.strip_prefix('f') {
            At::Files(rest.parse()?)
        } else {
            let rest = text.strip_prefix('d').ok_or(NoCursor)?;
            let (disk, from) = match rest.split_once('-') {
                Some((disk, from)) => (disk, Some(from.parse()?)),
                None => (rest, None),
            };
            At::Disks(DisksCursor { disk: number(disk)?, from })
        };
        Ok(Self(at))
    }
}

#[cfg(test)]
mod tests;
