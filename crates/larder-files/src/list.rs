//! What lies in the store, page by page.
//!
//! In: where the last page ended. Out: the files that follow, as the file system has them, each looked at there: what others
//! wrote a moment ago as well. For people and tools; it opens files, so it is for a pool, and it rests now and then. What is put there or
//! removed meanwhile may be missed, or met twice. [`survey`] looks at a directory that no larder need have open, and changes
//! nothing in it.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use larder_http::message::Scheme;
use larder_http::time::WallTime;
use rustix::fs::{Dir, FileType, Mode, RawDir, SeekFrom};

use super::FileStore;
use super::calls;
use super::cursor::FilesCursor;
use super::directory::Directory;
use super::error::FilesError;
use super::hit::{self, FileHit};
use super::in_use::InUse;
use super::meta::{self, Meta};
use super::name::{Name, TargetUri};
use super::resolver::DIRECTORY;
use super::sys::{Status, is_absent};
use super::tree::{self, FoundFile, OWN, Tree};
use larder_tier::rank::forbid_under_lock;

/// The most files of one page.
const PAGE_MAX: usize = 1000;

/// The most names that are looked at for one page.
const NAMES_MAX: usize = 4096;

/// After so many names a listing rests, where the disk has others to serve.
const REST_AFTER: usize = 128;
const REST: Duration = Duration::from_millis(1);

/// Names of a directory that are read at once, in bytes.
const NAMES_BYTES: usize = 16 * 1024;

/// A file of the store.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Where it lies beneath the store's directory.
    pub path: Vec<u8>,
    /// Authority, path and query, where the name tells them, or its meta does.
    pub uri: Option<(String, String, Option<String>)>,
    /// For which scheme larder stored it; nothing where a person put it there.
    pub scheme: Option<Scheme>,
    /// Length in bytes.
    pub size: u64,
    /// When it was modified.
    pub modified: WallTime,
    /// What larder knows of it; nothing where a person put it there.
    pub meta: Option<Meta>,
    status: Status,
}

/// What lies in a directory and is no file that could be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Odd {
    /// A symbolic link, a device, a socket, a pipe.
    NotAFile,
    /// No URL has this name.
    NoUrl,
    /// It cannot be read.
    Unreadable,
}

/// Looks at everything in a store's directory, in no order. `each` gets the files, `odd` the paths of what else is there.
/// Blocks.
///
/// # Errors
/// The directory cannot be read.
pub fn survey(
    path: &Path,
    each: &mut dyn FnMut(Listed),
    odd: &mut dyn FnMut(&[u8], Odd),
) -> Result<(), FilesError> {
    let tree = Tree::open_to_look(path)?;
    let failed = |source| FilesError::Io { path: path.to_owned(), step: "cannot read the directory", source };
    let mut waiting = vec![Vec::new()];
    while let Some(above) = waiting.pop() {
        let read = || -> io::Result<Dir> {
            let directory = match above.as_slice() {
                b"" => rustix::io::dup(tree.root())?,
                above => tree.resolver().open(tree.root(), above, DIRECTORY)?,
            };
            Ok(Dir::new(directory)?)
        };
        let entries = match read() {
            Ok(entries) => entries,
            Err(error) if above.is_empty() => return Err(failed(error)),
            Err(_) => {
                odd(&above, Odd::Unreadable);
                continue;
            }
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(error.into()))?;
            let component = entry.file_name().to_bytes();
            if matches!(component, b"." | b"..") || above.is_empty() && component == OWN.as_bytes() {
                continue;
            }
            let separator: &[u8] = if above.is_empty() { b"" } else { b"/" };
            let path = [&above, separator, component].concat();
            match Status::at(tree.root(), &path) {
                Ok(status) if status.is_directory() => waiting.push(path),
                Ok(status) if !status.is_file() => odd(&path, Odd::NotAFile),
                Ok(_) => match listed(&tree, &Name::found(&path)) {
                    Some(file) if file.meta.is_none() && file.uri.is_none() => odd(&path, Odd::NoUrl),
                    Some(file) => each(file),
                    None => odd(&path, Odd::Unreadable),
                },
                Err(_) => odd(&path, Odd::Unreadable),
            }
        }
    }
    Ok(())
}

/// Some of what lies in a store.
#[derive(Debug, Default)]
pub struct FilesPage {
    /// May be none although there is more.
    pub files: Vec<Listed>,
    /// What is there and could not be read.
    pub unread: u64,
    /// Where to go on; nothing at the end.
    pub next: Option<FilesCursor>,
}

