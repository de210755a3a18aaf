//! Every call of the file system that a disk makes.
//!
//! In: files and paths. Out: `io::Result`s, so that no other file has to know of `rustix`. Each call may wait for a disk, and a debug
//! build refuses it under a lock. Everything that works on one kernel or file system and not on another is found out here,
//! once, at the start.

use std::fs::{DirBuilder, DirEntry, File, Metadata, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::rand::{GetRandomFlags, getrandom};

use larder_tier::rank::forbid_under_lock;

/// What a file system counts in, where it is not asked.
pub(super) const BLOCK_BYTES: u64 = 4096;
const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// Zeros that are written at once where room cannot be allocated.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// How an event loop may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// What is in the page cache, at once; the rest by the pool.
    NoWait,
    /// Everything, at once: the file system is memory.
    Inline,
    /// Nothing: all by the pool.
    Pool,
}

/// Whether the file system has room of its own for `file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocated {
    /// Room was allocated.
    Whole,
    /// The file system cannot allocate; zeros were written instead.
    Zeroed,
}

/// Numbers nobody can guess.
pub(super) fn random() -> io::Result<[u64; 3]> {
    let mut bytes = [0_u8; 24];
    // Calls for less than 256 bytes are never cut short.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let mut numbers = [0; 3];
    for (number, eight) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*eight);
    }
    Ok(numbers)
}

/// Locks a file for this process until it is closed; says whether it was free.
pub(super) fn lock(file: &File) -> io::Result<bool> {
    forbid_under_lock();
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Finds out how files beside `file` may be read.
pub(super) fn read_mode(file: &File) -> ReadMode {
    forbid_under_lock();
    let mut byte = [0];
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT) {
        Ok(_) | Err(Errno::AGAIN) => ReadMode::NoWait,
        Err(_) if is_memory(file) => ReadMode::Inline,
        Err(_) => ReadMode::Pool,
    }
}

fn is_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|stat| {
        #[allow(clippy::unnecessary_cast, reason = "the type differs from one architecture to the next")]
        let kind = stat.f_type as i64;
        kind == TMPFS_MAGIC || kind == RAMFS_MAGIC
    })
}

/// Reads what is in the page cache; how much that was, or `None` where reading would wait.
pub(super) fn read_cached(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    forbid_under_lock();
    let flags = ReadWriteFlags::NOWAIT;
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, flags) {
        Ok(length) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads up to `length` bytes, fewer at the end of the file.
pub(super) fn read_up_to(file: &File, length: usize, offset: u64) -> io::Result<Vec<u8>> {
    forbid_under_lock();
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset + bytes.len() as u64;
        let left = length - bytes.len();
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at) {
            Ok(0) => break,
            // More room than was asked for may have been had.
            Ok(read) if read >= left => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Allocates `length` bytes for a new file, so that writing them cannot fail for lack of room.
pub(super) fn allocate(file: &File, length: u64) -> io::Result<Allocated> {
    forbid_under_lock();
    loop {
        return match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(Allocated::Whole),
            Err(Errno::INTR) => continue,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => zero(file, length),
            Err(error) => Err(error.into()),
        };
    }
}

fn zero(file: &File, length: u64) -> io::Result<Allocated> {
    let mut at = 0;
    while at < length {
        let now = (length - at).min(ZEROS.len() as u64);
        file.write_all_at(ZEROS.get(..now as usize).unwrap_or_default(), at)?;
        at += now;
    }
    Ok(Allocated::Zeroed)
}

/// What a file system has in all, and what of it is free for everybody, in bytes.
pub(super) fn file_system_room(folder: &File) -> io::Result<(u64, u64)> {
    forbid_under_lock();
    let stat = rustix::fs::fstatvfs(folder)?;
    Ok((stat.f_blocks.saturating_mul(stat.f_frsize), stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// What becomes of a file that is there already when one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Kept,
    Emptied,
    /// It is an error.
    Refused,
}

/// Makes a file, to be read and written by larder's user alone: what lies in it was meant for those who asked for it.
pub(super) fn make(path: &Path, existing: Existing) -> io::Result<File> {
    forbid_under_lock();
    let mut options = OpenOptions::new();
    options.mode(0o600).read(true).write(true);
    match existing {
        Existing::Kept => options.create(true).truncate(false),
        Existing::Emptied => options.create(true).truncate(true),
        Existing::Refused => options.create_new(true),
    };
    options.open(path)
}

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    forbid_under_lock();
    File::open(path)
}

/// Opens a file that is there for reading and writing.
pub(super) fn open_to_change(path: &Path) -> io::Result<File> {
    forbid_under_lock();
    OpenOptions::new().read(true).write(true).open(path)
}

/// Writes all of `bytes` at an offset.
pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    forbid_under_lock();
    file.write_all_at(bytes, offset)
}

/// Waits until what was written to a file is on the disk.
pub(super) fn sync(file: &File) -> io::Result<()> {
    forbid_under_lock();
    file.sync_data()
}

/// The same, and what else is known of it; of a folder, its entries.
pub(super) fn sync_all(file: &File) -> io::Result<()> {
    forbid_under_lock();
    file.sync_all()
}

/// Cuts a file off, or lengthens it by zeros.
pub(super) fn set_length(file: &File, length: u64) -> io::Result<()> {
    forbid_under_lock();
    file.set_len(length)
}

/// What the file system knows of a file.
pub(super) fn metadata(file: &File) -> io::Result<Metadata> {
    forbid_under_lock();
    file.metadata()
}

/// Whether something has this name.
pub(super) fn exists(path: &Path) -> bool {
    forbid_under_lock();
    path.exists()
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    forbid_under_lock();
    std::fs::remove_file(path)
}

/// Gives a file another name, in place of what has that.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    forbid_under_lock();
    std::fs::rename(from, to)
}

/// What lies in a folder.
pub(super) fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<(DirEntry, Metadata)>>> {
    forbid_under_lock();
    let entries = std::fs::read_dir(folder)?;
    Ok(entries.map(|entry| {
        forbid_under_lock();
        let entry = entry?;
        let metadata = entry.metadata()?;
        Ok((entry, metadata))
    }))
}

/// Makes a folder where it is missing, for nobody else. Not those above it: where they are missing, a file system is not mounted,
/// or the name is wrong.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    forbid_under_lock();
    let made = DirBuilder::new().mode(0o700).create(path);
    made.or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })
}

/// Opens a folder, for [`file_system_room`] and to make its entries durable.
pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    forbid_under_lock();
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Says that a file will be read from front to end once.
pub(super) fn will_read(file: &File) {
    forbid_under_lock();
    // Only advice: that it is not taken changes nothing.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}
