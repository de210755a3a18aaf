//! A store of one kind in a folder of its own, and what is kept in it.
//!
//! In: a kind, and pages: what the origin would say. Out: a store that is filled as a fetch fills it, looked into as a
//! request does, started again, or killed. A body derives from the page, so that each byte is known. Waiting is for the
//! queues of the disks to be empty, never for time to pass.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::Looked;
use crate::{CacheKey, Fate, MemoryStoreSettings, Selection, Store, StoredResponse, StreamingBody};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use http_body_util::BodyExt;
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, storable};
use larder_disk::engine::{Disk, DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesSettings, TargetUri};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;

const PUSHED_BYTES: usize = 50_000;
const PATIENCE: Duration = Duration::from_secs(20);
const BLOCK_BYTES: usize = 1024;

/// What stands behind the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Disks(Layout, usize),
    /// Plain files for whole responses that do not vary, memory for all others.
    Files,
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind::Memory,
    Kind::Disks(Layout::Single, 1),
    Kind::Disks(Layout::Mirror, 2),
    Kind::Disks(Layout::Stripe, 3),
    Kind::Disks(Layout::Hash, 2),
    Kind::Files,
];

/// Sizes of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) memory: u64,
    /// Of each disk, or of all files.
    pub(crate) disk: u64,
    /// On disks; in memory a quarter of it at most.
    pub(crate) max_object: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { memory: 16 << 20, disk: 64 << 20, max_object: 16 << 20 }
    }
}

/// A response, as its origin would give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) path: String,
    /// Of the fields, and of the body.
    pub(crate) version: (u64, u64),
    pub(crate) length: usize,
    /// What the client that caused it prefers, where the origin varies by it.
    pub(crate) flavour: Option<&'static str>,
    /// Which of its bytes, in a 206.
    pub(crate) part: Option<(u64, u64)>,
    /// Whether its length is known before its end.
    pub(crate) is_declared: bool,
    /// Lines of 1000 bytes among its fields.
    pub(crate) lines: usize,
}

impl Page {
    pub(crate) fn new(path: &str, version: u64, length: usize) -> Self {
        let path = path.to_owned();
        Self {
            path,
            version: (version, version),
            length,
            flavour: None,
            part: None,
            is_declared: true,
            lines: 0,
        }
    }

    pub(crate) fn key(&self) -> CacheKey {
        let key = key(&self.path);
        if self.part.is_some() { key.of_parts() } else { key }
    }

    pub(crate) fn body(&self) -> Bytes {
        let seed = self.path.bytes().chain(self.flavour.unwrap_or_default().bytes());
        let seed =
            seed.fold(self.version.1, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let word =
            |at: usize| (seed ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).to_le_bytes();
        // Blocks differ by their first words alone, so that many long ones are made quickly.
        let mut block: Vec<u8> = (0..BLOCK_BYTES / 8).flat_map(word).collect();
        let mut whole = Vec::with_capacity(self.length + BLOCK_BYTES);
        for at in (0..self.length).step_by(BLOCK_BYTES) {
            block[..8].copy_from_slice(&word(at));
            whole.extend_from_slice(&block);
        }
        whole.truncate(self.length);
        let whole = Bytes::from(whole);
        match self.part {
            Some((first, last)) => whole.slice(first as usize..=last as usize),
            None => whole,
        }
    }

    fn request(&self) -> RequestHead {
        let mut fields = flavoured(self.flavour);
        if let Some((first, last)) = self.part {
            let range = format!("bytes={first}-{last}");
            fields.insert(http::header::RANGE, HeaderValue::from_str(&range).unwrap());
        }
        RequestHead {
            method: Method::GET,
            scheme: Scheme::Http,
            authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http).unwrap(),
            target: Target::parse(Bytes::from(self.path.clone())).unwrap(),
            version: Version::HTTP_11,
            fields,
        }
    }

    pub(crate) fn head(&self, clock: &Clock) -> Arc<StoredHead> {
        let request = self.request();
        let mut fields = HeaderMap::new();
        let mut field = |name: &'static str, value: String| {
            fields.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
        };
        field("cache-control", "max-age=3600".to_owned());
        field("x-version", format!("{}", self.version.0));
        if self.flavour.is_some() {
            field("vary", "x-flavour".to_owned());
        }
        let mut status = StatusCode::OK;
        if let Some((first, last)) = self.part {
            status = StatusCode::PARTIAL_CONTENT;
            field("content-range", format!("bytes {first}-{last}/{}", self.length));
        }
        for line in 0..self.lines {
            let (name, value) = (format!("x-line-{line}"), format!("{line:01000}"));
            fields.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let (now, policy) = (clock.now(), CachePolicy::default());
        let times = ExchangeTimes { request: now, response: now };
        let storability = storable(&request, status, &fields, times, &policy);
        let Storability::Storable(freshness) = storability else { panic!("{storability:?}") };
        Arc::new(StoredHead::new(&request, status, fields, freshness, &policy))
    }
}