impl FileStore {
    /// The next files that a URL leads to and whose authority, path and query, one after the other, are `wanted`: at most `most`
    /// (at least 1) and 1000. No use of any of them. Blocks.
    pub fn list(&self, from: FilesCursor, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> FilesPage {
        let in_use = self.in_use.load_full();
        // One that is absent may come back with its files: they were not read.
        let absent = || FilesPage { unread: 1, ..FilesPage::default() };
        in_use.map_or_else(absent, |in_use| in_use.list(from, most, wanted))
    }

    /// What lies under the authority, path and query of `uri`, whatever its scheme. No use of it. Blocks.
    pub fn under(&self, uri: &TargetUri<'_>) -> Option<Listed> {
        self.in_use.load_full()?.under(uri)
    }

    /// The file of `uri`, open. No use of it. Blocks.
    pub fn open_unused(&self, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
        self.in_use.load_full()?.open_unused(uri)
    }

    /// The fields that a listed file is served with, without Content-Length.
    pub fn fields_of(&self, listed: &Listed) -> HeaderMap {
        match &listed.meta {
            Some(meta) => meta.fields.clone(),
            None => {
                let name = Name::found(&listed.path);
                let shown = String::from_utf8_lossy(name.shown());
                let default_type = self.base.settings.default_type.as_ref();
                hit::fields_by_hand(&listed.status, &shown, default_type, SystemTime::now())
            }
        }
    }

    /// Where a listed file is.
    pub fn path_of(&self, listed: &Listed) -> PathBuf {
        self.directory().join(OsStr::from_bytes(&listed.path))
    }
}

impl InUse {
    /// The next files that a URL leads to and whose authority, path and query, one after the other, are `wanted`: at most `most`
    /// (at least 1) and 1000. No use of any of them. Blocks.
    pub(super) fn list(&self, from: FilesCursor, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> FilesPage {
        let (mut at, mut files, mut names, mut unread) = (from, Vec::new(), 0, 0);
        let most = most.clamp(1, PAGE_MAX);
        let is_last = |files: &Vec<Listed>, names| files.len() >= most || names >= NAMES_MAX;
        while !is_last(&files, names) {
            let Some((path, read)) = at.place() else { return FilesPage { files, unread, next: None } };
            // One that is gone, or cannot be read, has nothing to show.
            let directory = match self.shared.directory(path, read) {
                Ok(directory) => directory,
                Err(error) => {
                    let is_left = is_absent(&error) || error.kind() == io::ErrorKind::CrossesDevices;
                    unread += u64::from(!is_left);
                    at.leave();
                    continue;
                }
            };
            let mut buffer = [MaybeUninit::uninit(); NAMES_BYTES];
            let mut entries = RawDir::new(&directory, &mut buffer);
            let deeper = loop {
                if is_last(&files, names) {
                    return FilesPage { files, unread, next: Some(at) };
                }
                forbid_under_lock();
                let entry = match entries.next() {
                    Some(Ok(entry)) => entry,
                    Some(Err(_)) => {
                        unread += 1;
                        break None;
                    }
                    None => break None,
                };
                at.set_read(entry.next_entry_cookie());
                names += 1;
                let is_disk = !self.shared.tree.is_in_memory();
                if names % REST_AFTER == 0 && is_disk && !self.threads.rest(REST) {
                    return FilesPage { files, unread: unread + 1, next: None };
                }
                let name = entry.file_name().to_bytes();
                let is_own = name == OWN.as_bytes() && at.place().is_some_and(|(path, _)| path.is_empty());
                if matches!(name, b"." | b"..") || is_own {
                    continue;
                }
                let path = at.beneath(name);
                let kind = match entry.file_type() {
                    FileType::Unknown => {
                        Status::at(&directory, name).map_or(FileType::Unknown, |found| found.kind)
                    }
                    known => known,
                };
                match kind {
                    FileType::Directory => break Some(path),
                    FileType::RegularFile => match self.shared.servable(&path, wanted) {
                        Some(listed) => files.push(listed),
                        None => unread += u64::from(self.shared.is_unreadable(&path)),
                    },
                    _ => {}
                }
            };
            match deeper {
                Some(path) => at.enter(path),
                None => at.leave(),
            }
        }
        FilesPage { files, unread, next: Some(at) }
    }

    /// What lies under the authority, path and query of `uri`, whatever its scheme. No use of it. Blocks.
    pub(super) fn under(&self, uri: &TargetUri<'_>) -> Option<Listed> {
        let name = Name::of(uri).ok()?;
        let is_there = !self.shared.noted.is_pending(&name);
        let listed = is_there.then(|| listed(&self.shared.tree, &name)).flatten()?;
        (listed.is_servable() && self.shared.shows(&name, &listed)).then_some(listed)
    }

    /// The file of `uri`, open. No use of it. Blocks.
    pub(super) fn open_unused(&self, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
        let name = Name::of(uri).ok()?;
        let found = self.shared.tree.find(&name).ok()?;
        let claim = self.shared.index.claim(&name, found.status.inode);
        let opened = self.shared.judged(found, &name, uri, SystemTime::now()).ok()??;
        FileHit::read(opened, claim).ok().map(Arc::new)
    }
}

impl Listed {
    /// Whether a URL leads to it.
    fn is_servable(&self) -> bool {
        let Some((authority, path, query)) = &self.uri else { return false };
        let uri = TargetUri { scheme: Scheme::Http, authority, path, query: query.as_deref() };
        Name::of(&uri).is_ok_and(|name| name == Name::found(&self.path))
    }
}

impl Directory {
    /// A directory, of which so much has been read; none that is another file system's.
    fn directory(&self, path: &[u8], read: u64) -> io::Result<OwnedFd> {
        let root = self.tree.root();
        // Opened anew: how far it is read is the opening's, not the directory's.
        let directory = match path {
            b"" => calls::openat(root, ".", DIRECTORY, Mode::empty())?,
            path => self.tree.resolver().open(root, path, DIRECTORY)?,
        };
        if Status::of(&directory)?.device != Status::of(root)?.device {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        if read > 0 {
            calls::seek(&directory, SeekFrom::Start(read))?;
        }
        Ok(directory)
    }

    /// Whether a request would get it.
    fn shows(&self, name: &Name, listed: &Listed) -> bool {
        match &listed.meta {
            Some(meta) => self.believes(name, meta),
            None => !self.noted.refuses(name, &listed.status),
        }
    }

    /// Whether what lies at a place is not known because it cannot be read.
    fn is_unreadable(&self, path: &[u8]) -> bool {
        let name = Name::found(path);
        let read = self
            .tree
            .find(&name)
            .and_then(|found| self.tree.lines(&found.file, &found.status, &name).map(|_| ()));
        read.is_err_and(|error| !is_absent(&error))
    }

    /// The file at a place, where a URL that is `wanted` leads there.
    fn servable(&self, path: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Option<Listed> {
        let name = Name::found(path);
        let base = |(authority, path, query): &(String, String, Option<String>)| match query {
            Some(query) => format!("{authority}{path}?{query}"),
            None => format!("{authority}{path}"),
        };
        // What its name tells need not be looked at.
        if name.uri().is_some_and(|uri| !wanted(base(&uri).as_bytes())) || self.noted.is_pending(&name) {
            return None;
        }
        let listed =
            listed(&self.tree, &name).filter(|listed| listed.path == path && listed.is_servable())?;
        if !self.shows(&name, &listed) {
            return None;
        }
        listed.uri.as_ref().is_some_and(|uri| wanted(base(uri).as_bytes())).then_some(listed)
    }
}

fn listed(tree: &Tree, name: &Name) -> Option<Listed> {
    let FoundFile { file, status, path } = tree.find(name).ok()?;
    let lines = tree.lines(&file, &status, name).ok()?;
    let stored = lines.as_deref().and_then(|lines| tree::stored(lines, &status, name));
    let (uri, scheme, meta) = match stored {
        Some((uri, meta)) => {
            let parts = (uri.authority.to_owned(), uri.path.to_owned(), uri.query.map(str::to_owned));
            (Some(parts), Some(uri.scheme), Some(meta))
        }
        None if lines.as_deref().is_some_and(|lines| meta::is_torn(lines, &status)) => return None,
        None => (name.uri(), None, None),
    };
    let (seconds, nanoseconds) = status.modified;
    let milliseconds = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    let modified = WallTime(milliseconds.saturating_add(u64::from(nanoseconds / 1_000_000)));
    Some(Listed { path, uri, scheme, size: status.size, modified, meta, status })
}
