//! The content of a file while it is written, for those who read along.
//!
//! ```text
//!   0 ........... written ............ all that has come
//!   |   in the file  |  in the queue       |
//! ```
//!
//! In: pieces as they are handed to the queue, and word from the writing thread that one is in the file. Out: any bytes that have
//! come so far, from the one or the other: what waits in the queue is in memory once, and never more than the queue takes.
//! Whoever holds this can read to the end of what has come, also when the fill was given up or the file has lost its name;
//! its room is taken for as long. From the moment it has a name others may write into the file, and each read is followed by a
//! look at it. Lock: this alone, for the length of a look.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use larder_http::body::read_buffer;
use larder_tier::rank::RankedMutex;

use super::calls;
use super::closing::Closer;
use super::hit::{CLOSED_BEHIND_BYTES_MIN, PIECE_BYTES};
use super::room::Claim;
use super::sys::{self, NowRead, Status};

#[derive(Debug, Default)]
struct State {
    /// There from the first byte on that is written.
    file: Option<Arc<File>>,
    /// Bytes that are in the file.
    written: u64,
    /// What follows them.
    waiting: VecDeque<Bytes>,
    /// What the file was before it got its name.
    named: Option<Status>,
    _claim: Option<Arc<Claim>>,
}

/// The content of one fill.
#[derive(Debug)]
pub(crate) struct Arriving {
    state: RankedMutex<State>,
    is_in_memory: bool,
    closer: Weak<dyn Closer>,
}

/// Where bytes are.
enum Place {
    Here(Bytes),
    /// And so many of them.
    InFile(Arc<File>, usize),
    NotYet,
}

impl Arriving {
    /// Nothing so far. `is_in_memory`: reading the file never waits for a disk.
    pub(super) fn new(is_in_memory: bool, closer: Weak<dyn Closer>) -> Arc<Self> {
        Arc::new(Self { state: RankedMutex::default(), is_in_memory, closer })
    }

    /// A piece that is about to go into the queue.
    pub(super) fn add(&self, bytes: Bytes) {
        self.state.lock().waiting.push_back(bytes);
    }

    /// The last piece did not get into the queue.
    pub(super) fn take_back(&self) {
        self.state.lock().waiting.pop_back();
    }

    /// The next piece is in the file.
    pub(super) fn wrote(&self, file: &Arc<File>) {
        let mut state = self.state.lock();
        state.file.get_or_insert_with(|| Arc::clone(file));
        state.written += state.waiting.pop_front().map_or(0, |piece| piece.len() as u64);
    }

    /// The file is about to get its name, and is this.
    pub(super) fn name(&self, status: Status) {
        self.state.lock().named = Some(status);
    }

    /// The room that is taken as long as this can be read.
    pub(super) fn hold(&self, claim: Arc<Claim>) {
        self.state.lock()._claim = Some(claim);
    }

    fn place(&self, at: u64) -> Place {
        let state = self.state.lock();
        if let (true, Some(file)) = (at < state.written, &state.file) {
            let left = usize::try_from(state.written - at).unwrap_or(PIECE_BYTES);
            return Place::InFile(Arc::clone(file), left.min(PIECE_BYTES));
        }
        let mut from = at.saturating_sub(state.written);
        for piece in &state.waiting {
            match usize::try_from(from).ok().filter(|from| *from < piece.len()) {
                Some(within) => return Place::Here(piece.slice(within..)),
                None => from -= piece.len() as u64,
            }
        }
        Place::NotYet
    }

    /// Up to `length` bytes from `at`, at least one, without waiting; `None` where a disk would have to be waited for.
    ///
    /// # Errors
    /// The file has changed since it got its name, the disk fails, or so much has not come.
    pub(super) fn read_now(&self, at: u64, length: usize) -> io::Result<Option<Bytes>> {
        let (file, most) = match self.place(at) {
            Place::Here(bytes) => return Ok(Some(bytes.slice(..bytes.len().min(length)))),
            Place::InFile(file, most) => (file, most.min(length)),
            Place::NotYet => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        if self.is_in_memory {
            return self.read_file(&file, at, most).map(Some);
        }
        let mut buffer = read_buffer(most);
        let read = match sys::read_now(&file, &mut buffer, at)? {
            NowRead::Read(read) => read,
            NowRead::WouldWait | NowRead::Unsupported => return Ok(None),
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(read);
        self.check(&file)?;
        Ok(Some(buffer.into()))
    }

    /// The same where it may wait for a disk.
    ///
    /// # Errors
    /// As for [`read_now`](Self::read_now).
    pub(super) fn read_at(&self, at: u64, length: usize) -> io::Result<Bytes> {
        match self.place(at) {
            Place::Here(bytes) => Ok(bytes.slice(..bytes.len().min(length))),
            Place::InFile(file, most) => self.read_file(&file, at, most.min(length)),
            Place::NotYet => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The same on the runtime's pool, where it has to wait.
    ///
    /// # Errors
    /// As for [`read_now`](Self::read_now).
    pub(crate) async fn read(self: Arc<Self>, at: u64) -> io::Result<Bytes> {
        if let Some(bytes) = self.read_now(at, PIECE_BYTES)? {
            return Ok(bytes);
        }
        let reading = tokio::task::spawn_blocking(move || self.read_at(at, PIECE_BYTES));
        reading.await.unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }

    fn read_file(&self, file: &File, at: u64, length: usize) -> io::Result<Bytes> {
        let mut buffer = read_buffer(length);
        calls::read_exact_at(file, &mut buffer, at)?;
        self.check(file)?;
        Ok(buffer.into())
    }

    fn check(&self, file: &File) -> io::Result<()> {
        let named = self.state.lock().named;
        let is_same = named.is_none_or(|named| Status::of(file).is_ok_and(|now| now.has_content_of(&named)));
        is_same.then_some(()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // As for a file that was found: whoever closes a large one last may have to wait.
        let state = std::mem::take(self.state.exclusive());
        if state.written > CLOSED_BEHIND_BYTES_MIN
            && let Some(closer) = self.closer.upgrade()
        {
            closer.close_behind(Box::new(state));
        }
    }
}
