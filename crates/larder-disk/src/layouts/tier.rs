//! The disks of a store as a tier behind its memory.
//!
//! In: what a store asks of a tier. Out: what the disks make of it. The head of a response is bytes here, and of any type before.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use larder_http::body::Stream;
use larder_http::time::Now;
use larder_tier::backlog::Backlog;
use larder_tier::cursor::NoCursor;
use larder_tier::fill::{BoxFuture, StoredChunk};
use larder_tier::note::Needed;
use larder_tier::tier::{
    Admit, DirectoryFigures, Failure, ListedEntry, ListedHead, TierCaps, TierEvent, TierPage,
};
use larder_tier::{
    Ask, BodySource, CacheKey, Candidate, Entry, Fill, Find, HeldBack, Inspect, Invalidate, Keep, Loaded,
    LoadedContent, Note, Run, Unreadable, Vocabulary,
};
use smallvec::SmallVec;

use super::body::DiskPieces;
use super::fill::DiskFill;
use super::listing::{DisksCursor, ListedRecord};
use super::records::RecordBody;
use super::{DiskCandidate, Disks, events, metrics};
use crate::engine;

/// Records whose heads are read for one page.
const RECORDS_MAX: usize = 128;

impl<V: Vocabulary> Keep<V> for Disks {
    fn takes(&self, _key: &CacheKey, _head: Option<&V::Head>) -> bool {
        true
    }

    fn max_object(&self) -> u64 {
        Self::max_object(self)
    }

    fn begin_fill(self: Arc<Self>, key: &CacheKey, declared: Option<u64>) -> Option<Box<dyn Fill>> {
        Some(Box::new(Self::begin_fill(&self, key, declared)?))
    }

    fn fill_up(
        self: Arc<Self>,
        part: &dyn BodySource,
        numbers: &[usize],
        each: &mut dyn FnMut(usize, Arc<dyn StoredChunk>),
    ) -> Option<Box<dyn Fill>> {
        let part = part.of::<DiskPieces>().filter(|part| Arc::ptr_eq(part.disks(), &self))?;
        let fill = DiskFill::of_part(part, numbers)?;
        for number in numbers {
            each(*number, fill.chunk(*number)?);
        }
        Some(Box::new(fill))
    }

    fn put(self: Arc<Self>, entry: &Entry<'_, V::Head>) {
        Self::put(&self, entry);
    }

    fn remove(&self, key: &CacheKey, identity: u64) {
        Self::remove(self, key, identity);
    }

    fn forget(&self, key: &CacheKey, identity: u64) {
        Self::remove(self, key, identity);
        Self::write_journals(self);
    }
}

impl<V: Vocabulary> Find<V> for Disks {
    fn has(&self, key: &CacheKey) -> bool {
        Self::has(self, key)
    }

    fn settle_versions(self: Arc<Self>, key: &CacheKey) -> BoxFuture<'_, ()> {
        Box::pin(async move { Self::settle_versions(&self, key).await })
    }

    fn candidates(self: Arc<Self>, key: &CacheKey) -> Vec<Box<dyn Candidate>> {
        let found = Self::candidates(&self, key).into_iter();
        found.map(|at| Box::new(OnDisk { disks: Arc::clone(&self), at }) as Box<dyn Candidate>).collect()
    }

    fn note_use_at(&self, base: &[u8], variant: &[u8]) {
        Self::note_use_at(self, base, variant);
    }
}

impl<V: Vocabulary> Ask<V> for Disks {}

/// What one of the disks may have.
struct OnDisk {
    disks: Arc<Disks>,
    at: DiskCandidate,
}

impl fmt::Debug for OnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

