//! What is to be written next: heads and chunk sizes in one reused buffer, content as shared pieces between them.
//!
//! Everything queued goes out by as few system calls as the kernel allows. Content is not copied, but for pieces that are
//! so small that copying them behind the head costs next to nothing. How much of what the
//! kernel took was content is known here, and told with each write.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use smallvec::SmallVec;
use tokio::io::AsyncWrite;

/// How many pieces one system call is given.
pub(super) const SLICES_MAX: usize = 64;
/// Content up to this size is copied: it lies behind its head then, one `send` takes both, and the body is let go of before
/// anything waits.
const COPIED_BYTES_MAX: usize = 1024;
/// What the buffer has room for from its first use: a head with a little content. Growing to that from nothing takes several
/// allocations, which a connection of one request would pay for.
const SCRATCH_FIRST: usize = 1024;
/// A buffer that grew beyond this is not kept for the next response.
const SCRATCH_KEPT: usize = 16 * 1024;

#[derive(Default)]
pub(super) struct Outbox {
    scratch: Vec<u8>,
    queue: VecDeque<Segment>,
    /// How much of the front segment is written.
    front_written: usize,
    queued_bytes: usize,
}

/// What the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: usize,
    /// Of them, without heads and framing.
    pub(super) content: usize,
}

enum Segment {
    /// A range of the scratch buffer: a head, or framing.
    Inline { start: usize, end: usize },
    /// The same, for content.
    Copied { start: usize, end: usize },
    /// A piece of content.
    Content(Bytes),
}

impl Outbox {
    /// Appends what `write` writes: a head, or the framing around content.
    pub(super) fn inline(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.scratch.capacity() == 0 {
            self.scratch.reserve(SCRATCH_FIRST);
        }
        let start = self.scratch.len();
        write(&mut self.scratch);
        let length = self.scratch.len().saturating_sub(start);
        self.queued_bytes += length;
        match self.queue.back_mut() {
            Some(Segment::Inline { end, .. }) => *end += length,
            _ => self.queue.push_back(Segment::Inline { start, end: start + length }),
        }
    }

