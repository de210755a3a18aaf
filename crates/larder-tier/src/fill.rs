//! A body on its way into a tier, chunk by chunk.
//!
//! In: chunks of [`CHUNK_BYTES`], in order, but perhaps not all of them. Out: where each lies that was taken, and at the end the
//! body as it lies there. No call waits. Dropped before its end, a fill leaves nothing that anybody finds.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;

use crate::source::BodySource;

/// The size of all chunks of a body but the last, in bytes.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// A future off the path of a hit.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a body is not kept, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// There was no room for it, or it is larger than the store takes.
    NoRoom,
    /// What it was written to did not keep up, and a reader would have had to wait.
    QueueFull,
    /// What it was written to failed.
    Failing,
}

/// A chunk that was taken. It can be read for as long as this is held, also where it was not written after all.
pub trait StoredChunk: Send + Sync {
    /// Its bytes from `within` on, or some of them, at least one; `None` where they are lost.
    fn read(self: Arc<Self>, within: usize) -> BoxFuture<'static, Option<Bytes>>;
}

/// What became of a chunk.
pub enum Offered {
    /// It lies there from now on.
    Taken(Arc<dyn StoredChunk>),
    /// A queue is full; it may be offered again.
    Full,
    /// The body is not stored any more.
    Lost(Loss),
}

/// A body that arrives. Owned by the fetch that brings it.
pub trait Fill: Send {
    /// Hands the chunk of this number over, without waiting.
    fn offer(&mut self, number: usize, chunk: &Bytes) -> Offered;

    /// Counts a chunk that is not kept.
    fn left_out(&mut self, number: usize);

    /// Whether a chunk may be left out of it.
    fn may_have_gaps(&self) -> bool;

    /// Wakes `waker` once there may be room again, or never will.
    fn await_room(&self, waker: &Waker);

    /// Whether what waits is no more than one of so many parts of what may.
    fn is_drained(&self, parts: u64) -> bool;

    /// Sees to it that a chunk of so many bytes may wait; false where that is no use. Evicts: for who holds no lock of memory's.
    fn make_room(&self, bytes: u64) -> bool;

    /// All of it was offered. What was taken; `None` where that is nothing, or it was lost meanwhile.
    fn finish(self: Box<Self>) -> Option<Arc<dyn BodySource>>;
}
