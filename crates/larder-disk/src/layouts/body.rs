//! A body whose pieces lie on disks.
//!
//! In: where each piece is, on each disk that has a copy. Out: a reader of a range, which reads the pieces that the range
//! touches, one after the other, each checked before its bytes leave. What the page cache has is read at once; for the rest
//! a thread of the disk's own waits. Where one copy cannot be read, the next is; where none can that is known, one that has come since
//! ([`super::since`]).
//! A reader pins what it reads from its first byte on: a segment that is given up meanwhile stays until it has ended.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::BodyError;
use smallvec::SmallVec;

use super::{Disks, PIECE_BYTES};
use crate::engine::{self, Piece, ReadError};
use larder_tier::CacheKey;
use larder_tier::rank::RankedRwLock;

/// One copy of a body: the disk that has its record, and its pieces.
#[derive(Clone, Debug)]
pub(super) struct BodyCopy {
    pub(super) home: usize,
    pub(super) pieces: Arc<[Piece]>,
}

/// Where the pieces of a body are. Clones share.
#[derive(Clone, Debug)]
pub(crate) struct DiskPieces {
    disks: Arc<Disks>,
    key: CacheKey,
    pub(super) copies: Copies,
    length: u64,
    /// A piece could not be read from any copy: nobody else is to begin with it.
    is_broken: Arc<AtomicBool>,
    /// Copies that were found when none of those could be read.
    pub(super) found_since: Arc<RankedRwLock<Copies>>,
}

pub(super) type Copies = SmallVec<[BodyCopy; 2]>;

/// The same piece on each disk that has it.
pub(crate) type PieceCopies = SmallVec<[Piece; 2]>;

/// What keeps them readable.
pub(crate) type PiecePins = SmallVec<[engine::Pin; 2]>;

impl DiskPieces {
    /// One copy; `None` where the pieces are not of the size that all but the last have to be.
    pub(super) fn new(
        disks: &Arc<Disks>,
        key: &CacheKey,
        home: usize,
        pieces: impl IntoIterator<Item = Piece>,
    ) -> Option<Self> {
        let pieces: Arc<[Piece]> = pieces.into_iter().collect();
        let (last, full) = pieces.split_last()?;
        let is_regular = full.iter().all(|piece| piece.length() == PIECE_BYTES)
            && (1..=PIECE_BYTES).contains(&last.length());
        let length = (full.len() * PIECE_BYTES + last.length()) as u64;
        let copies = Copies::from_iter([BodyCopy { home, pieces: Arc::clone(&pieces) }]);
        is_regular.then(|| Self {
            disks: Arc::clone(disks),
            key: key.clone(),
            copies,
            length,
            is_broken: Arc::default(),
            found_since: Arc::default(),
        })
    }

    /// Takes over the copies of another, where they are of as many bytes.
    pub(super) fn add(&mut self, other: Self) {
        if other.length == self.length {
            self.copies.extend(other.copies);
        }
    }

    /// The key that it is kept under.
    pub(crate) fn key(&self) -> &CacheKey {
        &self.key
    }

    /// The disks that it lies on, among others.
    pub(crate) fn disks(&self) -> &Arc<Disks> {
        &self.disks
    }

    /// All copies that are known.
    pub(super) fn all_copies(&self) -> Copies {
        self.copies.iter().chain(&*self.found_since.read()).cloned().collect()
    }

    /// The copies of which nothing is gone: where the record of each is, and its pieces.
    pub(super) fn copies_there(&self) -> impl Iterator<Item = (usize, Arc<[Piece]>)> {
        let has_all = |copy: &BodyCopy| copy.pieces.iter().all(|piece| self.disks.has_piece(piece));
        let is_good = !self.is_broken.load(Ordering::Relaxed);
        let copies = self.all_copies().into_iter().filter(move |copy| is_good && has_all(copy));
        copies.map(|copy| (copy.home, copy.pieces))
    }

