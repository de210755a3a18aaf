//! The open files of segments, of which a disk may have fewer than segments.
//!
//! In: segments, and how many files the disk may have open ([`FilesMax`], which may change at any time). Out: a segment's file,
//! opened again where it was closed. What is being written stays open, and what has no name any more; of the others the one goes
//! that was not used for longest, about (CLOCK). Opening may wait for the disk: an event loop takes what is open, and leaves the
//! rest to a thread that may wait.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use rustix::io::Errno;

use super::files::segment_path;
use super::sys;
use larder_tier::rank::{Rank, RankedMutex, RankedRwLock, forbid_under_lock};

/// Open beside segments: the folder's lock, the journal with its old part, a table that is read or written.
pub(super) const OTHERS: usize = 8;

/// Segments that are open at least: the one that is written, those that are read or moved at this moment.
const SEGMENTS_OPEN_MIN: usize = 8;

/// How many files a disk may have open. Clones share it.
#[derive(Clone, Debug)]
pub struct FilesMax(Arc<AtomicUsize>);

impl FilesMax {
    /// The fewest that a disk can work with.
    pub const LEAST: usize = OTHERS + SEGMENTS_OPEN_MIN;

    /// `files` of them; never fewer than [`FilesMax::LEAST`].
    pub fn new(files: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(files)))
    }

    /// From now on so many. What is open beyond that is closed as others are opened.
    pub fn set(&self, files: usize) {
        self.0.store(files, Ordering::Relaxed);
    }

    /// How many.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed).max(Self::LEAST)
    }
}

impl Default for FilesMax {
    /// No bound.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl PartialEq for FilesMax {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for FilesMax {}

/// All of a disk. The lock guards the order in which they are closed; no file is opened or closed under it.
#[derive(Debug)]
pub(super) struct Handles {
    folder: PathBuf,
    max: FilesMax,
    /// Open ones, the next to be closed first.
    open: RankedMutex<VecDeque<Weak<OpenHandle>>>,
    count: AtomicUsize,
}

/// A segment's file, open or not.
#[derive(Debug)]
pub(super) struct OpenHandle {
    id: u32,
    handles: Arc<Handles>,
    file: RankedRwLock<Option<Arc<File>>>,
    was_used: AtomicBool,
    is_held: AtomicBool,
}

/// What came of closing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    Now,
    Before,
    /// It has to stay open.
    Held,
}

impl Handles {
    pub(super) fn new(folder: PathBuf, max: FilesMax) -> Arc<Self> {
        Arc::new(Self { folder, max, open: RankedMutex::default(), count: AtomicUsize::new(0) })
    }

    /// The handle of segment `id`, whose file is not open.
    pub(super) fn closed(self: &Arc<Self>, id: u32) -> Arc<OpenHandle> {
        self.handle(id, None)
    }

    fn handle(self: &Arc<Self>, id: u32, file: Option<File>) -> Arc<OpenHandle> {
        Arc::new(OpenHandle {
            id,
            handles: Arc::clone(self),
            file: RankedRwLock::new(Rank::Leaf, file.map(Arc::new)),
            was_used: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
        })
    }

    /// The handle of segment `id`, whose file was just opened.
    pub(super) fn adopt(self: &Arc<Self>, id: u32, file: File) -> Arc<OpenHandle> {
        let handle = self.handle(id, Some(file));
        self.count.fetch_add(1, Ordering::Relaxed);
        self.open.lock().push_back(Arc::downgrade(&handle));
        self.close_surplus(0);
        handle
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Closes until there is room for `more`.
    pub(super) fn close_surplus(&self, more: usize) {
        let max = self.max.get() - OTHERS;
        while self.count().saturating_add(more) > max && self.close_one() {}
    }

    /// Closes the one that was not used for longest. False where all have to stay open.
    fn close_one(&self) -> bool {
        // Twice around: the first time may only find that all were used.
        let mut moves = self.open.lock().len() * 2;
        while moves > 0 {
            moves -= 1;
            let mut open = self.open.lock();
            let Some(handle) = open.pop_front() else { return false };
            // One that is gone has been counted out.
            let Some(handle) = handle.upgrade() else { continue };
            if handle.is_held.load(Ordering::Relaxed) || handle.was_used.swap(false, Ordering::Relaxed) {
                open.push_back(Arc::downgrade(&handle));
                // Before the handle, which may be the last of it, and closes its file then.
                drop(open);
                continue;
            }
            drop(open);
            match handle.close() {
                Closed::Now => return true,
                Closed::Before => {}
                Closed::Held => self.open.lock().push_back(Arc::downgrade(&handle)),
            }
        }
        false
    }

    /// Opens a file, in place of another where the process has no descriptor left.
    pub(super) fn open_with(&self, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
        self.close_surplus(1);
        open().or_else(|error| match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) if self.close_one() => open(),
            _ => Err(error),
        })
    }
}

