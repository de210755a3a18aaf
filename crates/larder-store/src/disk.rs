//! Stub.
#![allow(missing_docs, clippy::all, clippy::pedantic, unused)]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use bytes::Bytes;
use larder_http::time::WallTime;
use smallvec::SmallVec;
use crate::key::CacheKey;
#[derive(Clone, Copy, Debug)] pub struct Address { base: u64 }
impl Address { pub(crate) fn hash(&self) -> u64 { self.base } }
#[derive(Clone, Copy, Debug)] pub struct Place(u64);
#[derive(Debug)] pub struct Object { pub number: u64, pub stored_at: WallTime, pub identity: u64, pub key: CacheKey, pub head: Bytes, pub content: Content }
#[derive(Clone, Debug)] pub enum Content { Inline(Vec<Bytes>), Pieces(Vec<Piece>) }
#[derive(Clone, Debug)] pub struct Found { pub base: Bytes, pub variant: Bytes, pub number: u64, pub stored_at: WallTime, pub identity: u64, pub head: Bytes, pub content: FoundContent }
impl Found { pub fn is_of(&self, key: &CacheKey) -> bool { true } }
#[derive(Clone, Debug)] pub enum FoundContent { Inline(Bytes), Pieces(Vec<Piece>) }
#[derive(Clone, Debug)] pub struct Piece;
impl Piece { pub fn disk(&self) -> u64 { 0 } pub fn length(&self) -> usize { 0 } }
#[derive(Clone, Debug)] pub struct Pin;
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)] pub enum ReadError { #[error("gone")] Gone, #[error("d")] Damaged, #[error("b")] Busy }
#[derive(Clone, Copy, Debug)] pub enum Refused { QueueFull }
#[derive(Debug, thiserror::Error)] pub enum DiskError { #[error("x")] X }
#[derive(Clone, Copy, Debug, Default)] pub struct DiskUsage { pub max_bytes: u64, pub objects: u64, pub is_failing: bool }
#[derive(Debug)] pub struct Disk;
impl Disk {
    pub fn id(&self) -> u64 { 0 }
    pub fn path(&self) -> &Path { Path::new("") }
    pub fn is_failing(&self) -> bool { false }
    pub fn reads_waiting(&self) -> usize { 0 }
    pub fn address(&self, _: &CacheKey) -> Address { Address { base: 0 } }
    pub fn find(&self, _: &Address) -> SmallVec<[Place; 4]> { SmallVec::new() }
    pub fn holds(&self, _: &Address, _: Place) -> bool { false }
    pub fn note_use(&self, _: &Address, _: Place) {}
    pub fn put(self: &Arc<Self>, _: Object) -> Result<Place, Refused> { Err(Refused::QueueFull) }
    pub fn put_piece(self: &Arc<Self>, _: &CacheKey, _: Bytes) -> Result<Piece, Refused> { Err(Refused::QueueFull) }
    pub fn read_now(&self, _: Place) -> Option<Result<Found, ReadError>> { None }
    pub async fn read(self: &Arc<Self>, _: Place) -> Result<Found, ReadError> { Err(ReadError::Gone) }
    pub fn piece_now(&self, _: &Piece) -> Option<Result<Bytes, ReadError>> { None }
    pub async fn read_piece(self: &Arc<Self>, _: &Piece) -> Result<Bytes, ReadError> { Err(ReadError::Gone) }
    pub fn pin(&self, _: &Piece) -> Option<Pin> { None }
    pub fn has_piece(&self, _: &Piece) -> bool { false }
    pub fn remove(&self, _: &Address, _: Place) {}
    pub fn remove_identity(&self, _: &Address, _: u64) {}
    pub fn invalidate(&self, _: &Address, _: u64) -> u64 { 0 }
    pub fn note(&self, _: u64, _: &[u8]) {}
    pub fn notes(&self) -> Vec<(u64, Vec<u8>)> { Vec::new() }
    pub async fn sync_journal(self: &Arc<Self>) -> Result<(), DiskError> { Ok(()) }
    pub fn last_number(&self) -> u64 { 0 }
    pub fn usage(&self) -> DiskUsage { DiskUsage::default() }
    pub fn close(&self) {}
}
