//! The directory itself: opened once, then spoken to by descriptors only.
//!
//! In: names. Out: open files and what is known of them. Beside the hosts' directories lies `.larder`, whose name no host
//! can have: a lock, the place where files are written before they get their names, and meta that fits no attribute. Who
//! points a web server at a host's directory never serves it. [`super::place`] writes, this only reads and prepares.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::calls;
use super::error::FilesError;
use super::meta::{self, JudgedMeta, META_BYTES_MAX, Meta};
use super::name::{Name, SELF, TargetUri, digest};
use super::resolver::{Cached, DIRECTORY, Links, READ, Resolver};
use super::syncs::Syncs;
use super::sys::is_absent;
use super::sys::{self, Identity, Status};

/// Where everything of larder's own lies.
pub(super) const OWN: &str = ".larder";
const TEMPS: &str = ".larder/tmp";
/// Directories that are being removed.
pub(super) const ASIDE: &str = ".larder/aside";
/// Meta in files of their own, by a digest of the name.
pub(super) const METAS: &str = ".larder/meta";

const READ_ME: &str = "Made by larder: files on their way into the directories beside this one, and what larder knows of them.\n\
                       Nothing here is for people or other programs. All of it may be removed while larder does not run; what larder stored\n\
                       beside it is fetched anew then, since nobody knows what of it was invalidated.\n";

/// A file that a name led to.
pub(super) struct FoundFile {
    pub(super) file: File,
    pub(super) status: Status,
    /// Where it lies: its name, or `%self` in the directory that has its name.
    pub(super) path: Vec<u8>,
}

/// What the kernel's name cache says of a name.
pub(super) enum Glimpse {
    Absent,
    Found(FoundFile),
    Unknown,
}

/// An open store directory.
#[derive(Debug)]
pub(super) struct Tree {
    path: PathBuf,
    root: OwnedFd,
    identity: Identity,
    resolver: Resolver,
    /// Whether files can carry attributes.
    has_attributes: bool,
    is_in_memory: bool,
    file_mode: Mode,
    temps: Mutex<Arc<OwnedFd>>,
    serial: AtomicU64,
    lock: Option<OwnedFd>,
    pub(super) syncs: Syncs,
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// What is done about a directory that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is made.
    Make,
    /// It is an error: whoever removed it may be about to put another in its place, and would find this one in the way.
    Leave,
}