impl Candidate for OnDisk {
    fn load<'a>(&'a self, key: &'a CacheKey) -> BoxFuture<'a, Result<Loaded, Unreadable>> {
        Box::pin(async move {
            let loaded = self.disks.load(key, &self.at).await;
            let mut loaded = loaded.map_err(|error| match error.is_lasting() {
                true => Unreadable::ForGood,
                false => Unreadable::ForNow,
            })?;
            self.disks.add_copies(key, &self.at, &mut loaded).await;
            let content = match loaded.content {
                RecordBody::Inline(bytes) => LoadedContent::Inline(bytes),
                RecordBody::Pieces(pieces) => LoadedContent::Source(Arc::from(pieces as Box<dyn BodySource>)),
            };
            let (number, identity) = (loaded.number, loaded.identity);
            Ok(Loaded { number, identity, head: loaded.head, content })
        })
    }

    fn is_held(&self) -> bool {
        self.disks.holds(&self.at)
    }

    fn note_use(&self) {
        self.disks.note_use(&self.at);
    }

    fn forget(&self) {
        self.disks.forget(&self.at);
    }
}

impl BodySource for DiskPieces {
    fn length(&self) -> u64 {
        Self::length(self)
    }

    fn reader(self: Arc<Self>, range: Range<u64>) -> Option<Stream> {
        Some(Box::pin(Self::reader(&self, range)?))
    }

    fn is_there(&self) -> bool {
        Self::is_there(self)
    }

    fn has_moved(&self) -> bool {
        Self::has_moved(self)
    }

    fn chunks(&self) -> usize {
        self.count()
    }

    fn promotable_as(&self) -> Option<&CacheKey> {
        Some(self.key())
    }
}

impl Invalidate for Disks {
    fn take_out(&self, key: &CacheKey, number: u64) -> u64 {
        Self::invalidate(self, key, number)
    }

    fn write_journals(&self) {
        Self::write_journals(self);
    }

    fn has_base(&self, key: &CacheKey) -> bool {
        Self::has_base(self, key)
    }

    fn note_base(&self, key: &CacheKey, note: &Note) {
        Self::note_base(self, key, note);
    }

    fn note(&self, note: &Note) {
        Self::note(self, note);
    }

    fn mark(&self, note: &Note) {
        Self::mark(self, note);
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { Self::sync(self).await.map_err(Into::into) })
    }
}

impl<V: Vocabulary> Inspect<V> for Disks {
    fn letter(&self) -> char {
        DisksCursor::LETTER
    }

    fn first_page(&self) -> String {
        DisksCursor::default().to_string()
    }

    fn page(
        self: Arc<Self>,
        from: &str,
        most: usize,
        _now: Now,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<TierPage<V::Head>, NoCursor> {
        let from = from.parse()?;
        let page = Self::page(&self, from, most.min(RECORDS_MAX), wanted);
        Ok(TierPage {
            entries: page.kept.into_iter().map(|record| self.listed(record)).collect(),
            unreadable: page.unreadable,
            unseen: 0,
            next: page.next.map(|next| next.to_string()),
        })
    }

    fn every_page(
        self: Arc<Self>,
        from: &str,
        most: usize,
        _now: Now,
    ) -> Result<TierPage<V::Head>, NoCursor> {
        let page = Self::every_page(&self, from.parse()?, most.min(RECORDS_MAX));
        Ok(TierPage {
            entries: page.kept.into_iter().map(|record| self.listed(record)).collect(),
            unreadable: page.unreadable,
            unseen: page.unseen,
            next: page.next.map(|next| next.to_string()),
        })
    }

    fn under(self: Arc<Self>, key: &CacheKey, _now: Now) -> Vec<ListedEntry<V::Head>> {
        Self::under(&self, key).into_iter().map(|record| self.listed(record)).collect()
    }

    fn lists(&self, key: &CacheKey, identity: u64) -> bool {
        Self::lists(self, key, identity)
    }

    fn folders_of(&self, key: &CacheKey, identity: u64) -> SmallVec<[PathBuf; 2]> {
        Self::folders_of(self, key, identity)
    }

    fn directories(&self) -> Vec<PathBuf> {
        self.disks().map(|disk| disk.path().to_owned()).collect()
    }

    fn would_hold_back(&self, key: &CacheKey, _head: &V::Head) -> Option<HeldBack> {
        self.refuses(key).map(held_back)
    }

    fn holds_back(&self, key: &CacheKey, _head: &V::Head, identity: u64) -> Option<HeldBack> {
        if !Self::folders_of(self, key, identity).is_empty() {
            return None;
        }
        if self.disks().any(|disk| disk.awaits(&disk.address(key), identity)) {
            return Some(HeldBack::QUEUED);
        }
        Some(self.refuses(key).map_or(NOT_TAKEN, held_back))
    }
}

const NOT_TAKEN: HeldBack = HeldBack {
    token: "not-taken",
    sentence: std::borrow::Cow::Borrowed(
        "No disk has it: none took it when it came, or it went with what it lay in.",
    ),
};

fn held_back(why: engine::Refused) -> HeldBack {
    let sentence = match why {
        engine::Refused::NoRoom => "The disk has no room: it stays in memory.",
        _ => "The disk has failed and is left alone for a while: it stays in memory.",
    };
    HeldBack { token: why.token(), sentence: sentence.into() }
}

impl Disks {
    fn listed<H>(self: &Arc<Self>, listed: ListedRecord) -> ListedEntry<H> {
        let ListedRecord { key, record, at } = listed;
        ListedEntry {
            key,
            origin: None,
            identity: Some(record.identity),
            head: ListedHead::Bytes(record.head),
            body_bytes: record.content_bytes,
            number: record.number,
            file: None,
            at: Box::new(OnDisk { disks: Arc::clone(self), at }),
        }
    }

