//! What a name beneath a root stands for: a file, or a directory with an index.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use larder_files::{Cached, READ, Resolver};
use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::file::StaticFile;

/// What a name stands for.
pub(super) enum Opened {
    File(StaticFile),
    /// A directory with an index, asked for without its slash.
    Directory,
}

const INDEX: &str = "index.html";

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
pub(super) fn is_surely_absent(resolver: Resolver, root: &OwnedFd, name: &[u8]) -> bool {
    let path = OFlags::PATH | OFlags::CLOEXEC;
    !name.is_empty() && matches!(resolver.open_cached(root, name, path), Cached::Absent)
}

/// Opens a file, or the index of a directory. Blocks; runs on the pool.
pub(super) fn open(resolver: Resolver, root: &OwnedFd, name: &[u8], with_slash: bool) -> io::Result<Opened> {
    let name = if name.is_empty() { b".".as_slice() } else { name };
    // A file that is asked for with a slash behind its name is refused below.
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let path = Path::new(OsStr::from_bytes(name));
    let opened = resolver.open(root, name, READ)?;
    let status = fstat(&opened)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile if !with_slash => Ok(Opened::File(StaticFile::read(opened, &status, path)?)),
        FileType::Directory => {
            let index = resolver.open(&opened, INDEX.as_bytes(), READ)?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use larder_files::Links;

    use super::*;

    fn resolver(root: &OwnedFd) -> Resolver {
        Resolver::probe(root, Links::Beneath)
    }

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
            assert_eq!(open(resolver(&root), &root, name.as_bytes(), false).is_ok(), opens, "{name}");
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
            let opened = open(Resolver::without_openat2(), &root, name.as_bytes(), false);
            assert_eq!(opened.is_ok(), opens, "{name}");
        }
        let top = open(Resolver::without_openat2(), &root, b"sub/", true);
        assert!(matches!(top, Ok(Opened::File(_))));
    }

    #[test]
    fn a_directory_answers_with_its_index_behind_a_slash() {
        let (_dir, root) = tree();
        assert!(matches!(open(resolver(&root), &root, b"sub", false), Ok(Opened::Directory)));
        assert!(matches!(open(resolver(&root), &root, b"sub/", true), Ok(Opened::File(_))));
        assert!(open(resolver(&root), &root, b"in.txt/", true).is_err());
        assert!(open(resolver(&root), &root, b"", true).is_err(), "no index at the top");
    }
}
