//! What is to be written next: heads and chunk sizes in one reused buffer, content as shared pieces between them.
//!
//! Everything queued goes out by as few system calls as the kernel allows. Content is not copied, but for pieces that are
//! so small that copying them behind the head costs next to nothing. How much of what the
//! kernel took was content is known here, and told with each write.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use smallvec::SmallVec;

use crate::byte_stream::ByteStream;
use crate::content::{Filed, Piece};

/// How many pieces one system call is given.
pub(crate) const SLICES_MAX: usize = 64;
/// Content up to this size is copied: it lies behind its head then, one `send` takes both, and the body is let go of before
/// anything waits.
const COPIED_BYTES_MAX: usize = 1024;
/// What the buffer has room for from its first use: a head with a little content. Growing to that from nothing takes several
/// allocations, which a connection of one request would pay for.
const SCRATCH_FIRST: usize = 1024;
/// Up to this much of a file, a head before it waits for it, so that both leave in one go. With more behind it that go would
/// be cut in two all the same, and the halves cost more than a head on its own.
const AHEAD_OF_BYTES_MAX: usize = 64 * 1024;
/// A buffer that grew beyond this is not kept for the next response.
const SCRATCH_KEPT: usize = 16 * 1024;

#[derive(Default)]
pub(crate) struct Outbox {
    scratch: Vec<u8>,
    queue: VecDeque<Segment>,
    /// How much of the front segment is written.
    front_written: usize,
    queued_bytes: usize,
}

/// What the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: usize,
    /// Of them, without heads and framing.
    pub(crate) content: usize,
    /// Of them, from a file.
    pub(crate) from_file: usize,
}

enum Segment {
    /// A range of the scratch buffer: a head, or framing.
    Inline { start: usize, end: usize },
    /// The same, for content.
    Copied { start: usize, end: usize },
    /// A piece of content.
    Content(Piece),
    /// Content that the kernel takes from a file.
    File(Filed),
}

