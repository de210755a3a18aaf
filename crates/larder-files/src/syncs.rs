//! Syncs of directories.
//!
//! In: an open directory. Out: what was done to it lasts. Tests count these syncs by thread, and let some of them fail: no file system fails
//! in this call alone where that is wanted.

use std::io;
use std::os::fd::OwnedFd;

use super::calls;

/// The syncs of one store's directories.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    #[cfg(test)]
    by: larder_tier::rank::RankedMutex<Vec<Option<String>>>,
    #[cfg(test)]
    failing: std::sync::atomic::AtomicUsize,
}

impl Syncs {
    /// Makes what was done to a directory last.
    pub(super) fn sync(&self, directory: &OwnedFd) -> io::Result<()> {
        #[cfg(test)]
        self.note()?;
        Ok(calls::fsync(directory)?)
    }
}

#[cfg(test)]
impl Syncs {
    fn note(&self) -> io::Result<()> {
        use std::sync::atomic::Ordering::SeqCst;
        self.by.lock().push(std::thread::current().name().map(str::to_owned));
        let fails = self.failing.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        if fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }

    /// The next ones fail.
    pub(super) fn fail(&self, count: usize) {
        self.failing.store(count, std::sync::atomic::Ordering::SeqCst);
    }

    /// The threads of all so far.
    pub(super) fn take(&self) -> Vec<Option<String>> {
        std::mem::take(&mut *self.by.lock())
    }
}
