//! The calls that only Linux has, as this store uses them.
//!
//! In: descriptors of files and directories. Out: what `statx` says, attributes, bytes. Names are opened by the
//! [`resolver`](super::resolver). Deliberately absent: any decision what a file means.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, StatxFlags, XattrFlags, statx};
use rustix::io::Errno;

use super::resolver::as_path;
use larder_tier::rank::forbid_under_lock;

/// Where meta lies on a file that has extended attributes.
pub(super) const XATTR: &str = "user.larder";

/// The most that an attribute may hold.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// What `statx` says, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    /// In bytes.
    pub(super) size: u64,
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, u32),
    /// The same for the last change of anything.
    pub(super) changed: (i64, u32),
    /// Bytes that are allocated for it.
    pub(super) allocated: u64,
    pub(super) links: u32,
    pub(super) kind: FileType,
}

impl Status {
    /// That of an open file.
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        Self::read(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    /// That of what `name` says, itself where it is a symbolic link. Directories in between may be links: whoever calls
    /// this compares the result with a file that was opened without following any.
    pub(super) fn at(directory: impl AsFd, name: &[u8]) -> io::Result<Self> {
        Self::read(directory, as_path(name), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn read(directory: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Self> {
        forbid_under_lock();
        let found = statx(directory, path, flags, StatxFlags::BASIC_STATS)?;
        Ok(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            size: found.stx_size,
            modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            allocated: found.stx_blocks.saturating_mul(512),
            links: found.stx_nlink,
            kind: FileType::from_raw_mode(found.stx_mode.into()),
        })
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether the bytes are those that `other` was read of, as far as the file system tells.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Which directory one is: its device and inode, and when it was made, since inodes are given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    made: Option<(i64, u32)>,
}

impl Identity {
    /// That of an open directory.
    pub(super) fn of(directory: impl AsFd) -> io::Result<Self> {
        Self::read(directory, Path::new(""), AtFlags::EMPTY_PATH)
    }

    /// That of what a path leads to, links followed. May wait for a disk.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Self::read(rustix::fs::CWD, path, AtFlags::empty())
    }

    /// What of it is the same after the file system was mounted again.
    pub(super) fn lasting(&self) -> Vec<u8> {
        let made = self.made.unwrap_or_default();
        [&self.inode.to_le_bytes()[..], &made.0.to_le_bytes(), &made.1.to_le_bytes()].concat()
    }

    fn read(directory: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Self> {
        forbid_under_lock();
        let asked = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        let found = statx(directory, path, flags, asked)?;
        let is_told = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            made: is_told.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
        })
    }
}

/// The attribute of a file; `None` where it has none.
///
/// # Errors
/// It could not be read, so that nobody knows whether there is one.
pub(super) fn attribute(file: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    forbid_under_lock();
    let mut short = [0_u8; 2048];
    match rustix::fs::fgetxattr(file.as_fd(), XATTR, &mut short) {
        Ok(length) => Ok(short.get(..length).map(<[u8]>::to_vec)),
        Err(Errno::RANGE) => {
            let mut long = vec![0_u8; XATTR_BYTES_MAX];
            let length = rustix::fs::fgetxattr(file, XATTR, &mut long)?;
            long.truncate(length);
            Ok(Some(long))
        }
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes the attribute. `Ok(false)` where the file system has no room for it there.
pub(super) fn set_attribute(file: impl AsFd, value: &[u8]) -> io::Result<bool> {
    forbid_under_lock();
    match rustix::fs::fsetxattr(file, XATTR, value, XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(
            Errno::NOTSUP
            | Errno::PERM
            | Errno::TOOBIG
            | Errno::RANGE
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ACCESS,
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file system lies in memory, so that nothing of it ever waits for a disk.
pub(super) fn is_in_memory(directory: impl AsFd) -> bool {
    forbid_under_lock();
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    #[allow(clippy::unnecessary_cast)] // The width of the field depends on the machine.
    rustix::fs::fstatfs(directory).is_ok_and(|found| matches!(found.f_type as i64, TMPFS | RAMFS))
}

/// What reading without waiting came to.
pub(super) enum NowRead {
    Read(usize),
    /// The page cache does not have it.
    WouldWait,
    /// The file system cannot tell.
    Unsupported,
}

/// Reads what the page cache has.
pub(super) fn read_now(file: impl AsFd, buffer: &mut [u8], at: u64) -> io::Result<NowRead> {
    forbid_under_lock();
    let mut slices = [io::IoSliceMut::new(buffer)];
    match rustix::io::preadv2(file, &mut slices, at, rustix::io::ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(NowRead::Read(read)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(NowRead::WouldWait),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(NowRead::Unsupported),
        Err(error) => Err(error.into()),
    }
}

/// Whether an error says no more than that there is no such file.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(Errno::from_io_error(error), Some(Errno::LOOP))
}

/// Whether an error says something of one name or directory only: somebody else's rights, another file system mounted there,
/// names that this file system does not have. No reason to leave everything alone.
pub(super) fn is_of_one_place(error: &io::Error) -> bool {
    let places = [
        Errno::ACCESS,
        Errno::PERM,
        Errno::XDEV,
        Errno::NAMETOOLONG,
        Errno::ILSEQ,
        Errno::AGAIN,
        Errno::BUSY,
        Errno::LOOP,
    ];
    Errno::from_io_error(error).is_some_and(|error| places.contains(&error))
}
