//! The content of a file, on its way to a client.
//!
//! In: a file that was found open, or one that is just being written, and a range of it. Out: its bytes, piece by piece, each
//! followed by a look at the file: where it is not what it was any more, the client is cut, never told that this was all. What
//! the page cache has is read at once, the rest on the runtime's pool.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::BodyError;
use tokio::task::JoinHandle;

use super::arriving::Arriving;
use super::hit::{FileHit, PIECE_BYTES};

/// What is read.
#[derive(Clone, Debug)]
pub(crate) enum FileContent {
    /// A file that has its name.
    Found(Arc<FileHit>),
    /// All of one that has none yet, or got it a moment ago.
    Written(Arc<Arriving>),
}

impl FileContent {
    fn read_now(&self, at: u64, length: usize) -> io::Result<Option<Bytes>> {
        match self {
            Self::Found(file) => file.read_now(at, length),
            Self::Written(file) => file.read_now(at, length),
        }
    }

    fn read_at(&self, at: u64, length: usize) -> io::Result<Bytes> {
        match self {
            Self::Found(file) => file.read_at(at, length),
            Self::Written(file) => file.read_at(at, length),
        }
    }
}

/// One reader of a file.
pub(crate) struct FileReader {
    content: FileContent,
    /// What is left to read.
    range: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileReader {
    /// A reader of `range`, which lies within the file.
    pub(crate) fn new(content: FileContent, range: Range<u64>) -> Self {
        Self { content, range, reading: None }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if self.reading.is_none() {
            let (at, left) = (self.range.start, self.range.end - self.range.start);
            let length = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            if let Some(bytes) = self.content.read_now(at, length).transpose() {
                return Poll::Ready(bytes);
            }
            let content = self.content.clone();
            self.reading = Some(tokio::task::spawn_blocking(move || content.read_at(at, length)));
        }
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        Poll::Ready(read.unwrap_or_else(|lost| Err(io::Error::other(lost))))
    }
}

impl http_body::Body for FileReader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.range.is_empty() {
            return Poll::Ready(None);
        }
        let read = ready!(self.poll_read(cx)).map_err(|_| BodyError::Cut).and_then(|bytes| {
            self.range.start += bytes.len() as u64;
            if bytes.is_empty() { Err(BodyError::Cut) } else { Ok(Frame::data(bytes)) }
        });
        Poll::Ready(Some(read))
    }
}
