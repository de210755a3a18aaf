//! The calls of the file system, each refused under a lock.
//!
//! In and out: as `rustix` and the standard library have them. Each of them may wait for a disk, so a debug build panics where a
//! thread makes one while it holds a lock with a rank. No other file of this crate makes such a call, but for
//! [`sys`](super::sys) and the [`resolver`](super::resolver), which do the same. `xtask calls` checks that.
//! Deliberately absent: any meaning of its own.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use larder_tier::rank::forbid_under_lock;
use rustix::fs::{Access, AtFlags, Dir, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::Result;
use rustix::path::Arg;

pub(super) fn open(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    forbid_under_lock();
    rustix::fs::open(path, flags, mode)
}

pub(super) fn openat(directory: impl AsFd, path: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    forbid_under_lock();
    rustix::fs::openat(directory, path, flags, mode)
}

/// Makes a file for larder's user alone.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    forbid_under_lock();
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    forbid_under_lock();
    std::fs::create_dir(path)
}

pub(super) fn create_dir_all(path: &Path) -> io::Result<()> {
    forbid_under_lock();
    std::fs::create_dir_all(path)
}

pub(super) fn mkdirat(directory: impl AsFd, path: impl Arg, mode: Mode) -> Result<()> {
    forbid_under_lock();
    rustix::fs::mkdirat(directory, path, mode)
}

pub(super) fn linkat(
    from: impl AsFd,
    path: impl Arg,
    to: impl AsFd,
    new_path: impl Arg,
    flags: AtFlags,
) -> Result<()> {
    forbid_under_lock();
    rustix::fs::linkat(from, path, to, new_path, flags)
}

pub(super) fn renameat(from: impl AsFd, path: impl Arg, to: impl AsFd, new_path: impl Arg) -> Result<()> {
    forbid_under_lock();
    rustix::fs::renameat(from, path, to, new_path)
}

pub(super) fn renameat_with(
    from: impl AsFd,
    path: impl Arg,
    to: impl AsFd,
    new_path: impl Arg,
    flags: RenameFlags,
) -> Result<()> {
    forbid_under_lock();
    rustix::fs::renameat_with(from, path, to, new_path, flags)
}

pub(super) fn unlinkat(directory: impl AsFd, path: impl Arg, flags: AtFlags) -> Result<()> {
    forbid_under_lock();
    rustix::fs::unlinkat(directory, path, flags)
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    forbid_under_lock();
    std::fs::remove_file(path)
}

pub(super) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    forbid_under_lock();
    std::fs::canonicalize(path)
}

pub(super) fn symlink_metadata(path: &Path) -> io::Result<Metadata> {
    forbid_under_lock();
    path.symlink_metadata()
}

pub(super) fn exists(path: &Path) -> bool {
    forbid_under_lock();
    path.exists()
}

pub(super) fn access(path: &Path, access: Access) -> Result<()> {
    forbid_under_lock();
    rustix::fs::access(path, access)
}

/// The entries of a directory. Each of them may wait as well.
pub(super) fn read_dir(directory: impl AsFd) -> Result<Dir> {
    forbid_under_lock();
    Dir::read_from(directory)
}

pub(super) fn seek(directory: impl AsFd, to: SeekFrom) -> Result<u64> {
    forbid_under_lock();
    rustix::fs::seek(directory, to)
}

pub(super) fn fchmod(file: impl AsFd, mode: Mode) -> Result<()> {
    forbid_under_lock();
    rustix::fs::fchmod(file, mode)
}

pub(super) fn flock(file: impl AsFd, operation: FlockOperation) -> Result<()> {
    forbid_under_lock();
    rustix::fs::flock(file, operation)
}

pub(super) fn fallocate(file: impl AsFd, flags: FallocateFlags, at: u64, length: u64) -> Result<()> {
    forbid_under_lock();
    rustix::fs::fallocate(file, flags, at, length)
}

pub(super) fn ftruncate(file: impl AsFd, length: u64) -> Result<()> {
    forbid_under_lock();
    rustix::fs::ftruncate(file, length)
}

pub(super) fn fsync(file: impl AsFd) -> Result<()> {
    forbid_under_lock();
    rustix::fs::fsync(file)
}

pub(super) fn fdatasync(file: impl AsFd) -> Result<()> {
    forbid_under_lock();
    rustix::fs::fdatasync(file)
}

pub(super) fn syncfs(file: impl AsFd) -> Result<()> {
    forbid_under_lock();
    rustix::fs::syncfs(file)
}

pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    forbid_under_lock();
    file.read_exact_at(buffer, at)
}

pub(super) fn write(file: impl AsFd, bytes: &[u8]) -> Result<usize> {
    forbid_under_lock();
    rustix::io::write(file, bytes)
}

pub(super) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    forbid_under_lock();
    file.write_all(bytes)
}

pub(super) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    forbid_under_lock();
    file.write_all_at(bytes, at)
}
