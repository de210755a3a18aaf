//! What a store asks of a tier: what lies behind its memory, or, where people see to it as well, before it.
//!
//! In: responses, keys, invalidations. Out: what was kept, found again. A tier says itself what it can: defaults stand for what
//! most have no use for. There are six parts, by who asks: [`Keep`] for what is stored, [`Find`] for look-ups, [`Ask`] for a tier to
//! which others write as well, [`Invalidate`] for what is not to be used again, [`Inspect`], and [`Run`].
//! Nothing here is asked for a hit in memory. What is asked under the memory's locks says so, and waits for nothing.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::time::Now;
use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::ask::Ask;
use crate::backlog::Backlog;
use crate::cursor::NoCursor;
use crate::entry::{Candidate, Entry, InMemory, Look, Memo};
use crate::fill::{BoxFuture, Fill, StoredChunk};
pub use crate::held_back::HeldBack;
use crate::key::CacheKey;
use crate::metrics::Visit;
use crate::note::{Needed, Note};
use crate::source::BodySource;
use crate::uri::TargetUri;
use crate::vocabulary::Vocabulary;

/// A failure that whoever asked is told of.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Asked before what was absent is used, with the highest number it knows and its notes. Answers a number above all that it
/// knows, which the next invalidation exceeds; `None` where something was invalidated of which it does not know: then nothing that it
/// holds is used.
pub type Admit = dyn Fn(u64, Vec<Note>) -> Option<u64> + Send + Sync;

/// Whether the host of an authority, as it is part of keys, is meant.
pub type WantedHosts = dyn Fn(&str) -> bool + Send + Sync;

/// Hears how many responses were removed since it was called last.
pub type CountRemoved = dyn Fn(u64) + Send + Sync;

/// Storing. Without more it is no place for what memory has no room for: it takes no body while that arrives.
pub trait Keep<V: Vocabulary> {
    /// Whether it keeps a response with this head under `key`; without one, a body of which no more is known.
    fn takes(&self, _key: &CacheKey, _head: Option<&V::Head>) -> bool {
        false
    }

    /// The largest body taken, in bytes.
    fn max_object(&self) -> u64 {
        0
    }

    /// Where the chunks of a body under `key` go while it arrives; `None` where it takes none now.
    fn begin_fill(self: Arc<Self>, _key: &CacheKey, _declared: Option<u64>) -> Option<Box<dyn Fill>> {
        None
    }

    /// Goes on with a body of which it has the chunks of these numbers as `part`; `each` is told where they lie. `None` where that is
    /// not in here, or not all there any more.
    fn fill_up(
        self: Arc<Self>,
        _part: &dyn BodySource,
        _numbers: &[usize],
        _each: &mut dyn FnMut(usize, Arc<dyn StoredChunk>),
    ) -> Option<Box<dyn Fill>> {
        None
    }

    /// Whether what it has under the key of `entry` came later. False where only a look that waits could tell.
    fn is_newer(&self, _entry: &Entry<'_, V::Head>) -> bool {
        false
    }

    /// Whether what `old` was made of has gone, or something else has taken its place. `None` where it has no say in that.
    fn is_replaced(&self, _old: &Entry<'_, V::Head>) -> Option<bool> {
        None
    }

    /// Writes a response, in place of what it has of the same identity. Under the lock of a shard of the memory:
    /// [`write_journals`](Invalidate::write_journals) is called behind it.
    fn put(self: Arc<Self>, _entry: &Entry<'_, V::Head>) {}

    /// Takes out what has this identity; under the same lock.
    fn remove(&self, _key: &CacheKey, _identity: u64) {}

    /// Writes a response that memory has taken, behind the lock; false where it cannot be, and is gone from memory too.
    fn put_behind(self: Arc<Self>, _entry: &Entry<'_, V::Head>, _memory: Arc<dyn InMemory>) -> bool {
        true
    }

    /// What it has of this identity goes: it lies elsewhere now, or nowhere.
    fn forget(&self, key: &CacheKey, identity: u64);

    /// A response under a key has ended: the origin says something else now, and no purge says so. What others than this larder would still
    /// find there goes.
    fn end(&self, _key: &CacheKey) {}

    /// Takes out what it has under a key, where `goes` says so of what was made of it; `None` stands for what nobody has asked for.
    fn discard(&self, _key: &CacheKey, _goes: &dyn Fn(Option<&Memo>) -> bool) {}
}

/// Look-ups.
pub trait Find<V: Vocabulary> {
    /// Whether it is asked before memory: others write there too, so that it is the truth.
    fn is_before_memory(&self) -> bool {
        false
    }

