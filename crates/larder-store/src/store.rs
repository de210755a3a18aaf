//! A store as its users see it: memory in front, and what stands behind it.
//!
//! In: responses, keys, bodies that arrive. Out: what a look-up may use. A look-up is a plain call and sees memory only;
//! what memory does not have and a disk may is fetched by [`Store::recall`], which waits, within a bound, and puts what
//! it finds into memory (promotion on use), so that the next look-up has it.
//! A store of plain files has those behind its memory in place of disks (`filed`); who looks up asks the file
//! system first.
//! Whatever is stored is written through: to memory at once, to the disks through their queues. Where a disk takes it not,
//! it is in memory alone, and the disk forgets what it had in its place.
//! Deliberately absent: which disk has what, and how it lies there (see [`crate::disks`]).

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larder_cache::{Fit, StoredHead};
use larder_http::message::Scheme;
use larder_http::time::Now;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::budget::Reservation;
use crate::disks::{DiskFill, Disks, DisksUsage};
use crate::filed;
use crate::files::{FileFill, FileStore, Look, TargetUri, Written};
use crate::key::CacheKey;
use crate::memory::{HotCache, Lookup, MemoryStore, MemoryStoreSettings, Usage};
use crate::recall::{Gate, Recalled};
use crate::stored::{StoredBody, StoredResponse};
use larder_tier::Note;
use larder_tier::backlog::Backlog;

/// A store. Shared by all workers; every method may be called from any of them.
#[derive(Debug)]
pub struct Store {
    memory: Arc<MemoryStore>,
    disks: Option<Arc<Disks>>,
    files: Option<Arc<FileStore>>,
    gate: Gate,
    /// What waits to be written, beyond what the queues have of their own.
    backlog: Arc<Backlog>,
    /// When memory was last looked through for what is idle (monotonic). Held for the length of a sweep.
    swept: Mutex<Option<Duration>>,
    /// Which shard's uses are told to the disks next.
    turn: AtomicUsize,
}

/// Sweeps in which nobody has asked for it before something is idle.
const IDLE_SWEEPS: u8 = 4;

impl Store {
    /// Memory alone.
    pub fn in_memory(settings: &MemoryStoreSettings) -> Arc<Self> {
        Self::new(settings, None)
    }

    /// Memory in front of `disks`, where there are any.
    pub fn new(settings: &MemoryStoreSettings, disks: Option<Arc<Disks>>) -> Arc<Self> {
        Self::in_front_of(settings, disks, None)
    }

    /// Memory in front of plain files.
    pub fn of_files(settings: &MemoryStoreSettings, store: Arc<FileStore>) -> Arc<Self> {
        Self::in_front_of(settings, None, Some(store))
    }

    fn in_front_of(
        settings: &MemoryStoreSettings,
        disks: Option<Arc<Disks>>,
        files: Option<Arc<FileStore>>,
    ) -> Arc<Self> {
        let memory = MemoryStore::new(settings);
        let backlog = Backlog::of(&memory);
        disks.iter().for_each(|disks| disks.borrow_from(&backlog));
        files.iter().for_each(|files| files.borrow_from(&backlog));
        Arc::new(Self {
            memory,
            disks,
            files,
            backlog,
            gate: Gate::default(),
            swept: Mutex::default(),
            turn: AtomicUsize::new(0),
        })
    }

    /// The plain files, where it has those.
    #[inline]
    pub fn files(&self) -> Option<&Arc<FileStore>> {
        self.files.as_ref()
    }

    /// Whether a file may lie under `key`. Never waits.
    pub fn may_have_file(&self, key: &CacheKey) -> bool {
        let look = |files: &Arc<FileStore>| Some(files.look(&TargetUri::of_key(key)?));
        self.files().and_then(look).is_some_and(|look| !matches!(look, Look::Absent))
    }

    /// What is in memory.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// Whether it goes on without a disk, or without its directory of files: it is absent, or left alone because it failed.
    pub fn is_degraded(&self) -> bool {
        let disks = self.disks_usage().is_some_and(|usage| usage.0.iter().any(|(_, disk)| disk.is_failing));
        disks || self.files().is_some_and(|files| files.usage().is_failing)
    }

    /// What is behind it.
    pub fn disks(&self) -> Option<&Arc<Disks>> {
        self.disks.as_ref()
    }

