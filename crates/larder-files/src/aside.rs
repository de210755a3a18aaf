//! Directories that go as a whole: everything below a path at a host, whoever put it there.
//!
//! In: a canonical path that ends in a slash, and the hosts that are meant. Out: nothing lies there any more. Each directory is renamed
//! into `.larder/aside` first, and both ends are synced. From then on no look-up finds it, a crash does not bring it back, and whoever asked
//! has the answer. Then it is removed, [`SLICE`] files at a time, between the other jobs of the writing thread. What a
//! larder that ended has left there, the next one removes.
//! A path has one spelling here, the canonical one. What larder stored under another is known by its number, and not used.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::sync::{Arc, Weak};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use larder_http::message::Scheme;
use larder_tier::tier::{CountRemoved, WantedHosts};

use super::FileStore;
use super::calls;
use super::directory::Directory;
use super::error::FilesError;
use super::in_use::{InUse, WAIT_MAX};
use super::name::{INDEX, Name, SELF, TargetUri};
use super::queue::FileJob;
use super::resolver::{DIRECTORY, as_path};
use super::sys::{Status, is_absent};
use super::tree::{OWN, Tree, directory_at};

/// Where directories lie that are being removed.
const ASIDE: &str = ".larder/aside";
/// Steps of a removal that are done at once: files, and directories that are entered or left.
const SLICE: usize = 256;
/// How often another name is tried, where an earlier run has left one there.
const NAMES_MAX: usize = 1024;

/// Hears what is gone: the directories above it, its name, and what it was.
type EachGone<'a> = dyn FnMut(&[&[u8]], &[u8], &Status) + 'a;

/// A directory in [`ASIDE`].
struct Aside {
    name: String,
    /// Where it was; nobody knows that of what an earlier run has left.
    path: Option<Vec<u8>>,
}

impl FileStore {
    /// Removes everything below `path` at the hosts that are `wanted`, whoever put it there, and waits until none of it lies where it
    /// did, for good; for a pool. `removed` hears of files as they are removed, which goes on afterwards.
    ///
    /// # Errors
    /// Something may still be there: it could not be renamed, or not within a minute, or the directory is absent.
    pub fn remove_below(
        &self,
        path: &str,
        wanted: &Arc<WantedHosts>,
        removed: &Arc<CountRemoved>,
    ) -> Result<(), FilesError> {
        loop {
            let in_use = self.in_use.load_full();
            let in_use = in_use.ok_or_else(|| FilesError::Absent { path: self.directory().to_owned() })?;
            in_use.remove_below(path, wanted, removed)?;
            // Where another directory has taken its place meanwhile, it is to be gone there.
            if self.in_use.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, &in_use)) {
                return Ok(());
            }
        }
    }
}

impl InUse {
    fn remove_below(
        &self,
        path: &str,
        wanted: &Arc<WantedHosts>,
        removed: &Arc<CountRemoved>,
    ) -> Result<(), FilesError> {
        let (tell, told) = mpsc::sync_channel(1);
        let (shared, path) = (Arc::clone(&self.shared), path.to_owned());
        let (wanted, removed) = (Arc::clone(wanted), Arc::clone(removed));
        let put_aside = move || {
            // Its receiver may have gone by then; nobody wants to know.
            let _ = tell.send(shared.put_all_aside(&path, &*wanted, &removed));
        };
        let path = self.shared.tree.path().to_owned();
        let pushed = self.shared.queue.push_end(FileJob::Run(Box::new(put_aside)), || true);
        pushed.map_err(|_| FilesError::Absent { path: path.clone() })?;
        let done = told.recv_timeout(WAIT_MAX).map_err(|_| FilesError::TooSlow)?;
        done.map_err(|source| FilesError::Io { path, step: "cannot remove a directory", source })
    }
}

impl Directory {
    fn put_all_aside(
        self: &Arc<Self>,
        path: &str,
        wanted: &WantedHosts,
        removed: &Arc<CountRemoved>,
    ) -> io::Result<()> {
        for authority in self.tree.authorities()? {
            let uri = TargetUri { scheme: Scheme::Http, authority: &authority, path, query: None };
            let Ok(name) = Name::of(&uri) else { continue };
            let Some(path) = name.bytes().strip_suffix(INDEX).and_then(|path| path.strip_suffix(b"/")) else {
                continue;
            };
            if wanted(&authority)
                && let Some(name) = self.tree.put_aside(path)?
            {
                self.remove_later(Aside { name, path: Some(path.to_vec()) }, Some(Arc::clone(removed)));
            }
        }
        Ok(())
    }

    /// Removes what an earlier run has put aside.
    pub(super) fn remove_left_aside(self: &Arc<Self>) {
        // A directory that cannot be read now is met by the next start.
        for name in self.tree.left_aside().unwrap_or_default() {
            self.remove_later(Aside { name, path: None }, None);
        }
    }

    fn remove_later(self: &Arc<Self>, aside: Aside, removed: Option<Arc<CountRemoved>>) {
        let weak = Arc::downgrade(self);
        // A closed queue leaves it to the next start.
        let _ = self.queue.push_end(FileJob::Run(Box::new(move || go_on(&weak, aside, removed))), || true);
    }

