//! A store of plain files as a tier, which is asked before memory: the file system is the truth.
//!
//! In: what a store asks of a tier. Out: files, found and written. What is stored in them, and how a response gets there, is in
//! `keep`; how a file is told to people, in `told`.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use larder_cache::{CachePolicy, StoredHead};
use larder_http::body::Stream;
use larder_http::message::{RequestHead, Scheme};
use larder_http::time::Now;
use larder_tier::backlog::Backlog;
use larder_tier::entry::Memo;
use larder_tier::fill::BoxFuture;
use larder_tier::note::Needed;
use larder_tier::tier::{
    Admit, CountRemoved, DirectoryFigures, Failure, TierCaps, TierEvent, WantedHosts, Written,
};
use larder_tier::{
    Ask, BodySource, CacheKey, Candidate, Find, Invalidate, Loaded, LoadedContent, Look as TierLook, Note,
    Opened, Run, TargetUri, Unreadable, VocabularyOf,
};

use super::fill::FilledBody;
use super::hit::{FileHit, FileStamp, Source, freshness_by_hand};
use super::reader::{FileContent, FileReader};
use super::{FileStore, FilesError, Look, events, metrics};

/// The rules of caching, as [`larder_cache`] has them.
pub(super) type HttpCaching = VocabularyOf<StoredHead, CachePolicy>;

impl From<Look> for TierLook<HttpCaching> {
    fn from(look: Look) -> Self {
        match look {
            Look::Found(hit) => Self::Found(hit),
            Look::Absent => Self::Absent,
            Look::WouldBlock => Self::WouldWait,
        }
    }
}

impl Find<HttpCaching> for FileStore {
    fn is_before_memory(&self) -> bool {
        true
    }

    fn look(&self, uri: &TargetUri<'_>) -> TierLook<HttpCaching> {
        self.look_to_send(uri).into()
    }

    fn may_have(&self, uri: &TargetUri<'_>) -> bool {
        !matches!(Self::look(self, uri), Look::Absent)
    }

    fn look_waiting(&self, uri: &TargetUri<'_>) -> TierLook<HttpCaching> {
        self.look_blocking(uri).map_or(TierLook::Absent, |hit| TierLook::Found(hit))
    }
}

impl Ask<HttpCaching> for FileStore {}

impl Opened<HttpCaching> for FileHit {
    fn number(&self) -> u64 {
        match Self::source(self) {
            Source::Stored(meta) => meta.number,
            Source::ByHand(_) => 0,
        }
    }

    fn took(&self) -> Duration {
        match Self::source(self) {
            Source::Stored(meta) => meta.took,
            Source::ByHand(_) => Duration::ZERO,
        }
    }

    fn head(&self, request: &RequestHead, policy: &CachePolicy, now: Now) -> StoredHead {
        let source = Self::source(self);
        let freshness = match source {
            Source::Stored(meta) => meta.times.freshness(now),
            Source::ByHand(_) => freshness_by_hand(now),
        };
        let head = StoredHead::new(request, StatusCode::OK, self.fields().clone(), freshness, policy);
        let (mut caution, mut relieved, mut template) = (head.caution, head.relieved, head.template);
        if let Source::Stored(meta) = source {
            caution.older_rules = meta.older && freshness.source.is_assumed();
            relieved = meta.relieved.clone().and(&relieved);
            // It was none when it came, or it would be no file.
            template = None;
        }
        // A file is the same for everybody: what varies by more than the coding of plain content is not stored as one.
        StoredHead { vary: Default::default(), caution, relieved, template, ..head }
    }

    fn whole(&self) -> Option<&Bytes> {
        Self::whole(self)
    }

    fn body(self: Arc<Self>) -> Arc<dyn BodySource> {
        // What is here holds a share of the bytes, not of this.
        match Self::whole(&self) {
            Some(_) => Arc::new(self.stamp()),
            None => self,
        }
    }

    fn path(&self) -> PathBuf {
        OsStr::from_bytes(Self::path(self)).into()
    }

    fn memo(&self) -> Option<&Memo> {
        Self::memo(self)
    }
}

impl BodySource for FileHit {
    fn length(&self) -> u64 {
        self.size()
    }

    fn reader(self: Arc<Self>, range: Range<u64>) -> Option<Stream> {
        Some(Box::pin(FileReader::new(FileContent::Found(self), range)))
    }

    fn is_a_file(&self) -> bool {
        true
    }

    fn is_by_hand(&self) -> bool {
        matches!(Self::source(self), Source::ByHand(_))
    }
}

impl BodySource for FileStamp {
    fn length(&self) -> u64 {
        self.size()
    }

    fn reader(self: Arc<Self>, _range: Range<u64>) -> Option<Stream> {
        None
    }

    fn is_a_file(&self) -> bool {
        true
    }

    fn is_by_hand(&self) -> bool {
        Self::is_by_hand(self)
    }
}

impl BodySource for FilledBody {
    fn length(&self) -> u64 {
        Self::length(self)
    }

    fn reader(self: Arc<Self>, range: Range<u64>) -> Option<Stream> {
        let content = FileContent::Written(Arc::clone(self.content()));
        Some(Box::pin(FileReader::new(content, range)))
    }
}

/// The file of a listed entry.
#[derive(Debug)]
pub(super) struct ListedFile {
    pub(super) store: Arc<FileStore>,
    pub(super) key: CacheKey,
    pub(super) scheme: Scheme,
    /// That of its meta.
    pub(super) number: u64,
}