    /// What lies under `uri`, without waiting; for one that is asked before memory.
    fn look(&self, _uri: &TargetUri<'_>) -> Look<V> {
        Look::Absent
    }

    /// Whether something may lie under `uri`. Never waits.
    fn may_have(&self, _uri: &TargetUri<'_>) -> bool {
        false
    }

    /// The same where it may wait for a disk; for a pool.
    fn look_waiting(&self, _uri: &TargetUri<'_>) -> Look<V> {
        Look::Absent
    }

    /// Whether it may have what memory has not: something lies there under the key.
    fn has(&self, _key: &CacheKey) -> bool {
        false
    }

    /// Of what lies there under `key` in several versions the newest stays.
    fn settle_versions(self: Arc<Self>, _key: &CacheKey) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What may lie there under `key`.
    fn candidates(self: Arc<Self>, _key: &CacheKey) -> Vec<Box<dyn Candidate>> {
        Vec::new()
    }

    /// Whatever lies under a key of these two levels is in use.
    fn note_use_at(&self, _base: &[u8], _variant: &[u8]) {}
}

/// Resolves once everything that was noted before has been written, or could not be.
#[derive(Debug, Default)]
pub struct Written(Vec<oneshot::Receiver<()>>);

impl Written {
    /// Once this is told.
    pub fn when(told: oneshot::Receiver<()>) -> Self {
        Self(vec![told])
    }

    /// Once both are.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Waits for it. Whoever must not wait for ever sets a bound.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn wait(self) {
        for told in self.0 {
            // A journal that was closed has nothing more to say.
            let _ = told.await;
        }
    }
}

/// Invalidations.
pub trait Invalidate {
    /// Drops everything under the base of `key`, under the lock of a shard of the memory; says how many responses that were.
    fn take_out(&self, _key: &CacheKey, _number: u64) -> u64 {
        0
    }

    /// Writes down what was taken out or replaced before this call, without waiting. Under no lock of memory's, and before
    /// anybody is told.
    fn write_journals(&self) {}

    /// The same as [`take_out`](Self::take_out) behind that lock. A purge is acknowledged when [`purge`](Self::purge) and
    /// [`sync`](Self::sync) are done, and not before.
    fn invalidate_behind(&self, _key: &CacheKey, _number: u64, _is_purge: bool) {}

    /// Whether something may be stored under the base of `key`, whatever its variant.
    fn has_base(&self, key: &CacheKey) -> bool;

    /// Writes down that what lies under the base of `key` is not used again before a validation.
    fn note_base(&self, key: &CacheKey, note: &Note);

    /// Writes down a numbered predicate of the caller's.
    fn note(&self, note: &Note);

    /// Writes down what concerns nothing that is stored, in each directory that is there. One that is absent misses nothing by it.
    fn mark(&self, _note: &Note) {}

    /// Resolves once what is noted so far outlives the process.
    fn written(&self) -> Written {
        Written::default()
    }

    /// Whether something that was invalidated is not written down.
    fn is_behind(&self) -> bool {
        false
    }