    /// What of it was known under its name goes.
    fn forget_below(&self, aside: &Aside, below: &[&[u8]], last: &[u8], status: &Status) {
        let Some(path) = &aside.path else { return };
        let path = [&[path.as_slice()], below, &[last]].concat().join(&b'/');
        if status.is_directory() {
            self.index.forget_directory(&path);
        } else {
            let name = Name::found(&path);
            self.index.forget(&name);
            self.tree.forget_beside(&name, status);
        }
    }
}

/// Removes a slice, and sees to it that the next one follows.
fn go_on(weak: &Weak<Directory>, aside: Aside, removed: Option<Arc<CountRemoved>>) {
    let Some(shared) = weak.upgrade() else { return };
    let mut files = 0;
    let is_over = shared.tree.remove_slice(&aside.name, &mut |below, last, status| {
        files += u64::from(!status.is_directory());
        shared.forget_below(&aside, below, last, status);
    });
    removed.iter().for_each(|removed| removed(files));
    match is_over {
        Ok(true) => {
            if let Some(path) = &aside.path {
                shared.index.forget_directory(path);
            }
        }
        Ok(false) => shared.remove_later(aside, removed),
        // It lies where nobody looks, and the next start tries again.
        Err(error) => shared.base.health.fails("cannot remove a directory that was purged", &error),
    }
}

impl Tree {
    /// The authorities that have a directory.
    fn authorities(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in calls::read_dir(self.root())? {
            let entry = entry?;
            let component = entry.file_name().to_bytes();
            if !matches!(component, b"." | b"..") && component != OWN.as_bytes() {
                let name = Name::found_at(&[component, b"/", INDEX].concat());
                found.extend(name.uri().map(|(authority, ..)| authority));
            }
        }
        Ok(found)
    }

    /// Renames a directory into [`ASIDE`], for good; `None` where there is none.
    fn put_aside(&self, path: &[u8]) -> io::Result<Option<String>> {
        let (above, last) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
            None => (b"".as_slice(), path),
        };
        let parent = match above {
            b"" => rustix::io::dup(self.root()).map_err(io::Error::from),
            above => self.resolver().open(self.root(), above, DIRECTORY),
        };
        let parent = match parent {
            Ok(parent) => parent,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_there = match Status::at(&parent, last) {
            Ok(status) => status.is_directory(),
            Err(error) if is_absent(&error) => false,
            Err(error) => return Err(error),
        };
        let name = match is_there {
            true => Some(self.rename_aside(&parent, last)?),
            false => None,
        };
        // Also where it was renamed before, and that could not be synced.
        calls::fsync(&parent)?;
        Ok(name)
    }

    fn rename_aside(&self, parent: &OwnedFd, last: &[u8]) -> io::Result<String> {
        let aside = directory_at(self.root(), ASIDE)?;
        for _ in 0..NAMES_MAX {
            let name = self.temp_name();
            match calls::renameat_with(parent, as_path(last), &aside, name.as_str(), RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            // The page that has the directory's own name lies beside what is below it.
            if let Ok(renamed) = calls::openat(&aside, name.as_str(), DIRECTORY, Mode::empty()) {
                let (own, back) = (as_path(SELF), as_path(last));
                let _ = calls::renameat_with(&renamed, own, parent, back, RenameFlags::NOREPLACE);
            }
            calls::fsync(&aside)?;
            return Ok(name);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn left_aside(&self) -> io::Result<Vec<String>> {
        let aside = match self.resolver().open(self.root(), ASIDE.as_bytes(), DIRECTORY) {
            Ok(aside) => aside,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut left = Vec::new();
        for entry in calls::read_dir(&aside)? {
            let entry = entry?;
            let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
            if !matches!(name.as_str(), "." | "..") {
                left.push(name);
            }
        }
        Ok(left)
    }

    /// Removes a part of what was put aside; true once nothing is left. `each` hears what is gone: the directories above it, and its
    /// name.
    fn remove_slice(&self, name: &str, each: &mut EachGone<'_>) -> io::Result<bool> {
        let aside = self.resolver().open(self.root(), ASIDE.as_bytes(), DIRECTORY)?;
        let mut at: Vec<Vec<u8>> = vec![name.as_bytes().to_vec()];
        let mut steps = 0;
        while let Some((last, above)) = at.split_last() {
            let here = self.resolver().open(&aside, &at.join(&b'/'), DIRECTORY)?;
            let below: Vec<&[u8]> = at.iter().skip(1).map(Vec::as_slice).collect();
            let mut deeper = None;
            for entry in calls::read_dir(&here)? {
                let entry = entry?;
                let component = entry.file_name().to_bytes();
                if matches!(component, b"." | b"..") {
                    continue;
                }
                steps += 1;
                if steps > SLICE {
                    return Ok(false);
                }
                let status = Status::at(&here, component)?;
                if status.is_directory() {
                    deeper = Some(component.to_vec());
                    break;
                }
                calls::unlinkat(&here, as_path(component), AtFlags::empty())?;
                each(&below, component, &status);
            }
            match deeper {
                Some(component) => at.push(component),
                None => {
                    let status = Status::of(&here)?;
                    let parent = match above {
                        [] => rustix::io::dup(&aside)?,
                        above => self.resolver().open(&aside, &above.join(&b'/'), DIRECTORY)?,
                    };
                    calls::unlinkat(&parent, as_path(last), AtFlags::REMOVEDIR)?;
                    if let Some((_, directories)) = below.split_last() {
                        each(directories, last, &status);
                    }
                    at.pop();
                }
            }
        }
        Ok(true)
    }
}