impl Candidate for ListedFile {
    fn load<'a>(&'a self, _key: &'a CacheKey) -> BoxFuture<'a, Result<Loaded, Unreadable>> {
        let (store, key, scheme) = (Arc::clone(&self.store), self.key.clone(), self.scheme);
        let open = move || store.open_unused(&TargetUri::of_base(&key, scheme)?);
        Box::pin(async move {
            let file = tokio::task::spawn_blocking(open).await.ok().flatten().ok_or(Unreadable::ForGood)?;
            let content = match file.whole() {
                Some(whole) => LoadedContent::Inline(whole.clone()),
                None => LoadedContent::Source(file),
            };
            Ok(Loaded { number: 0, identity: 0, head: Bytes::new(), content })
        })
    }

    fn is_held(&self) -> bool {
        true
    }

    fn note_use(&self) {}

    /// Not what people put there. It is written down, so that it is not used again where it cannot be removed.
    fn forget(&self) {
        if let Some(uri) = TargetUri::of_base(&self.key, self.scheme) {
            self.store.purge_below(&uri, self.number.saturating_add(1));
        }
    }
}

impl Invalidate for FileStore {
    fn invalidate_behind(&self, key: &CacheKey, number: u64, is_purge: bool) {
        match (TargetUri::of_base(key, Scheme::Http), is_purge) {
            (Some(uri), true) => self.purge_below(&uri, number),
            (Some(uri), false) => self.invalidate_below(&uri, number),
            (None, _) => {}
        }
    }

    fn has_base(&self, _key: &CacheKey) -> bool {
        true
    }

    fn note_base(&self, key: &CacheKey, note: &Note) {
        if let Some(uri) = TargetUri::of_base(key, Scheme::Http) {
            self.invalidate_below(&uri, note.number);
        }
    }

    fn note(&self, note: &Note) {
        Self::note(self, note);
    }

    fn mark(&self, note: &Note) {
        Self::mark(self, note);
    }

    fn written(&self) -> Written {
        Self::written(self)
    }

    fn is_behind(&self) -> bool {
        Self::is_behind(self)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let syncing = self.syncing();
        Box::pin(async move {
            let synced = tokio::task::spawn_blocking(syncing).await.map_err(Failure::from)?;
            synced.map_err(Failure::from)
        })
    }

    fn has_apart(&self, uri: &TargetUri<'_>) -> bool {
        let has = |scheme| self.look_blocking(&TargetUri { scheme, ..*uri }).is_some();
        has(Scheme::Http) || has(Scheme::Https)
    }

    fn purge(&self, uri: &TargetUri<'_>) -> Result<bool, Failure> {
        match self.remove(uri) {
            Err(FilesError::Unnameable(_)) => Ok(false),
            removed => removed.map_err(Into::into),
        }
    }

    fn purge_tree(
        &self,
        path: &str,
        wanted: &Arc<WantedHosts>,
        removed: &Arc<CountRemoved>,
    ) -> Result<(), Failure> {
        self.remove_below(path, wanted, removed).map_err(Into::into)
    }
}

impl Run for FileStore {
    fn has_directories(&self) -> bool {
        true
    }

    fn look_ahead(&self, look: &mut dyn FnMut(u64, &[Note])) {
        if let Some(in_use) = self.in_use.load().as_ref() {
            let notes = std::mem::take(&mut *in_use.notes.lock());
            look(in_use.shared.journal.reached(), &notes);
            *in_use.notes.lock() = notes;
        }
    }

    fn open(&self, admit: &Arc<Admit>, is_believed: bool) {
        let mut notes = self.notes();
        if !is_believed {
            // Only its numbers count.
            notes.clear();
        }
        let is_admitted = admit(self.last_number(), notes).is_some();
        if !(is_believed && is_admitted) {
            self.distrust();
        }
        let admit = Arc::clone(admit);
        self.tell_of_returns(Arc::new(move |last, notes| admit(last, notes).is_some()));
    }

    fn settle(&self) -> bool {
        Self::flush(self)
    }

    fn take_stock_by(&self, needed: &Arc<Needed>) {
        self.base.stock.ask(needed);
    }

    fn stop_taking_stock(&self) {
        self.base.stock.stop();
    }

    fn take_stock(&self) {
        if let Some(in_use) = self.in_use.load().as_ref() {
            in_use.shared.journal.take_stock();
        }
    }

    fn borrow_from(&self, backlog: &Arc<Backlog>) {
        Self::borrow_from(self, backlog);
    }

    fn limit_files(&self, files: usize) {
        Self::limit_files(self, files);
    }

    fn resize(&self, caps: &TierCaps) {
        Self::resize(self, caps.bytes, caps.files, caps.max_object);
    }

    fn close(&self) {
        Self::close(self);
    }

    fn figures(&self) -> Vec<DirectoryFigures> {
        let usage = self.usage();
        vec![DirectoryFigures {
            path: self.directory().to_owned(),
            tier: "files",
            label: "directory",
            state: usage.state(),
            is_failing: usage.is_failing,
            bytes: usage.bytes,
            objects: usage.files,
            max_bytes: usage.max_bytes,
            high_water_bytes: usage.high_water_bytes,
            queued_bytes: usage.queued_bytes,
            refused: usage.refused_by_reason().collect(),
            for_each: Box::new(move |visit| metrics::for_each(&usage, visit)),
        }]
    }

    fn take_event(&self, store: &str) -> Option<TierEvent> {
        events::take(self, store)
    }
}