fn flavoured(flavour: Option<&'static str>) -> HeaderMap {
    let flavour =
        flavour.map(|flavour| (HeaderName::from_static("x-flavour"), HeaderValue::from_static(flavour)));
    flavour.into_iter().collect()
}

pub(crate) fn key(path: &str) -> CacheKey {
    let mut key = CacheKey::new("example.com", path);
    key.push_part(b"http");
    key
}

/// What a request found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) stored: Arc<StoredResponse>,
    /// What its fields say.
    pub(crate) version: u64,
    /// `None` where it was cut.
    pub(crate) body: Option<Bytes>,
}

/// What stands behind the memory of a store, as itself.
#[derive(Default)]
pub(crate) struct Behind {
    pub(crate) disks: Option<Arc<Disks>>,
    pub(crate) files: Option<Arc<FileStore>>,
}

/// A store, and where it lies.
pub(crate) struct Fixture {
    pub(crate) kind: Kind,
    pub(crate) store: Arc<Store>,
    pub(crate) behind: Behind,
    pub(crate) clock: Clock,
    sizes: Sizes,
    folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(kind: Kind, sizes: Sizes) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let (store, behind) = open(kind, sizes, folder.path(), &clock);
        Self { kind, store, behind, clock, sizes, folder }
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.kind != Kind::Memory
    }

    /// Whether everything that is stored lies there, also what no file could stand for.
    pub(crate) fn has_disks(&self) -> bool {
        matches!(self.kind, Kind::Disks(..))
    }

    /// Waits until nothing is left to be written.
    pub(crate) fn settle(&self) {
        if let Some(files) = &self.behind.files {
            // Done in the order in which it is asked for, so whatever came before is done by then.
            let none =
                TargetUri { scheme: Scheme::Http, authority: "example.com", path: "/no-such", query: None };
            assert!(!files.remove(&none).unwrap());
        }
        let Some(disks) = &self.behind.disks else { return };
        let until = Instant::now() + PATIENCE;
        while disks.usage().0.iter().any(|(_, usage)| usage.queued_bytes > 0 || usage.queued_objects > 0) {
            assert!(Instant::now() < until, "{:?}", disks.usage());
            std::thread::yield_now();
        }
    }

    /// From now on nothing is in memory that is on disks. What has a file has left memory by itself.
    pub(crate) fn empty_memory(&mut self) {
        if let Some(disks) = &self.behind.disks {
            self.store = Store::new(&memory(self.sizes), Some(Arc::clone(disks)));
        }
    }

    /// Ends it in good order, and starts it again.
    pub(crate) fn restart(&mut self) {
        let old = std::mem::replace(&mut self.store, Store::in_memory(&memory(self.sizes)));
        old.close();
        drop(old);
        self.behind = Behind::default();
        (self.store, self.behind) = open(self.kind, self.sizes, self.folder.path(), &self.clock);
    }

    /// Starts another on a copy of what lies on the disks at this moment, as a kill would leave it.
    pub(crate) fn crash(&mut self) {
        if self.kind == Kind::Files {
            // A copy of a file is not the file that was stored; the proofs kill a larder that has some.
            return self.restart();
        }
        let copied = tempfile::tempdir().unwrap();
        for disk in std::fs::read_dir(self.folder.path()).unwrap() {
            let disk = disk.unwrap();
            copy_folder(&disk.path(), &copied.path().join(disk.file_name()));
        }
        (self.store, self.behind) = open(self.kind, self.sizes, copied.path(), &self.clock);
        self.folder = copied;
    }

    /// Fetches a page: its body arrives, and where it is kept it goes into the index. `number` is that of the last
    /// invalidation when it began. Says whether it was stored.
    pub(crate) async fn put(&self, page: &Page, number: u64) -> bool {
        self.keep(page, page.head(&self.clock), number).await
    }

    /// The same with a head that came earlier.
    pub(crate) async fn insert(&self, page: &Page, head: Arc<StoredHead>) -> bool {
        self.keep(page, head, 0).await
    }

    async fn keep(&self, page: &Page, head: Arc<StoredHead>, number: u64) -> bool {
        let (body, key) = (page.body(), page.key());
        let declared = page.is_declared.then_some(body.len() as u64);
        let Some(streaming) = StreamingBody::keep(&self.store, &key, declared) else { return false };
        for at in (0..body.len()).step_by(PUSHED_BYTES) {
            let piece = body.slice(at..body.len().min(at + PUSHED_BYTES));
            if streaming.push(piece).await.is_err() {
                return false;
            }
        }
        let mut is_stored = false;
        let ended = streaming.finish(None, |whole| {
            let Some(room) = self.store.reserve(StoredResponse::overhead_bytes(&head, &key)) else { return };
            let response = Arc::new(StoredResponse::new(head, Arc::clone(whole), number, room));
            let identity = response.identity();
            is_stored = self.store.insert(&key, response, |old| old.identity() == identity, || true);
        });
        ended.await.is_ok() && is_stored
    }

    /// A 304 confirms `found`: the same body under the fields of `page`.
    pub(crate) fn confirm(&self, found: &Found, page: &Page, number: u64) -> bool {
        let (head, key) = (page.head(&self.clock), page.key());
        let Some(room) = self.store.reserve(StoredResponse::overhead_bytes(&head, &key)) else {
            return false;
        };
        let new = StoredResponse::new(head, Arc::clone(&found.stored.body), number, room);
        self.store.replace(&key, &found.stored, Arc::new(new), || true)
    }

    /// What is there for a client that prefers `flavour`.
    pub(crate) async fn find(&self, key: &CacheKey, flavour: Option<&'static str>) -> Option<Found> {
        let stored = self.look(key, flavour).await?;
        let length = stored.body.length();
        // Gone in this moment is a miss; whoever has begun to read is cut, or reads to the end.
        let content = stored.body.content(0..length)?;
        let body = self.collect(content, 0..length).await;
        let version = stored.head.fields.map.get("x-version").unwrap().to_str().unwrap().parse().unwrap();
        Some(Found { stored, version, body })
    }

    async fn look(&self, key: &CacheKey, flavour: Option<&'static str>) -> Option<Arc<StoredResponse>> {
        let in_memory = self.look_in_store(key, flavour).await;
        let received = |stored: &StoredResponse| stored.head.freshness.received.wall;
        match self.filed(key) {
            Some(file) if in_memory.as_ref().is_none_or(|newer| received(newer) < received(&file)) => {
                Some(file)
            }
            _ => in_memory,
        }
    }

    /// What a file stands for, as a request makes it of one.
    fn filed(&self, key: &CacheKey) -> Option<Arc<StoredResponse>> {
        let base = std::str::from_utf8(key.base()).unwrap();
        let (authority, path) = base.split_at(base.find('/')?);
        let is_https = key.variant().windows(5).any(|part| part == b"https");
        let scheme = if is_https { Scheme::Https } else { Scheme::Http };
        let request = RequestHead { scheme, ..Page::new(path, 0, 0).request() };
        assert_eq!((request.authority.as_str(), request.target.path()), (authority, path));
        match self.store.look_waiting(&request, &CachePolicy::default(), self.clock.now()) {
            Looked::Found(stored) => {
                assert!(!stored.body.is_by_hand(), "nobody put {path} there");
                Some(stored)
            }
            Looked::Absent | Looked::WouldWait => None,
        }
    }

    async fn look_in_store(
        &self,
        key: &CacheKey,
        flavour: Option<&'static str>,
    ) -> Option<Arc<StoredResponse>> {
        let fields = flavoured(flavour);
        let selects = |stored: &StoredResponse| stored.head.vary.selects(&fields);
        let now = self.clock.now();
        let in_memory = || match self.store.lookup(None, key, now.monotonic, selects) {
            Selection::Selected(held) => {
                let there = self.store.responses(key, now.monotonic).0;
                there.into_iter().find(|stored| Arc::ptr_eq(&stored.body, &held.body))
            }
            _ => None,
        };
        let there = in_memory();
        if let Some(gone) = there.as_ref().filter(|stored| !stored.body.is_there()) {
            self.store.remove_unusable(key, gone, Fate::Evicted);
        }
        match there.filter(|stored| stored.body.is_there()) {
            Some(stored) => Some(stored),
            None if self.store.may_recall(key) => {
                self.store.recall(key, false, now, selects).await;
                in_memory()
            }
            None => None,
        }
    }

    /// Bytes of a stored body; `None` where it was cut.
    pub(crate) async fn read(
        &self,
        stored: &Arc<StoredResponse>,
        range: std::ops::Range<u64>,
    ) -> Option<Bytes> {
        let content = stored.body.content(range.clone())?;
        self.collect(content, range).await
    }

    async fn collect(&self, content: Body, range: std::ops::Range<u64>) -> Option<Bytes> {
        let (start, end) = (range.start as usize, range.end as usize);
        match content {
            Body::Empty => Some(Bytes::new()),
            Body::Full(bytes) => Some(bytes),
            Body::Pieces { owner, .. } => Some(Bytes::from(owner.pieces().concat()).slice(start..end)),
            Body::Stream { stream, .. } => {
                let read = tokio::time::timeout(PATIENCE, stream.collect()).await.expect("a reader ends");
                read.ok().map(http_body_util::Collected::to_bytes)
            }
        }
    }

    /// Spoils what lies some way into each segment of the first so many disks.
    pub(crate) fn damage(&self, disks: usize) {
        use std::os::unix::fs::FileExt;
        for disk in 0..disks {
            for file in std::fs::read_dir(self.folder.path().join(disk.to_string())).unwrap() {
                let path = file.unwrap().path();
                if path.extension() == Some("seg".as_ref()) {
                    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                    file.write_all_at(&[0x55; 10_000], 300_000).unwrap();
                }
            }
        }
    }

    /// Whether the caps hold, in memory and on disks.
    pub(crate) fn check_caps(&self) {
        let memory = self.store.usage();
        assert!(memory.high_water_bytes <= self.sizes.memory, "{memory:?}");
        if let Some(files) = &self.behind.files {
            let usage = files.usage();
            assert!(usage.high_water_bytes <= self.sizes.disk, "{usage:?}");
            let taken = taken(self.folder.path());
            assert!(taken <= self.sizes.disk, "{taken}: {usage:?}");
        }
        let Some(disks) = &self.behind.disks else { return };
        for (path, usage) in disks.usage().0 {
            assert!(usage.high_water_bytes <= self.sizes.disk, "{usage:?}");
            let taken = taken(&path);
            assert!(taken <= self.sizes.disk, "{} takes {taken}: {usage:?}", path.display());
        }
    }
}

