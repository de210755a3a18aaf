//! The files of a segment, by their names.

use std::io;
use std::path::{Path, PathBuf};

use super::sys;

/// The name of a segment's file.
pub(super) fn segment_path(folder: &Path, id: u32) -> PathBuf {
    folder.join(format!("{id:08x}.seg"))
}

/// The name of its table's.
pub(super) fn toc_path(folder: &Path, id: u32) -> PathBuf {
    folder.join(format!("{id:08x}.toc"))
}

/// Removes a segment's files, the table first: a table without its segment would mean nothing.
pub(super) fn remove_files(folder: &Path, id: u32) -> io::Result<()> {
    for path in [toc_path(folder, id), segment_path(folder, id)] {
        match sys::remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
