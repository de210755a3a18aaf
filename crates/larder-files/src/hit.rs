//! A file that was found for a request, open.
//!
//! In: a descriptor and what was judged of it. Out: its fields, and its bytes for as long as it stays what it was.
//! Each read is followed by a look at size and modification time. A file that has changed is an error, which cuts the
//! answer instead of finishing it with another file's end. Small files come with their bytes. A hit may be shared by
//! many requests; [`super::FileStore::look`] has asked the file system before each of them whether the name still
//! means this very file, unchanged.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use larder_cache::{Freshness, LifetimeSource};
use larder_http::body::{Pieces, read_buffer};
use larder_http::fields::date;
use larder_http::message::Scheme;
use larder_http::time::{Now, WallTime};
use larder_tier::Memo;

use super::calls;
use super::closing::Closer;
use super::meta::Meta;
use super::name::Name;
use super::noted::PendingRemovals;
use super::room::Claim;
use super::sys::{self, NowRead, Status};
use super::unreadable::is_of_the_device;

/// Files up to this size, in bytes, are read when they are found.
pub(super) const WHOLE_BYTES_MAX: u64 = 64 * 1024;

/// Larger files are closed by the writing thread.
pub(super) const CLOSED_BEHIND_BYTES_MIN: u64 = 1024 * 1024;

/// The size of a piece that is read at once, in bytes.
pub const PIECE_BYTES: usize = 128 * 1024;

/// A file changed so lately may be changed again without a new modification time: it is not kept in memory.
pub(super) const SETTLED: Duration = Duration::from_secs(2);

/// Who a file is from.
#[derive(Debug)]
pub enum Source {
    /// larder stored it, and it is unchanged.
    Stored(Box<Meta>),
    /// Somebody put it there, or changed it: it is what the URL means, for as long as it lies there.
    ByHand(HeaderMap),
}

/// Which file a body was read of, and as what: one that was changed since, or has taken its place, is another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileStamp {
    status: Status,
    is_by_hand: bool,
}

impl FileStamp {
    /// Whether a file is that very file, with the content that it had.
    pub(super) fn is_of(&self, found: &Status) -> bool {
        found.has_content_of(&self.status)
    }

    /// The file's length in bytes.
    pub(super) fn size(&self) -> u64 {
        self.status.size
    }

    /// Whether somebody put it there, or changed it.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.is_by_hand
    }
}

/// Who hears of a hit whose file cannot be read, and closes it.
pub(super) trait HitOwner: Closer {
    /// A file cannot be read: it counts as absent, and goes where larder stored it. What a person put there stays. Does not
    /// wait.
    fn leave_unreadable(
        self: Arc<Self>,
        name: &Name,
        path: &[u8],
        file: &Status,
        is_stored: bool,
        error: &io::Error,
    );
}

/// An open file that stands for the response to a request.
#[derive(Debug)]
pub struct FileHit {
    file: Arc<File>,
    status: Status,
    name: Name,
    path: Vec<u8>,
    source: Source,
    scheme: Scheme,
    whole: Option<[Bytes; 1]>,
    memo: Memo,
    /// Room on the disk is taken for as long as somebody has the file open, also when its name is gone.
    _claim: Option<Arc<Claim>>,
    is_in_memory: bool,
    owner: Weak<dyn HitOwner>,
}

/// What a hit is made from.
pub(super) struct OpenedFile {
    pub(super) file: Arc<File>,
    pub(super) status: Status,
    /// What it was found under.
    pub(super) name: Name,
    /// Where it lies beneath the store's directory.
    pub(super) path: Vec<u8>,
    pub(super) source: Source,
    /// Of the request that found it.
    pub(super) scheme: Scheme,
    pub(super) is_in_memory: bool,
    /// Who closes it where that may take long, and hears where it cannot be read.
    pub(super) owner: Weak<dyn HitOwner>,
}

