//! A response on its way into a file.
//!
//! In: pieces of its body as they arrive, then its meta. Out: a file that has its name once all of it is there, or
//! nothing. No call waits: pieces go into a bounded queue, and where that is full, or the writing thread has given up
//! (no room, a failing disk), the next call says so and the response is served and not stored. Dropping a [`FileFill`]
//! that was not committed takes everything back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use larder_http::message::Scheme;
use parking_lot::Mutex;

use super::Shared;
use super::error::Refused;
use super::meta::Meta;
use super::name::{Name, TargetUri};
use super::place::Temp;
use super::queue::Job;
use super::room::Claim;

/// Told what became of a fill that was committed; called once, on the writing thread or at once.
pub type Done = Box<dyn FnOnce(Result<(), Refused>) + Send>;

/// A target URI that outlives its request.
#[derive(Clone, Debug)]
pub(super) struct OwnedUri {
    scheme: Scheme,
    authority: String,
    path: String,
    query: Option<String>,
}

impl OwnedUri {
    pub(super) fn of(uri: &TargetUri<'_>) -> Self {
        Self {
            scheme: uri.scheme,
            authority: uri.authority.to_owned(),
            path: uri.path.to_owned(),
            query: uri.query.map(str::to_owned),
        }
    }

    pub(super) fn borrow(&self) -> TargetUri<'_> {
        TargetUri {
            scheme: self.scheme,
            authority: &self.authority,
            path: &self.path,
            query: self.query.as_deref(),
        }
    }
}

/// What the writing thread has of a fill.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) temp: Option<Temp>,
    pub(super) written: u64,
    pub(super) claim: Option<Claim>,
}

/// A fill as both sides know it.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) name: Name,
    pub(super) uri: OwnedUri,
    /// Its length in bytes, where that is known.
    pub(super) declared: Option<u64>,
    has_failed: AtomicBool,
    failure: Mutex<Option<Refused>>,
    /// The writing thread's.
    pub(super) work: Mutex<Work>,
    /// How many there are, each with a file open.
    under_way: Arc<AtomicUsize>,
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Filling {
    /// A fill, counted in `under_way` until both sides have let go; `None` where that are `most` already.
    pub(super) fn new(
        name: Name,
        uri: &TargetUri<'_>,
        declared: Option<u64>,
        (under_way, most): (&Arc<AtomicUsize>, usize),
    ) -> Option<Arc<Self>> {
        let one_more = |now: usize| (now < most).then_some(now + 1);
        under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Arc::new(Self {
            name,
            uri: OwnedUri::of(uri),
            declared,
            has_failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            work: Mutex::default(),
            under_way: Arc::clone(under_way),
        }))
    }

    pub(super) fn fail(&self, why: Refused) {
        self.failure.lock().get_or_insert(why);
        self.has_failed.store(true, Ordering::Release);
    }

    pub(super) fn failure(&self) -> Option<Refused> {
        self.has_failed.load(Ordering::Acquire).then(|| *self.failure.lock()).flatten()
    }
}

/// A fill under way. Owned by the fetch that brings the body.
#[derive(Debug)]
pub struct FileFill {
    shared: Arc<Shared>,
    filling: Arc<Filling>,
    pushed: u64,
    is_over: bool,
}

impl FileFill {
    pub(super) fn new(shared: Arc<Shared>, filling: Arc<Filling>) -> Self {
        Self { shared, filling, pushed: 0, is_over: false }
    }

    /// Takes the next piece of the body. Never waits.
    ///
    /// # Errors
    /// It cannot be stored any more; whatever is written after that is refused as well.
    pub fn write(&mut self, bytes: Bytes) -> Result<(), Refused> {
        if let Some(why) = self.filling.failure() {
            return Err(why);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let pushed = self.pushed.saturating_add(bytes.len() as u64);
        let most = self.filling.declared.unwrap_or(u64::MAX).min(self.shared.max_object());
        let taken = match pushed > most {
            true => Err(Refused::TooLarge),
            false => self.shared.queue.push_piece(&self.filling, bytes),
        };
        match taken {
            Ok(()) => self.pushed = pushed,
            Err(why) => self.filling.fail(why),
        }
        taken
    }

    /// Ends the fill: the file gets its name, unless `is_valid` says that an invalidation came meanwhile. Never waits;
    /// `done` is told later. `is_valid` is asked under the queue's lock, so that an invalidation which marks the fetch
    /// first and then calls [`invalidate`](super::FileStore::invalidate) is never overtaken.
    pub fn commit(mut self, meta: Meta, is_valid: impl FnOnce() -> bool, done: Done) {
        let is_whole = self.filling.declared.is_none_or(|declared| declared == self.pushed);
        let failure = self.filling.failure().or((!is_whole).then_some(Refused::Incomplete));
        if let Some(why) = failure {
            return done(Err(why));
        }
        let job = Job::Finish(Arc::clone(&self.filling), Box::new(meta), done);
        match self.shared.queue.push_end(job, is_valid) {
            Ok(()) => self.is_over = true,
            Err((Job::Finish(_, _, done), why)) => done(Err(why)),
            Err(_) => {}
        }
    }
}

impl Drop for FileFill {
    fn drop(&mut self) {
        if !self.is_over {
            self.filling.fail(Refused::Incomplete);
            // The temporary file is removed on the writing thread; by a closed queue here.
            let _ = self.shared.queue.push_end(Job::Abandon(Arc::clone(&self.filling)), || true);
        }
    }
}