impl Tree {
    /// Opens `path`, makes it where it is missing and may be made, and removes what an earlier larder left half written.
    /// Blocks.
    pub(super) fn open(path: &Path, file_mode: Mode, missing: Missing) -> Result<Self, FilesError> {
        let failed = |step| move |source| FilesError::Io { path: path.to_owned(), step, source };
        if missing == Missing::Make {
            match calls::create_dir(path) {
                // Where the one above is missing, a file system is not mounted, or the name is wrong.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("cannot make the directory")(error));
                }
                _ => {}
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = calls::open(path, flags, Mode::empty()).map_err(io::Error::from);
        let root = opened.map_err(failed("cannot open the directory"))?;
        directory_at(&root, OWN).map_err(failed("cannot write to the directory"))?;
        let lock = lock(&root).map_err(failed("cannot open the lock"))?;
        let lock = lock.ok_or_else(|| FilesError::InUse { path: path.to_owned() })?;
        let temps = directory_at(&root, TEMPS).map_err(failed("cannot write to the directory"))?;
        empty(&temps).map_err(failed("cannot remove old temporary files"))?;
        let probed = probe(&temps).map_err(failed("cannot write to the directory"))?;
        if probed.ignores_case {
            return Err(FilesError::CaseInsensitive { path: path.to_owned() });
        }
        Ok(Self {
            path: path.to_owned(),
            resolver: Resolver::probe(&root, Links::None),
            has_attributes: probed.has_attributes,
            is_in_memory: sys::is_in_memory(&root),
            file_mode,
            temps: Mutex::new(Arc::new(temps)),
            serial: AtomicU64::new(0),
            identity: Identity::of(&root).map_err(failed("cannot look at the directory"))?,
            root,
            lock: Some(lock),
            syncs: Syncs::default(),
        })
    }

    /// Opens `path` to look at what is there; changes nothing, and does not mind a larder that uses it.
    pub(super) fn open_to_look(path: &Path) -> Result<Self, FilesError> {
        let failed =
            |source| FilesError::Io { path: path.to_owned(), step: "cannot open the directory", source };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = calls::open(path, flags, Mode::empty()).map_err(io::Error::from);
        let root = opened.map_err(failed)?;
        let nowhere = rustix::io::dup(&root).map_err(io::Error::from).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            resolver: Resolver::probe(&root, Links::None),
            // Nothing was tried: meta is looked for in both places.
            has_attributes: false,
            is_in_memory: sys::is_in_memory(&root),
            file_mode: Mode::RUSR,
            temps: Mutex::new(Arc::new(nowhere)),
            serial: AtomicU64::new(0),
            identity: Identity::of(&root).map_err(failed)?,
            root,
            lock: None,
            syncs: Syncs::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Which directory it is.
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Others may use it: nothing more is changed in it. Closing would not be enough: a child that is being started has the
    /// descriptor as well, until it runs its program.
    pub(super) fn unlock(&self) {
        if let Some(lock) = &self.lock {
            let _ = calls::flock(lock, FlockOperation::Unlock);
        }
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    pub(super) fn resolver(&self) -> Resolver {
        self.resolver
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    pub(super) fn has_attributes(&self) -> bool {
        self.has_attributes
    }

    /// That of files.
    pub(super) fn file_mode(&self) -> Mode {
        self.file_mode
    }

    /// That of directories: who may read files may also list and enter.
    pub(super) fn directory_mode(&self) -> Mode {
        let bits = self.file_mode.bits();
        Mode::from_bits_truncate(bits | (bits & 0o444) >> 2 | 0o700)
    }

    /// Whether the directory is still where it was; a person may have removed all of it.
    pub(super) fn is_there(&self) -> bool {
        Status::of(&self.root).is_ok_and(|status| status.links > 0)
    }

    /// Whether nothing lies there but what is larder's own.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        for entry in calls::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && name != OWN.as_bytes() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The directory of larder's own, made anew after somebody removed it.
    pub(super) fn renew_own(&self) -> io::Result<()> {
        directory_at(&self.root, OWN).map(drop)
    }

    /// The directory where files are written.
    pub(super) fn temps(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.temps.lock())
    }

    /// The same made anew, after somebody removed it.
    pub(super) fn renew_temps(&self) -> io::Result<()> {
        self.renew_own()?;
        *self.temps.lock() = Arc::new(directory_at(&self.root, TEMPS)?);
        Ok(())
    }

    /// A name in there that nothing has.
    pub(super) fn temp_name(&self) -> String {
        format!("{}-{}", std::process::id(), self.serial.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens the file of a name. May wait for a disk.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(super) fn find(&self, name: &Name) -> io::Result<FoundFile> {
        self.settle(self.resolver.open(&self.root, name.bytes(), READ)?, name)
    }

    /// Asks the kernel's name cache; opens the file only where nothing about it can wait.
    pub(super) fn glimpse(&self, name: &Name) -> Glimpse {
        let flags = if self.is_in_memory { READ } else { OFlags::PATH | OFlags::CLOEXEC };
        match self.resolver.open_cached(&self.root, name.bytes(), flags) {
            Cached::Absent => Glimpse::Absent,
            Cached::Open(file) if self.is_in_memory => match self.settle(file, name) {
                Ok(found) => Glimpse::Found(found),
                Err(_) => Glimpse::Absent,
            },
            Cached::Open(_) | Cached::Unknown => Glimpse::Unknown,
        }
    }

    /// The file itself, or where a directory has its name, the one inside.
    fn settle(&self, opened: OwnedFd, name: &Name) -> io::Result<FoundFile> {
        let status = Status::of(&opened)?;
        let mut found = FoundFile { file: opened.into(), status, path: name.bytes().to_vec() };
        if status.is_directory() {
            found.file = self.resolver.open(&found.file, SELF, READ)?.into();
            found.status = Status::of(&found.file)?;
            found.path.push(b'/');
            found.path.extend_from_slice(SELF);
        }
        if !found.status.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(found)
    }

    /// Whose the file of a name is; of a request for `uri`, where there is one.
    ///
    /// # Errors
    /// What lies beside it could not be read: nobody knows.
    pub(super) fn judge(
        &self,
        file: &File,
        status: &Status,
        name: &Name,
        uri: Option<&TargetUri<'_>>,
    ) -> io::Result<JudgedMeta> {
        let Some(lines) = self.lines(file, status, name)? else { return Ok(JudgedMeta::ByHand) };
        let Some(uri) = uri else {
            return Ok(match stored(&lines, status, name) {
                Some((_, meta)) => JudgedMeta::Stored(Box::new(meta)),
                None if meta::is_torn(&lines, status) => JudgedMeta::Torn,
                None => JudgedMeta::ByHand,
            });
        };
        Ok(meta::judge(&lines, uri, status))
    }

    /// The lines that lie with a file; none of them where they were in a file of their own and are lost.
    ///
    /// # Errors
    /// They could not be read.
    pub(super) fn lines(&self, file: &File, status: &Status, name: &Name) -> io::Result<Option<Vec<u8>>> {
        let path = meta_path(name, status);
        match sys::attribute(file)? {
            Some(mark) if mark == meta::beside(&path) => Ok(Some(self.lines_at(&path)?.unwrap_or_default())),
            Some(lines) => Ok(Some(lines)),
            None if self.has_attributes => Ok(None),
            None => self.lines_at(&path),
        }
    }

    /// Whether it may be a person's: it is, or nobody knows.
    pub(super) fn may_be_by_hand(
        &self,
        file: &File,
        status: &Status,
        name: &Name,
        uri: Option<&TargetUri<'_>>,
    ) -> bool {
        self.judge(file, status, name, uri).map_or(true, |judged| judged.is_by_hand())
    }

    /// What the meta of a file takes in a file of its own, in bytes, where it has one.
    pub(super) fn beside(&self, name: &Name, status: &Status) -> Option<u64> {
        Some(Status::at(&self.root, meta_path(name, status).as_bytes()).ok()?.allocated)
    }

    /// Meta from its own file, where that is there.
    fn lines_at(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match self.resolver.open(&self.root, path.as_bytes(), READ) {
            Ok(file) => File::from(file),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = usize::try_from(Status::of(&file)?.size).ok().filter(|size| *size <= META_BYTES_MAX);
        let Some(size) = size else { return Ok(None) };
        let mut lines = vec![0; size];
        calls::read_exact_at(&file, &mut lines, 0)?;
        Ok(Some(lines))
    }
}

/// The response that larder stored in the file of a name, by the lines that lie with it: they go along where somebody gives the
/// file another name, and then it is theirs.
pub(super) fn stored<'a>(lines: &'a [u8], status: &Status, name: &Name) -> Option<(TargetUri<'a>, Meta)> {
    let (said, meta) = meta::read(lines, status)?;
    let uri = TargetUri::parse(said)?;
    (Name::of(&uri).ok()? == *name).then_some((uri, meta))
}

/// Where the meta of a name's file lies when it is a file of its own: another one for each file that has the name.
pub(super) fn meta_path(name: &Name, file: &Status) -> String {
    let digest = digest(name.bytes());
    let (folder, rest) = digest.split_at(2);
    format!("{METAS}/{folder}/{rest}-{:x}", file.inode)
}

/// Opens a directory of larder's own, made where it is missing; for nobody else.
pub(super) fn directory_at(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mut at = rustix::io::dup(root)?;
    for component in path.split('/') {
        match calls::mkdirat(&at, component, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = calls::openat(&at, component, DIRECTORY, Mode::empty())?;
    }
    Ok(at)
}

/// One larder per directory: two would not know of each other's room. `None` where it is held.
fn lock(root: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let own = calls::openat(root, OWN, DIRECTORY, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = File::from(calls::openat(&own, "lock", flags, Mode::RUSR | Mode::WUSR)?);
    if Status::of(&written)?.size == 0 {
        calls::write_all_at(&written, READ_ME.as_bytes(), 0)?;
    }
    drop(written);
    // Held open for reading only: a file open for writing keeps the file system from being made read-only.
    let file =
        calls::openat(&own, "lock", OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match calls::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the files of a directory.
fn empty(directory: &OwnedFd) -> io::Result<()> {
    for entry in calls::read_dir(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            calls::unlinkat(directory, entry.file_name(), AtFlags::empty())?;
        }
    }
    Ok(())
}

struct Probed {
    has_attributes: bool,
    ignores_case: bool,
}

/// What the file system can do, by doing it.
fn probe(temps: &OwnedFd) -> io::Result<Probed> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = calls::openat(temps, "probe", flags, Mode::RUSR | Mode::WUSR)?;
    let probed = Probed {
        has_attributes: sys::set_attribute(&file, &meta::beside(METAS))?,
        ignores_case: Status::at(temps, b"PROBE").is_ok(),
    };
    calls::unlinkat(temps, "probe", AtFlags::empty())?;
    Ok(probed)
}
