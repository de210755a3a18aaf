//! How a disk reaches the others of its store, and whose its pieces are whose records lie there.
//!
//! In: the other disks of the same store. Out: the disk that has the record of a piece, and whether pieces on other disks
//! are in their places. A disk is looked up by its identity each time, since one may be left out at a start: then nobody
//! knows what its records list, and nothing of them can be read either.
//! Deliberately absent: any lock that is held while another disk is asked.

use std::sync::Arc;

use super::Disk;
use super::address::{Address, Owner};
use super::format::record::PieceRef;
use super::state::DiskState;
use larder_tier::CacheKey;

impl Disk {
    /// Whose the pieces of a body under `key` are, if its record will lie here.
    pub(crate) fn owner(&self, key: &CacheKey) -> Owner {
        let Address { base, .. } = self.address(key);
        Owner { disk: self.id(), base }
    }

    /// Tells a disk of all disks of its store.
    pub(crate) fn meet(&self, all: &[Arc<Self>]) {
        let others = all.iter().filter(|other| other.id() != self.id());
        let others = others.map(|other| (other.id(), Arc::downgrade(&other.shared))).collect();
        *self.shared.neighbours.0.write() = Some(others);
    }
}

impl DiskState {
    /// Whether the disk knows the others of its store.
    pub(super) fn has_neighbours(&self) -> bool {
        self.neighbours.0.read().is_some()
    }

    /// The disk of that identity: this one, or another of the store.
    pub(super) fn disk(self: &Arc<Self>, disk: u64) -> Option<Arc<Self>> {
        match disk == self.superblock.disk {
            true => Some(Arc::clone(self)),
            false => self.neighbour(disk),
        }
    }

    fn neighbour(&self, disk: u64) -> Option<Arc<Self>> {
        let neighbours = self.neighbours.0.read();
        neighbours.as_ref()?.iter().find(|(id, _)| *id == disk)?.1.upgrade()
    }

    /// Whether some of `pieces` lie on other disks.
    pub(super) fn lie_elsewhere(&self, pieces: &[PieceRef]) -> bool {
        pieces.iter().any(|piece| piece.disk != self.superblock.disk)
    }

    /// Whether those of `pieces` that lie on other disks are still there, as far as those can be asked.
    pub(super) fn has_others_pieces(&self, pieces: &[PieceRef]) -> bool {
        let elsewhere = pieces.iter().filter(|piece| piece.disk != self.superblock.disk);
        elsewhere
            .into_iter()
            .all(|piece| self.neighbour(piece.disk).is_none_or(|disk| disk.segments.has(piece.segment)))
    }
}
