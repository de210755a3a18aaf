//! A piece of a large body: first bytes in the queue, then a place on the disk, or lost.
//!
//! Held by the fill that made it, by readers that follow, and by the record that will list it. The bytes leave memory as
//! soon as the writer has them on the disk; nobody has to do anything for that. A record waits for its pieces
//! ([`Assembly`]), which may lie on other disks, each with a writer of its own; the last of them to settle sends it off.
//! The lock guards the state, and is held for moves of a few words only.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use smallvec::SmallVec;

use super::format::record::PieceRef;
use super::segment::Segment;
use larder_tier::rank::{Rank, RankedMutex};

/// A piece; clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Piece(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Written(PieceRef),
    Queued(Arc<Queued>),
}

#[derive(Debug)]
struct Queued {
    disk: u64,
    length: u32,
    state: RankedMutex<State>,
}

#[derive(Debug)]
enum State {
    Pending(Bytes, WaitingChunk),
    Written(PieceRef),
    /// Not written, and kept in memory by those who had pinned it before.
    Lost(SmallVec<[Weak<Kept>; 1]>),
}

/// Who has to hear what becomes of a piece.
#[derive(Debug, Default)]
struct WaitingChunk {
    records: SmallVec<[Arc<Assembly>; 1]>,
    pins: SmallVec<[Weak<Kept>; 1]>,
}

/// What there is of a piece at one moment.
pub(super) enum PieceState {
    Pending(Bytes),
    Written(PieceRef),
    Lost,
    /// Lost to the disk, and still in memory for who reads it.
    Kept(Bytes),
}

impl Piece {
    pub(super) fn queued(disk: u64, bytes: Bytes) -> Self {
        let length = bytes.len() as u32;
        let state = RankedMutex::new(Rank::Leaf, State::Pending(bytes, WaitingChunk::default()));
        Self(Kind::Queued(Arc::new(Queued { disk, length, state })))
    }

    pub(super) fn written(at: PieceRef) -> Self {
        Self(Kind::Written(at))
    }

    /// The disk it belongs to ([`Disk::id`]).
    ///
    /// [`Disk::id`]: super::Disk::id
    pub fn disk(&self) -> u64 {
        match &self.0 {
            Kind::Written(at) => at.disk,
            Kind::Queued(queued) => queued.disk,
        }
    }

    /// Its length in bytes.
    pub fn length(&self) -> usize {
        match &self.0 {
            Kind::Written(at) => at.length as usize,
            Kind::Queued(queued) => queued.length as usize,
        }
    }

    /// The checksum of its bytes, where they are written.
    pub(crate) fn checksum(&self) -> Option<u32> {
        match self.state() {
            PieceState::Written(at) => Some(at.crc),
            PieceState::Pending(_) | PieceState::Lost | PieceState::Kept(_) => None,
        }
    }

    /// Whether both are written, and at one place.
    pub(crate) fn is_where(&self, other: &Self) -> bool {
        matches!((self.state(), other.state()), (PieceState::Written(at), PieceState::Written(there)) if at == there)
    }

    /// Whether its bytes were lost before they were written.
    pub fn is_lost(&self) -> bool {
        matches!(self.state(), PieceState::Lost | PieceState::Kept(_))
    }

    /// Whether its bytes are still in memory.
    pub fn is_pending(&self) -> bool {
        matches!(self.state(), PieceState::Pending(_))
    }

    pub(super) fn state(&self) -> PieceState {
        match &self.0 {
            Kind::Written(at) => PieceState::Written(*at),
            Kind::Queued(queued) => match &*queued.state.lock() {
                State::Pending(bytes, _) => PieceState::Pending(bytes.clone()),
                State::Written(at) => PieceState::Written(*at),
                State::Lost(pins) => kept_by(pins).map_or(PieceState::Lost, PieceState::Kept),
            },
        }
    }

    /// Keeps it readable until the pin is dropped, whatever becomes of it; `segment_of` finds where it was written. `None`
    /// where it is gone already.
    pub(super) fn pin(&self, segment_of: impl FnOnce(&PieceRef) -> Option<Arc<Segment>>) -> Option<Pin> {
        let at = match &self.0 {
            Kind::Written(at) => *at,
            Kind::Queued(queued) => match &mut *queued.state.lock() {
                State::Pending(_, waiting) => {
                    let kept = Arc::default();
                    waiting.pins.push(Arc::downgrade(&kept));
                    return Some(Pin(Pinned::Later(kept)));
                }
                State::Written(at) => *at,
                State::Lost(pins) => {
                    let kept = Arc::new(OnceLock::from(Keeping::Bytes(kept_by(pins)?)));
                    pins.push(Arc::downgrade(&kept));
                    return Some(Pin(Pinned::Later(kept)));
                }
            },
        };
        segment_of(&at).map(|segment| Pin(Pinned::Written(segment)))
    }