impl FileHit {
    /// Reads the file where it is small, and the beginning of a larger one: what cannot be read is no hit. May wait for a
    /// disk.
    pub(super) fn read(opened: OpenedFile, claim: Option<Arc<Claim>>) -> io::Result<Self> {
        let OpenedFile { file, status, name, path, source, scheme, is_in_memory, owner } = opened;
        let mut hit = Self {
            file,
            status,
            name,
            path,
            source,
            scheme,
            whole: None,
            memo: Memo::default(),
            _claim: claim,
            is_in_memory,
            owner,
        };
        if let Some(length) = usize::try_from(status.size).ok().filter(|_| status.size <= WHOLE_BYTES_MAX) {
            hit.whole = Some([hit.read_at(0, length)?]);
        } else if !is_in_memory {
            hit.read_at(0, PIECE_BYTES.min(usize::try_from(status.size).unwrap_or(PIECE_BYTES)))?;
        }
        Ok(hit)
    }

    /// The open file. Whoever reads from it asks [`check`](Self::check) afterwards.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Where it lies beneath the store's directory.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.status.size
    }

    /// When it was modified.
    pub fn modified(&self) -> WallTime {
        let (seconds, nanoseconds) = self.status.modified;
        WallTime(
            u64::try_from(seconds).unwrap_or(0).saturating_mul(1000) + u64::from(nanoseconds / 1_000_000),
        )
    }

    /// Its inode number.
    pub fn inode(&self) -> u64 {
        self.status.inode
    }

    /// Which file this is.
    pub(crate) fn stamp(&self) -> FileStamp {
        FileStamp { status: self.status, is_by_hand: matches!(self.source, Source::ByHand(_)) }
    }

    /// Whether it is the very file of `stamp`, with the content that it had.
    pub(crate) fn is_of(&self, stamp: &FileStamp) -> bool {
        stamp.is_of(&self.status)
    }

    /// Whether a purge could not remove it.
    pub(super) fn is_refused_by(&self, noted: &PendingRemovals) -> bool {
        noted.refuses(&self.name, &self.status)
    }

    /// Who it is from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The fields of its response, without Content-Length.
    pub fn fields(&self) -> &HeaderMap {
        match &self.source {
            Source::Stored(meta) => &meta.fields,
            Source::ByHand(fields) => fields,
        }
    }

    /// What the first who asked made of it, and all others share while the file is kept; of a small file only.
    pub fn memo(&self) -> Option<&Memo> {
        self.whole.as_ref().map(|_| &self.memo)
    }

    /// All of it, where it is small.
    pub fn whole(&self) -> Option<&Bytes> {
        self.whole.as_ref().map(|[whole]| whole)
    }

    /// Exactly `length` bytes from `at`; may wait for a disk. `length` is at most [`PIECE_BYTES`].
    ///
    /// # Errors
    /// The file has changed since it was opened, or the disk fails: the answer has to be cut.
    pub fn read_at(&self, at: u64, length: usize) -> io::Result<Bytes> {
        let mut buffer = read_buffer(length.min(PIECE_BYTES));
        let read = calls::read_exact_at(&self.file, &mut buffer, at);
        read.inspect_err(|error| self.could_not_be_read(error))?;
        self.check()?;
        Ok(buffer.into())
    }

    /// The same without waiting: up to `length` bytes from `at`, at least one; `None` where a disk would have to be
    /// waited for.
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at).
    pub fn read_now(&self, at: u64, length: usize) -> io::Result<Option<Bytes>> {
        if self.is_in_memory {
            return self.read_at(at, length).map(Some);
        }
        let mut buffer = read_buffer(length.min(PIECE_BYTES));
        let read = sys::read_now(&self.file, &mut buffer, at);
        let read = match read.inspect_err(|error| self.could_not_be_read(error))? {
            NowRead::Read(read) => read,
            NowRead::WouldWait | NowRead::Unsupported => return Ok(None),
        };
        if read == 0 && length > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(read);
        self.check()?;
        Ok(Some(buffer.into()))
    }

    /// Whether its first bytes can be had without waiting, or are here already: what it promises begins to come.
    pub(super) fn begins_now(&self) -> bool {
        self.whole.is_some() || self.is_in_memory || matches!(self.read_now(0, 1), Ok(Some(_)))
    }

    /// The device does not give what lies in it: from now on it counts as absent.
    fn could_not_be_read(&self, error: &io::Error) {
        if is_of_the_device(error)
            && let Some(owner) = self.owner.upgrade()
        {
            let is_stored = matches!(self.source, Source::Stored(_));
            owner.leave_unreadable(&self.name, &self.path, &self.status, is_stored, error);
        }
    }

    /// Whether the file is what it was when it was opened; asks the file system.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> io::Result<()> {
        let is_same = Status::of(&self.file)?.has_content_of(&self.status);
        is_same.then_some(()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Whether its name still means this very file, and nothing about it has changed; asks the file system, once. Where the
    /// file is open its name is in the kernel's cache, and nothing waits.
    pub(super) fn is_current(&self, root: impl AsFd) -> io::Result<bool> {
        Ok(Status::at(root, &self.path)? == self.status)
    }

    /// Whether it answers a request that came in by `scheme`: what was stored for one is not used for the other.
    pub(super) fn is_for(&self, scheme: Scheme) -> bool {
        self.scheme == scheme || matches!(self.source, Source::ByHand(_))
    }

    /// Whether a later change is sure to be seen.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        is_settled(&self.status, now)
    }
}