    /// To be called every second. Tells the disks what is in use, shard after shard, since hits in memory do not reach them;
    /// and takes out of memory what nobody has asked for during `idle`, or a quarter of that more, which disks do by
    /// themselves.
    pub fn tend(&self, idle: Option<Duration>, now: Now) {
        if let Some(disks) = &self.disks {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            self.memory.used_in(turn, |base, variant| disks.note_use_at(base, variant));
        }
        let Some(idle) = idle else { return };
        let mut swept = self.swept.lock();
        let last = *swept.get_or_insert(now.monotonic);
        if now.monotonic.saturating_sub(last) >= idle / u32::from(IDLE_SWEEPS) {
            *swept = Some(now.monotonic);
            self.memory.sweep_idle(IDLE_SWEEPS);
        }
    }

    /// From now on it may have so many files open, beside those that send hot bodies and those that clients read from.
    pub fn limit_files(&self, files: usize) {
        self.disks.iter().for_each(|disks| disks.limit_files(files));
        self.files.iter().for_each(|store| store.limit_files(files));
    }

    /// Takes over new sizes of what is kept in memory, and evicts down to a lower cap.
    pub fn resize(&self, settings: &MemoryStoreSettings) {
        self.memory.resize(settings);
        self.backlog.resize(settings.memory);
    }

    /// The largest body taken, in bytes; of responses that no plain file can stand for fewer are.
    pub fn max_object(&self) -> u64 {
        self.max_object_of(self.files.is_some())
    }

    /// The largest body taken of a response with this head, in bytes.
    pub fn max_object_for(&self, key: &CacheKey, head: &StoredHead) -> u64 {
        self.max_object_of(self.keeps_as_file(key, head))
    }

    /// The largest body taken, in bytes, of a response that may be a plain file, or may not.
    pub(crate) fn max_object_of(&self, may_be_file: bool) -> u64 {
        let of_files = self.files().filter(|_| may_be_file).map_or(0, |files| files.max_object());
        let of_disks = self.disks.as_ref().map_or(0, |disks| disks.max_object());
        of_disks.max(of_files).max(self.memory.max_object())
    }

    /// Whether a response with this head is kept as a plain file.
    pub fn keeps_as_file(&self, key: &CacheKey, head: &StoredHead) -> bool {
        self.files.is_some() && filed::may_be_file(key, head)
    }

    /// See [`MemoryStore::lookup`].
    #[inline]
    pub fn lookup(
        &self,
        hot: Option<&HotCache>,
        key: &CacheKey,
        now: Duration,
        selects: impl Fn(&StoredResponse) -> bool,
    ) -> Lookup {
        self.memory.lookup(hot, key, now, selects)
    }

    /// See [`MemoryStore::lookup_best`].
    #[inline]
    pub fn lookup_best(
        &self,
        hot: Option<&HotCache>,
        key: &CacheKey,
        now: Duration,
        fit: impl Fn(&StoredResponse) -> Option<Fit>,
        is_fresh: impl Fn(&StoredResponse) -> bool,
    ) -> Lookup {
        self.memory.lookup_best(hot, key, now, fit, is_fresh)
    }

    /// Whether a disk may have what memory has not: something lies there under the key.
    pub fn may_recall(&self, key: &CacheKey) -> bool {
        self.disks.as_ref().is_some_and(|disks| disks.has(key))
    }

    /// Looks on the disks for responses under `key` for which `selects` holds, and puts what is found into memory: the newest
    /// of them, or with `all` each. Waits for at most one second; those who ask for the same key at the same
    /// time wait for one.
    ///
    /// # Cancel safety
    /// Dropped, nothing has happened, or what was found is in memory.
    pub async fn recall(
        &self,
        key: &CacheKey,
        all: bool,
        now: Now,
        selects: impl Fn(&StoredResponse) -> bool,
    ) -> Recalled {
        match &self.disks {
            None => Recalled::Nothing,
            Some(disks) => {
                crate::recall::recall((&self.memory, disks, &self.gate), key, all, now, selects).await
            }
        }
    }

    /// See [`MemoryStore::reserve`].
    pub fn reserve(&self, bytes: u64) -> Option<Reservation> {
        self.memory.reserve(bytes)
    }

    /// Where the pieces of a body under `key` go while it arrives; `None` where it is for memory alone, or no disk takes it.
    pub(crate) fn begin_fill(&self, key: &CacheKey, declared: Option<u64>) -> Option<DiskFill> {
        self.disks.as_ref()?.begin_fill(key, declared)
    }

    /// The same for a plain file.
    pub(crate) fn begin_file(&self, key: &CacheKey, declared: Option<u64>) -> Option<FileFill> {
        self.files()?.begin(&TargetUri::of_key(key)?, declared).ok()
    }

