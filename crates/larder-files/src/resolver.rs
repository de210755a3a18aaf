//! Names resolved beneath a directory, and never outside of it.
//!
//! In: a directory's descriptor, and a name relative to it. Out: a descriptor of what it names, or an error. `openat2` does
//! it in one call; where a kernel or a sandbox has none, it is done component by component with `O_NOFOLLOW`, over no
//! symbolic link at all. Plain files and `root` both open through this.
//! Deliberately absent: any decision what a file means.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use larder_tier::rank::forbid_under_lock;

/// How often a name is resolved anew while directories are being renamed.
const OPEN_TRIES: usize = 64;

/// For reading. Does not wait at a FIFO that somebody planted; it is refused once its type is known.
pub const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A directory to work in.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The path that a name is.
pub(super) fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Which symbolic links a name may lead over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// None, not even one that leads back inside.
    None,
    /// Those that stay beneath the directory. Where the kernel has no `openat2`, none.
    Beneath,
}

impl Links {
    const fn flags(self) -> ResolveFlags {
        let beneath = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        match self {
            Self::None => beneath.union(ResolveFlags::NO_SYMLINKS),
            Self::Beneath => beneath,
        }
    }
}

/// Which calls this kernel has, and which links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolver {
    openat2: bool,
    /// Whether names can be resolved from the kernel's cache alone (since Linux 5.12).
    cached: bool,
    links: Links,
}

/// What the kernel's name cache knows, without asking any disk.
#[derive(Debug)]
pub enum Cached {
    /// It is there.
    Open(OwnedFd),
    /// There is no such name.
    Absent,
    /// A disk would have to be asked, or the kernel cannot tell.
    Unknown,
}

impl Resolver {
    /// Asks the kernel what it has.
    pub fn probe(directory: impl AsFd, links: Links) -> Self {
        forbid_under_lock();
        let works = |resolve| {
            let here = Path::new(".");
            openat2(directory.as_fd(), here, DIRECTORY, Mode::empty(), resolve).is_ok()
        };
        let beneath = links.flags();
        Self { openat2: works(beneath), cached: works(beneath | ResolveFlags::CACHED), links }
    }

    /// That of a kernel without `openat2`.
    pub const fn without_openat2() -> Self {
        Self { openat2: false, cached: false, links: Links::None }
    }

    /// Opens `name` beneath `directory`, or not at all; `.` is the directory itself. May wait for a disk.
    ///
    /// # Errors
    /// What the system says. `EAGAIN` only where directories were renamed all the time.
    pub fn open(self, directory: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        forbid_under_lock();
        if !self.openat2 {
            return by_component(directory, name, flags);
        }
        for _ in 0..OPEN_TRIES {
            match openat2(directory.as_fd(), as_path(name), flags, Mode::empty(), self.links.flags()) {
                // A rename elsewhere came between: the kernel could not be sure.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The same from the kernel's cache alone: never waits.
    pub fn open_cached(self, directory: impl AsFd, name: &[u8], flags: OFlags) -> Cached {
        forbid_under_lock();
        if !self.cached {
            return Cached::Unknown;
        }
        let resolve = self.links.flags() | ResolveFlags::CACHED;
        match openat2(directory.as_fd(), as_path(name), flags, Mode::empty(), resolve) {
            Ok(file) => Cached::Open(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Cached::Absent,
            Err(_) => Cached::Unknown,
        }
    }
}

/// One component after the other, following no link at all.
fn by_component(directory: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    if name == b"." {
        return Ok(openat(directory, ".", flags, Mode::empty())?);
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_name_over_a_link_is_resolved_while_directories_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path().join("root"), folder.path());
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("../../file", root.join("a/b/link")).unwrap();
        std::fs::create_dir(path.join("one")).unwrap();
        let directory = std::fs::File::open(&root).unwrap();
        let resolver = Resolver::probe(&directory, Links::Beneath);
        if !resolver.openat2 {
            // By component there is nothing to be unsure about, and no link is followed.
            return;
        }
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    std::fs::rename(path.join("one"), path.join("other")).unwrap();
                    std::fs::rename(path.join("other"), path.join("one")).unwrap();
                }
            });
            let failed: Vec<io::Error> =
                (0..20_000).filter_map(|_| resolver.open(&directory, b"a/b/link", READ).err()).collect();
            stopped.store(true, Ordering::Relaxed);
            assert!(failed.is_empty(), "{} failed: {:?}", failed.len(), failed.first());
        });
    }
}
