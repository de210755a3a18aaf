//! Large bodies in memory, as their readers hold them: each by a lease, which the store can end.
//!
//! In: large bodies that have readers, and word that one has gone from the index. Out: streams of their bytes. A body that is in
//! the index is there for everybody and costs its readers nothing. One that has gone from it counts as long as it has
//! readers. All such bodies together take at most a quarter of the store. Beyond that the store lets go of those that
//! went first, whose readers are the slowest of all. Their readers go on from the disks, where the body lies there
//! too, or are told [`BodyError::SlowReader`]: whoever sends their answer goes on with a new fetch, or cuts them.
//! Without that a few clients that read slowly would hold a store of any size.
//!
//! Locks: a body's list of readers, a lease, and the list of bodies that have gone. Each is a leaf, held for the length of a look.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::{BodyError, Stream};
use larder_tier::BodySource;
use larder_tier::rank::{Rank, RankedMutex};

/// The part of a store that readers of what has gone from its index may hold.
const GONE_PART: u64 = 4;

/// A body is large beyond this part of its store, within these bounds.
const LARGE_PART: u64 = 64;
const LARGE_BYTES: std::ops::RangeInclusive<u64> = 64 * 1024..=1024 * 1024;

/// Sent at once: what a client holds of a body that is let go of.
const FRAME_BYTES: usize = 256 * 1024;

/// From how many bytes on a body of a store with this cap is held by leases.
pub(crate) fn large_from(cap: u64) -> u64 {
    (cap / LARGE_PART).clamp(*LARGE_BYTES.start(), *LARGE_BYTES.end())
}

/// A body whose readers may hold it by leases.
pub(crate) trait Lendable: std::fmt::Debug + Send + Sync {
    /// Its readers, where it is held by leases.
    fn leases(&self) -> Option<&Leases>;

    /// The bytes from `position` to the end of the piece they lie in, where they are in memory.
    fn at(&self, position: u64) -> Option<Bytes>;

    /// Where it lies outside memory as well.
    fn source(&self) -> Option<&Arc<dyn BodySource>>;

    /// Length in bytes.
    fn length(&self) -> u64;
}

/// The leases of one body.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    readers: RankedMutex<Vec<Weak<Lease>>>,
    is_let_go: AtomicBool,
}

impl Leases {
    /// Whether the body is not to be read any more.
    pub(crate) fn is_let_go(&self) -> bool {
        self.is_let_go.load(Ordering::Acquire)
    }

    /// Ends all of them.
    fn end(&self) {
        let mut readers = self.readers.lock();
        // Under the lock: who takes a lease after that sees it.
        self.is_let_go.store(true, Ordering::Release);
        let ended = std::mem::take(&mut *readers);
        drop(readers);
        ended.iter().filter_map(Weak::upgrade).for_each(|lease| lease.end());
    }
}

/// What a lease is of.
#[derive(Debug)]
enum Leased {
    Memory(Arc<dyn Lendable>),
    /// It was let go of, and lies there as well.
    Outside(Arc<dyn BodySource>),
    Nothing,
}

/// One holder's right to a body.
#[derive(Debug)]
pub(crate) struct Lease(RankedMutex<Leased>);

impl Lease {
    fn new(leased: Leased) -> Self {
        Self(RankedMutex::new(Rank::Leaf, leased))
    }

