//! Records on several disks: read from where they lie, and written to the disks that are to have them.
//!
//! In: a response, or a place where one may lie. Out: its record, with the pieces of its body; and copies on as many disks as the
//! layout wants.

use std::sync::Arc;

use bytes::Bytes;
use larder_tier::{BodySource, CacheKey, Entry};
use smallvec::SmallVec;

use super::body::DiskPieces;
use super::fill::DiskFill;
use super::{DiskCandidate, Disks, Layout, PIECE_BYTES};
use crate::engine::{self, Object};

/// What a record holds.
pub(crate) struct LoadedRecord {
    pub(crate) number: u64,
    /// The identity that it was stored under.
    pub(crate) identity: u64,
    pub(crate) head: Bytes,
    pub(crate) content: RecordBody,
}

/// A body, as a record has it.
pub(crate) enum RecordBody {
    Inline(Bytes),
    Pieces(Box<DiskPieces>),
}

impl Disks {
    /// What lies there, checked, if it is of `key`.
    pub(crate) async fn load(
        self: &Arc<Self>,
        key: &CacheKey,
        candidate: &DiskCandidate,
    ) -> Result<LoadedRecord, engine::ReadError> {
        let found = self.read(candidate).await?;
        if !found.is_of(key) {
            return Err(engine::ReadError::Gone);
        }
        let content = match found.content {
            engine::FoundContent::Inline(bytes) => RecordBody::Inline(bytes),
            engine::FoundContent::Pieces(pieces) => {
                let pieces =
                    DiskPieces::new(self, key, candidate.disk, pieces).ok_or(engine::ReadError::Gone)?;
                if !pieces.is_there() {
                    // One that may be readable again is not forgotten.
                    let is_in_doubt = pieces.is_in_doubt();
                    return Err(if is_in_doubt { engine::ReadError::Busy } else { engine::ReadError::Gone });
                }
                RecordBody::Pieces(Box::new(pieces))
            }
        };
        Ok(LoadedRecord { number: found.number, identity: found.identity, head: found.head, content })
    }

    /// The record that lies there, of whatever key.
    pub(super) async fn read(
        &self,
        candidate: &DiskCandidate,
    ) -> Result<engine::FoundRecord, engine::ReadError> {
        let disk = self.disk(candidate.disk).ok_or(engine::ReadError::Gone)?;
        match disk.read_now(candidate.place) {
            Some(found) => found,
            None => disk.read(candidate.place).await,
        }
    }

    /// The other copies of what `loaded` has, so that one damaged piece is not the end of it. Of a mirror only.
    pub(crate) async fn add_copies(
        self: &Arc<Self>,
        key: &CacheKey,
        from: &DiskCandidate,
        loaded: &mut LoadedRecord,
    ) {
        let RecordBody::Pieces(pieces) = &mut loaded.content else { return };
        if self.layout != Layout::Mirror {
            return;
        }
        for other in self.candidates(key).iter().filter(|other| other.disk != from.disk) {
            if let Ok(copy) = self.load(key, other).await
                && copy.head == loaded.head
                && let RecordBody::Pieces(others) = copy.content
            {
                pieces.add(*others);
            }
        }
    }

    /// Writes a response to the disks that are to have it, in place of what they have of the same identity; all others forget
    /// that, those that are absent once they are back. Never waits. For use under a lock, like [`Disks::remove`] and
    /// [`Disks::invalidate`]: [`Disks::write_journals`] is to be called behind it.
    pub(crate) fn put<H>(self: &Arc<Self>, entry: &Entry<'_, H>) {
        let copies = self.copies(entry);
        let mut head = None;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(disk) = slot.to_change(entry.key) else { continue };
            let content = copies.iter().find(|copy| copy.0 == index).map(|copy| copy.1.clone());
            let put = content.is_some_and(|content| {
                let head = head.get_or_insert_with(|| Bytes::from((entry.head_bytes)())).clone();
                let (number, key, stored_at) = (entry.number, entry.key.clone(), entry.received);
                disk.take_in(Object { number, stored_at, identity: entry.identity, key, head, content })
                    .is_ok()
            });
            if !put {
                disk.remove_identity(&disk.address(entry.key), entry.identity);
            }
        }
    }

    /// Which disks get a record of it, and what of the body stands in each.
    fn copies<H>(self: &Arc<Self>, entry: &Entry<'_, H>) -> SmallVec<[(usize, engine::RecordContent); 2]> {
        // One that is in memory as well is written once more where it has gone from the disks.
        let is_of_use = |pieces: &&DiskPieces| !entry.is_in_memory || pieces.is_there();
        let pieces = entry.source.and_then(<dyn BodySource>::of::<DiskPieces>);
        match pieces.filter(is_of_use) {
            Some(pieces) => pieces.records(),
            None if entry.length <= PIECE_BYTES as u64 => {
                let content = engine::RecordContent::Inline(entry.chunks.to_vec());
                self.homes(entry.key).into_iter().map(|home| (home, content.clone())).collect()
            }
            None => {
                let Some(mut fill) = self.begin_fill(entry.key, Some(entry.length)) else {
                    return SmallVec::new();
                };
                let mut pieces = regular(entry.chunks).enumerate();
                let taken = pieces.all(|(number, piece)| fill.push(number, &piece));
                let pieces = if taken { fill.finish_pieces() } else { None };
                pieces.map(|pieces| pieces.records()).unwrap_or_default()
            }
        }
    }

    /// Where the pieces of a body under `key` go while it arrives; `None` where no disk takes it.
    pub(crate) fn begin_fill(self: &Arc<Self>, key: &CacheKey, declared: Option<u64>) -> Option<DiskFill> {
        (declared.unwrap_or(0) <= self.max_object()).then(|| DiskFill::new(self, key)).flatten()
    }
}

/// The same bytes in pieces as they lie on a disk. What is not cut is shared.
pub(super) fn regular(pieces: &[Bytes]) -> impl Iterator<Item = Bytes> {
    let mut rest = pieces.iter().cloned();
    let mut open = Bytes::new();
    std::iter::from_fn(move || {
        while open.is_empty() {
            open = rest.next()?;
        }
        if open.len() >= PIECE_BYTES {
            return Some(open.split_to(PIECE_BYTES));
        }
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        loop {
            let taken = open.split_to(open.len().min(PIECE_BYTES - piece.len()));
            piece.extend_from_slice(&taken);
            if piece.len() == PIECE_BYTES {
                break;
            }
            match rest.next() {
                Some(next) => open = next,
                None => break,
            }
        }
        (!piece.is_empty()).then(|| piece.into())
    })
}
