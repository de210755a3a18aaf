//! Copies of a body that are not known to who reads it.
//!
//! In: a body of which no known copy can be read. Out: others, as the disks' indexes have them now. A body is known by the copies that there
//! were when it was found. Another disk of a mirror may have written its own later, or may be about to, which is waited for; and what is used moves
//! when its segment is given up. Such a copy counts where its bytes are the same ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_tier::CacheKey;

use super::body::{BodyCopy, Copies, DiskPieces};
use super::records::RecordBody;
use super::{Disks, Layout};
use crate::engine::{self, Piece};

/// How long a copy is waited for that a disk is about to write, where no other can be read, and how often it is looked for.
const AWAIT_MAX: Duration = Duration::from_secs(1);
pub(super) const AWAIT_PAUSE: Duration = Duration::from_millis(10);

impl DiskPieces {
    /// Looks for copies that are not known yet. One that a disk is about to write is waited for.
    pub(super) async fn find_since(&self) -> Copies {
        let (until, mut looked) = (Instant::now() + AWAIT_MAX, Vec::new());
        loop {
            // Asked first: what is written meanwhile is found.
            let is_awaited = self.disks().awaits_any(self.key());
            let found = self.disks().copies_of(self.key(), &mut looked).await;
            let known = self.all_copies();
            let is_new = |copy: &BodyCopy| !known.iter().any(|other| is_where(copy, other));
            let new: Copies =
                found.into_iter().filter(|copy| is_new(copy) && is_same(copy, &known)).collect();
            if !new.is_empty() || !is_awaited || Instant::now() >= until {
                self.note_since(&new);
                return new;
            }
            tokio::time::sleep(AWAIT_PAUSE).await;
        }
    }

    /// Other readers may have found them as well. All of them are written: comparing them takes no lock.
    fn note_since(&self, new: &Copies) {
        let mut since = self.found_since.write();
        for copy in new {
            if !since.iter().any(|other| is_where(copy, other)) {
                since.push(copy.clone());
            }
        }
    }
}

impl Disks {
    /// The copies of what lies under `key`, as the disks have them now, but for those that were `looked` at before. Of a mirror only:
    /// elsewhere there is one, which is known.
    async fn copies_of(
        self: &Arc<Self>,
        key: &CacheKey,
        looked: &mut Vec<(usize, engine::Location)>,
    ) -> Copies {
        let mut copies = Copies::new();
        for candidate in self.candidates(key).iter().filter(|_| self.layout == Layout::Mirror) {
            if looked.contains(&(candidate.disk, candidate.place)) {
                continue;
            }
            looked.push((candidate.disk, candidate.place));
            if let Ok(loaded) = self.load(key, candidate).await
                && let RecordBody::Pieces(pieces) = loaded.content
            {
                copies.extend(pieces.copies);
            }
        }
        copies
    }

    /// Whether a disk of a mirror is about to write something under `key`.
    fn awaits_any(&self, key: &CacheKey) -> bool {
        self.layout == Layout::Mirror && self.disks().any(|disk| disk.awaits_any(&disk.address(key)))
    }
}

/// Whether two copies are one.
fn is_where(copy: &BodyCopy, other: &BodyCopy) -> bool {
    let mut both = copy.pieces.iter().zip(&*other.pieces);
    copy.home == other.home && both.all(|(piece, other)| piece.is_where(other))
}

/// Whether a copy has the bytes of the known ones, by the length and the checksum of every piece: what lies under the key by now may be
/// another version.
fn is_same(copy: &BodyCopy, known: &Copies) -> bool {
    let is_known = |(at, piece): (usize, &Piece)| {
        let others = known.iter().filter_map(|other| other.pieces.get(at));
        let mut checksums =
            others.filter(|other| other.length() == piece.length()).filter_map(Piece::checksum);
        checksums.next().is_some_and(|checksum| Some(checksum) == piece.checksum())
    };
    known.iter().all(|other| other.pieces.len() == copy.pieces.len())
        && copy.pieces.iter().enumerate().all(is_known)
}
