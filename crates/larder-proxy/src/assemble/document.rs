//! The text of a template, as far as it is there.
//!
//! In: the template's body. Out: the bytes of any range of it that a run names. A body in memory stays as it is. Of one that
//! streams, a window is held: what is read ahead of delivery, and what was delivered last. A run may ask for some of that again, for
//! an `except` or a block. Where nothing but more of a template can move the page on, because text is skipped or an attempt is long,
//! the window grows, within a bound.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use larder_assemble::{Program, SlotId};
use larder_http::body::Pieces;

use super::TEMPLATE_AHEAD_BYTES;
use super::body::PartBody;
use super::tag::{DIGESTED_BYTES_MAX, Digest, digest_of};

/// The window never grows beyond this.
const WINDOW_BYTES_MAX: u64 = 8 * TEMPLATE_AHEAD_BYTES;

/// A template that is run.
pub(crate) struct TemplateText {
    program: Arc<Program>,
    chunks: VecDeque<Chunk>,
    held_bytes: u64,
    /// Up to here it was read.
    read: u64,
    /// Up to here it was delivered.
    delivered: u64,
    /// So much is read ahead.
    window: u64,
    rest: Option<PartBody>,
    is_broken: bool,
    /// That is told once.
    is_break_told: bool,
    /// Ranges that may be asked for again.
    kept: Vec<Range<u64>>,
    /// Who keeps the chunks counted.
    owner: Option<Arc<dyn Pieces>>,
    /// They are all that the owner has.
    is_all_of_owner: bool,
    /// What it fills.
    slot: SlotId,
    /// Nobody wants it any more.
    is_given_up: bool,
}

struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// What a document has at a place.
pub(crate) enum At {
    /// These bytes; the range may go on behind them.
    Bytes(Bytes),
    /// They were not read yet.
    NotYet,
    /// They will never be there: the body broke, or they were let go.
    Never,
}

impl TemplateText {
    /// With a window of so many bytes; it fills `slot`.
    pub(crate) fn new(program: Arc<Program>, body: PartBody, window: u64, slot: SlotId) -> Self {
        let mut document = Self {
            program,
            chunks: VecDeque::new(),
            held_bytes: 0,
            read: 0,
            delivered: 0,
            window,
            slot,
            is_given_up: false,
            rest: None,
            is_broken: false,
            is_break_told: false,
            kept: Vec::new(),
            owner: None,
            is_all_of_owner: body.sole_owner().is_some(),
        };
        if body.is_whole() {
            if let Some((chunks, owner)) = body.into_whole() {
                chunks.into_iter().for_each(|chunk| document.take(chunk));
                document.owner = owner;
            }
        } else {
            document.rest = Some(body);
        }
        document
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether all of its text is in memory, and it is compiled.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_given_up || (self.rest.is_none() && !self.is_broken && self.program.is_complete())
    }

    /// Who keeps it counted.
    pub(crate) fn owner(&self) -> Option<&Arc<dyn Pieces>> {
        self.owner.as_ref()
    }

    /// The SHA-256 of all of its text, where all of that is here, and not so long that making it takes too much time.
    pub(super) fn digest(&self) -> Option<Digest> {
        if !self.is_whole() || self.held_bytes != self.read || self.read > DIGESTED_BYTES_MAX {
            return None;
        }
        let kept = self.owner.as_ref().filter(|_| self.is_all_of_owner).and_then(|owner| owner.digest());
        kept.or_else(|| digest_of(self.chunks()))
    }

    /// All of its chunks.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        self.chunks.iter().map(|chunk| &chunk.bytes)
    }

    fn take(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let start = self.read;
        self.read += bytes.len() as u64;
        self.held_bytes += bytes.len() as u64;
        self.chunks.push_back(Chunk { start, bytes });
    }

    /// Reads ahead, up to the bound. Ready once something was read, or nothing will be read any more before more is delivered.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut has_read = false;
        while let Some(rest) = &mut self.rest {
            if self.read.saturating_sub(self.delivered) >= self.window {
                return Poll::Ready(());
            }
            match rest.poll_next(cx) {
                Poll::Pending if has_read => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => {
                    has_read = true;
                    match next {
                        None => self.rest = None,
                        Some(Ok(bytes)) => self.take(bytes),
                        Some(Err(_)) => {
                            self.rest = None;
                            self.is_broken = true;
                        }
                    }
                }
            }
        }
        Poll::Ready(())
    }

    /// Whether it broke off since this was asked last.
    pub(crate) fn has_just_broken(&mut self) -> bool {
        self.is_broken && !self.is_given_up && !std::mem::replace(&mut self.is_break_told, true)
    }

    /// Whether more of it may come.
    pub(crate) fn is_arriving(&self) -> bool {
        self.may_read() || (self.rest.is_some() && self.window < WINDOW_BYTES_MAX)
    }

    /// Where it is read as far ahead as it may be, it may be read further.
    pub(crate) fn widen(&mut self) {
        if self.rest.is_some() && !self.may_read() && self.window < WINDOW_BYTES_MAX {
            self.window += TEMPLATE_AHEAD_BYTES;
        }
    }

    /// What it fills.
    pub(crate) fn slot(&self) -> SlotId {
        self.slot
    }

    /// What it fills was discarded: nothing more is read of it.
    pub(crate) fn give_up(&mut self) {
        self.is_given_up = true;
        self.rest = None;
        self.chunks.clear();
        self.owner = None;
    }

    /// Whether reading may bring more now.
    pub(crate) fn may_read(&self) -> bool {
        self.rest.is_some() && self.read.saturating_sub(self.delivered) < self.window
    }

    /// `range` may be asked for again.
    pub(crate) fn keep(&mut self, range: Range<u64>) {
        if !self.is_whole() {
            self.kept.push(range);
        }
    }

    /// The bytes at the beginning of `range`, which is not empty.
    pub(crate) fn at(&self, range: &Range<u64>) -> At {
        if range.start >= self.read {
            return if self.rest.is_some() { At::NotYet } else { At::Never };
        }
        let index = self.chunks.partition_point(|chunk| chunk.end() <= range.start);
        let Some(chunk) = self.chunks.get(index).filter(|chunk| chunk.start <= range.start) else {
            return At::Never;
        };
        let within = |position: u64| usize::try_from(position - chunk.start).ok();
        match within(range.start).zip(within(range.end.min(chunk.end()))) {
            Some((from, to)) if from < to => At::Bytes(chunk.bytes.slice(from..to)),
            _ => At::Never,
        }
    }

    /// What lies before `position` was delivered. Of a body that streams, it is let go where that takes too much.
    pub(crate) fn deliver(&mut self, position: u64) {
        self.delivered = self.delivered.max(position);
        // What a store keeps is not given free by this.
        if self.owner.is_some() {
            return;
        }
        while self.held_bytes > self.window {
            let Some(first) = self.chunks.front() else { return };
            let is_kept = |kept: &Range<u64>| kept.start < first.end() && first.start < kept.end;
            if first.end() > self.delivered || self.kept.iter().any(is_kept) {
                return;
            }
            self.held_bytes -= first.bytes.len() as u64;
            self.chunks.pop_front();
        }
    }
}