    /// Waits until every invalidation so far is on the disks, so that it holds after a crash.
    ///
    /// # Errors
    /// One did not confirm it, or is absent.
    fn sync(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether something lies there under `uri` that only [`purge`](Self::purge) takes out. May wait for a disk.
    fn has_apart(&self, _uri: &TargetUri<'_>) -> bool {
        false
    }

    /// Removes that, whoever put it there, and waits until it is gone for good; for a pool. Whether there was any.
    ///
    /// # Errors
    /// It may still be there.
    fn purge(&self, _uri: &TargetUri<'_>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// The same for everything below a canonical path at the hosts that are wanted. `removed` may hear of it later.
    ///
    /// # Errors
    /// Something may still be there.
    fn purge_tree(
        &self,
        _path: &str,
        _wanted: &Arc<WantedHosts>,
        _removed: &Arc<CountRemoved>,
    ) -> Result<(), Failure> {
        Ok(())
    }
}

/// A plain file that stands for a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether somebody put it there, or changed it: then it answers for both schemes.
    pub is_by_hand: bool,
}

/// A response in a tier, without its body.
#[derive(Debug)]
pub struct ListedEntry<H> {
    /// Its full key.
    pub key: CacheKey,
    /// The scheme and the authority that are part of it, where its head is made of them.
    pub origin: Option<(Scheme, Authority)>,
    /// Tells it apart from the others under its key; `None` where there are none.
    pub identity: Option<u64>,
    /// Its head.
    pub head: ListedHead<H>,
    /// The length of its body.
    pub body_bytes: u64,
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// The plain file that it is.
    pub file: Option<PlainFile>,
    /// Its body.
    pub at: Box<dyn Candidate>,
}

/// A head, as a tier has it.
#[derive(Debug)]
pub enum ListedHead<H> {
    /// As it was given.
    Bytes(Bytes),
    /// Made of what the tier knows.
    Made(Box<H>),
}

/// A page of what lies in a tier.
#[derive(Debug)]
pub struct TierPage<H> {
    /// What was found; may be nothing although there is more.
    pub entries: Vec<ListedEntry<H>>,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Of what is there so much could not be looked at now, and may be used later. Only
    /// [`every_page`](Inspect::every_page) counts it.
    pub unseen: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

impl<H> Default for TierPage<H> {
    fn default() -> Self {
        Self { entries: Vec::new(), unreadable: 0, unseen: 0, next: None }
    }
}

/// The cursor of the only page of a tier without a listing.
const ONLY_PAGE: &str = "0";

/// For people: what lies there, where, and why not. Nothing of it counts as use. Without more nothing can be listed, and it has no
/// directory.
pub trait Inspect<V: Vocabulary> {
    /// Stands before a cursor of this kind of tier: a lower-case letter of its own, and not `m`, which is memory's.
    fn letter(&self) -> char;

    /// The cursor of the first page.
    fn first_page(&self) -> String {
        ONLY_PAGE.to_owned()
    }

    /// The next responses whose key's base is `wanted`, at most `most`, from where a page before ended. Waits for the disks.
    ///
    /// # Errors
    /// `from` is not what a page ended with.
    fn page(
        self: Arc<Self>,
        from: &str,
        _most: usize,
        _now: Now,
        _wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<TierPage<V::Head>, NoCursor> {
        match from {
            ONLY_PAGE => Ok(TierPage::default()),
            _ => Err(NoCursor),
        }
    }

    /// The same for a walk that must miss nothing: every copy of a response, wherever it is moved meanwhile. What was put in after
    /// the walk began may be missing.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    fn every_page(self: Arc<Self>, from: &str, most: usize, now: Now) -> Result<TierPage<V::Head>, NoCursor> {
        self.page(from, most, now, &|_| true)
    }

    /// Everything under the base of `key`, whatever its variant. Waits for the disks.
    fn under(self: Arc<Self>, _key: &CacheKey, _now: Now) -> Vec<ListedEntry<V::Head>> {
        Vec::new()
    }

    /// Whether a listing of it meets the response of this identity.
    fn lists(&self, _key: &CacheKey, _identity: u64) -> bool {
        false
    }

    /// The folders in which the response of this identity lies.
    fn folders_of(&self, _key: &CacheKey, _identity: u64) -> SmallVec<[PathBuf; 2]> {
        SmallVec::new()
    }

    /// Where it keeps things.
    fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What would keep a response with this head from being written here.
    fn would_hold_back(&self, key: &CacheKey, head: &V::Head) -> Option<HeldBack>;

