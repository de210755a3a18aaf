//! What is given to a disk to keep, and what it gives back.
//!
//! A disk knows nothing of HTTP: a head is bytes to it, an identity is a number that tells the responses under one key
//! apart. What it gives back has been checked: key, head, and the content or the list of its pieces.

use bytes::Bytes;
use larder_http::time::WallTime;

use super::piece::Piece;
use larder_tier::CacheKey;

/// The most content that lies inside a record, in bytes.
pub const INLINE_BYTES_MAX: usize = 256 * 1024;

/// A response to keep.
#[derive(Debug)]
pub struct Object {
    /// The number of the last invalidation when its fetch began.
    pub number: u64,
    /// When it was stored.
    pub stored_at: WallTime,
    /// Which of the responses under its key: a later one of the same identity takes its place.
    pub identity: u64,
    /// Its full key.
    pub key: CacheKey,
    /// Status, fields, times, tags.
    pub head: Bytes,
    /// Its content.
    pub content: RecordContent,
}

/// A content to keep.
#[derive(Clone, Debug)]
pub enum RecordContent {
    /// At most [`INLINE_BYTES_MAX`] in all, written with the head.
    Inline(Vec<Bytes>),
    /// Written before; on this disk or others.
    Pieces(Vec<Piece>),
}

/// A record that was read and found in order.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    /// Authority, path and query ([`CacheKey::base`]).
    pub base: Bytes,
    /// Scheme and configured parts ([`CacheKey::variant`]).
    pub variant: Bytes,
    /// As it was given to be kept.
    pub number: u64,
    /// As it was given to be kept.
    pub stored_at: WallTime,
    /// As it was given to be kept.
    pub identity: u64,
    /// As it was given to be kept. A slice of the whole record.
    pub head: Bytes,
    /// The content, or where it lies.
    pub content: FoundContent,
}

impl FoundRecord {
    /// Whether it was kept under `key`.
    pub fn is_of(&self, key: &CacheKey) -> bool {
        self.base == key.base() && self.variant == key.variant()
    }

    /// The length of the content, in bytes.
    pub fn content_bytes(&self) -> u64 {
        match &self.content {
            FoundContent::Inline(bytes) => bytes.len() as u64,
            FoundContent::Pieces(pieces) => pieces.iter().map(|piece| piece.length() as u64).sum(),
        }
    }
}

/// The content of a record.
#[derive(Clone, Debug)]
pub enum FoundContent {
    /// The content itself. A slice of the whole record.
    Inline(Bytes),
    /// Pieces in order; each may be of another disk.
    Pieces(Vec<Piece>),
}
