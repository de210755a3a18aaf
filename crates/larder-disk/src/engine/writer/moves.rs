//! Another life for objects that lie on several disks.
//!
//! In: objects in use, of which pieces lie in the segment that this disk gives up. Out: those pieces once more at the end of
//! this disk's log, and then the records that list them once more, each by the writer of its own disk. Until such a record is
//! written the old one stands, and the segment stays; so there is a whole object at every moment, also for who starts after a kill.
//!
//! Each disk moves what is its own when it gives up what that lies in. Two of them may be about the same object: then one's
//! record comes too late and is dropped, and that disk lists its pieces once more in what the other wrote.
//! Nobody waits here: the segment is looked at again after each batch, and goes at the latest after [`WITHIN`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use larder_http::time::WallTime;

use super::Writer;
use super::giving_up::{Due, Moves, Reclaim};
use crate::engine::address::Location;
use crate::engine::address::Owner;
use crate::engine::format::record::PieceRef;
use crate::engine::format::record::{Kind, Record, read_pieces};
use crate::engine::object::{Object, RecordContent};
use crate::engine::piece::Piece;
use crate::engine::reads::Waiting;
use crate::engine::state::DiskState;
use larder_tier::CacheKey;

/// How long a segment waits for records on other disks.
const WITHIN: Duration = Duration::from_secs(5);
/// How often an object is listed once more because another disk did so meanwhile.
const TRIES_MAX: u32 = 4;

impl Writer {
    /// Puts those of `pieces` that lie in the segment into the batch once more, if their object was used since the segment was
    /// begun, and there is room for that.
    pub(super) fn move_part(
        &mut self,
        reclaim: &mut Reclaim,
        (home, base, place): (&Arc<DiskState>, u64, Location),
        pieces: &[PieceRef],
    ) -> Option<()> {
        let used = home.index.last_use(base, place)?;
        let since_use = home.seconds().saturating_sub(used);
        if since_use > self.shared.seconds().saturating_sub(reclaim.segment.begun) {
            return None;
        }
        let own = self.shared.superblock.disk;
        let is_here = |piece: &&PieceRef| piece.disk == own && piece.segment == reclaim.segment.id;
        let bytes = pieces.iter().filter(is_here).map(|piece| u64::from(piece.length)).sum();
        reclaim.allowance = reclaim.allowance.checked_sub(bytes)?;
        let owner = Owner { disk: home.superblock.disk, base };
        for piece in pieces.iter().filter(is_here) {
            let bytes = self.shared.read_piece_of(&reclaim.segment, piece, Waiting::Yes)?.ok()?;
            let moved = self.stage_piece_bytes(owner, &bytes).ok()?;
            reclaim.moves.staged.push((*piece, moved));
        }
        reclaim.moves.objects.insert(owner);
        reclaim.moves.due.push(Due { home: Arc::clone(home), base, place });
        Some(())
    }

    /// The batch was written: the records may list what was in it. Not where writing failed since there were `failures`.
    pub(super) fn list_moved(&self, moves: &mut Moves, failures: u64) {
        let (staged, due) = (std::mem::take(&mut moves.staged), std::mem::take(&mut moves.due));
        if self.failures == failures {
            moves.moved.extend(staged);
            for due in due {
                // One that is not taken now stays where it is, and is tried again.
                let _ = list_again(&due, moves);
            }
        }
    }

    /// Whether records are still on their way. Those that came too late are sent off again.
    pub(super) fn await_moves(&self, reclaim: &mut Reclaim) -> bool {
        let moves = &mut reclaim.moves;
        let now = Instant::now();
        if now >= *moves.until.get_or_insert(now + WITHIN) {
            return false;
        }
        if moves.are_under_way() {
            return true;
        }
        if moves.tries == TRIES_MAX {
            return false;
        }
        moves.tries += 1;
        let segment = (self.shared.superblock.disk, reclaim.segment.id);
        for owner in &moves.objects {
            let Some(home) = self.shared.disk(owner.disk) else { continue };
            for place in home.owners_of(owner.base, segment) {
                let due = Due { home: Arc::clone(&home), base: owner.base, place };
                let lists_moved = home.across(place).is_some_and(|pieces| {
                    let mut here = pieces.iter().filter(|piece| (piece.disk, piece.segment) == segment);
                    here.all(|piece| moves.moved.contains_key(piece))
                });
                if lists_moved {
                    let _ = list_again(&due, moves);
                }
            }
        }
        moves.are_under_way()
    }
}

impl DiskState {
    /// The pieces of the object at `place`, where some of them lie on other disks.
    pub(super) fn across(&self, place: Location) -> Option<Vec<PieceRef>> {
        let bytes = self.read_whole(place)?;
        let record = Record::read(&bytes).filter(|record| record.header.kind == Kind::Listing)?;
        read_pieces(record.content).filter(|pieces| self.lie_elsewhere(pieces))
    }
}

/// Sends a record off to be written once more on its disk.
fn list_again(due: &Due, moves: &Moves) -> Option<()> {
    let bytes = due.home.read_whole(due.place)?;
    let record = Record::read(&bytes).filter(|record| record.header.kind == Kind::Listing)?;
    let now = |piece: PieceRef| Piece::written(moves.moved.get(&piece).copied().unwrap_or(piece));
    let object = Object {
        number: record.header.number,
        stored_at: WallTime(record.header.stored_at_ms),
        identity: record.header.identity,
        key: CacheKey::of_levels(record.base, record.variant),
        head: Bytes::copy_from_slice(record.head),
        content: RecordContent::Pieces(read_pieces(record.content)?.into_iter().map(now).collect()),
    };
    let at = (due.base, record.header.tag, due.place);
    due.home.put_again(object, at, Arc::clone(&moves.under_way)).ok()
}