fn memory(sizes: Sizes) -> MemoryStoreSettings {
    MemoryStoreSettings { memory: sizes.memory, max_object: sizes.memory / 4 }
}

fn open(kind: Kind, sizes: Sizes, folder: &Path, clock: &Clock) -> (Arc<Store>, Behind) {
    let (layout, count) = match kind {
        Kind::Memory => return (Store::in_memory(&memory(sizes)), Behind::default()),
        Kind::Disks(layout, count) => (layout, count),
        Kind::Files => return open_files(sizes, folder),
    };
    let disk = |number: usize| {
        let path = folder.join(number.to_string());
        let settings =
            DiskSettings { path, size: DiskSize::Bytes(sizes.disk), idle: None, files: Default::default() };
        Disk::open_with(settings, clock.clone()).unwrap()
    };
    let disks = Disks::new(layout, (0..count).map(disk).collect(), sizes.max_object);
    let store = Store::new(&memory(sizes), Some(Arc::clone(&disks)));
    (store, Behind { disks: Some(disks), files: None })
}

fn open_files(sizes: Sizes, folder: &Path) -> (Arc<Store>, Behind) {
    let settings = FilesSettings {
        max_object: sizes.max_object,
        ..FilesSettings::new(folder.join("files"), sizes.disk)
    };
    let files = FileStore::open(&settings).unwrap();
    let until = Instant::now() + PATIENCE;
    while !files.usage().is_counted {
        assert!(Instant::now() < until, "{:?}", files.usage());
        std::thread::yield_now();
    }
    let store = Store::new(&memory(sizes), Some(Arc::clone(&files)));
    (store, Behind { disks: None, files: Some(files) })
}

/// The journal first: it is ahead of everything else. Then segments from the last to the first. A disk that runs on gives up the
/// first: were that copied, and what covers it in a later one not, the copy would have what no crash leaves.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (journals, others): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|path| path.extension() == Some("journal".as_ref()));
    for path in journals.iter().chain(others.iter().rev()) {
        // Whatever is gone by now a crash would not have left either.
        let _ = std::fs::copy(path, to.join(path.file_name().unwrap()));
    }
}

/// What the files of a folder take, in bytes.
fn taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    // A file may go while it is being looked at, and its folder with it.
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let take = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => taken(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(take).sum()
}
