//! A store as its users see it: memory in front of a list of tiers.
//!
//! In: responses, keys, bodies that arrive. Out: what a look-up may use. A look-up is a plain call and sees memory
//! only. What memory does not have and a tier may is fetched by [`Store::recall`]. It waits, within a bound, and puts
//! what it finds into memory (promotion on use), so that the next look-up has it.
//! A tier that others write to as well, as people do to plain files, is asked before memory ([`Store::look`]); memory holds only
//! what it cannot stand for, or is just being written.
//! Whatever is stored is written through: to memory at once, to the tiers through their queues. Where a tier takes it not,
//! it is in memory alone, and the tier forgets what it had in its place.
//! Deliberately absent: what kinds of tiers there are, and how things lie in them.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use larder_cache::{CachePolicy, Fit, StoredHead};
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_tier::backlog::Backlog;
use larder_tier::fill::BoxFuture;
pub use larder_tier::note::Needed;
pub use larder_tier::tier::{
    Admit, CountRemoved, DirectoryFigures, Failure, TierCaps, TierEvent, WantedHosts, Written,
};
use larder_tier::{Fill, InMemory, Note, Opened, StoredChunk, TargetUri, Tier};
use smallvec::SmallVec;

use crate::budget::Reservation;
use crate::key::CacheKey;
use crate::memory::{HotCache, MemoryStore, MemoryStoreSettings, Selection, Usage};
use crate::outside::Outside;
use crate::recall::{Gate, Recalled};
use crate::stored::{StoredBody, StoredResponse};
use crate::tier::{HttpCaching, StoreTier};

mod removal;

/// A store. Shared by all workers; every method may be called from any of them.
#[derive(Debug)]
pub struct Store {
    memory: Arc<MemoryStore>,
    tiers: Box<[Arc<StoreTier>]>,
    outside: Outside,
    gate: Gate,
    /// What waits to be written, beyond what the queues have of their own.
    backlog: Arc<Backlog>,
    /// When memory was last looked through for what is idle, in nanoseconds (monotonic); [`NEVER`] before the first time.
    swept: AtomicU64,
    /// Which shard's uses are told to the tiers next.
    turn: AtomicUsize,
}

/// What the tier has that is asked before memory.
#[derive(Debug)]
pub enum Looked {
    /// This answers, if it is fresh, or a person put it there.
    Found(Arc<StoredResponse>),
    /// There is nothing.
    Absent,
    /// Only a look that waits can tell.
    WouldWait,
}

/// Sweeps in which nobody has asked for it before something is idle.
const IDLE_SWEEPS: u8 = 4;

/// No moment of the monotonic clock, in nanoseconds.
const NEVER: u64 = u64::MAX;

impl Store {
    /// Memory alone.
    pub fn in_memory(settings: &MemoryStoreSettings) -> Arc<Self> {
        Self::in_front_of(settings, Vec::new())
    }