    /// The length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// How many pieces there are.
    pub(crate) fn count(&self) -> usize {
        self.copies.first().map_or(0, |copy| copy.pieces.len())
    }

    /// The record of each copy: the disk it goes to, and what stands in it.
    pub(super) fn records(&self) -> SmallVec<[(usize, engine::RecordContent); 2]> {
        let record = |copy: BodyCopy| (copy.home, engine::RecordContent::Pieces(copy.pieces.to_vec()));
        self.all_copies().into_iter().map(record).collect()
    }

    fn piece(&self, index: usize) -> PieceCopies {
        self.all_copies().iter().filter_map(|copy| copy.pieces.get(index).cloned()).collect()
    }

    /// The same of copies that were not known at first.
    fn piece_since(&self, index: usize) -> PieceCopies {
        self.found_since.read().iter().filter_map(|copy| copy.pieces.get(index).cloned()).collect()
    }

    /// Whether all of it is there still, in one copy at least, as far as anybody knows.
    pub(crate) fn is_there(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed) && self.is_in_place()
    }

    /// Whether nothing is wrong with it, but it is not where it was.
    pub(crate) fn has_moved(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed) && !self.is_in_place()
    }

    fn is_in_place(&self) -> bool {
        self.all_copies().iter().any(|copy| copy.pieces.iter().all(|piece| self.disks.has_piece(piece)))
    }

    /// A piece, from the first copy that can be read.
    async fn read(&self, index: usize) -> Result<Bytes, ReadError> {
        match self.disks.read_piece(&self.piece(index)).await {
            Err(error) if error.is_lasting() => {
                let since = self.find_since().await;
                if since.is_empty() {
                    return Err(error);
                }
                let piece = since.iter().filter_map(|copy| copy.pieces.get(index).cloned()).collect();
                self.disks.read_piece(&piece).await
            }
            read => read,
        }
    }

    /// A reader of `range`, which lies within the body. `None` where some of it is gone from all copies.
    pub(crate) fn reader(self: &Arc<Self>, range: Range<u64>) -> Option<DiskReader> {
        let piece_bytes = PIECE_BYTES as u64;
        let touched = index(range.start / piece_bytes)..index(range.end.div_ceil(piece_bytes));
        let mut pins = Vec::new();
        for at in touched {
            let pinned: PiecePins = self.piece(at).iter().filter_map(|piece| self.disks.pin(piece)).collect();
            if pinned.is_empty() {
                return None;
            }
            pins.extend(pinned);
        }
        let first = self.piece(index(range.start / piece_bytes));
        let first = match self.disks.look_at(&first) {
            // Known before anything of it was sent: whoever asks gets it from elsewhere.
            Some(Err(error)) if error.is_lasting() => {
                self.is_broken.store(true, Ordering::Relaxed);
                return None;
            }
            first => first.and_then(Result::ok),
        };
        let homes: SmallVec<[usize; 2]> = self.all_copies().iter().map(|copy| copy.home).collect();
        self.disks.note_use_of(&self.key, &homes);
        let pinned_since = self.found_since.read().len();
        Some(DiskReader { pieces: Arc::clone(self), range, first, reading: None, pinned_since, pins })
    }
}

fn index(piece: u64) -> usize {
    usize::try_from(piece).unwrap_or(usize::MAX)
}

impl Disks {
    fn of_piece(&self, piece: &Piece) -> Option<&Arc<engine::Disk>> {
        self.disks().find(|disk| disk.id() == piece.disk())
    }

    pub(super) fn pin(&self, piece: &Piece) -> Option<engine::Pin> {
        self.of_piece(piece)?.pin(piece)
    }

    fn has_piece(&self, piece: &Piece) -> bool {
        self.of_piece(piece).is_some_and(|disk| disk.has_piece(piece))
    }

    /// A piece as far as the page cache has it, or memory still.
    pub(crate) fn piece_now(&self, copies: &PieceCopies) -> Option<Bytes> {
        self.look_at(copies)?.ok()
    }

