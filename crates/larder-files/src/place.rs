//! Getting a finished file to its name, and taking files away.
//!
//! In: a file in `.larder/tmp`, or a name. Out: the name stands for the whole new file, or everything is as it was. All of
//! it goes by descriptors of directories that were opened one after the other without following links, so whatever is
//! renamed or linked meanwhile, nothing lands outside. What a person put somewhere is never replaced: a new name is taken
//! only if nothing has it, an old one by exchanging the two and looking at what came out. Runs on the store's one writing
//! thread.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use larder_http::time::WallTime;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::calls;
use super::meta::{self, JudgedMeta, META_BYTES_MAX, Meta};
use super::name::{Name, SELF, TargetUri};
use super::resolver::{DIRECTORY, READ, as_path};
use super::room::beside_bytes;
use super::sys::{self, Status, is_absent};
use super::tree::{Tree, directory_at, meta_path};

/// How often a step is tried anew because somebody else changed the same names.
const TRIES: usize = 8;

/// Why a file did not get its name.
#[derive(Debug)]
pub(super) enum PlaceError {
    /// Somebody else's file has it, or stands where a directory would be.
    InTheWay,
    /// What has it came later.
    Outdated,
    /// No room for a directory.
    NoRoom,
    Io(io::Error),
}

impl From<Errno> for PlaceError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for PlaceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file on its way. Removed on drop unless it got its name.
#[derive(Debug)]
pub(super) struct Temp {
    /// Directory with those who read along.
    pub(super) file: Arc<File>,
    name: String,
    directory: Arc<OwnedFd>,
}

impl Drop for Temp {
    fn drop(&mut self) {
        // Where it has got its name there is nothing to remove, or what it was exchanged for.
        let _ = calls::unlinkat(&self.directory, self.name.as_str(), AtFlags::empty());
    }
}

/// What putting a file in its place did beside that.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Files that made way for a directory.
    pub(super) removed: Vec<Name>,
    /// What meta takes in a file of its own, in bytes; nothing where it needs none.
    pub(super) beside: u64,
}