    /// Why no disk would take anything under `key` at this moment.
    fn refuses(&self, key: &CacheKey) -> Option<engine::Refused> {
        let homes = self.homes(key);
        let mut why = Some(engine::Refused::Failing);
        for disk in homes.into_iter().filter_map(|home| self.disk(home)) {
            why = Some(disk.refuses()?);
        }
        why
    }
}

impl Run for Disks {
    fn has_directories(&self) -> bool {
        true
    }

    fn look_ahead(&self, look: &mut dyn FnMut(u64, &[Note])) {
        Self::look_ahead(self, look);
    }

    fn open(&self, admit: &Arc<Admit>, is_believed: bool) {
        self.open_all(&**admit, is_believed);
    }

    fn try_absent(self: Arc<Self>, admit: &Arc<Admit>) {
        Self::try_absent(&self, admit);
    }

    fn settle(&self) -> bool {
        // All of them are asked.
        self.disks().filter(|disk| !disk.settle()).count() == 0
    }

    fn take_stock_by(&self, needed: &Arc<Needed>) {
        Self::take_stock_by(self, needed);
    }

    fn stop_taking_stock(&self) {
        self.disks().for_each(|disk| disk.stop_taking_stock());
    }

    fn take_stock(&self) {
        self.disks().for_each(|disk| disk.take_stock());
    }

    fn borrow_from(&self, backlog: &Arc<Backlog>) {
        Self::borrow_from(self, backlog);
    }

    fn limit_files(&self, files: usize) {
        Self::limit_files(self, files);
    }

    fn resize(&self, caps: &TierCaps) {
        Self::resize(self, caps.max_object);
    }

    fn close(&self) {
        Self::close(self);
    }

    fn figures(&self) -> Vec<DirectoryFigures> {
        let of = |(path, usage): (PathBuf, engine::DiskUsage)| DirectoryFigures {
            path,
            tier: "disk",
            label: "disk",
            state: usage.state(),
            is_failing: usage.is_failing,
            bytes: usage.allocated_bytes,
            objects: usage.objects,
            max_bytes: usage.max_bytes,
            high_water_bytes: usage.high_water_bytes,
            queued_bytes: usage.queued_bytes,
            refused: usage.refused.by_reason().collect(),
            for_each: Box::new(move |visit| metrics::for_each(&usage, visit)),
        };
        self.usage().0.into_iter().map(of).collect()
    }

    fn take_event(&self, store: &str) -> Option<TierEvent> {
        events::take(self, store)
    }

    fn findings(&self) -> Vec<String> {
        let found = self.disks().flat_map(|disk| disk.findings());
        found.map(ToString::to_string).collect()
    }
}
