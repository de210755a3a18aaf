//! The calls that only Linux has, as this store uses them.
//!
//! In: descriptors of directories and names relative to them. Out: descriptors, what `statx` says, bytes. Everything that
//! takes a name resolves it beneath a directory and follows no symbolic link, not even one that leads back inside: with
//! `openat2` in one call, where a kernel or a sandbox has none, component by component with `O_NOFOLLOW`. Deliberately
//! absent: any decision what a file means.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, XattrFlags, openat, openat2, statx,
};
use rustix::io::Errno;

/// Where meta lies on a file that has extended attributes.
pub(super) const XATTR: &str = "user.larder";

/// The most that an attribute may hold.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// How often a name is resolved anew while directories are being renamed.
const OPEN_TRIES: usize = 64;

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// For reading. Does not wait at a FIFO that somebody planted; it is refused once its type is known.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A directory to work in.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

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

/// Which calls this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolver {
    openat2: bool,
    /// Whether names can be resolved from the kernel's cache alone (since Linux 5.12).
    cached: bool,
}

/// What the kernel's name cache knows, without asking any disk.
pub(super) enum Cached {
    Open(OwnedFd),
    Absent,
    Unknown,
}

impl Resolver {
    /// Asks the kernel.
    pub(super) fn probe(directory: impl AsFd) -> Self {
        let works = |resolve| {
            let here = Path::new(".");
            openat2(directory.as_fd(), here, DIRECTORY, Mode::empty(), resolve).is_ok()
        };
        Self { openat2: works(BENEATH), cached: works(BENEATH | ResolveFlags::CACHED) }
    }

    /// That of a kernel without `openat2`.
    #[cfg(test)]
    pub(super) const PLAIN: Self = Self { openat2: false, cached: false };

    /// Opens `name` beneath `directory`, or not at all. May wait for a disk.
    pub(super) fn open(self, directory: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        if !self.openat2 {
            return by_component(directory, name, flags);
        }
        for _ in 0..OPEN_TRIES {
            match openat2(directory.as_fd(), as_path(name), flags, Mode::empty(), BENEATH) {
                // A rename elsewhere came between: the kernel could not be sure.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The same from the kernel's cache alone: never waits.
    pub(super) fn open_cached(self, directory: impl AsFd, name: &[u8], flags: OFlags) -> Cached {
        if !self.cached {
            return Cached::Unknown;
        }
        let resolve = BENEATH | ResolveFlags::CACHED;
        match openat2(directory.as_fd(), as_path(name), flags, Mode::empty(), resolve) {
            Ok(file) => Cached::Open(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Cached::Absent,
            Err(_) => Cached::Unknown,
        }
    }
}

/// One component after the other, following no link at all.
fn by_component(directory: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut components = name.split(|byte| *byte == b'/').peekable();
    let mut at = directory.as_fd().try_clone_to_owned()?;
    while let Some(component) = components.next() {
        if matches!(component, b"" | b"." | b"..") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = if components.peek().is_some() { DIRECTORY } else { flags | OFlags::NOFOLLOW };
        at = openat(&at, as_path(component), flags, Mode::empty())?;
    }
    Ok(at)
}

/// The attribute of a file; `None` where it has none.
///
/// # Errors
/// It could not be read, so that nobody knows whether there is one.
pub(super) fn attribute(file: impl AsFd) -> io::Result<Option<Vec<u8>>> {
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
    let mut slices = [io::IoSliceMut::new(buffer)];
    match rustix::io::preadv2(file, &mut slices, at, rustix::io::ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(NowRead::Read(read)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(NowRead::WouldWait),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(NowRead::Unsupported),
        Err(error) => Err(error.into()),
    }
}
