//! What a look-up found.

use std::sync::Arc;

use super::hit::FileHit;

/// What a look-up found.
#[derive(Debug)]
pub enum Look {
    /// A file that stands for the response.
    Found(Arc<FileHit>),
    /// There is none.
    Absent,
    /// Only [`FileStore::look_blocking`](super::FileStore::look_blocking) can tell.
    WouldBlock,
}
