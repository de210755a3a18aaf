//! Opening names beneath a root. The calls that only Linux has live here.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use super::file::StaticFile;

/// What a name stands for.
pub(super) enum Opened {
    File(StaticFile),
    /// A directory with an index, asked for without its slash.
    Directory,
}

const INDEX: &str = "index.html";

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Not blocking at a FIFO that somebody planted; it is refused once its type is known.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

pub(super) fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Whether two descriptors are of one directory.
pub(super) fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let identity = |directory| fstat(directory).map(|status| (status.st_dev, status.st_ino));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether an error says that a path leads to no directory that may be read.
pub(super) fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::ACCESS, Errno::NAMETOOLONG];
    Errno::from_io_error(error).is_some_and(|error| codes.contains(&error))
}

/// Whether the kernel's name cache alone says that there is no such name. Never waits for a disk.
pub(super) fn is_surely_absent(root: &OwnedFd, name: &[u8]) -> bool {
    if name.is_empty() {
        return false;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = RESOLVE | ResolveFlags::CACHED;
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    openat2(root, path, flags, Mode::empty(), resolve).err() == Some(rustix::io::Errno::NOENT)
}

/// Opens a file, or the index of a directory. Blocks; runs on the pool.
pub(super) fn open(root: &OwnedFd, name: &[u8], with_slash: bool) -> io::Result<Opened> {
    let name = if name.is_empty() { b".".as_slice() } else { name };
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let opened = beneath(root, path)?;
    let status = fstat(&opened)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile if !with_slash => Ok(Opened::File(StaticFile::read(opened, &status, path)?)),
        FileType::Directory => {
            let index = beneath(&opened, Path::new(INDEX))?;
            let status = fstat(&index)?;
            if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
                return Err(io::ErrorKind::NotFound.into());
            }
            if !with_slash && name != b"." {
                return Ok(Opened::Directory);
            }
            Ok(Opened::File(StaticFile::read(index, &status, Path::new(INDEX))?))
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Opens beneath `directory`, or not at all.
fn beneath(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    match openat2(directory.as_fd(), path, FLAGS, Mode::empty(), RESOLVE) {
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => by_component(directory, path),
        opened => Ok(opened?),
    }
}

/// For kernels and sandboxes without `openat2`: one component after the other, following no link at all.
fn by_component(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = directory.as_fd().try_clone_to_owned()?;
    for component in path.components() {
        at = match component {
            std::path::Component::CurDir => continue,
            std::path::Component::Normal(name) => openat(&at, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?,
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
    }
    Ok(at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A root with a file inside, a file outside, and links to both.
    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("in.txt"), "in").unwrap();
        std::fs::write(root.join("sub/index.html"), "index").unwrap();
        std::fs::write(dir.path().join("out.txt"), "out").unwrap();
        std::os::unix::fs::symlink("../out.txt", root.join("leaves")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("out.txt"), root.join("absolute")).unwrap();
        std::os::unix::fs::symlink("in.txt", root.join("stays")).unwrap();
        let opened = directory(&root).unwrap();
        (dir, opened)
    }

    #[test]
    fn nothing_outside_the_root_is_opened() {
        let (_dir, root) = tree();
        for (name, opens) in [
            ("in.txt", true),
            ("stays", true),
            ("leaves", false),
            ("absolute", false),
            ("../out.txt", false),
            ("sub/../../out.txt", false),
            ("missing", false),
        ] {
            assert_eq!(open(&root, name.as_bytes(), false).is_ok(), opens, "{name}");
        }
    }

    #[test]
    fn without_openat2_no_link_is_followed() {
        let (_dir, root) = tree();
        for (name, opens) in [
            ("in.txt", true),
            ("sub/index.html", true),
            ("stays", false),
            ("leaves", false),
            ("../out.txt", false),
        ] {
            assert_eq!(by_component(&root, Path::new(name)).is_ok(), opens, "{name}");
        }
    }

    #[test]
    fn a_directory_answers_with_its_index_behind_a_slash() {
        let (_dir, root) = tree();
        assert!(matches!(open(&root, b"sub", false), Ok(Opened::Directory)));
        assert!(matches!(open(&root, b"sub/", true), Ok(Opened::File(_))));
        assert!(open(&root, b"in.txt/", true).is_err());
        assert!(open(&root, b"", true).is_err(), "no index at the top");
    }
}
