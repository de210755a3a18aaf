//! From a disk into memory while a client reads it: a large body that is in use.
//!
//! In: reads of whole bodies that lie on disks. Out: the same reads; and where one is worth it, the body lies in memory once the
//! client has read all of it, in place of the one in the index. Nothing is read twice for that: what is kept are the very
//! pieces that the client was sent.
//!
//! Worth it is a body that is read again before other large bodies of as many bytes as half the memory were read from disks: were
//! all of those promoted, it would not have been driven out. So neither a scan nor a rotation through more than fits there
//! promotes anything, and drives out nothing. Ranges neither promote nor count.
//! Room is reserved before the first piece is kept. A client that leaves takes the promotion with it. Several at once take at
//! most an eighth of the store, and none takes more than a body in memory may.

mod worth;

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::{BodyError, Stream};
use larder_tier::BodySource;

use crate::budget::Reservation;
use crate::memory::MemoryStore;
use crate::stored::{CHUNK_LOCATION_BYTES, PIECE_OVERHEAD_BYTES, Promoter, StoredBody, StoredResponse};

pub(crate) use worth::{Promotions, Worth};

/// What was read of other large bodies since the last time has to be less than this part of the store.
const RECENT_PART: u64 = 2;
/// What is being promoted takes at most this part of it.
const UNDER_WAY_PART: u64 = 8;

/// The right to promote one body, and its share of what is under way.
struct Turn {
    memory: Arc<MemoryStore>,
    body: Arc<StoredBody>,
    bytes: u64,
}

impl Turn {
    /// Takes note of a read, and whether it is worth it.
    fn of(body: &Arc<StoredBody>, memory: &Arc<MemoryStore>) -> Option<Self> {
        let worth = body.worth()?;
        let (bytes, cap, promotions) = (body.length(), memory.cap(), memory.promotions());
        if bytes > memory.max_object() {
            return None;
        }
        let begun = promotions.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        // Its end counts from then on, so that its own bytes are none of others.
        let last = worth.last_read.swap(begun + bytes, Ordering::Relaxed);
        if last == 0 || begun.saturating_sub(last) > cap / RECENT_PART {
            return None;
        }
        if worth.is_under_way.swap(true, Ordering::Relaxed) {
            return None;
        }
        let fits = |used: u64| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= cap / UNDER_WAY_PART).then_some(sum)
        };
        let all = &promotions.under_way_bytes;
        if all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            worth.is_under_way.store(false, Ordering::Relaxed);
            return None;
        }
        Some(Self { memory: Arc::clone(memory), body: Arc::clone(body), bytes })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.memory.promotions().under_way_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(worth) = self.body.worth() {
            worth.is_under_way.store(false, Ordering::Relaxed);
        }
    }
}

/// One promotion, with what has come of it.
struct Promotion {
    turn: Turn,
    from: Arc<dyn BodySource>,
    room: Reservation,
    pieces: Vec<Bytes>,
    left: u64,
}

impl Promotion {
    fn begin(body: &Arc<StoredBody>, memory: &Arc<MemoryStore>) -> Option<Self> {
        let turn = Turn::of(body, memory)?;
        let from = Arc::clone(body.source().filter(|source| source.promotable_as().is_some())?);
        let beside = from.chunks() as u64 * (PIECE_OVERHEAD_BYTES + CHUNK_LOCATION_BYTES);
        let room = memory.make_room(turn.bytes + beside)?;
        let pieces = Vec::with_capacity(from.chunks());
        Some(Self { left: turn.bytes, turn, from, room, pieces })
    }

    /// All of it was read. It goes into the index where the one on disks still is; under the head that stands there now, which may
    /// have been confirmed meanwhile.
    fn finish(self) {
        let Self { turn, from, room, pieces, .. } = self;
        let memory = &turn.memory;
        let Some(key) = from.promotable_as().cloned() else { return };
        let (there, _) = memory.responses(&key, Duration::MAX);
        let Some(old) = there.iter().find(|stored| Arc::ptr_eq(&stored.body, &turn.body)) else { return };
        let Some(own_room) = memory.make_room(StoredResponse::overhead_bytes(&old.head, &key)) else {
            return;
        };
        let body = Arc::new(StoredBody::promoted(pieces, room, from).lendable(memory.cap()));
        body.take_over(&turn.body);
        let new = StoredResponse {
            took: old.took,
            refreshing: old.refreshing.carried(),
            judged: old.judged.carried(),
            ..StoredResponse::new(Arc::clone(&old.head), body, old.number, own_room)
        };
        if memory.replace(&key, old, Arc::new(new), || true) {
            memory.promotions().done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A reader of a whole body, which may be on its way into memory.
pub(crate) struct Promoting {
    reader: Stream,
    /// Until the first byte is asked for: what is never read counts for nothing.
    asked: Option<(Arc<StoredBody>, Arc<MemoryStore>)>,
    promotion: Option<Promotion>,
}

impl Promoting {
    /// Reads all of `body`, which lies outside memory, through `reader`.
    pub(crate) fn new(reader: Stream, body: &Arc<StoredBody>, memory: Arc<MemoryStore>) -> Self {
        Self { reader, asked: Some((Arc::clone(body), memory)), promotion: None }
    }

    fn keep(&mut self, bytes: &Bytes) {
        let Some(promotion) = &mut self.promotion else { return };
        promotion.pieces.push(bytes.clone());
        promotion.left = promotion.left.saturating_sub(bytes.len() as u64);
        if promotion.left == 0
            && let Some(promotion) = self.promotion.take()
        {
            // Before the client has the last of it: when it asks again, the body is there.
            promotion.finish();
        }
    }
}

impl http_body::Body for Promoting {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some((body, memory)) = this.asked.take() {
            this.promotion = Promotion::begin(&body, &memory);
        }
        let polled = ready!(this.reader.as_mut().poll_frame(cx));
        match &polled {
            Some(Ok(frame)) => frame.data_ref().into_iter().for_each(|bytes| this.keep(bytes)),
            // Cut, or at its end.
            Some(Err(_)) | None => this.promotion = None,
        }
        Poll::Ready(polled)
    }
}

impl Promoter for MemoryStore {
    fn promoting(self: Arc<Self>, reader: Stream, body: &Arc<StoredBody>) -> Stream {
        Box::pin(Promoting::new(reader, body, self))
    }
}

impl StoredBody {
    /// A body that lies outside memory; `None` where `memory` has no room for the places of its chunks.
    pub(crate) fn outside(memory: &Arc<MemoryStore>, source: Arc<dyn BodySource>) -> Option<Self> {
        let room = match source.chunks() as u64 {
            0 => None,
            chunks => Some(memory.reserve(chunks * CHUNK_LOCATION_BYTES)?),
        };
        let weak = Arc::downgrade(memory);
        // What is not to be promoted knows of no memory.
        let promoter = source.promotable_as().map(|_| weak as Weak<dyn Promoter>);
        Some(Self::in_source(source, room, promoter))
    }
}

#[cfg(test)]
mod tests;
