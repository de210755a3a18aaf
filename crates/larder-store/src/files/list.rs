//! What lies in the store, page by page.
//!
//! In: where the last page ended. Out: the files behind it in the order of their names, each looked at on disk. For people
//! and tools; it opens files, so it is for a pool.

use larder_http::time::WallTime;

use super::FileStore;
use super::meta::{Judged, Meta};
use super::name::Name;

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

impl FileStore {
    /// The files behind `after`, at most `most` and 1000. Files that others wrote lately may be missing until they are
    /// asked for or counted. Blocks.
    pub fn list(&self, after: Option<&[u8]>, most: usize) -> Vec<Listed> {
        let names = self.shared.index.names(after, most.min(PAGE_MAX));
        names.iter().filter_map(|name| self.listed(name)).collect()
    }

    fn listed(&self, name: &Name) -> Option<Listed> {
        let found = self.shared.tree.find(name).ok()?;
        let meta = match self.shared.tree.judge(&found.file, &found.status, name, None) {
            Judged::Stored(meta) => Some(*meta),
            Judged::OtherScheme | Judged::ByHand => None,
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
}