    /// See [`MemoryStore::insert`]; what was stored is written to the disks, or as a file. False also where the file cannot be
    /// written.
    pub fn insert(
        &self,
        key: &CacheKey,
        response: Arc<StoredResponse>,
        replaces: impl Fn(&StoredResponse) -> bool,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        if self.files().is_some_and(|files| filed::is_outdated(files, key, &response)) {
            return false;
        }
        let written = Arc::clone(&response);
        let is_stored = match &self.disks {
            None => self.memory.insert(key, response, replaces, valid),
            // Under the shard's lock, as the check is: an invalidation comes before both or after both.
            Some(disks) => {
                // What goes from memory goes from the disks, also where it is told apart by another Vary: it would be back
                // at the next recall. Asked of memory's items again once it is certain that they go.
                let goes_for_good = Cell::new(false);
                let replaces = |old: &StoredResponse| {
                    let goes = replaces(old);
                    if goes && goes_for_good.get() {
                        forget_other(disks, key, old, &written);
                    }
                    goes
                };
                let valid = || {
                    let is_valid = put_if(valid(), disks, key, &written);
                    goes_for_good.set(is_valid);
                    is_valid
                };
                let is_stored = self.memory.insert(key, response, replaces, valid);
                disks.write_journals();
                is_stored
            }
        };
        let to_files = self.files().filter(|_| is_stored);
        is_stored && to_files.is_none_or(|files| filed::put(files, &self.memory, key, &written))
    }

    /// See [`MemoryStore::replace`].
    pub fn replace(
        &self,
        key: &CacheKey,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        if let Some(files) = self.files() {
            // What is replaced is in memory, on its way to be a file too, or is that very file.
            let (there, _) = self.memory.responses(key, Duration::ZERO);
            let in_memory = there.iter().find(|other| other.identity() == old.identity());
            let is_replaced = match in_memory {
                Some(other) => !Arc::ptr_eq(&other.body, &old.body),
                None => filed::is_replaced(files, key, old),
            };
            if is_replaced {
                return false;
            }
            return self.insert(key, new, |other| Arc::ptr_eq(&other.body, &old.body), valid);
        }
        let Some(disks) = &self.disks else {
            return self.memory.replace(key, old, new, valid);
        };
        let written = Arc::clone(&new);
        let is_replaced = self.memory.replace(key, old, new, || {
            let is_valid = put_if(valid(), disks, key, &written);
            if is_valid {
                forget_other(disks, key, old, &written);
            }
            is_valid
        });
        disks.write_journals();
        is_replaced
    }

    /// Takes one response out of the index, where it still is.
    pub fn remove(&self, key: &CacheKey, response: &Arc<StoredResponse>) {
        // The disks first: what is recalled meanwhile finds that it is not there any more. Files last: what is in memory
        // still may be on its way to one.
        if self.disks.is_some() {
            self.forget(key, response);
        }
        self.memory.remove(key, response);
        if self.files.is_some() {
            self.forget(key, response);
        }
    }

    /// Takes one response out that a look found and cannot use. Where its body is not where it was on its disks any more, out of
    /// memory alone: if it was in use it lies elsewhere there now, and the disks know where.
    pub fn remove_unusable(&self, key: &CacheKey, response: &Arc<StoredResponse>) {
        match response.body.has_moved() {
            true => self.memory.remove(key, response),
            false => self.remove(key, response),
        }
    }

    /// What disks or files have of the identity of `response` goes: it lies elsewhere now, or nowhere.
    pub fn forget(&self, key: &CacheKey, response: &StoredResponse) {
        if let Some(disks) = &self.disks {
            disks.remove(key, response);
            disks.write_journals();
        }
        if let (Some(files), Some(uri)) = (self.files(), TargetUri::of_key(key))
            && !key.has_more_parts()
        {
            files.invalidate(&uri);
        }
    }

    /// What is still to be written to the disks is written, within ten seconds for each.
    pub fn close(&self) {
        if let Some(disks) = &self.disks {
            disks.close();
        }
        if let Some(files) = self.files() {
            files.close();
        }
    }

    /// See [`MemoryStore::discard`]; what it takes out of memory is gone from the disks as well, and so is the file of such a
    /// response. One of which nobody knows goes, too.
    pub fn discard(&self, key: &CacheKey, which: impl Fn(&StoredResponse) -> bool) {
        let has_any = Cell::new(false);
        self.memory.discard(key, |response| {
            let goes = which(response);
            if goes && let Some(disks) = &self.disks {
                disks.remove(key, response);
            }
            has_any.set(has_any.get() || goes);
            goes
        });
        self.disks.iter().for_each(|disks| disks.write_journals());
        if let Some(files) = self.files() {
            // What was in memory may have been on its way to a file.
            filed::discard(files, key, |file| has_any.get() || file.is_none_or(&which));
        }
    }