    /// A lease of `body`, which has [leases](Lendable::leases).
    pub(crate) fn of<B: Lendable + 'static>(body: &Arc<B>) -> Arc<Self> {
        let Some(leases) = body.leases() else { return Arc::new(Self::new(Leased::Nothing)) };
        let mut readers = leases.readers.lock();
        if leases.is_let_go() {
            return Arc::new(Self::new(Leased::without(&**body)));
        }
        if readers.len() == readers.capacity() {
            readers.retain(|reader| reader.strong_count() > 0);
        }
        let lease = Arc::new(Self::new(Leased::Memory(Arc::clone(body) as Arc<dyn Lendable>)));
        readers.push(Arc::downgrade(&lease));
        lease
    }

    /// The bytes from `position` on that lie in one piece; `None` where it is not in memory any more.
    pub(crate) fn at(&self, position: u64) -> Option<Bytes> {
        match &*self.0.lock() {
            Leased::Memory(body) => body.at(position),
            Leased::Outside(_) | Leased::Nothing => None,
        }
    }

    /// Where else it lies, once it is not in memory any more.
    fn outside(&self) -> Option<Arc<dyn BodySource>> {
        match &*self.0.lock() {
            Leased::Outside(source) => Some(Arc::clone(source)),
            Leased::Memory(_) | Leased::Nothing => None,
        }
    }

    /// Whether it is still of something in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(&*self.0.lock(), Leased::Memory(_))
    }

    fn end(&self) {
        let mut leased = self.0.lock();
        if let Leased::Memory(body) = &*leased {
            let without = Leased::without(&**body);
            let before = std::mem::replace(&mut *leased, without);
            // The last of the body may go with it.
            drop(leased);
            drop(before);
        }
    }
}

impl Leased {
    fn without(body: &dyn Lendable) -> Self {
        body.source().map_or(Self::Nothing, |source| Self::Outside(Arc::clone(source)))
    }
}

/// A reader of a range of a large body.
pub(crate) struct LeasedReader {
    lease: Arc<Lease>,
    range: Range<u64>,
    /// Where it goes on once the body was let go of.
    outside: Option<Stream>,
}

impl LeasedReader {
    pub(crate) fn new<B: Lendable + 'static>(body: &Arc<B>, range: Range<u64>) -> Self {
        Self { lease: Lease::of(body), range, outside: None }
    }
}

impl http_body::Body for LeasedReader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.range.is_empty() {
            return Poll::Ready(None);
        }
        loop {
            if let Some(outside) = &mut this.outside {
                return outside.as_mut().poll_frame(cx);
            }
            if let Some(mut bytes) = this.lease.at(this.range.start) {
                let left = usize::try_from(this.range.end - this.range.start).unwrap_or(usize::MAX);
                bytes.truncate(left.min(FRAME_BYTES));
                this.range.start += bytes.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            this.outside = this.lease.outside().and_then(|source| source.reader(this.range.clone()));
            if this.outside.is_none() {
                return Poll::Ready(Some(Err(BodyError::SlowReader)));
            }
        }
    }
}

/// Bodies of one store that have gone from its index while somebody read them.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// In the order in which they went.
    bodies: RankedMutex<VecDeque<Weak<dyn Lendable>>>,
    let_go: AtomicU64,
}

impl Gone {
    /// A body has gone from the index of a store with this cap. Those that went first are let go of where all that are read take
    /// too much. Not to be called under a lock.
    pub(crate) fn note<B: Lendable + 'static>(&self, body: &Arc<B>, cap: u64) {
        if body.leases().is_none() || Arc::strong_count(body) == 1 {
            return;
        }
        // Dropped behind the lock: each may be the last of its body.
        let held: Vec<Arc<dyn Lendable>>;
        let mut over = Vec::new();
        {
            let mut bodies = self.bodies.lock();
            bodies.retain(|gone| {
                gone.strong_count() > 0 && !std::ptr::addr_eq(gone.as_ptr(), Arc::as_ptr(body))
            });
            let gone: Weak<B> = Arc::downgrade(body);
            bodies.push_back(gone);
            held = bodies.iter().filter_map(Weak::upgrade).collect();
            let mut bytes: u64 = held.iter().map(|body| body.length()).sum();
            for first in &held {
                if bytes <= cap / GONE_PART {
                    break;
                }
                bytes -= first.length();
                bodies.retain(|gone| !std::ptr::addr_eq(gone.as_ptr(), Arc::as_ptr(first)));
                over.push(first);
            }
        }
        for body in over {
            body.leases().into_iter().for_each(Leases::end);
            self.let_go.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bodies that were let go of.
    pub(crate) fn let_go(&self) -> u64 {
        self.let_go.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
