//! What lies in the store, page by page.
//!
//! In: where the last page ended. Out: the files behind it in the order of their names, each looked at on disk. For people
//! and tools; it opens files, so it is for a pool. [`survey`] looks at a directory that no larder need have open, and changes
//! nothing in it.

use std::io;
use std::path::Path;

use larder_http::time::WallTime;
use rustix::fs::Dir;

use super::FileStore;
use super::error::FilesError;
use super::meta::{Judged, Meta};
use super::name::Name;
use super::sys::{DIRECTORY, Status};
use super::tree::{OWN, Tree};

/// The most files of one page.
const PAGE_MAX: usize = 1000;

/// A file of the store.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Where it lies beneath the store's directory; where the next page begins.
    pub name: Vec<u8>,
    /// Authority, path and query, where the name tells them.
    pub uri: Option<(String, String, Option<String>)>,
    /// Length in bytes.
    pub size: u64,
    /// When it was modified.
    pub modified: WallTime,
    /// What larder knows of it; nothing where a person put it there.
    pub meta: Option<Meta>,
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

impl FileStore {
    /// The files behind `after`, at most `most` and 1000. Files that others wrote lately may be missing until they are
    /// asked for or counted. Blocks.
    pub fn list(&self, after: Option<&[u8]>, most: usize) -> Vec<Listed> {
        let names = self.shared.index.names(after, most.min(PAGE_MAX));
        names.iter().filter_map(|name| listed(&self.shared.tree, name)).collect()
    }
}

fn listed(tree: &Tree, name: &Name) -> Option<Listed> {
    let found = tree.find(name).ok()?;
    let meta = match tree.judge(&found.file, &found.status, name, None).ok()? {
        Judged::Stored(meta) => Some(*meta),
        Judged::OtherScheme | Judged::ByHand => None,
        Judged::Torn => return None,
    };
    let (seconds, nanoseconds) = found.status.modified;
    let milliseconds = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    Some(Listed {
        name: name.bytes().to_vec(),
        uri: name.uri(),
        size: found.status.size,
        modified: WallTime(milliseconds.saturating_add(u64::from(nanoseconds / 1_000_000))),
        meta,
    })
}