impl Drop for FileHit {
    fn drop(&mut self) {
        // The last to close a file whose name is gone waits until its blocks are given back: not on a worker's time.
        if self.status.size > CLOSED_BEHIND_BYTES_MIN
            && let Some(owner) = self.owner.upgrade()
        {
            owner.close_behind(Box::new(Arc::clone(&self.file)));
        }
    }
}

impl Pieces for FileHit {
    fn pieces(&self) -> &[Bytes] {
        self.whole.as_ref().map_or(&[], |whole| whole)
    }
}

fn is_settled(status: &Status, now: SystemTime) -> bool {
    let (seconds, nanoseconds) = status.modified.max(status.changed);
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds.min(999_999_999));
    since_epoch.checked_sub(changed).is_some_and(|since| since >= SETTLED)
}

/// A hundred years: nobody waits for the end of that.
const AS_LONG_AS_IT_LIES_THERE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The freshness of a file that somebody put there: their own word, above which no client's wish and no heuristic stands.
pub fn freshness_by_hand(now: Now) -> Freshness {
    Freshness {
        lifetime: AS_LONG_AS_IT_LIES_THERE,
        source: LifetimeSource::ByHand,
        initial_age: Duration::ZERO,
        received: now,
        no_cache: false,
    }
}

/// The fields of a file that somebody put there. `shown` is the name that shows its type.
pub(super) fn fields_by_hand(
    status: &Status,
    shown: &str,
    default_type: Option<&HeaderValue>,
    now: SystemTime,
) -> HeaderMap {
    let (seconds, nanoseconds) = status.modified;
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let content_type = match (mime_guess::from_path(shown).first_raw(), default_type) {
        (Some(known), _) => HeaderValue::from_static(known),
        (None, Some(default)) => default.clone(),
        (None, None) => HeaderValue::from_static("application/octet-stream"),
    };
    let mut fields = HeaderMap::with_capacity(4);
    fields.insert(header::CONTENT_TYPE, content_type);
    fields.insert(header::LAST_MODIFIED, date::format(WallTime::from_secs(seconds)));
    // Two contents may share it while the clock has not moved on: good enough for a browser, not for joining ranges.
    let weak = if is_settled(status, now) { "" } else { "W/" };
    let etag = format!("{weak}\"{seconds:x}.{nanoseconds:x}-{:x}\"", status.size);
    fields.extend(HeaderValue::from_str(&etag).map(|etag| (header::ETAG, etag)));
    fields
}