    /// A piece, from the first copy that can be read at once; an error where none can be read at all, `None` where one might
    /// be after a wait.
    fn look_at(&self, copies: &PieceCopies) -> Option<Result<Bytes, ReadError>> {
        let mut failed = Some(ReadError::Gone);
        for piece in copies {
            match self.of_piece(piece).map(|disk| disk.piece_now(piece)) {
                Some(Some(Ok(bytes))) => return Some(Ok(bytes)),
                Some(Some(Err(error))) => failed = failed.map(|_| error),
                Some(None) => failed = None,
                None => {}
            }
        }
        failed.map(Err)
    }

    /// A piece, from the first copy that can be read.
    pub(crate) async fn read_piece(&self, copies: &PieceCopies) -> Result<Bytes, ReadError> {
        let mut failed = ReadError::Gone;
        for piece in copies {
            let Some(disk) = self.of_piece(piece) else { continue };
            match disk.read_piece(piece).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Bytes, ReadError>> + Send>>;

/// One reader of a body on disks.
pub(crate) struct DiskReader {
    pieces: Arc<DiskPieces>,
    /// What is left to read.
    range: Range<u64>,
    /// The piece that has the first byte, where it could be read at once.
    first: Option<Bytes>,
    reading: Option<Reading>,
    /// How many of the copies are pinned that were not known at first.
    pinned_since: usize,
    pins: Vec<engine::Pin>,
}

impl DiskReader {
    /// Pins what is left to read of copies that were found meanwhile.
    fn pin_since(&mut self) {
        let known = self.pieces.found_since.read().len();
        if known == self.pinned_since {
            return;
        }
        self.pinned_since = known;
        let piece_bytes = PIECE_BYTES as u64;
        for at in index(self.range.start / piece_bytes)..index(self.range.end.div_ceil(piece_bytes)) {
            let since = self.pieces.piece_since(at);
            self.pins.extend(since.iter().filter_map(|piece| self.pieces.disks.pin(piece)));
        }
    }

    /// What of a piece, which has the next byte, is asked for.
    fn within(&mut self, piece: Bytes) -> Option<Bytes> {
        let piece_bytes = PIECE_BYTES as u64;
        let start = self.range.start % piece_bytes;
        let end = (start + (self.range.end - self.range.start)).min(piece.len() as u64);
        let bytes =
            piece.slice(usize::try_from(start).ok()?..usize::try_from(end).ok().filter(|_| start < end)?);
        self.range.start += bytes.len() as u64;
        Some(bytes)
    }
}

impl http_body::Body for DiskReader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.range.is_empty() {
            return Poll::Ready(None);
        }
        let piece = match &mut this.reading {
            Some(reading) => {
                let read = ready!(reading.as_mut().poll(cx));
                this.reading = None;
                this.pin_since();
                read
            }
            None => {
                let at = index(this.range.start / PIECE_BYTES as u64);
                match this.first.take().or_else(|| this.pieces.disks.piece_now(&this.pieces.piece(at))) {
                    Some(bytes) => Ok(bytes),
                    None => {
                        let pieces = Arc::clone(&this.pieces);
                        let mut reading: Reading = Box::pin(async move { pieces.read(at).await });
                        let polled = reading.as_mut().poll(cx);
                        let Poll::Ready(read) = polled else {
                            this.reading = Some(reading);
                            return Poll::Pending;
                        };
                        read
                    }
                }
            }
        };
        // A piece that nobody has any more, or that is damaged: the client is cut, never told that this was all. The next one
        // asks the origin.
        if piece.as_ref().is_err_and(|error| error.is_lasting()) {
            this.pieces.is_broken.store(true, Ordering::Relaxed);
        }
        let bytes = piece.ok().and_then(|piece| this.within(piece));
        Poll::Ready(Some(bytes.map(Frame::data).ok_or(BodyError::Lost)))
    }
}
