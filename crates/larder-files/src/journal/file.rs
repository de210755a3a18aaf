//! The file that the journal of a store of plain files lies in.
//!
//! In: encoded entries, or all that is needed. Out: the same at the end of the file, or in its place; and how much room it takes. One
//! thread writes. The file is opened for each write: a descriptor that is open for writing would keep the file system from being
//! made read-only. Deliberately absent: when to write, and what.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::calls;
use crate::resolver::READ;
use crate::room::{Claim, Room};
use crate::sys::Status;
use crate::sys::is_absent;
use crate::tree::Tree;
use larder_tier::format::log::LOG_HEAD_BYTES;

/// Where it lies.
pub(crate) const JOURNAL: &str = ".larder/journal";
const FOLDER: &str = ".larder";
const NEW: &str = ".larder/journal.new";

/// What the file system is asked to keep free for it, so that a full one has room for the next invalidations.
pub(crate) const OWN_BYTES: u64 = 16 * 1024;
/// The longest file that is read: far more than what may be needed.
const READ_BYTES_MAX: u64 = 128 << 20;

/// The file, as this thread has written it.
pub(super) struct JournalFile {
    pub(super) length: u64,
    /// What of it was needed when it was written as a whole.
    pub(super) needed: u64,
    pub(super) inode: Option<u64>,
    pub(super) claim: Claim,
}

impl JournalFile {
    /// Puts entries to its end. Fails where it is not the file that was written last, whole and alone.
    pub(super) fn append(&mut self, tree: &Tree, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(calls::openat(tree.root(), JOURNAL, flags, Mode::empty())?);
        let status = Status::of(&file)?;
        if status.size != self.length || Some(status.inode) != self.inode {
            return Err(io::ErrorKind::InvalidData.into());
        }
        calls::write_all(&file, bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes it as a whole: beside it and then in its place, or where there is no room for both, into it. That leaves one that is not
    /// believed where it fails, so it is done only if something in it is `owed`.
    pub(super) fn write(&mut self, tree: &Tree, bytes: &[u8], is_owed: bool) -> io::Result<()> {
        let written = match self.write_beside(tree, bytes) {
            Err(_) if is_owed => self.write_over(tree, bytes),
            written => written,
        };
        match &written {
            Ok(()) => (self.length, self.needed) = (bytes.len() as u64, bytes.len() as u64),
            Err(_) => self.length = u64::MAX,
        }
        written
    }

    fn write_beside(&mut self, tree: &Tree, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let _ = calls::unlinkat(tree.root(), NEW, AtFlags::empty());
        tree.renew_own()?;
        let file = File::from(calls::openat(tree.root(), NEW, flags, Mode::RUSR | Mode::WUSR)?);
        let written = (|| {
            // Not every file system can, and none has to.
            let _ = calls::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, OWN_BYTES);
            calls::write_all_at(&file, bytes, 0)?;
            // A crash of the machine may leave the beginning of it under the name of the other, and what begins well is believed.
            calls::fdatasync(&file)?;
            calls::renameat(tree.root(), NEW, tree.root(), JOURNAL)?;
            self.inode = Some(Status::of(&file)?.inode);
            Ok(())
        })();
        if written.is_err() {
            let _ = calls::unlinkat(tree.root(), NEW, AtFlags::empty());
        }
        written
    }

    /// What is cut off here without anything in its place is not believed at the next start, and neither is what has no head yet.
    fn write_over(&mut self, tree: &Tree, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(calls::openat(tree.root(), JOURNAL, flags, Mode::RUSR | Mode::WUSR)?);
        calls::ftruncate(&file, 0)?;
        let written = write_head_last(&file, bytes).and_then(|()| Ok(Status::of(&file)?.inode));
        match written {
            Ok(inode) => {
                self.inode = Some(inode);
                Ok(())
            }
            Err(error) => {
                calls::ftruncate(&file, 0)?;
                Err(error)
            }
        }
    }

    /// Counts what it takes beyond what is counted for all that is larder's own.
    pub(super) fn count(&mut self, room: &Room) {
        let length = if self.length == u64::MAX { 0 } else { self.length };
        let bytes = length.next_multiple_of(4096).saturating_sub(OWN_BYTES);
        match bytes.checked_sub(self.claim.bytes()) {
            Some(0) => {}
            Some(more) => self.claim.absorb(room.take(more, 0)),
            None => self.claim.shrink_to(bytes, 0),
        }
    }
}

/// Writes a journal into an empty file, its head when all the rest is on the disk.
fn write_head_last(file: &File, bytes: &[u8]) -> io::Result<()> {
    let (head, rest) = bytes.split_at_checked(LOG_HEAD_BYTES).unwrap_or((bytes, &[]));
    calls::write_all_at(file, rest, LOG_HEAD_BYTES as u64)?;
    calls::fdatasync(file)?;
    calls::write_all_at(file, head, 0)
}

/// Makes what was written so far hold after a crash of the machine: the file, and its name. Waits for the disk.
pub(crate) fn sync_file(tree: &Tree) -> io::Result<()> {
    let file = calls::openat(tree.root(), JOURNAL, READ | OFlags::NOFOLLOW, Mode::empty())?;
    calls::fdatasync(&file)?;
    let folder = calls::openat(tree.root(), FOLDER, READ | OFlags::DIRECTORY, Mode::empty())?;
    calls::fsync(&folder)?;
    Ok(())
}

/// What lies there; `None` where there is nothing.
pub(super) fn read_file(tree: &Tree) -> io::Result<Option<Vec<u8>>> {
    let file = match calls::openat(tree.root(), JOURNAL, READ | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        // Whatever has its name, nobody can say what it would have said.
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(Some(Vec::new())),
        Err(error) => return Err(error.into()),
    };
    let status = Status::of(&file)?;
    let length = usize::try_from(status.size).unwrap_or(usize::MAX);
    if !status.is_file() || length < LOG_HEAD_BYTES || status.size > READ_BYTES_MAX {
        return Ok(Some(Vec::new()));
    }
    let mut bytes = vec![0; length];
    match calls::read_exact_at(&file, &mut bytes, 0) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Some(Vec::new()))
        }
        Err(error) => Err(error),
    }
}