    /// Memory in front of a tier, where there is one.
    pub fn new<T: Tier<HttpCaching> + 'static>(
        settings: &MemoryStoreSettings,
        tier: Option<Arc<T>>,
    ) -> Arc<Self> {
        Self::in_front_of(settings, tier.into_iter().map(|tier| tier as Arc<StoreTier>).collect())
    }

    /// Memory in front of these tiers, in the order in which they are asked.
    pub fn in_front_of(settings: &MemoryStoreSettings, tiers: Vec<Arc<StoreTier>>) -> Arc<Self> {
        let memory = MemoryStore::new(settings);
        let backlog = Backlog::of(&memory);
        tiers.iter().for_each(|tier| tier.borrow_from(&backlog));
        Arc::new(Self {
            memory,
            outside: Outside::of(&tiers),
            tiers: tiers.into(),
            backlog,
            gate: Gate::default(),
            swept: AtomicU64::new(NEVER),
            turn: AtomicUsize::new(0),
        })
    }

    /// Its tiers, in the order in which they are asked.
    pub(crate) fn tiers(&self) -> &[Arc<StoreTier>] {
        &self.tiers
    }

    /// Whether a look-up has to think of more than what memory has, and what disks have of it: of a tier that is asked
    /// [first](Self::looks_outside_first) or [anew](Self::asks_anew).
    #[inline]
    pub fn looks_beside(&self) -> bool {
        !matches!(self.outside, Outside::Nothing)
    }

    /// Whether a tier is asked before memory, by [`look`](Self::look).
    #[inline]
    pub fn looks_outside_first(&self) -> bool {
        self.first().is_some()
    }

    /// Whether a tier is asked anew for what memory has no fresh answer to, by [`ask`](Self::ask).
    #[inline]
    pub fn asks_anew(&self) -> bool {
        self.anew().is_some()
    }

    #[inline]
    fn first(&self) -> Option<&Arc<StoreTier>> {
        self.outside.first()
    }

    /// The tier that is asked anew, and who asks it for which key.
    #[inline]
    pub(crate) fn anew(&self) -> Option<(&Arc<StoreTier>, &Gate)> {
        self.outside.anew().map(|tier| (tier, &self.gate))
    }

    /// Whether something may lie under `key` in the tier that is asked before memory. Never waits.
    pub fn may_have_outside(&self, key: &CacheKey) -> bool {
        let may_have = |tier: &Arc<StoreTier>| Some(tier.may_have(&TargetUri::of_key(key)?));
        self.first().and_then(may_have).unwrap_or(false)
    }

    /// What the tier that is asked before memory has for a request, without waiting. Its head is made by what a site says of
    /// caching.
    pub fn look(&self, request: &RequestHead, policy: &CachePolicy, now: Now) -> Looked {
        let Some(tier) = self.first() else { return Looked::Absent };
        self.looked(tier.look(&TargetUri::of(request)), (request, policy, now))
    }

    /// The same where it may wait for a disk; for a pool.
    pub fn look_waiting(&self, request: &RequestHead, policy: &CachePolicy, now: Now) -> Looked {
        let Some(tier) = self.first() else { return Looked::Absent };
        self.looked(tier.look_waiting(&TargetUri::of(request)), (request, policy, now))
    }

    /// The same for who explains, with where it lies.
    pub fn look_for_people(
        &self,
        request: &RequestHead,
        policy: &CachePolicy,
        now: Now,
    ) -> Option<(Arc<StoredResponse>, std::path::PathBuf)> {
        let tier = self.first()?;
        let larder_tier::Look::Found(opened) = tier.look_waiting(&TargetUri::of(request)) else {
            return None;
        };
        let path = tier.directories().first()?.join(opened.path());
        match self.looked(larder_tier::Look::Found(opened), (request, policy, now)) {
            Looked::Found(stored) => Some((stored, path)),
            Looked::Absent | Looked::WouldWait => None,
        }
    }

    fn looked(
        &self,
        look: larder_tier::Look<HttpCaching>,
        (request, policy, now): (&RequestHead, &CachePolicy, Now),
    ) -> Looked {
        let opened = match look {
            larder_tier::Look::Found(opened) => opened,
            larder_tier::Look::Absent => return Looked::Absent,
            larder_tier::Look::WouldWait => return Looked::WouldWait,
        };
        // Nothing of it is counted with memory; an empty reservation is always to be had.
        let Some(room) = self.reserve_free(0) else { return Looked::Absent };
        let make = || {
            let head = Arc::new(opened.head(request, policy, now));
            Arc::new(of_opened(&opened, head, room))
        };
        Looked::Found(match opened.memo() {
            Some(memo) => memo.or_make(make),
            None => make(),
        })
    }

    /// What is in memory.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// Whether it goes on without a directory of its tiers: it is absent, or left alone because it failed.
    pub fn is_degraded(&self) -> bool {
        self.figures().iter().any(|figures| figures.is_failing)
    }

    /// To be called every second. Tells the tiers what is in use, shard after shard, since hits in memory do not reach them;
    /// and takes out of memory what nobody has asked for during `idle`, or a quarter of that more, which disks do by
    /// themselves.
    pub fn tend(&self, idle: Option<Duration>, now: Now) {
        self.memory.tell_time(now.monotonic);
        if self.has_tiers_behind() || self.asks_for_records() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            self.memory.used_in(turn, |base, variant| {
                self.tiers.iter().for_each(|tier| tier.note_use_at(base, variant));
            });
        }
        let Some(idle) = idle else { return };
        if self.claims_sweep(idle / u32::from(IDLE_SWEEPS), now.monotonic) {
            self.memory.sweep_idle(IDLE_SWEEPS);
        }
    }

    /// Whether a sweep is due and the caller's: of several callers at once, one sweeps. The first interval begins with the first
    /// call.
    fn claims_sweep(&self, interval: Duration, now: Duration) -> bool {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(NEVER);
        let now = nanoseconds(now);
        let claim = |last| self.swept.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        let last = claim(NEVER).map_or_else(|last| last, |_| now);
        now.saturating_sub(last) >= nanoseconds(interval) && claim(last).is_ok()
    }

    /// From now on it may have so many files open, beside those that send hot bodies and those that clients read from.
    pub fn limit_files(&self, files: usize) {
        self.tiers.iter().for_each(|tier| tier.limit_files(files));
    }

    /// Whether a tier has directories: what lies there may be older than this process.
    pub fn has_directories(&self) -> bool {
        self.tiers.iter().any(|tier| tier.has_directories())
    }

    /// Opens what is to be opened in its tiers without using it yet, and shows what each of their directories knows: its highest number
    /// and its notes. [`open`](Self::open) follows. Waits for the disks.
    pub fn look_ahead(&self, look: &mut dyn FnMut(u64, &[Note])) {
        self.tiers.iter().for_each(|tier| tier.look_ahead(look));
    }

    /// Writes down a note of each directory of its tiers that is there.
    pub fn mark(&self, note: &Note) {
        self.tiers.iter().for_each(|tier| tier.mark(note));
    }

    /// Opens what is to be opened in its tiers, and takes over what they remember; where they are not believed, nothing is used of
    /// what they hold. Waits for the disks.
    pub fn open(&self, admit: &Arc<Admit>, is_believed: bool) {
        self.tiers.iter().for_each(|tier| tier.open(admit, is_believed));
    }

    /// It hears of every invalidation from now on, and `number` is that of the last one.
    pub fn hears_from(&self, number: u64) {
        self.tiers.iter().for_each(|tier| tier.hears_from(number));
    }

    /// From now on its tiers ask this which notes are needed still. After [`open`](Self::open).
    pub fn take_stock_by(&self, needed: &Arc<Needed>) {
        self.tiers.iter().for_each(|tier| tier.take_stock_by(needed));
    }

    /// It is about to be closed: from now on its journals keep every note.
    pub fn stop_taking_stock(&self) {
        self.tiers.iter().for_each(|tier| tier.stop_taking_stock());
    }

    /// Much of what its journals have is not needed any more: stock is taken soon.
    pub fn take_stock(&self) {
        self.tiers.iter().for_each(|tier| tier.take_stock());
    }

    /// Has what is absent in its tiers tried again, off the workers. To be called every second.
    pub fn try_absent(&self, admit: &Arc<Admit>) {
        self.tiers.iter().for_each(|tier| Arc::clone(tier).try_absent(admit));
    }

    /// Takes over new caps of its tiers, where they can while they run.
    pub fn resize_tiers(&self, caps: &TierCaps) {
        self.tiers.iter().for_each(|tier| tier.resize(caps));
    }

    /// What is worth a line of log, once; `name` is what the lines call it.
    pub fn take_event(&self, name: &str) -> Option<TierEvent> {
        self.tiers.iter().find_map(|tier| tier.take_event(name))
    }

    /// What was not as it should be in its tiers when they were opened.
    pub fn findings(&self) -> Vec<String> {
        self.tiers.iter().flat_map(|tier| tier.findings()).collect()
    }

    /// The figures of its tiers, by directory.
    pub fn figures(&self) -> Vec<DirectoryFigures> {
        self.tiers.iter().flat_map(|tier| tier.figures()).collect()
    }

    /// Waits until every invalidation so far is on the disks, so that it holds after a crash.
    ///
    /// # Errors
    /// One did not confirm it, or is absent.
    ///
    /// # Cancel safety
    /// Dropped, what was noted may be on the disks or not.
    pub async fn sync(&self) -> Result<(), Failure> {
        let mut first = Ok(());
        for tier in &self.tiers {
            let synced: BoxFuture<'_, _> = tier.sync();
            first = first.and(synced.await);
        }
        first
    }

    /// Takes over new sizes of what is kept in memory, and evicts down to a lower cap.
    pub fn resize(&self, settings: &MemoryStoreSettings) {
        self.memory.resize(settings);
        self.backlog.resize(settings.memory);
    }

    /// The largest body taken, in bytes; of responses that no tier keeps fewer are.
    pub fn max_object(&self) -> u64 {
        let of_tiers = self.tiers.iter().map(|tier| tier.max_object()).max();
        of_tiers.unwrap_or(0).max(self.memory.max_object())
    }

    /// The largest body taken of a response with this head, in bytes.
    pub fn max_object_for(&self, key: &CacheKey, head: &StoredHead) -> u64 {
        self.max_object_in(self.tier_for(key, Some(head)))
    }

    /// The largest body taken, in bytes, of a response that goes to this tier.
    pub(crate) fn max_object_in(&self, tier: Option<usize>) -> u64 {
        let of_tier = tier.and_then(|tier| self.tiers.get(tier)).map_or(0, |tier| tier.max_object());
        of_tier.max(self.memory.max_object())
    }

    /// The first tier that keeps a response with this head under `key`; without one, a body of which no more is known.
    pub(crate) fn tier_for(&self, key: &CacheKey, head: Option<&StoredHead>) -> Option<usize> {
        self.tiers.iter().position(|tier| tier.takes(key, head))
    }

    /// See [`MemoryStore::lookup`].
    #[inline]
    pub fn lookup(
        &self,
        hot: Option<&HotCache>,
        key: &CacheKey,
        now: Duration,
        selects: impl Fn(&StoredResponse) -> bool,
    ) -> Selection {
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
    ) -> Selection {
        self.memory.lookup_best(hot, key, now, fit, is_fresh)
    }

    /// Whether there is a tier whose content only [`recall`](Self::recall) finds.
    pub fn has_tiers_behind(&self) -> bool {
        self.tiers.iter().any(|tier| !tier.is_before_memory() && !tier.is_asked_anew())
    }

    /// Whether a tier may have what memory has not: something lies there under the key.
    pub fn may_recall(&self, key: &CacheKey) -> bool {
        self.tiers.iter().any(|tier| tier.has(key))
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
        for tier in self.tiers.iter().filter(|tier| !tier.is_before_memory() && !tier.is_asked_anew()) {
            let from = (&self.memory, tier, &self.gate);
            let recalled = crate::recall::recall(from, key, all, now, &selects).await;
            if recalled != Recalled::Nothing {
                return recalled;
            }
        }
        Recalled::Nothing
    }

    /// See [`MemoryStore::reserve`].
    pub fn reserve(&self, bytes: u64) -> Option<Reservation> {
        self.memory.reserve(bytes)
    }

    /// Where the chunks of a body under `key` go while it arrives; `None` where the tier takes none now.
    pub(crate) fn begin_fill(
        &self,
        tier: usize,
        key: &CacheKey,
        declared: Option<u64>,
    ) -> Option<Box<dyn Fill>> {
        Arc::clone(self.tiers.get(tier)?).begin_fill(key, declared)
    }

    /// Goes on with a part that lies in one of the tiers.
    pub(crate) fn fill_up(
        &self,
        part: &StoredBody,
        numbers: &[usize],
        each: &mut dyn FnMut(usize, Arc<dyn StoredChunk>),
    ) -> Option<Box<dyn Fill>> {
        let source = part.source()?;
        self.tiers.iter().find_map(|tier| Arc::clone(tier).fill_up(&**source, numbers, each))
    }

    /// See [`MemoryStore::insert`]; what was stored is written to the tiers. False also where it cannot be written to the one
    /// that would be the truth.
    pub fn insert(
        &self,
        key: &CacheKey,
        response: Arc<StoredResponse>,
        replaces: impl Fn(&StoredResponse) -> bool,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        if self.tiers.is_empty() {
            return self.memory.insert(key, response, replaces, valid);
        }
        if response.with_entry(key, |entry| self.tiers.iter().any(|tier| tier.is_newer(entry))) {
            return false;
        }
        let written = Arc::clone(&response);
        // Under the shard's lock, as the check is: an invalidation comes before both or after both.
        // What goes from memory goes from the tiers, also where it is told apart by another Vary: it would be back
        // at the next recall. Asked of memory's items again once it is certain that they go.
        let goes_for_good = Cell::new(false);
        let replaces = |old: &StoredResponse| {
            let goes = replaces(old);
            if goes && goes_for_good.get() {
                self.forget_other(key, old, &written);
            }
            goes
        };
        let valid = || {
            let is_valid = self.put_if(valid(), key, &written);
            goes_for_good.set(is_valid);
            is_valid
        };
        let is_stored = self.memory.insert(key, response, replaces, valid);
        self.write_journals();
        is_stored && self.put_behind(key, &written)
    }

    /// Writes a response to the tiers where it may be stored; says whether it may. Under a shard's lock.
    fn put_if(&self, is_valid: bool, key: &CacheKey, response: &StoredResponse) -> bool {
        if is_valid {
            response.with_entry(key, |entry| self.tiers.iter().for_each(|tier| Arc::clone(tier).put(entry)));
        }
        is_valid
    }

    /// Takes `old` from the tiers, unless `new` has taken its place there. Under a shard's lock.
    fn forget_other(&self, key: &CacheKey, old: &StoredResponse, new: &StoredResponse) {
        if old.identity() != new.identity() {
            self.tiers.iter().for_each(|tier| tier.remove(key, old.identity()));
        }
    }

    fn write_journals(&self) {
        self.tiers.iter().for_each(|tier| tier.write_journals());
    }

    /// Writes a response that memory has taken to the tiers that are asked before it.
    fn put_behind(&self, key: &CacheKey, response: &Arc<StoredResponse>) -> bool {
        let Some(first) = self.first() else { return true };
        let memory = Arc::new(Taken {
            memory: Arc::clone(&self.memory),
            key: key.clone(),
            response: Arc::clone(response),
        });
        response.with_entry(key, |entry| Arc::clone(first).put_behind(entry, memory))
    }

    /// See [`MemoryStore::replace`].
    pub fn replace(
        &self,
        key: &CacheKey,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        if let Some(first) = self.first() {
            // What is replaced is in memory, on its way to the tier too, or is that very entry.
            let (there, _) = self.memory.responses(key, Duration::ZERO);
            let in_memory = there.iter().find(|other| other.identity() == old.identity());
            let is_replaced = match in_memory {
                Some(other) => !Arc::ptr_eq(&other.body, &old.body),
                None => old.with_entry(key, |old| first.is_replaced(old)).unwrap_or(true),
            };
            if is_replaced {
                return false;
            }
            return self.insert(key, new, |other| Arc::ptr_eq(&other.body, &old.body), valid);
        }
        if self.tiers.is_empty() {
            return self.memory.replace(key, old, new, valid);
        }
        let written = Arc::clone(&new);
        let is_replaced = self.memory.replace(key, old, new, || {
            let is_valid = self.put_if(valid(), key, &written);
            if is_valid {
                self.forget_other(key, old, &written);
            }
            is_valid
        });
        self.write_journals();
        is_replaced
    }

    /// What is still to be written to the tiers is written, within ten seconds for each.
    pub fn close(&self) {
        self.tiers.iter().for_each(|tier| tier.close());
    }

    /// See [`MemoryStore::responses`]; what is in memory only.
    pub fn responses(&self, key: &CacheKey, now: Duration) -> (SmallVec<[Arc<StoredResponse>; 4]>, bool) {
        self.memory.responses(key, now)
    }

    /// See [`MemoryStore::mark_hit_for_miss`]. Marks are in memory only.
    pub fn mark_hit_for_miss(&self, key: &CacheKey, until: Duration) {
        self.memory.mark_hit_for_miss(key, until);
    }

    /// Whether something may be stored under the base of `key`, whatever its variant.
    pub fn has_base(&self, key: &CacheKey) -> bool {
        // Each is asked: what is absent takes note of it.
        let in_tiers = self.tiers.iter().filter(|tier| tier.has_base(key)).count() > 0;
        in_tiers || self.memory.has_base(key)
    }

    /// What lies under the base of `key` is not used again before a validation, which is the caller's affair: it compares
    /// numbers. Here that is written down for the time after a restart.
    pub fn note_base(&self, key: &CacheKey, note: &Note) {
        self.tiers.iter().for_each(|tier| tier.note_base(key, note));
    }

    /// Writes down a numbered predicate that the caller compares with the numbers of responses.
    pub fn note(&self, note: &Note) {
        self.tiers.iter().for_each(|tier| tier.note(note));
    }

    /// Resolves once everything that was invalidated so far is written down, so that it outlives the process. Disks do that
    /// at once.
    pub fn written(&self) -> Written {
        self.tiers.iter().fold(Written::default(), |all, tier| all.and(tier.written()))
    }

    /// Whether something that was invalidated is not written down, and would be forgotten if it were closed now.
    pub fn is_behind(&self) -> bool {
        self.tiers.iter().any(|tier| tier.is_behind())
    }

    /// The figures of what is in memory.
    pub fn usage(&self) -> Usage {
        self.memory.usage()
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

/// A response that memory has taken, as a tier asks for it.
struct Taken {
    memory: Arc<MemoryStore>,
    key: CacheKey,
    response: Arc<StoredResponse>,
}

impl InMemory for Taken {
    fn is_there(&self) -> (bool, Box<dyn Any + Send>) {
        let (held, _) = self.memory.responses(&self.key, Duration::ZERO);
        let is_there = held.iter().any(|other| Arc::ptr_eq(other, &self.response));
        (is_there, Box::new(held))
    }

    fn remove(&self) {
        self.memory.remove(&self.key, &self.response);
    }
}

/// An entry that was found open as a stored response.
fn of_opened(
    opened: &Arc<dyn Opened<HttpCaching>>,
    head: Arc<StoredHead>,
    mut room: Reservation,
) -> StoredResponse {
    let body = StoredBody::found(opened.whole(), Arc::clone(opened).body(), room.take());
    let response = StoredResponse::new(head, Arc::new(body), opened.number(), room);
    StoredResponse { took: opened.took(), ..response }
}

#[cfg(test)]
mod filed;
#[cfg(test)]
mod sweeps;