    /// Appends content.
    pub(super) fn content(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.queued_bytes += bytes.len();
        // Of a client that always leaves a rest, the buffer would never be empty, and grow with all that it is sent.
        let has_room = self.scratch.len() + bytes.len() <= SCRATCH_KEPT;
        self.queue.push_back(if bytes.len() <= COPIED_BYTES_MAX && has_room {
            let start = self.scratch.len();
            self.scratch.extend_from_slice(&bytes);
            Segment::Copied { start, end: self.scratch.len() }
        } else {
            Segment::Content(bytes)
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    /// Whether more may be queued before something is written.
    pub(super) fn has_room(&self, bytes_max: usize) -> bool {
        self.queue.len() < SLICES_MAX && self.queued_bytes < bytes_max
    }

    /// Forgets what was not written.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.written_all();
    }

    /// Writes once. Not to be called while empty.
    pub(super) fn poll_write<T: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
    ) -> Poll<io::Result<Written>> {
        let written = match self.in_one_place() {
            Some(bytes) => ready!(Pin::new(io).poll_write(cx, bytes))?,
            None => ready!(Pin::new(io).poll_write_vectored(cx, &self.slices()))?,
        };
        Poll::Ready(Ok(Written { bytes: written, content: self.advance(written) }))
    }

    /// All that is queued, where it lies together: most often a head with little behind it.
    fn in_one_place(&self) -> Option<&[u8]> {
        let mut place: Option<(usize, usize)> = None;
        for segment in &self.queue {
            let (Segment::Inline { start, end } | Segment::Copied { start, end }) = segment else {
                return None;
            };
            place = match place {
                None => Some((*start, *end)),
                Some((first, last)) if last == *start => Some((first, *end)),
                Some(_) => return None,
            };
        }
        let (start, end) = place?;
        self.scratch.get(start + self.front_written..end)
    }

    fn slices(&self) -> SmallVec<[IoSlice<'_>; SLICES_MAX]> {
        let mut skip = self.front_written;
        let segments = self.queue.iter().take(SLICES_MAX).map(|segment| {
            let bytes: &[u8] = match segment {
                Segment::Inline { start, end } | Segment::Copied { start, end } => {
                    self.scratch.get(*start..*end).unwrap_or_default()
                }
                Segment::Content(bytes) => bytes,
            };
            IoSlice::new(bytes.get(std::mem::take(&mut skip)..).unwrap_or_default())
        });
        segments.collect()
    }

    /// Takes what was written off the queue, and says how much of it was content.
    fn advance(&mut self, mut written: usize) -> usize {
        self.queued_bytes = self.queued_bytes.saturating_sub(written);
        let mut content = 0;
        while let Some(segment) = self.queue.front() {
            let (length, is_content) = match segment {
                Segment::Inline { start, end } => (end - start, false),
                Segment::Copied { start, end } => (end - start, true),
                Segment::Content(bytes) => (bytes.len(), true),
            };
            let step = written.min(length - self.front_written);
            written -= step;
            self.front_written += step;
            content += if is_content { step } else { 0 };
            if self.front_written < length {
                break;
            }
            self.front_written = 0;
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.written_all();
        }
        content
    }

    fn written_all(&mut self) {
        self.front_written = 0;
        self.queued_bytes = 0;
        self.scratch.clear();
        if self.scratch.capacity() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Takes at most `step` bytes at a time.
    struct Slow {
        step: usize,
        taken: Vec<u8>,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let n = self.step.min(bytes.len());
            self.taken.extend_from_slice(&bytes[..n]);
            Poll::Ready(Ok(n))
        }
        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|s| s.iter().copied()).take(self.step).collect();
            self.taken.extend_from_slice(&all);
            Poll::Ready(Ok(all.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn order_holds_and_only_content_is_counted_however_little_is_taken() {
        // Small content is copied, larger is not.
        let large = vec![b'x'; COPIED_BYTES_MAX + 1];
        for step in (1..20).chain([COPIED_BYTES_MAX, 10_000]) {
            let (mut out, mut io) = (Outbox::default(), Slow { step, taken: Vec::new() });
            let mut content = 0;
            for round in 0..2 {
                out.inline(|o| o.extend_from_slice(b"he"));
                out.inline(|o| o.extend_from_slice(b"ad "));
                out.content(Bytes::from_static(b"one"));
                out.content(Bytes::new());
                out.content(Bytes::from_static(b" two"));
                out.content(Bytes::from(large.clone()));
                out.inline(|o| o.extend_from_slice(b" end;"));
                while !out.is_empty() {
                    content += poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes").content;
                }
                let message = [b"head one two".as_slice(), &large, b" end;"].concat();
                assert_eq!(io.taken, message.repeat(round + 1), "step {step}");
            }
            assert_eq!(content, 2 * (7 + large.len()), "step {step}");
        }
    }

    #[tokio::test]
    async fn a_client_that_always_leaves_a_rest_does_not_make_the_buffer_grow() {
        let (mut out, mut io) = (Outbox::default(), Slow { step: 1000, taken: Vec::new() });
        for _ in 0..200 {
            out.content(Bytes::from(vec![b'x'; 1001]));
            poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes");
            assert!(!out.is_empty());
        }
        assert!(out.scratch.capacity() <= 2 * SCRATCH_KEPT, "{}", out.scratch.capacity());
    }

    #[tokio::test]
    async fn a_head_with_little_behind_it_lies_in_one_place() {
        let mut out = Outbox::default();
        out.inline(|o| o.extend_from_slice(b"head"));
        out.content(Bytes::from_static(b"content"));
        assert_eq!(out.in_one_place(), Some(b"headcontent".as_slice()));
        let mut io = Slow { step: 6, taken: Vec::new() };
        poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes");
        assert_eq!(out.in_one_place(), Some(b"ntent".as_slice()));
        out.content(Bytes::from(vec![b'x'; COPIED_BYTES_MAX + 1]));
        assert_eq!(out.in_one_place(), None);
    }
}