impl Outbox {
    /// Appends what `write` writes: a head, or the framing around content.
    pub(crate) fn inline(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
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
    pub(crate) fn content(&mut self, bytes: Piece) {
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

    /// Appends content that lies in a file.
    pub(crate) fn file(&mut self, filed: Filed) {
        if filed.length() > 0 {
            self.queued_bytes += filed.length();
            self.queue.push_back(Segment::File(filed));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    /// How much waits to be written.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Whether more may be queued before something is written.
    pub(crate) fn has_room(&self, bytes_max: usize) -> bool {
        self.queue.len() < SLICES_MAX && self.queued_bytes < bytes_max
    }

    /// Forgets what was not written.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.written_all();
    }

    /// Writes once. Not to be called while empty.
    pub(crate) fn poll_write<T: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
    ) -> Poll<io::Result<Written>> {
        if let Some(Segment::File(filed)) = self.queue.front() {
            let Some(file) = filed.file() else {
                return Poll::Ready(Err(io::ErrorKind::NotFound.into()));
            };
            let range = filed.range.start + self.front_written as u64..filed.range.end;
            match ready!(io.poll_send_file(cx, file, range)) {
                Ok(written) => {
                    let content = self.advance(written);
                    return Poll::Ready(Ok(Written { bytes: written, content, from_file: written }));
                }
                Err(error) if is_the_connections(&error) => return Poll::Ready(Err(error)),
                // A kernel, or a filter of system calls, that does not send files.
                Err(_) => self.read_file_from_memory(cx)?,
            }
        }
        let written = match self.in_one_place() {
            Some((bytes, true)) => ready!(io.poll_write_ahead(cx, bytes))?,
            Some((bytes, false)) => ready!(Pin::new(io).poll_write(cx, bytes))?,
            None => ready!(Pin::new(io).poll_write_vectored(cx, &self.slices()))?,
        };
        Poll::Ready(Ok(Written { bytes: written, content: self.advance(written), from_file: 0 }))
    }

    /// Puts the pieces in memory in the place of the file at the front.
    fn read_file_from_memory(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(Segment::File(filed)) = self.queue.pop_front() else { return Ok(()) };
        let mut source = filed.into_source(std::mem::take(&mut self.front_written));
        let mut at = 0;
        while let Poll::Ready(Some(piece)) = source.poll_next(cx) {
            self.queue.insert(at, Segment::Content(piece.map_err(io::Error::other)?));
            at += 1;
        }
        Ok(())
    }

    /// All that is queued before a file, where it lies together: most often a head with little behind it. And whether a file
    /// follows that it should wait for.
    fn in_one_place(&self) -> Option<(&[u8], bool)> {
        let mut place: Option<(usize, usize)> = None;
        let mut is_ahead = false;
        for segment in &self.queue {
            let (start, end) = match segment {
                Segment::Inline { start, end } | Segment::Copied { start, end } => (start, end),
                Segment::Content(_) => return None,
                Segment::File(filed) => {
                    is_ahead = filed.length() <= AHEAD_OF_BYTES_MAX;
                    break;
                }
            };
            place = match place {
                None => Some((*start, *end)),
                Some((first, last)) if last == *start => Some((first, *end)),
                Some(_) => return None,
            };
        }
        let (start, end) = place?;
        Some((self.scratch.get(start + self.front_written..end)?, is_ahead))
    }

    fn slices(&self) -> SmallVec<[IoSlice<'_>; SLICES_MAX]> {
        let mut skip = self.front_written;
        let before_file = self.queue.iter().take_while(|segment| !matches!(segment, Segment::File(_)));
        let segments = before_file.take(SLICES_MAX).map(|segment| {
            let bytes: &[u8] = match segment {
                Segment::Inline { start, end } | Segment::Copied { start, end } => {
                    self.scratch.get(*start..*end).unwrap_or_default()
                }
                Segment::Content(bytes) => bytes,
                Segment::File(_) => &[],
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
                Segment::File(filed) => (filed.length(), true),
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
        } else if self.scratch.len() > 2 * SCRATCH_KEPT {
            self.forget_written();
        }
        content
    }

    /// Forgets the front of the buffer. A queue that is never empty would have it grow with all that it ever had.
    fn forget_written(&mut self) {
        if let Some(Segment::Inline { start, .. } | Segment::Copied { start, .. }) = self.queue.front_mut() {
            *start += std::mem::take(&mut self.front_written);
        }
        let starts = self.queue.iter().filter_map(|segment| match segment {
            Segment::Inline { start, .. } | Segment::Copied { start, .. } => Some(*start),
            Segment::Content(_) | Segment::File(_) => None,
        });
        let gone = starts.take(1).next().unwrap_or(self.scratch.len());
        if gone < SCRATCH_KEPT {
            return;
        }
        self.scratch.drain(..gone);
        for segment in &mut self.queue {
            if let Segment::Inline { start, end } | Segment::Copied { start, end } = segment {
                (*start, *end) = (*start - gone, *end - gone);
            }
        }
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

/// Whether nothing else could be sent either.
fn is_the_connections(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::future::poll_fn;
    use std::ops::Range;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use bytes::Bytes;
    use larder_http::body::{Body, Pieces};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::*;
    use crate::content::Source;

    /// Takes at most `step` bytes at a time.
    #[derive(Default)]
    struct Slow {
        step: usize,
        taken: Vec<u8>,
        /// Files are sent until so many bytes were taken.
        files_until: Option<usize>,
    }

    impl AsyncRead for Slow {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl ByteStream for Slow {
        const SENDS_FILES: bool = true;

        fn poll_send_file(
            &mut self,
            _: &mut Context<'_>,
            file: BorrowedFd<'_>,
            range: Range<u64>,
        ) -> Poll<io::Result<usize>> {
            if self.files_until.is_some_and(|until| self.taken.len() >= until) {
                return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
            }
            let most = usize::try_from(range.end - range.start).expect("small");
            let mut bytes = vec![0; most.min(self.step)];
            File::from(file.try_clone_to_owned()?).read_exact_at(&mut bytes, range.start)?;
            self.taken.extend_from_slice(&bytes);
            Poll::Ready(Ok(bytes.len()))
        }
    }

    /// What stands in a file as well.
    struct Kept(Vec<Bytes>, File);

    impl Kept {
        fn of(pieces: &[String]) -> Arc<dyn Pieces> {
            let file = tempfile::tempfile().expect("a file");
            file.write_all_at(pieces.concat().as_bytes(), 0).expect("written");
            Arc::new(Self(pieces.iter().cloned().map(Bytes::from).collect(), file))
        }
    }

    impl Pieces for Kept {
        fn pieces(&self) -> &[Bytes] {
            &self.0
        }

        fn file(&self) -> Option<BorrowedFd<'_>> {
            Some(self.1.as_fd())
        }
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
            let (mut out, mut io) = (Outbox::default(), Slow { step, ..Slow::default() });
            let mut content = 0;
            for round in 0..2 {
                out.inline(|o| o.extend_from_slice(b"he"));
                out.inline(|o| o.extend_from_slice(b"ad "));
                out.content(Piece::Bytes(Bytes::from_static(b"one")));
                out.content(Piece::Bytes(Bytes::new()));
                out.content(Piece::Bytes(Bytes::from_static(b" two")));
                out.content(Piece::Bytes(Bytes::from(large.clone())));
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
    async fn a_range_of_a_file_is_exactly_that_range_between_what_surrounds_it() {
        let letters =
            |first: char, count: usize| (0..count).map(move |n| char::from(first as u8 + (n % 20) as u8));
        let pieces: Vec<String> =
            [('a', 20_000), ('b', 0), ('c', 30_000), ('d', 1)].map(|(c, n)| letters(c, n).collect()).into();
        let owner = Kept::of(&pieces);
        let all = pieces.concat();
        for (start, end) in
            [(0, 50_001), (0, 20_000), (1, 19_999), (19_999, 40_000), (20_000, 50_001), (33_617, 50_001)]
        {
            for (step, files_until) in
                [(100, None), (30_000, None), (100_000, None), (7_000, Some(6_000)), (100, Some(0))]
            {
                let told = format!("{start}..{end}, {step}, {files_until:?}");
                let (mut out, mut io) = (Outbox::default(), Slow { step, files_until, ..Slow::default() });
                let range = start as u64..end as u64;
                let mut source = Source::new(Body::Pieces { owner: Arc::clone(&owner), range });
                out.inline(|o| o.extend_from_slice(b"head "));
                out.file(source.take_file().expect("it has one"));
                assert!(source.is_done());
                out.inline(|o| o.extend_from_slice(b" end"));
                let (mut content, mut from_file) = (0, 0);
                while !out.is_empty() {
                    let written = poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes");
                    content += written.content;
                    from_file += written.from_file;
                }
                assert!(io.taken == format!("head {} end", &all[start..end]).as_bytes(), "{told}");
                assert_eq!(content, end - start, "{told}");
                assert_eq!(from_file == content, files_until.is_none(), "{told}");
            }
        }
    }

    #[tokio::test]
    async fn a_head_waits_for_what_leaves_with_it() {
        let long = ["x".repeat(AHEAD_OF_BYTES_MAX + 1)];
        let owner = Kept::of(&long);
        for (bytes, waits) in [(AHEAD_OF_BYTES_MAX, true), (AHEAD_OF_BYTES_MAX + 1, false)] {
            let mut out = Outbox::default();
            out.inline(|o| o.extend_from_slice(b"head"));
            let range = 0..bytes as u64;
            let mut source = Source::new(Body::Pieces { owner: Arc::clone(&owner), range });
            out.file(source.take_file().expect("it has one"));
            assert_eq!(out.in_one_place(), Some((b"head".as_slice(), waits)));
        }
        let mut little = Source::new(Body::Pieces { owner, range: 0..16_383 });
        assert!(little.take_file().is_none());
    }

    #[tokio::test]
    async fn a_client_that_always_leaves_a_rest_does_not_make_the_buffer_grow() {
        let (mut out, mut io) = (Outbox::default(), Slow { step: 1000, ..Slow::default() });
        for _ in 0..200 {
            out.content(Piece::Bytes(Bytes::from(vec![b'x'; 1001])));
            poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes");
            assert!(!out.is_empty());
        }
        assert!(out.scratch.capacity() <= 2 * SCRATCH_KEPT, "{}", out.scratch.capacity());
    }

    #[tokio::test]
    async fn a_queue_that_is_never_empty_does_not_make_the_buffer_grow() {
        let (mut out, mut io) = (Outbox::default(), Slow { step: 997, ..Slow::default() });
        let (mut all, mut content) = (Vec::new(), 0);
        for round in 0..2000_u32 {
            let head = [round.to_be_bytes(); 200].concat();
            out.inline(|o| o.extend_from_slice(&head));
            all.extend_from_slice(&head);
            if round % 3 == 0 {
                let large = vec![round as u8; COPIED_BYTES_MAX + 1];
                all.extend_from_slice(&large);
                out.content(Piece::Bytes(Bytes::from(large)));
            }
            while out.queued_bytes() > 50_000 {
                content += poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes").content;
            }
        }
        assert!(out.scratch.capacity() <= 8 * SCRATCH_KEPT, "{}", out.scratch.capacity());
        while !out.is_empty() {
            content += poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes").content;
        }
        assert!(io.taken == all && content == 667 * (COPIED_BYTES_MAX + 1));
    }

    #[tokio::test]
    async fn a_head_with_little_behind_it_lies_in_one_place() {
        let mut out = Outbox::default();
        out.inline(|o| o.extend_from_slice(b"head"));
        out.content(Piece::Bytes(Bytes::from_static(b"content")));
        assert_eq!(out.in_one_place(), Some((b"headcontent".as_slice(), false)));
        let mut io = Slow { step: 6, ..Slow::default() };
        poll_fn(|cx| out.poll_write(cx, &mut io)).await.expect("takes");
        assert_eq!(out.in_one_place(), Some((b"ntent".as_slice(), false)));
        out.content(Piece::Bytes(Bytes::from(vec![b'x'; COPIED_BYTES_MAX + 1])));
        assert_eq!(out.in_one_place(), None);
    }
}