    /// Why a response that was found in memory is not here; `None` where it is.
    fn holds_back(&self, key: &CacheKey, head: &V::Head, identity: u64) -> Option<HeldBack>;
}

/// Figures of a directory of a tier.
pub struct DirectoryFigures {
    /// The directory.
    pub path: PathBuf,
    /// What kind of tier it is of, in a word.
    pub tier: &'static str,
    /// The label that names the directory in metrics.
    pub label: &'static str,
    /// In what state it is, in a word.
    pub state: &'static str,
    /// Whether it fails at the moment, or is absent.
    pub is_failing: bool,
    /// Bytes taken.
    pub bytes: u64,
    /// Responses.
    pub objects: u64,
    /// The cap on bytes.
    pub max_bytes: u64,
    /// The most bytes that were ever taken at once.
    pub high_water_bytes: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
    /// What was not taken, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// All figures, for metrics.
    pub for_each: Box<dyn Fn(Visit<'_>)>,
}

/// What the operator should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierEvent {
    /// The kind of line.
    pub kind: &'static str,
    /// What it is about, where that is not the store.
    pub subject: Option<String>,
    /// Whether it is bad news.
    pub is_warning: bool,
    /// The line.
    pub text: String,
}

/// The caps of a store's config.
#[derive(Clone, Copy, Debug)]
pub struct TierCaps {
    /// On bytes.
    pub bytes: u64,
    /// On files.
    pub files: u64,
    /// On the body of one response, in bytes.
    pub max_object: u64,
}

/// The owner's side. Without more it has nothing on this machine: no directories, no files, nothing that waits to be written here.
pub trait Run {
    /// Whether it has directories: what lies there may be older than this process.
    fn has_directories(&self) -> bool {
        false
    }

    /// What is to be opened is opened without being used, and `look` sees what each directory knows: its highest number and its
    /// notes. [`open`](Self::open) follows. Waits for the disks.
    fn look_ahead(&self, _look: &mut dyn FnMut(u64, &[Note])) {}

    /// What is to be opened is opened, and what it remembers is taken over. Where it is not believed, or not admitted, nothing is
    /// used of what it holds. What comes later is admitted as well. Waits for the disks.
    fn open(&self, _admit: &Arc<Admit>, _is_believed: bool) {}

    /// It hears of every invalidation from now on, and `number` is that of the last one. What was removed before without it is not known
    /// here.
    fn hears_from(&self, _number: u64) {}

    /// Tries again what is absent, off the workers. To be called every second.
    fn try_absent(self: Arc<Self>, _admit: &Arc<Admit>) {}

    /// From now on this is asked which notes are needed still, when stock of a journal is taken. After [`open`](Self::open): what was
    /// not taken over yet would not be known there.
    fn take_stock_by(&self, _needed: &Arc<Needed>) {}

    /// It is about to be closed: from now on every note is kept. What was forgotten meanwhile may concern what it holds.
    fn stop_taking_stock(&self) {}

    /// Much of what the journals have is not needed any more: stock is taken soon.
    fn take_stock(&self) {}

    /// From now on its queues may borrow there.
    fn borrow_from(&self, _backlog: &Arc<Backlog>) {}

    /// From now on it may have so many files open.
    fn limit_files(&self, _files: usize) {}

    /// Whether all that was asked for before this call is done: what was to be stored lies where a walk meets it, and what was to
    /// go is gone. Waits for that within a bound; for a thread that may.
    fn settle(&self) -> bool {
        true
    }

    /// Takes over new caps, where it can while it runs.
    fn resize(&self, _caps: &TierCaps) {}

    /// What is still to be written is written, within a bound.
    fn close(&self);

    /// The figures, by directory.
    fn figures(&self) -> Vec<DirectoryFigures> {
        Vec::new()
    }

    /// What is worth a line of log, once; `store` is what the lines call the store.
    fn take_event(&self, _store: &str) -> Option<TierEvent> {
        None
    }

    /// What was not as it should be when it was opened.
    fn findings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// All of it.
pub trait Tier<V: Vocabulary>:
    Keep<V> + Find<V> + Ask<V> + Invalidate + Inspect<V> + Run + Debug + Send + Sync
{
}

impl<V: Vocabulary, T> Tier<V> for T where
    T: Keep<V> + Find<V> + Ask<V> + Invalidate + Inspect<V> + Run + Debug + Send + Sync
{
}
