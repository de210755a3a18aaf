//! Counting what lies in the directory, whoever put it there.
//!
//! In: the tree. Out: an index that knows each file and directory and what it takes. Walked once when the store is opened
//! (until then nothing is stored, since the cap could not be held) and again from time to time, at a gentle pace, for what
//! others have written or removed. By descriptors beneath the root, like everything; links and other file systems are not
//! entered. Deliberately absent: looking inside of files. Whose they are is judged when it matters.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, SystemTime};

use rustix::fs::AtFlags;

use super::calls;
use super::directory::Directory;
use super::index::IndexedFile;
use super::name::{Name, digest};
use super::resolver::{DIRECTORY, as_path};
use super::room::DIRECTORY_BYTES;
use super::sys::Status;
use super::sys::is_absent;
use super::tree::{METAS, OWN};

/// The longest path that is entered, in bytes: what the kernel takes in one call.
const PATH_BYTES_MAX: usize = 4000;

/// After so many entries a walk rests.
const REST_AFTER: usize = 256;
const REST: Duration = Duration::from_millis(2);

/// Meta that no file is known for, and that is older than any fill, is left over.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);

/// How a walk ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Walked {
    All,
    /// The store is closing.
    Stopped,
}

impl Directory {
    /// Walks the tree. `rest` is called now and then with how long to rest, and says whether to go on.
    pub(super) fn walk(&self, is_first: bool, rest: &mut dyn FnMut(Duration) -> bool) -> io::Result<Walked> {
        self.index.begin_walk();
        let device = Status::of(self.tree.root())?.device;
        let mut files = Vec::new();
        let (mut waiting, mut entries) = (vec![Vec::new()], 0_usize);
        while let Some(path) = waiting.pop() {
            let directory = match path.as_slice() {
                b"" => rustix::io::dup(self.tree.root())?,
                path => match self.tree.resolver().open(self.tree.root(), path, DIRECTORY) {
                    Ok(directory) => directory,
                    Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            for entry in calls::read_dir(&directory)? {
                let entry = entry?;
                let component = entry.file_name().to_bytes();
                let is_own = path.is_empty() && component == OWN.as_bytes();
                if matches!(component, b"." | b"..") || is_own {
                    continue;
                }
                entries += 1;
                if entries % REST_AFTER == 0 && !rest(if is_first { Duration::ZERO } else { REST }) {
                    return Ok(Walked::Stopped);
                }
                let status = match Status::at(&directory, component) {
                    Ok(status) => status,
                    Err(error) if is_absent(&error) => continue,
                    Err(error) => return Err(error),
                };
                let mut path = path.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(component);
                if status.device != device || path.len() > PATH_BYTES_MAX {
                    continue;
                }
                if status.is_directory() {
                    if !self.index.sees_directory(&path) {
                        self.index.note_directory(&path, self.room.take(DIRECTORY_BYTES, 1));
                    }
                    waiting.push(path);
                } else if is_first {
                    files.push((status.modified, Name::found(&path), status));
                } else {
                    self.note_walked(&Name::found(&path), &status);
                }
            }
        }
        // The oldest are the first to go: when they were last used nobody knows.
        files.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        for (_, name, status) in &files {
            self.note_walked(name, status);
        }
        self.index.end_walk();
        self.remove_orphans()?;
        Ok(Walked::All)
    }

    fn note_walked(&self, name: &Name, status: &Status) {
        let (mut bytes, mut inodes) = self.found_to_take(status, name);
        if self.tree.has_attributes()
            && let Some(beside) = self.tree.beside(name, status)
        {
            (bytes, inodes) = (bytes + beside, inodes + 1);
        }
        let noted = IndexedFile { inode: status.inode, bytes, is_by_hand: !status.is_file(), is_use: false };
        self.index.note(name, &noted, || self.room.take(bytes, inodes));
    }

    /// Removes meta in files of its own whose files are gone.
    fn remove_orphans(&self) -> io::Result<()> {
        let metas = match self.tree.resolver().open(self.tree.root(), METAS.as_bytes(), DIRECTORY) {
            Ok(metas) => metas,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let known: HashSet<String> = self.index.names().iter().map(|name| digest(name.bytes())).collect();
        for folder in calls::read_dir(&metas)? {
            let folder = folder?;
            let above = folder.file_name().to_bytes();
            if matches!(above, b"." | b"..") {
                continue;
            }
            let Ok(opened) = calls::openat(&metas, as_path(above), DIRECTORY, rustix::fs::Mode::empty())
            else {
                continue;
            };
            for entry in calls::read_dir(&opened)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                let first = name.split(|byte| *byte == b'-').next().unwrap_or_default();
                let digest = String::from_utf8_lossy(&[above, first].concat()).into_owned();
                if matches!(name, b"." | b"..") || known.contains(&digest) {
                    continue;
                }
                if Status::at(&opened, name).is_ok_and(|status| is_old(&status)) {
                    let _ = calls::unlinkat(&opened, as_path(name), AtFlags::empty());
                }
            }
        }
        Ok(())
    }
}

fn is_old(status: &Status) -> bool {
    let modified = u64::try_from(status.modified.0).unwrap_or(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_secs().saturating_sub(modified) > ORPHAN_AGE.as_secs()
}
