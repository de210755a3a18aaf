//! A response on its way into a file.
//!
//! In: pieces of its body as they arrive, then its meta. Out: a file that has its name once all of it is there, or
//! nothing. No call waits: pieces go into a bounded queue, and where that is full, or the writing thread has given up
//! (no room, a failing disk), the next call says so and the response is served and not stored. What was taken can be read at
//! once ([`Arriving`]). Dropping a [`FileFill`] that was not committed takes everything back.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use larder_tier::fill::BoxFuture;
use larder_tier::rank::{Rank, RankedMutex};
use larder_tier::{BodySource, CHUNK_BYTES, Fill, Loss, Offered, StoredChunk};

use super::arriving::Arriving;
use super::directory::Directory;
use super::error::Refused;
use super::filling::{Done, Filling};
use super::meta::Meta;
use super::queue::FileJob;

/// A fill under way. Owned by the fetch that brings the body.
#[derive(Debug)]
pub struct FileFill {
    shared: Arc<Directory>,
    filling: Arc<Filling>,
    pushed: u64,
    is_over: bool,
}

impl FileFill {
    pub(super) fn new(shared: Arc<Directory>, filling: Arc<Filling>) -> Self {
        Self { shared, filling, pushed: 0, is_over: false }
    }

    /// Takes the next piece of the body. Never waits.
    ///
    /// # Errors
    /// It cannot be stored any more; whatever is written after that is refused as well.
    pub fn write(&mut self, bytes: Bytes) -> Result<(), Refused> {
        let is_taken = self.try_write(&bytes)?;
        is_taken.then_some(()).ok_or_else(|| {
            self.filling.fail(Refused::QueueFull);
            Refused::QueueFull
        })
    }

    /// The same where it may be tried again: false where the queue is full at this moment.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub(super) fn try_write(&mut self, bytes: &Bytes) -> Result<bool, Refused> {
        if let Some(why) = self.filling.failure() {
            return Err(why);
        }
        if bytes.is_empty() {
            return Ok(true);
        }
        let pushed = self.pushed.saturating_add(bytes.len() as u64);
        let most = self.filling.declared.unwrap_or(u64::MAX).min(self.shared.base.max_object());
        if pushed > most {
            self.filling.fail(Refused::TooLarge);
            return Err(Refused::TooLarge);
        }
        let content = &self.filling.content;
        content.add(bytes.clone());
        match self.shared.queue.push_piece(&self.filling, bytes.clone()) {
            Ok(()) => self.pushed = pushed,
            Err(why) => {
                content.take_back();
                if why != Refused::QueueFull {
                    self.filling.fail(why);
                    return Err(why);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// It is given up because the file system does not keep up.
    fn left_behind(&self) {
        self.filling.fail(Refused::QueueFull);
    }

    /// What has come so far, for those who read along.
    pub(crate) fn content(&self) -> &Arc<Arriving> {
        &self.filling.content
    }

    /// Bytes taken so far.
    pub(crate) fn length(&self) -> u64 {
        self.pushed
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
        let job = FileJob::Finish(Arc::clone(&self.filling), Box::new(meta), done);
        match self.shared.queue.push_end(job, is_valid) {
            Ok(()) => self.is_over = true,
            Err((job, why)) => {
                self.filling.fail(why);
                if let FileJob::Finish(_, _, done) = job {
                    done(Err(why));
                }
            }
        }
    }
}

impl Fill for FileFill {
    fn offer(&mut self, number: usize, chunk: &Bytes) -> Offered {
        let position = number as u64 * CHUNK_BYTES as u64;
        match self.try_write(chunk) {
            Ok(true) => {
                Offered::Taken(Arc::new(WrittenChunk { content: Arc::clone(self.content()), position }))
            }
            Ok(false) => Offered::Full,
            Err(why) => Offered::Lost(why.into()),
        }
    }

    /// A file has no gaps: it is given up.
    fn left_out(&mut self, _number: usize) {
        self.left_behind();
    }

    fn may_have_gaps(&self) -> bool {
        false
    }

    fn await_room(&self, waker: &Waker) {
        self.shared.queue.await_room(waker);
    }

    fn is_drained(&self, _parts: u64) -> bool {
        true
    }

    fn make_room(&self, bytes: u64) -> bool {
        self.shared.queue.backlog().is_some_and(|backlog| backlog.make_room(bytes))
    }

    fn finish(self: Box<Self>) -> Option<Arc<dyn BodySource>> {
        Some(Arc::new(FilledBody::new(*self)))
    }
}

/// A chunk that was taken, for those who read along.
struct WrittenChunk {
    content: Arc<Arriving>,
    position: u64,
}

impl StoredChunk for WrittenChunk {
    fn read(self: Arc<Self>, within: usize) -> BoxFuture<'static, Option<Bytes>> {
        let (content, position) = (Arc::clone(&self.content), self.position + within as u64);
        Box::pin(async move { content.read(position).await.ok() })
    }
}

impl From<Refused> for Loss {
    fn from(why: Refused) -> Self {
        match why {
            Refused::QueueFull => Self::QueueFull,
            Refused::NoRoom | Refused::TooLarge => Self::NoRoom,
            _ => Self::Failing,
        }
    }
}

/// A body all of which was handed over for a file that has no name yet. Who stores its response takes the fill and commits it;
/// where nobody does, the file goes with this, and not its content for those who read it.
#[derive(Debug)]
pub(crate) struct FilledBody {
    content: Arc<Arriving>,
    length: u64,
    fill: RankedMutex<Option<FileFill>>,
}

impl FilledBody {
    pub(crate) fn new(fill: FileFill) -> Self {
        Self {
            content: Arc::clone(fill.content()),
            length: fill.length(),
            fill: RankedMutex::new(Rank::Leaf, Some(fill)),
        }
    }

    pub(crate) fn content(&self) -> &Arc<Arriving> {
        &self.content
    }

    /// In bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The fill; once.
    pub(crate) fn take_fill(&self) -> Option<FileFill> {
        self.fill.lock().take()
    }
}

impl Drop for FileFill {
    fn drop(&mut self) {
        if !self.is_over {
            let why = self.filling.failure().unwrap_or(Refused::Incomplete);
            self.filling.fail(why);
            self.shared.base.counts.refusals.note(why.reason());
            // The temporary file is removed on the writing thread; by a closed queue here.
            let _ = self.shared.queue.push_end(FileJob::Abandon(Arc::clone(&self.filling)), || true);
        }
    }
}
