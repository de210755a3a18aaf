//! One static file on its way to a client: small ones read whole when opened, others in pieces as they are sent.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};
use larder_http::body::{Body, BodyError, read_buffer};
use larder_http::fields::date;
use larder_http::time::WallTime;
use rustix::fs::{Stat, fstat};
use tokio::task::JoinHandle;

/// The size of a piece, and of the largest file that is read at once.
const PIECE_BYTES: u64 = 128 * 1024;

/// What a file looked like when it was opened. One that changes while it is sent is cut, never finished.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    size: i64,
    modified: (i64, u64),
}

impl Version {
    fn of(status: &Stat) -> Self {
        Self { size: status.st_size, modified: (status.st_mtime, status.st_mtime_nsec) }
    }
}

/// An open file with what its fields are made from.
pub(crate) struct StaticFile {
    file: Arc<OwnedFd>,
    size: u64,
    modified: WallTime,
    etag: String,
    content_type: HeaderValue,
    whole: Option<Bytes>,
    version: Version,
}

impl StaticFile {
    /// Takes an open file; reads it where it is small. Blocks.
    pub(super) fn read(file: OwnedFd, status: &Stat, name: &Path) -> io::Result<Self> {
        let size = u64::try_from(status.st_size).unwrap_or(0);
        let seconds = u64::try_from(status.st_mtime).unwrap_or(0);
        let version = Version::of(status);
        let whole = if size <= PIECE_BYTES { Some(read_at(&file, version, 0, size)?) } else { None };
        let content_type = mime_guess::from_path(name).first_raw().unwrap_or("application/octet-stream");
        Ok(Self {
            file: Arc::new(file),
            size,
            modified: WallTime::from_secs(seconds),
            etag: format!("\"{seconds:x}.{:x}-{size:x}\"", status.st_mtime_nsec),
            content_type: HeaderValue::from_static(content_type),
            whole,
            version,
        })
    }

    pub(super) fn fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(4);
        fields.insert(CONTENT_TYPE, self.content_type.clone());
        fields.insert(LAST_MODIFIED, date::format(self.modified));
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            fields.insert(ETAG, etag);
        }
        fields
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of `range`, which lies within the file as it was opened.
    pub(crate) fn body(&self, range: std::ops::Range<u64>) -> Body {
        if let Some(whole) = &self.whole {
            let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            let cut = bounds.filter(|(start, end)| start <= end && *end <= whole.len());
            return cut.map(|(start, end)| whole.slice(start..end)).unwrap_or_default().into();
        }
        let length = Some(range.end.saturating_sub(range.start));
        let file = Arc::clone(&self.file);
        let stream = Pieces { file, version: self.version, at: range.start, end: range.end, reading: None };
        Body::Stream { length, stream: Box::pin(stream) }
    }
}

/// Exactly `length` bytes from `at`, of the file as it was opened: one that changed meanwhile is an error.
fn read_at(file: &OwnedFd, version: Version, at: u64, length: u64) -> io::Result<Bytes> {
    let mut buffer = read_buffer(usize::try_from(length).unwrap_or(usize::MAX));
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, at + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if Version::of(&fstat(file)?) != version {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(buffer.into())
}

/// Reads on the pool, one piece at a time, only when the client is ready for it.
struct Pieces {
    file: Arc<OwnedFd>,
    version: Version,
    at: u64,
    end: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let (file, version, at) = (Arc::clone(&self.file), self.version, self.at);
        let length = (self.end - at).min(PIECE_BYTES);
        let reading = self
            .reading
            .get_or_insert_with(|| tokio::task::spawn_blocking(move || read_at(&file, version, at, length)));
        let read = std::task::ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        Poll::Ready(Some(match read {
            Ok(Ok(bytes)) => {
                self.at += bytes.len() as u64;
                Ok(http_body::Frame::data(bytes))
            }
            Ok(Err(_)) | Err(_) => Err(BodyError::Cut),
        }))
    }
}
