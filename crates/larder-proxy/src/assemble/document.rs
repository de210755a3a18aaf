//! The text of a template, as far as it is there.
//!
//! In: the template's body. Out: the bytes of any range of it that a run names. A body that a store keeps stays as it is. Of any other a
//! window is held: what is read ahead of delivery, and what was delivered last. The text of a block may be asked for again, and is
//! copied before it is let go. Where nothing but more of a template can move the page on, because text is skipped or an attempt is
//! long, the window grows, within a bound of the page.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use larder_assemble::{Program, SlotId};
use larder_http::body::Pieces;

use super::TEMPLATE_AHEAD_BYTES;
use super::body::PartBody;
use super::room::TakenRoom;
use super::tag::{DIGESTED_BYTES_MAX, Digest, digest_of};

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
    /// Copies of them, as far as they were let go, in order.
    copies: Vec<Chunk>,
    /// Who keeps the chunks counted.
    owner: Option<Arc<dyn Pieces>>,
    /// They are all that the owner has.
    is_all_of_owner: bool,
    /// What it takes of the page's room.
    _room: Option<Arc<TakenRoom>>,
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
    pub(crate) fn new(program: Arc<Program>, mut body: PartBody, window: u64, slot: SlotId) -> Self {
        let mut document = Self {
            _room: body.take_room(),
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
            copies: Vec::new(),
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
                        Some(Ok(bytes)) => {
                            self.take(bytes);
                            self.let_go();
                        }
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

    /// Whether more of it may come, now or where it `may_widen`.
    pub(crate) fn is_arriving(&self, may_widen: bool) -> bool {
        self.may_read() || (self.rest.is_some() && may_widen)
    }

    /// Where it is read as far ahead as it may be, it may be read further, by twice as much as before and up to `left`. By how much.
    pub(crate) fn widen(&mut self, left: u64) -> u64 {
        if self.rest.is_none() || self.may_read() {
            return 0;
        }
        let more = self.window.min(TEMPLATE_AHEAD_BYTES).min(left);
        self.window += more;
        more
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
        self.held_bytes = 0;
        self.owner = None;
        self._room = None;
    }

    /// All of it that the page shows was delivered. What a block may need again is left, also where a store keeps it.
    pub(crate) fn finish(&mut self) {
        // Where others read it too, its program may be ahead of what was read here: then a block is still to come.
        if self.owner.is_some() || self.kept.iter().any(|kept| kept.end > self.read) {
            return;
        }
        self.rest = None;
        self._room = None;
        while self.let_go_of_first() {}
    }

    /// Whether reading may bring more now.
    pub(crate) fn may_read(&self) -> bool {
        self.rest.is_some() && self.read.saturating_sub(self.delivered) < self.window
    }

    /// `range` may be asked for again.
    pub(crate) fn keep(&mut self, range: Range<u64>) {
        if self.owner.is_none() && !range.is_empty() {
            self.kept.push(range);
        }
    }

    /// The bytes at the beginning of `range`, which is not empty.
    pub(crate) fn at(&self, range: &Range<u64>) -> At {
        if range.start >= self.read {
            return if self.rest.is_some() { At::NotYet } else { At::Never };
        }
        let has = |chunk: &&Chunk| chunk.start <= range.start && range.start < chunk.end();
        let index = self.chunks.partition_point(|chunk| chunk.end() <= range.start);
        let held = self.chunks.get(index).filter(has);
        let Some(chunk) = held.or_else(|| self.copies.iter().find(has)) else { return At::Never };
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
        self.let_go();
    }

    /// Lets go of what was delivered, as far as more is held than may be.
    fn let_go(&mut self) {
        let delivered = self.delivered;
        let is_delivered = |first: &Chunk| first.end() <= delivered;
        while self.held_bytes > self.window
            && self.owner.is_none()
            && self.chunks.front().is_some_and(is_delivered)
            && self.let_go_of_first()
        {}
    }

    /// Lets go of the first chunk that is held; a copy stays of what may be asked for again. False where there is none.
    fn let_go_of_first(&mut self) -> bool {
        let Some(first) = self.chunks.pop_front() else { return false };
        self.held_bytes -= first.bytes.len() as u64;
        for kept in &self.kept {
            let part = kept.start.max(first.start)..kept.end.min(first.end());
            let within = |position: u64| usize::try_from(position.saturating_sub(first.start)).ok();
            let bytes =
                within(part.start).zip(within(part.end)).and_then(|(from, to)| first.bytes.get(from..to));
            if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
                self.copies.push(Chunk { start: part.start, bytes: Bytes::copy_from_slice(bytes) });
            }
        }
        true
    }

    /// What is held of it for this page alone.
    #[cfg(test)]
    pub(super) fn own_bytes(&self) -> u64 {
        let copies: u64 = self.copies.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        if self.owner.is_some() { 0 } else { self.held_bytes + copies }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::task::Waker;

    use larder_assemble::Compiler;
    use larder_http::body::Body;
    use larder_http::target::reference::DocumentUri;
    use larder_http::template::Language;

    use super::super::body::PartBody;
    use super::*;

    const PIECE: usize = 64 * 1024;

    /// A template of zeros and ones that never waits, and is compiled before.
    fn streaming(bytes: usize) -> (Vec<u8>, TemplateText) {
        let text: Vec<u8> = (0..bytes).map(|at| b'0' + (at / 1000 % 10) as u8).collect();
        let head = crate::testing::request("/");
        let uri = DocumentUri { scheme: head.scheme, authority: head.authority, target: head.target };
        let mut compiler = Compiler::new(Language::Ssi, uri);
        compiler.feed(&text);
        let pieces: Vec<_> = text.chunks(PIECE).map(Bytes::copy_from_slice).collect();
        let length = text.len() as u64;
        let stream = PartBody::new(Body::Pieces { owner: Arc::new(pieces), range: 0..length }).into_stream();
        let body = PartBody::new(Body::Stream { length: Some(length), stream });
        (text, TemplateText::new(compiler.finish(), body, TEMPLATE_AHEAD_BYTES, SlotId::PAGE))
    }

    /// Delivers all from `from` on, and gives the most that was held meanwhile.
    fn deliver_all(document: &mut TemplateText, text: &[u8]) -> u64 {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut range, mut most) = (0..text.len() as u64, 0);
        while !range.is_empty() {
            while document.may_read() {
                assert!(document.poll_read(&mut cx).is_ready());
                most = most.max(document.own_bytes());
            }
            let At::Bytes(bytes) = document.at(&range) else { panic!("at {range:?}") };
            assert_eq!(bytes, text[range.start as usize..][..bytes.len()]);
            range.start += bytes.len() as u64;
            document.deliver(range.start);
            most = most.max(document.own_bytes());
        }
        most
    }

    #[test]
    fn a_window_of_a_template_is_held_and_no_more() {
        let (text, mut document) = streaming(5 << 20);
        let most = deliver_all(&mut document, &text);
        assert!((TEMPLATE_AHEAD_BYTES..=TEMPLATE_AHEAD_BYTES + PIECE as u64).contains(&most), "{most}");
        document.finish();
        assert_eq!(document.own_bytes(), 0);
    }

    #[test]
    fn blocks_are_there_again_and_hold_nothing_else() {
        let (text, mut document) = streaming(5 << 20);
        let blocks = [10..20, PIECE as u64 - 5..2 * PIECE as u64 + 5, (3 << 20)..(3 << 20) + 1];
        let blocks_bytes: u64 = blocks.iter().map(|block| block.end - block.start).sum();
        blocks.iter().for_each(|block| document.keep(block.clone()));
        let most = deliver_all(&mut document, &text);
        assert!(most <= TEMPLATE_AHEAD_BYTES + PIECE as u64 + blocks_bytes, "{most}");
        document.finish();
        assert_eq!(document.own_bytes(), blocks_bytes);
        for block in blocks {
            let mut range = block.clone();
            while !range.is_empty() {
                let At::Bytes(bytes) = document.at(&range) else { panic!("at {range:?}") };
                assert_eq!(bytes, text[range.start as usize..][..bytes.len()]);
                range.start += bytes.len() as u64;
            }
        }
        assert!(matches!(document.at(&(100..101)), At::Never));
    }

    #[test]
    fn a_block_that_was_not_read_yet_is_waited_for() {
        let (text, mut document) = streaming(3 << 20);
        document.keep((2 << 20)..(2 << 20) + 10);
        document.finish();
        deliver_all(&mut document, &text);
        document.finish();
        assert_eq!(document.own_bytes(), 10);
    }

    #[test]
    fn a_window_is_widened_by_as_much_as_is_left() {
        let (_, mut document) = streaming(5 << 20);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(document.widen(u64::MAX), 0, "it may still be read");
        let _ = document.poll_read(&mut cx);
        assert_eq!(document.widen(1000), 1000);
        let _ = document.poll_read(&mut cx);
        assert_eq!(document.widen(u64::MAX), TEMPLATE_AHEAD_BYTES);
        assert!(document.is_arriving(false));
        let _ = document.poll_read(&mut cx);
        assert!(!document.is_arriving(false) && document.is_arriving(true));
    }
}