    /// See [`MemoryStore::responses`]; what is in memory only.
    pub fn responses(&self, key: &CacheKey, now: Duration) -> (SmallVec<[Arc<StoredResponse>; 4]>, bool) {
        self.memory.responses(key, now)
    }

    /// See [`MemoryStore::mark_hit_for_miss`]. Marks are in memory only.
    pub fn mark_hit_for_miss(&self, key: &CacheKey, until: Duration) {
        self.memory.mark_hit_for_miss(key, until);
    }

    /// Drops everything under the base of `key`, whatever its variant, and says how many responses that were. `number` is that
    /// of the invalidation.
    pub fn invalidate(&self, key: &CacheKey, number: u64) -> u64 {
        let gone = self.take_out(key, number);
        if let (Some(files), Some(uri)) = (self.files(), TargetUri::of_base(key, Scheme::Http)) {
            files.invalidate_below(&uri, number);
        }
        gone
    }

    /// The same for a purge: whoever asks for it waits until disks and files confirm it, and says so where they do not.
    pub fn purge(&self, key: &CacheKey, number: u64) -> u64 {
        let gone = self.take_out(key, number);
        if let (Some(files), Some(uri)) = (self.files(), TargetUri::of_base(key, Scheme::Http)) {
            files.purge_below(&uri, number);
        }
        gone
    }

    fn take_out(&self, key: &CacheKey, number: u64) -> u64 {
        let on_disks = || self.disks.as_ref().map_or(0, |disks| disks.invalidate(key, number));
        // Under the lock under which responses are put into both, and come from one into the other.
        let (in_memory, on_disks) = self.memory.invalidate_with(key, on_disks);
        self.disks.iter().for_each(|disks| disks.write_journals());
        in_memory.max(on_disks)
    }

    /// Whether something may be stored under the base of `key`, whatever its variant.
    pub fn has_base(&self, key: &CacheKey) -> bool {
        // Each is asked: a disk that is absent takes note of it.
        let on_disks = self.disks.as_ref().is_some_and(|disks| disks.has_base(key));
        on_disks || self.files.is_some() || self.memory.has_base(key)
    }

    /// What lies under the base of `key` is not used again before a validation, which is the caller's affair: it compares
    /// numbers. Here that is written down for the time after a restart.
    pub fn note_base(&self, key: &CacheKey, note: &Note) {
        if let Some(disks) = &self.disks {
            disks.note_base(key, note);
        }
        if let (Some(files), Some(uri)) = (self.files(), TargetUri::of_base(key, Scheme::Http)) {
            files.invalidate_below(&uri, note.number);
        }
    }

    /// Writes down a numbered predicate that the caller compares with the numbers of responses.
    pub fn note(&self, note: &Note) {
        if let Some(disks) = &self.disks {
            disks.note(note);
        }
        if let Some(files) = self.files() {
            files.note(note);
        }
    }

    /// Resolves once everything that was invalidated so far is written down, so that it outlives the process. Disks do that
    /// at once.
    pub fn written(&self) -> Written {
        self.files().map_or_else(Written::default, |files| files.written())
    }

    /// Whether something that was invalidated is not written down, and would be forgotten if it were closed now.
    pub fn is_behind(&self) -> bool {
        self.files().is_some_and(|files| files.is_behind())
    }

    /// The figures of what is in memory.
    pub fn usage(&self) -> Usage {
        self.memory.usage()
    }

    /// The figures of the disks, each by its path.
    pub fn disks_usage(&self) -> Option<DisksUsage> {
        self.disks.as_ref().map(|disks| disks.usage())
    }

    /// See [`StoredBody::joined`]. Bodies that lie on disks are not joined: they stay parts.
    pub fn join(&self, from: &[(&StoredBody, Range<u64>)]) -> Option<StoredBody> {
        let are_here = from.iter().all(|(body, _)| body.is_in_memory());
        are_here.then(|| StoredBody::joined(&self.memory, from)).flatten()
    }

    /// See [`MemoryStore::reserve_free`].
    pub fn reserve_free(&self, bytes: u64) -> Option<Reservation> {
        self.memory.reserve_free(bytes)
    }
}

/// Writes a response to the disks where it may be stored; says whether it may.
fn put_if(is_valid: bool, disks: &Arc<Disks>, key: &CacheKey, response: &Arc<StoredResponse>) -> bool {
    if is_valid {
        disks.put(key, response);
    }
    is_valid
}

/// Takes `old` from the disks, unless `new` has taken its place there.
fn forget_other(disks: &Disks, key: &CacheKey, old: &StoredResponse, new: &StoredResponse) {
    if old.identity() != new.identity() {
        disks.remove(key, old);
    }
}
