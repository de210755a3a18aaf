//! Directories that go as a whole: everything below a path at a host, whoever put it there.
//!
//! In: a canonical path that ends in a slash, and the hosts that are meant. Out: nothing lies there any more. Each directory is
//! renamed into `.larder/aside`, and both ends are synced. From then on no look-up finds it, a crash does not bring it back, and
//! the purge is acknowledged. [`removal`] then removes what was renamed.
//! The writing thread renames, [`AT_ONCE`] directories in a job. The thread of the purge syncs, so that no other job waits for that. A host
//! where something fails keeps no other from it.
//! A path has one spelling here, the canonical one. What larder stored under another is known by its number, and not used.

mod removal;
pub(super) mod waiting;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use rustix::fs::{Mode, RenameFlags};
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
use super::tree::{ASIDE, OWN, Tree, directory_at};
use waiting::Aside;

/// Directories that are renamed in one job of the writing thread.
const AT_ONCE: usize = 64;
/// How often another name is tried, where an earlier run has left one there.
const NAMES_MAX: usize = 1024;

/// What became of directories that were to be renamed.
struct PutAside {
    /// Those that they were in, or that were in the way of such ones; without the store's own, which is synced at the end.
    parents: Vec<OwnedFd>,
    /// Where they went to, if any did.
    aside: Option<OwnedFd>,
    /// The first failure.
    held: io::Result<()>,
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
        let (tree, until) = (&self.shared.tree, Instant::now() + WAIT_MAX);
        let failed = |source| FilesError::Io {
            path: tree.path().to_owned(),
            step: "cannot remove a directory",
            source,
        };
        let (below, wanted) = (path.to_owned(), Arc::clone(wanted));
        // Behind all that was asked for before: a file that is just being stored may be the first of its host.
        let found = self.ask(until, move |shared| shared.tree.directories_at(&below, &*wanted))?;
        let mut all = Ok(());
        for some in found.map_err(failed)?.chunks(AT_ONCE) {
            let (some, removed) = (some.to_vec(), Arc::clone(removed));
            let put = self.ask(until, move |shared| shared.put_aside(&some, &removed))?;
            all = all.and(put.held);
            for directory in put.aside.iter().chain(&put.parents) {
                all = all.and(tree.syncs.sync(directory));
            }
        }
        // Also where everything was renamed before, and that could not be synced.
        all.and(tree.syncs.sync(tree.root())).map_err(failed)
    }

    /// What the writing thread makes of a job.
    fn ask<T: Send + 'static>(
        &self,
        until: Instant,
        job: impl FnOnce(&Arc<Directory>) -> T + Send + 'static,
    ) -> Result<T, FilesError> {
        let (tell, told) = mpsc::sync_channel(1);
        let shared = Arc::clone(&self.shared);
        // Its receiver may have gone by then; nobody wants to know.
        let job = move || drop(tell.send(job(&shared)));
        let pushed = self.shared.queue.push_end(FileJob::Run(Box::new(job)), || true);
        pushed.map_err(|_| FilesError::Absent { path: self.shared.tree.path().to_owned() })?;
        let left = until.saturating_duration_since(Instant::now());
        told.recv_timeout(left).map_err(|_| FilesError::TooSlow)
    }
}

impl Directory {
    /// Renames what is there of these. What was renamed is removed from now on, whether or not it could be synced.
    fn put_aside(self: &Arc<Self>, paths: &[Vec<u8>], removed: &Arc<CountRemoved>) -> PutAside {
        let mut put = PutAside { parents: Vec::new(), aside: None, held: Ok(()) };
        for path in paths {
            if let Err(error) = self.tree.put_aside(path, &mut put, &mut |name| {
                self.asides.add(Aside::of_purge(name, path.clone(), removed));
            }) {
                put.held = put.held.and(Err(error));
            }
        }
        self.remove_asides();
        put
    }

    /// Removes what an earlier run has put aside.
    pub(super) fn remove_left_aside(self: &Arc<Self>) {
        // A directory that cannot be read now is met by the next start.
        for name in self.tree.left_aside().unwrap_or_default() {
            self.asides.add(Aside::left_over(name));
        }
        self.remove_asides();
    }
}

impl Tree {
    /// Where the directories of a canonical path would lie, at the hosts that are wanted and have any.
    fn directories_at(&self, path: &str, wanted: &WantedHosts) -> io::Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for authority in self.authorities()? {
            let uri = TargetUri { scheme: Scheme::Http, authority: &authority, path, query: None };
            let Ok(name) = Name::of(&uri) else { continue };
            let Some(path) = name.bytes().strip_suffix(INDEX).and_then(|path| path.strip_suffix(b"/")) else {
                continue;
            };
            if wanted(&authority) {
                found.push(path.to_vec());
            }
        }
        Ok(found)
    }

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

    /// Renames the directory of a path, where there is one; `renamed` hears its new name.
    fn put_aside(&self, path: &[u8], put: &mut PutAside, renamed: &mut dyn FnMut(String)) -> io::Result<()> {
        let (above, last) = split(path);
        let parent = match self.open_directory(above) {
            Ok(parent) => parent,
            Err(error) if is_absent(&error) => {
                // Somebody has removed it, or an earlier try has, which could not be synced.
                put.parents.extend(self.nearest(above)?);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let is_there = match Status::at(&parent, last) {
            Ok(status) => status.is_directory(),
            Err(error) if is_absent(&error) => false,
            Err(error) => return Err(error),
        };
        if is_there {
            let aside = match &put.aside {
                Some(aside) => aside,
                None => put.aside.insert(directory_at(self.root(), ASIDE)?),
            };
            let name = self.rename_into(aside, &parent, last)?;
            if !above.is_empty() {
                give_back_page(aside, &name, &parent, last);
            }
            renamed(name);
        }
        put.parents.extend(Some(parent).filter(|_| !above.is_empty()));
        Ok(())
    }

    fn open_directory(&self, path: &[u8]) -> io::Result<OwnedFd> {
        match path {
            b"" => Ok(rustix::io::dup(self.root())?),
            path => self.resolver().open(self.root(), path, DIRECTORY),
        }
    }

    /// The next directory above one that is not there; `None` where that is the store's own.
    fn nearest(&self, path: &[u8]) -> io::Result<Option<OwnedFd>> {
        let mut path = path;
        loop {
            path = split(path).0;
            if path.is_empty() {
                return Ok(None);
            }
            match self.open_directory(path) {
                Err(error) if is_absent(&error) => {}
                opened => return opened.map(Some),
            }
        }
    }

    /// Renames a directory into [`ASIDE`], under a name that nothing there has.
    fn rename_into(&self, aside: &OwnedFd, parent: &OwnedFd, last: &[u8]) -> io::Result<String> {
        for _ in 0..NAMES_MAX {
            let name = self.temp_name();
            match calls::renameat_with(parent, as_path(last), aside, name.as_str(), RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
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
}

/// The page that has the name of a directory lies beside what is below it, and stays. Only a file is a page. A directory or a link that a
/// person gave that name would bring back what was purged, under other names.
fn give_back_page(aside: &OwnedFd, name: &str, parent: &OwnedFd, last: &[u8]) {
    let Ok(renamed) = calls::openat(aside, name, DIRECTORY, Mode::empty()) else { return };
    if Status::at(&renamed, SELF).is_ok_and(|status| status.is_file()) {
        // Where something new has the name already, that is the page.
        let _ = calls::renameat_with(&renamed, as_path(SELF), parent, as_path(last), RenameFlags::NOREPLACE);
    }
}

/// The directories of a path, and what it names in the last of them.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}