    /// Whether nobody but the asker holds it: a fill that was given up.
    pub(super) fn is_abandoned(&self) -> bool {
        match &self.0 {
            Kind::Written(_) => false,
            Kind::Queued(queued) => Arc::strong_count(queued) == 1,
        }
    }

    /// Tells everybody what became of it: where it was written, or `None` where it is lost.
    pub(super) fn settle(&self, written: Option<(PieceRef, &Arc<Segment>)>) {
        let Kind::Queued(queued) = &self.0 else { return };
        let mut state = queued.state.lock();
        let settled = match written {
            Some((at, _)) => State::Written(at),
            None => State::Lost(SmallVec::new()),
        };
        let State::Pending(bytes, mut waiting) = std::mem::replace(&mut *state, settled) else { return };
        waiting.pins.retain(|pin| match (pin.upgrade(), written) {
            (None, _) => false,
            (Some(kept), Some((_, segment))) => kept.set(Keeping::Segment(Arc::clone(segment))).is_ok(),
            (Some(kept), None) => kept.set(Keeping::Bytes(bytes.clone())).is_ok(),
        });
        if let State::Lost(pins) = &mut *state {
            *pins = waiting.pins;
        }
        drop(state);
        waiting.records.iter().for_each(|assembly| assembly.settled(written.is_some()));
    }
}

fn kept_by(pins: &[Weak<Kept>]) -> Option<Bytes> {
    pins.iter().find_map(|pin| match pin.upgrade()?.get()? {
        Keeping::Bytes(bytes) => Some(bytes.clone()),
        Keeping::Segment(_) => None,
    })
}

/// What comes of a record; told whether all its pieces were written.
type Then = Box<dyn FnOnce(bool) + Send>;

/// A record that waits for its pieces.
pub(super) struct Assembly {
    /// Pieces to come, and one for whoever is still adding them.
    left: AtomicUsize,
    is_whole: AtomicBool,
    /// Taken by the last piece, or by nobody.
    then: RankedMutex<Option<Then>>,
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Assembly {
    /// Calls `then` once all `pieces` have settled, with whether all were written; at once where they have already.
    pub(super) fn await_all(pieces: &[Piece], then: impl FnOnce(bool) + Send + 'static) {
        let assembly = Arc::new(Self {
            left: AtomicUsize::new(1),
            is_whole: AtomicBool::new(true),
            then: RankedMutex::new(Rank::Leaf, Some(Box::new(then))),
        });
        for piece in pieces {
            let Kind::Queued(queued) = &piece.0 else { continue };
            match &mut *queued.state.lock() {
                State::Pending(_, waiting) => {
                    assembly.left.fetch_add(1, Ordering::Relaxed);
                    waiting.records.push(Arc::clone(&assembly));
                }
                State::Written(_) => {}
                State::Lost(_) => assembly.is_whole.store(false, Ordering::Relaxed),
            }
        }
        assembly.settled(true);
    }

    fn settled(&self, is_written: bool) {
        if !is_written {
            self.is_whole.store(false, Ordering::Relaxed);
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // Called behind the lock: it takes those of the queue and of the index.
        let then = self.then.lock().take();
        if let Some(then) = then {
            then(self.is_whole.load(Ordering::Relaxed));
        }
    }
}

/// Keeps a piece readable until it is dropped: what it was written to, whose room counts as long, or, where it could not be
/// written, its bytes.
#[derive(Clone, Debug)]
pub struct Pin(#[expect(dead_code, reason = "held, never looked at")] Pinned);

#[derive(Clone, Debug)]
#[expect(dead_code, reason = "held, never looked at")]
enum Pinned {
    /// It had been written when it was pinned.
    Written(Arc<Segment>),
    /// It had not; what became of it stands there when it has.
    Later(Arc<Kept>),
}

type Kept = OnceLock<Keeping>;

/// What a pin holds on to.
#[derive(Debug)]
enum Keeping {
    Segment(#[expect(dead_code, reason = "held, never looked at")] Arc<Segment>),
    Bytes(Bytes),
}
