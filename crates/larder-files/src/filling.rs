//! A response on its way into a file, as the fetch that brings it and the thread that writes it both know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use larder_http::message::Scheme;
use larder_tier::rank::RankedMutex;
use parking_lot::Mutex;

use super::arriving::Arriving;
use super::error::Refused;
use super::name::{Name, TargetUri};
use super::place::Temp;
use super::room::Claim;

/// Hears how a committed fill ended; called once, on the writing thread or at once.
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
pub(super) struct FillWork {
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
    failure: RankedMutex<Option<Refused>>,
    /// For those who read along.
    pub(super) content: Arc<Arriving>,
    /// The writing thread's, which alone ever locks it, and calls the file system meanwhile: a lock without a rank.
    pub(super) work: Mutex<FillWork>,
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
        content: Arc<Arriving>,
        (under_way, most): (&Arc<AtomicUsize>, usize),
    ) -> Option<Arc<Self>> {
        let one_more = |now: usize| (now < most).then_some(now + 1);
        under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Arc::new(Self {
            name,
            uri: OwnedUri::of(uri),
            declared,
            has_failed: AtomicBool::new(false),
            failure: RankedMutex::default(),
            content,
            work: Mutex::default(),
            under_way: Arc::clone(under_way),
        }))
    }

    pub(super) fn fail(&self, why: Refused) {
        self.failure.lock().get_or_insert(why);
        self.has_failed.store(true, Ordering::Release);
    }

    /// Gives up what was written of it. Who reads along can go on with that, and its room is taken as long.
    pub(super) fn give_up(&self, work: &mut FillWork) {
        if let Some(claim) = std::mem::take(work).claim {
            self.content.hold(Arc::new(claim));
        }
    }

    pub(super) fn failure(&self) -> Option<Refused> {
        self.has_failed.load(Ordering::Acquire).then(|| *self.failure.lock()).flatten()
    }
}