impl OpenHandle {
    /// Its file, where that is open.
    pub(super) fn now(&self) -> Option<Arc<File>> {
        let file = self.file.read().clone();
        // Written only where it changes.
        if file.is_some() && !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
        file
    }

    /// Its file, opened where it is not. May wait for the disk.
    pub(super) fn get(self: &Arc<Self>) -> io::Result<Arc<File>> {
        if let Some(file) = self.now() {
            return Ok(file);
        }
        let path = segment_path(&self.handles.folder, self.id);
        let file = self.handles.open_with(|| sys::open_to_change(&path))?;
        let mut known = self.file.write();
        if let Some(other) = &*known {
            return Ok(Arc::clone(other));
        }
        let file = Arc::new(file);
        *known = Some(Arc::clone(&file));
        drop(known);
        self.was_used.store(true, Ordering::Relaxed);
        self.handles.count.fetch_add(1, Ordering::Relaxed);
        self.handles.open.lock().push_back(Arc::downgrade(self));
        Ok(file)
    }

    /// Keeps it open where it is, or lets it be closed again. Behind this call nobody closes it who had begun to before.
    pub(super) fn hold(&self, is_held: bool) {
        let _file = self.file.write();
        self.is_held.store(is_held, Ordering::Relaxed);
    }

    fn close(&self) -> Closed {
        let mut file = self.file.write();
        // Asked once more under the lock: it may be held since it was chosen, and have lost its name.
        if self.is_held.load(Ordering::Relaxed) {
            return Closed::Held;
        }
        let closed = file.take();
        drop(file);
        self.close_file(closed)
    }

    fn close_file(&self, file: Option<Arc<File>>) -> Closed {
        if file.is_none() {
            return Closed::Before;
        }
        forbid_under_lock();
        self.handles.count.fetch_sub(1, Ordering::Relaxed);
        Closed::Now
    }
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        let file = self.file.write().take();
        self.close_file(file);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn handles(folder: &tempfile::TempDir, max: usize, count: u32) -> (Arc<Handles>, Vec<Arc<OpenHandle>>) {
        let handles = Handles::new(folder.path().to_owned(), FilesMax::new(OTHERS + max));
        let make = |id| File::create_new(segment_path(folder.path(), id)).unwrap();
        let all = (0..count).map(|id| handles.adopt(id, make(id))).collect();
        (handles, all)
    }

    #[test]
    fn no_more_are_open_than_may_be_and_each_can_be_had() {
        let folder = tempfile::tempdir().unwrap();
        let (handles, all) = handles(&folder, 10, 40);
        for handle in all.iter().chain(&all) {
            handle.get().unwrap();
            assert!(handle.now().is_some());
            assert!(handles.count() <= 10, "{}", handles.count());
        }
        handles.max.set(FilesMax::LEAST);
        handles.close_surplus(0);
        assert_eq!(handles.count(), SEGMENTS_OPEN_MIN);
        drop(all);
        assert_eq!(handles.count(), 0);
    }

    #[test]
    fn what_is_held_since_it_was_chosen_is_not_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (handles, all) = handles(&folder, 10, 10);
        all[0].hold(true);
        std::fs::remove_file(segment_path(folder.path(), 0)).unwrap();
        assert_eq!(all[0].close(), Closed::Held);
        assert!(all[0].get().is_ok(), "it has no name to be opened by");
        all[0].hold(false);
        assert_eq!([all[0].close(), all[0].close()], [Closed::Now, Closed::Before]);
        assert_eq!(handles.count(), 9);
    }

    #[test]
    fn what_is_used_stays_longer_and_what_is_held_always() {
        let folder = tempfile::tempdir().unwrap();
        let (_handles, all) = handles(&folder, 10, 10);
        all[1].hold(true);
        all[1].was_used.store(false, Ordering::Relaxed);
        let _ = all[0].now();
        let others: Vec<_> = (10..18)
            .map(|id| {
                let file = File::create_new(segment_path(folder.path(), id)).unwrap();
                all[0].handles.adopt(id, file)
            })
            .collect();
        let is_open = |at: usize| all[at].file.read().is_some();
        assert!(is_open(0) && is_open(1), "used lately, and held");
        assert!((2..10).all(|at| !is_open(at)), "the others went first");
        assert!(others.iter().all(|handle| handle.now().is_some()));
    }
}