impl Tree {
    /// A new file without a name in the tree.
    pub(super) fn temp(&self) -> io::Result<Temp> {
        for attempt in 0..TRIES {
            let (directory, name) = (self.temps(), self.temp_name());
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match calls::openat(&directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok(Temp { file: Arc::new(file.into()), name, directory }),
                Err(Errno::NOENT) if attempt == 0 => self.renew_temps()?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Puts a file whose content is whole in its place. `room` is asked before each directory that is made.
    pub(super) fn put(
        &self,
        temp: &Temp,
        name: &Name,
        uri: &TargetUri<'_>,
        meta: &Meta,
        room: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Placed, PlaceError> {
        // Whatever the umask is: the operator said who may read.
        calls::fchmod(&temp.file, self.file_mode())?;
        let status = Status::of(&temp.file)?;
        let lines = meta.write(uri, &status);
        if lines.len() > META_BYTES_MAX {
            return Err(PlaceError::NoRoom);
        }
        let is_beside = !(self.has_attributes() && sys::set_attribute(&temp.file, &lines)?);
        if is_beside {
            if self.has_attributes()
                && !sys::set_attribute(&temp.file, &meta::beside(&meta_path(name, &status)))?
            {
                return Err(Errno::NOSPC.into());
            }
            self.write_beside(name, &status, &lines)?;
        }
        let beside = if is_beside { beside_bytes(lines.len()) } else { 0 };
        let mut placed = Placed { beside, ..Placed::default() };
        'tries: for _ in 0..TRIES {
            let (directories, last) = name.split();
            let mut parent = rustix::io::dup(self.root())?;
            let mut path = Vec::new();
            for component in directories {
                path.extend_from_slice(component);
                match self.enter(&parent, component, &path, room, &mut placed) {
                    Ok(entered) => parent = entered,
                    // Somebody, or an eviction for the sake of this, has removed the directory that it lies in.
                    Err(PlaceError::Io(error)) if is_absent(&error) => continue 'tries,
                    Err(error) => return Err(error),
                }
                path.push(b'/');
            }
            match self.rename(temp, &parent, last, (name, uri, meta.times.received))? {
                Renamed::Done => return Ok(placed),
                Renamed::Again => {}
                Renamed::Directory(directory) => {
                    if let Renamed::Done =
                        self.rename(temp, &directory, SELF, (name, uri, meta.times.received))?
                    {
                        return Ok(placed);
                    }
                }
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a directory, makes it where it is missing; a stored file makes way for it.
    fn enter(
        &self,
        at: &OwnedFd,
        component: &[u8],
        path: &[u8],
        room: &mut dyn FnMut(&[u8]) -> bool,
        placed: &mut Placed,
    ) -> Result<OwnedFd, PlaceError> {
        for _ in 0..TRIES {
            match calls::openat(at, as_path(component), DIRECTORY, Mode::empty()) {
                Ok(directory) => return Ok(directory),
                Err(Errno::NOENT) => {
                    if !room(path) {
                        return Err(PlaceError::NoRoom);
                    }
                    match calls::mkdirat(at, as_path(component), Mode::RWXU) {
                        Ok(()) => {
                            let made = calls::openat(at, as_path(component), DIRECTORY, Mode::empty())?;
                            calls::fchmod(&made, self.directory_mode())?;
                            return Ok(made);
                        }
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    let name = Name::found(path);
                    match self.take_out(at, component, &name, Spare::ByHand)? {
                        TakenOut::Removed => placed.removed.push(name),
                        TakenOut::Absent => {}
                        TakenOut::Spared => return Err(PlaceError::InTheWay),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::AGAIN.into())
    }

    fn rename(
        &self,
        temp: &Temp,
        parent: &OwnedFd,
        last: &[u8],
        (name, uri, received): (&Name, &TargetUri<'_>, WallTime),
    ) -> Result<Renamed, PlaceError> {
        let from = (&*temp.directory, temp.name.as_str());
        match calls::renameat_with(from.0, from.1, parent, as_path(last), RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Renamed::Done),
            Err(Errno::INVAL | Errno::NOSYS) => {
                match calls::linkat(from.0, from.1, parent, as_path(last), AtFlags::empty()) {
                    Ok(()) => return Ok(Renamed::Done),
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(Errno::EXIST) => {}
            // The directory was removed a moment ago.
            Err(Errno::NOENT) => return Ok(Renamed::Again),
            Err(error) => return Err(error.into()),
        }
        let there = match calls::openat(parent, as_path(last), READ | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(there) => File::from(there),
            Err(Errno::NOENT) => return Ok(Renamed::Again),
            Err(_) => return Err(PlaceError::InTheWay),
        };
        let status = Status::of(&there)?;
        if status.is_directory() && last != SELF {
            return Ok(Renamed::Directory(there.into()));
        }
        match self.judge(&there, &status, name, Some(uri)) {
            Ok(JudgedMeta::Stored(other)) if other.times.are_behind(received) => {
                return Err(PlaceError::Outdated);
            }
            Ok(judged) if status.is_file() && !judged.is_by_hand() => {}
            Ok(_) | Err(_) => return Err(PlaceError::InTheWay),
        }
        match calls::renameat_with(from.0, from.1, parent, as_path(last), RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS) => {
                calls::renameat(from.0, from.1, parent, as_path(last))?;
                return Ok(Renamed::Done);
            }
            Err(Errno::NOENT) => return Ok(Renamed::Again),
            Err(error) => return Err(error.into()),
        }
        // What came out has to be what was judged; else a person was faster, and gets the name back.
        let out = Status::at(from.0, from.1.as_bytes())?;
        if out.has_content_of(&status) {
            self.forget_beside(name, &status);
            return Ok(Renamed::Done);
        }
        let ours = Status::of(&temp.file)?;
        for _ in 0..TRIES {
            calls::renameat_with(from.0, from.1, parent, as_path(last), RenameFlags::EXCHANGE)?;
            // Unless it was a person again, who has put yet another one in place of ours.
            if Status::at(from.0, from.1.as_bytes())?.is_same_file(&ours) {
                break;
            }
        }
        Ok(Renamed::Again)
    }

    /// Removes the file of a name. `sync`: it stays removed after a crash, also where it was gone before.
    pub(super) fn remove(&self, name: &Name, spare: Spare, sync: bool) -> io::Result<TakenOut> {
        let found = match self.find(name) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => {
                if sync {
                    self.sync_around(name)?;
                }
                return Ok(TakenOut::Absent);
            }
            Err(error) => return Err(error),
        };
        let path = Name::found_at(&found.path);
        let (directories, last) = path.split();
        let directories: Vec<&[u8]> = directories.collect();
        let parent = self.resolver().open(self.root(), &directories.join(&b'/'), DIRECTORY)?;
        let taken = self.take_out(&parent, last, name, spare)?;
        if taken == TakenOut::Removed && sync {
            calls::fsync(&parent)?;
        }
        Ok(taken)
    }

    /// What was removed under a name stays removed after a crash: the directory is synced that would have its file, or
    /// the next above that is still there. File systems keep the order of what is done to directories.
    fn sync_around(&self, name: &Name) -> io::Result<()> {
        let open = |path: &[u8]| match path {
            b"" => rustix::io::dup(self.root()).map_err(io::Error::from),
            path => self.resolver().open(self.root(), path, DIRECTORY),
        };
        let mut path = name.bytes();
        // The name may be that of a directory, in which the file was `%self`.
        let mut is_own = true;
        loop {
            match open(path) {
                Ok(directory) => {
                    calls::fsync(&directory)?;
                    if !is_own {
                        return Ok(());
                    }
                }
                Err(error) if is_absent(&error) && !path.is_empty() => {}
                Err(error) => return Err(error),
            }
            is_own = false;
            let slash = path.iter().rposition(|byte| *byte == b'/');
            path = path.get(..slash.unwrap_or(0)).unwrap_or_default();
        }
    }

    /// Removes directories that are empty, from the innermost outwards; `gone` hears of each.
    pub(super) fn prune(&self, name: &Name, gone: &mut dyn FnMut(&[u8])) {
        let mut path = name.bytes();
        // A directory that has the name of a file: what was inside under `%self` may have been the last.
        let mut first = true;
        while !path.is_empty() {
            let (above, last) = match path.iter().rposition(|byte| *byte == b'/') {
                Some(slash) => {
                    (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default())
                }
                None => (b"".as_slice(), path),
            };
            let parent = match above {
                b"" => rustix::io::dup(self.root()).map_err(io::Error::from),
                above => self.resolver().open(self.root(), above, DIRECTORY),
            };
            let Ok(parent) = parent else { return };
            match calls::unlinkat(&parent, as_path(last), AtFlags::REMOVEDIR) {
                Ok(()) => gone(path),
                Err(Errno::NOENT | Errno::NOTDIR) if first => {}
                Err(_) => return,
            }
            first = false;
            path = above;
        }
    }

    /// Takes a file out of its directory and then looks at it once more: what a person put there meanwhile is put back.
    fn take_out(&self, parent: &OwnedFd, last: &[u8], name: &Name, spare: Spare) -> io::Result<TakenOut> {
        let there = match calls::openat(parent, as_path(last), READ | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(there) => File::from(there),
            Err(Errno::NOENT) => return Ok(TakenOut::Absent),
            // A symbolic link, or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Ok(TakenOut::Spared),
            Err(error) => return Err(error.into()),
        };
        let status = Status::of(&there)?;
        let is_spared = |file: &File, status: &Status| {
            !status.is_file() || spare == Spare::ByHand && self.may_be_by_hand(file, status, name, None)
        };
        if is_spared(&there, &status) {
            return Ok(TakenOut::Spared);
        }
        if spare == Spare::Nothing {
            calls::unlinkat(parent, as_path(last), AtFlags::empty())?;
            self.forget_beside(name, &status);
            return Ok(TakenOut::Removed);
        }
        let (temps, aside) = (self.temps(), self.temp_name());
        match calls::renameat(parent, as_path(last), &temps, aside.as_str()) {
            Ok(()) => {}
            Err(Errno::NOENT) if Status::at(parent, last).is_err() => return Ok(TakenOut::Absent),
            Err(Errno::NOENT) => {
                self.renew_temps()?;
                return Err(Errno::AGAIN.into());
            }
            Err(error) => return Err(error.into()),
        }
        if !Status::at(&temps, aside.as_bytes())?.has_content_of(&status) {
            match calls::renameat_with(&temps, aside.as_str(), parent, as_path(last), RenameFlags::NOREPLACE)
            {
                Ok(()) => {}
                // Something newer of theirs is there already.
                Err(Errno::EXIST) => calls::unlinkat(&temps, aside.as_str(), AtFlags::empty())?,
                Err(error) => return Err(error.into()),
            }
            return Ok(TakenOut::Spared);
        }
        calls::unlinkat(&temps, aside.as_str(), AtFlags::empty())?;
        self.forget_beside(name, &status);
        Ok(TakenOut::Removed)
    }

    /// Removes the meta of a file that is gone, where it was a file of its own.
    pub(super) fn forget_beside(&self, name: &Name, file: &Status) {
        let _ = calls::unlinkat(self.root(), meta_path(name, file).as_str(), AtFlags::empty());
    }

    /// Writes meta into a file of its own, whole or not at all.
    pub(super) fn write_beside(&self, name: &Name, file: &Status, lines: &[u8]) -> Result<(), PlaceError> {
        let path = meta_path(name, file);
        let (folder, last) = path.rsplit_once('/').unwrap_or_default();
        let parent = directory_at(self.root(), folder)?;
        let temp = self.temp()?;
        calls::write_all(&temp.file, lines)?;
        calls::renameat(&*temp.directory, temp.name.as_str(), &parent, last)?;
        Ok(())
    }
}

enum Renamed {
    Done,
    /// The name changed meanwhile.
    Again,
    /// A directory has the name.
    Directory(OwnedFd),
}

/// What is not to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spare {
    /// What people put there.
    ByHand,
    Nothing,
}

/// What became of a file that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenOut {
    Removed,
    Absent,
    /// It is a person's, or no file at all.
    Spared,
}
