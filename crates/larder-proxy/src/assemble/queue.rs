//! The pieces of a page, in the order in which they are sent.
//!
//! In: slots and their pieces, in the order in which a run names them, which is mixed. Out: the front of the page. A slot stands among the
//! pieces of another one. What a slot holds back, and what is not there yet, holds back all that follows; never what is before.
//! Each slot is entered and left once, so going to the front costs no more than the pieces did. What the pieces take in memory for this
//! page alone is counted, because a run may go far ahead of what a client reads.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use larder_assemble::{IncludeFailure, SlotId, SlotKind};
use larder_http::target::reference::DocumentUri;

use super::FEW;
use super::body::PartBody;

/// A piece of a page.
pub(crate) enum PagePiece {
    /// Text of a document.
    Text { document: usize, range: Range<u64> },
    /// Bytes that are in no body.
    Own(Bytes),
    /// The body of a fragment.
    Body(PartBody),
    /// A body that is long, and is asked for again in its turn.
    Again { uri: DocumentUri, takes_errors: bool },
    /// Another slot.
    Slot(SlotId),
    /// Nothing can be sent from here on.
    Failed(IncludeFailure),
}

impl PagePiece {
    /// What it takes in memory that is counted nowhere else.
    fn bytes(&self) -> u64 {
        let own = match self {
            Self::Own(bytes) => bytes.len() as u64,
            Self::Body(body) => body.charged_bytes(),
            _ => 0,
        };
        size_of::<Self>() as u64 + own
    }
}

/// What stands at the front.
pub(crate) enum Front<'a> {
    /// This piece.
    PagePiece(&'a mut PagePiece),
    /// It is not known yet.
    Unknown,
    /// Nothing: the page is over.
    End,
}

/// All slots of a page.
pub(crate) struct Queue {
    slots: Vec<Slot>,
    /// The slots that the front is in, from the page's on.
    path: Vec<usize>,
    /// What all pieces take.
    held_bytes: u64,
    /// Documents whose slots the front has left since they were asked for.
    left: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    pieces: VecDeque<PagePiece>,
    children: Vec<usize>,
    /// The slot that it stands in.
    outer: Option<usize>,
    /// The document that fills it.
    document: Option<usize>,
    is_held: bool,
    has_ended: bool,
    is_gone: bool,
    /// What was given for it, until the run says where it goes.
    body: Option<PagePiece>,
}

impl Default for Queue {
    fn default() -> Self {
        let mut slots = Vec::with_capacity(FEW);
        slots.push(Slot { document: Some(0), ..Slot::default() });
        Self { slots, path: vec![SlotId::PAGE.index()], held_bytes: 0, left: Vec::new() }
    }
}

impl Slot {
    /// What its pieces take, and its body.
    fn bytes(&self) -> u64 {
        self.pieces.iter().chain(&self.body).map(PagePiece::bytes).sum()
    }
}

impl Queue {
    fn slot(&mut self, slot: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(slot.index())
    }

    pub(crate) fn open(&mut self, slot: SlotId, into: SlotId, kind: SlotKind) {
        if self.slots.len() <= slot.index() {
            self.slots.resize_with(slot.index() + 1, Slot::default);
        }
        if let Some(opened) = self.slot(slot) {
            opened.is_held = kind == SlotKind::Held;
            opened.outer = Some(into.index());
        }
        if let Some(outer) = self.slot(into) {
            outer.children.push(slot.index());
        }
        if kind != SlotKind::Captured {
            self.put(into, PagePiece::Slot(slot));
        }
    }

    /// A document fills a slot from here on.
    pub(crate) fn fill(&mut self, slot: SlotId, document: usize) {
        if let Some(slot) = self.slot(slot) {
            slot.document = Some(document);
        }
    }

    /// What all pieces take in memory for this page alone.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Documents of which all was delivered since this was asked last.
    pub(crate) fn take_left(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.left)
    }

    /// The slot that the front is in, which may still be empty.
    pub(crate) fn front_slot(&self) -> Option<usize> {
        self.path.last().copied()
    }

    /// The document at the front.
    pub(crate) fn front_document(&self) -> Option<usize> {
        self.path.iter().rev().find_map(|index| self.slots.get(*index)?.document)
    }

    /// Whether a slot is within the one that the front is in.
    pub(crate) fn is_within_front(&self, slot: SlotId) -> bool {
        self.front_slot().is_some_and(|front| self.is_within(slot.index(), front))
    }

    /// Whether a slot is within another one, or is it.
    pub(crate) fn is_within(&self, slot: usize, outer: usize) -> bool {
        let mut next = Some(slot);
        while let Some(index) = next {
            if index == outer {
                return true;
            }
            // A slot has a greater number than the one that it stands in.
            next = self.slots.get(index).and_then(|slot| slot.outer).filter(|up| *up < index);
        }
        false
    }

    /// Whether something may still be put there.
    pub(crate) fn is_there(&self, slot: SlotId) -> bool {
        self.slots.get(slot.index()).is_some_and(|slot| !slot.is_gone && !slot.has_ended)
    }

    /// Whether it was not discarded.
    pub(crate) fn is_alive(&self, slot: SlotId) -> bool {
        self.slots.get(slot.index()).is_some_and(|slot| !slot.is_gone)
    }

    pub(crate) fn put(&mut self, slot: SlotId, piece: PagePiece) {
        if let Some(slot) = self.slots.get_mut(slot.index()).filter(|slot| !slot.is_gone) {
            self.held_bytes += piece.bytes();
            slot.pieces.push_back(piece);
        }
    }

    /// The body for a slot is there.
    pub(crate) fn bring(&mut self, slot: SlotId, body: PagePiece) {
        if let Some(slot) = self.slots.get_mut(slot.index()).filter(|slot| !slot.is_gone) {
            self.held_bytes += body.bytes();
            let before = slot.body.replace(body);
            self.held_bytes = self.held_bytes.saturating_sub(before.map_or(0, |before| before.bytes()));
        }
    }

    /// The body for a slot goes there.
    pub(crate) fn put_body(&mut self, slot: SlotId) {
        if let Some(slot) = self.slot(slot)
            && let Some(body) = slot.body.take()
        {
            slot.pieces.push_back(body);
        }
    }

    pub(crate) fn end(&mut self, slot: SlotId) {
        if let Some(slot) = self.slot(slot) {
            slot.has_ended = true;
        }
    }

    pub(crate) fn release(&mut self, slot: SlotId) {
        if let Some(slot) = self.slot(slot) {
            slot.is_held = false;
        }
    }

    /// Drops what a slot holds, and all slots in it.
    pub(crate) fn discard(&mut self, slot: SlotId) {
        let Some(outer) = self.slots.get_mut(slot.index()) else { return };
        (outer.is_held, outer.has_ended) = (false, false);
        self.held_bytes = self.held_bytes.saturating_sub(outer.bytes());
        outer.pieces.clear();
        outer.body = None;
        let mut inner = std::mem::take(&mut outer.children);
        while let Some(index) = inner.pop() {
            if let Some(slot) = self.slots.get_mut(index) {
                inner.append(&mut slot.children);
                self.held_bytes = self.held_bytes.saturating_sub(slot.bytes());
                *slot = Slot { is_gone: true, outer: slot.outer, ..Slot::default() };
            }
        }
    }

    /// Drops the content of a slot that is complete and was captured, and of all slots in it. Gives the documents that filled them.
    pub(crate) fn drop_content(&mut self, slot: SlotId) -> Vec<usize> {
        let (mut documents, mut slots) = (Vec::new(), vec![slot.index()]);
        while let Some(index) = slots.pop() {
            if let Some(slot) = self.slots.get_mut(index) {
                slots.extend(&slot.children);
                documents.extend(slot.document);
                self.held_bytes = self.held_bytes.saturating_sub(slot.bytes());
                slot.pieces.clear();
                slot.body = None;
            }
        }
        documents
    }

    /// The front of the page.
    pub(crate) fn front(&mut self) -> Front<'_> {
        loop {
            let Some(&index) = self.path.last() else { return Front::End };
            let Some(slot) = self.slots.get(index) else { return Front::End };
            if slot.is_held {
                return Front::Unknown;
            }
            match slot.pieces.front() {
                None if !slot.has_ended => return Front::Unknown,
                None => {
                    self.left.extend(slot.document);
                    self.path.pop();
                    self.pop();
                }
                Some(PagePiece::Slot(inner)) => {
                    let inner = inner.index();
                    match self.slots.get(inner).is_some_and(|slot| !slot.is_gone) {
                        true => self.path.push(inner),
                        false => self.pop(),
                    }
                }
                Some(_) => break,
            }
        }
        let front = self.path.last().and_then(|index| self.slots.get_mut(*index));
        front.and_then(|slot| slot.pieces.front_mut()).map_or(Front::End, Front::PagePiece)
    }

    /// Whether the front is in a slot, which may still be empty.
    pub(crate) fn is_front(&mut self, slot: SlotId) -> bool {
        self.front();
        self.front_slot() == Some(slot.index())
    }

    /// The front was sent.
    pub(crate) fn pop(&mut self) {
        if let Some(slot) = self.path.last().and_then(|index| self.slots.get_mut(*index))
            && let Some(sent) = slot.pieces.pop_front()
        {
            self.held_bytes = self.held_bytes.saturating_sub(sent.bytes());
        }
    }

    /// All pieces of a slot that has ended with all slots in it, one after the other; stops where `each` says so, or where something is
    /// missing. Whether the end was reached.
    pub(crate) fn walk(&mut self, slot: SlotId, each: &mut dyn FnMut(&mut PagePiece) -> bool) -> bool {
        let mut path = vec![(slot.index(), 0)];
        while let Some((index, at)) = path.pop() {
            let Some(slot) = self.slots.get_mut(index) else { continue };
            if slot.is_gone {
                continue;
            }
            if slot.is_held {
                return false;
            }
            match slot.pieces.get_mut(at) {
                None if !slot.has_ended => return false,
                None => {}
                Some(PagePiece::Slot(inner)) => {
                    let inner = inner.index();
                    path.push((index, at + 1));
                    path.push((inner, 0));
                }
                Some(piece) => {
                    if !each(piece) {
                        return false;
                    }
                    path.push((index, at + 1));
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(bytes: usize) -> PagePiece {
        PagePiece::Own(Bytes::from(vec![b'x'; bytes]))
    }

    fn queue_of_three() -> Queue {
        let mut queue = Queue::default();
        for (slot, into, kind) in [
            (1, 0, SlotKind::Shown),
            (2, 0, SlotKind::Held),
            (3, 2, SlotKind::Shown),
            (4, 0, SlotKind::Captured),
        ] {
            queue.open(SlotId::of_index(slot), SlotId::of_index(into), kind);
            queue.put(SlotId::of_index(slot), own(1000));
            queue.bring(SlotId::of_index(slot), own(500));
        }
        queue
    }

    #[test]
    fn what_pieces_take_is_counted_until_they_are_sent_or_dropped() {
        let piece = size_of::<PagePiece>() as u64;
        let mut queue = queue_of_three();
        let slot = |index| SlotId::of_index(index);
        // Three slots stand in others.
        assert_eq!(queue.held_bytes(), 4 * (1500 + 2 * piece) + 3 * piece);
        queue.bring(slot(1), own(0));
        assert_eq!(queue.held_bytes(), 4 * (1500 + 2 * piece) + 3 * piece - 500);
        queue.discard(slot(2));
        assert_eq!(queue.held_bytes(), 2 * (1500 + 2 * piece) + 2 * piece - 500);
        assert!(queue.drop_content(slot(4)).is_empty());
        assert_eq!(queue.held_bytes(), 1000 + 2 * piece + 2 * piece);
        queue.put_body(slot(1));
        for index in [1, 2, 3, 0] {
            queue.end(slot(index));
        }
        while let Front::PagePiece(_) = queue.front() {
            queue.pop();
        }
        assert_eq!(queue.held_bytes(), 0);
    }

    #[test]
    fn slots_are_known_by_where_they_stand() {
        let mut queue = queue_of_three();
        queue.fill(SlotId::of_index(1), 1);
        assert!(queue.is_within(3, 2) && queue.is_within(3, 0) && queue.is_within(2, 2));
        assert!(!queue.is_within(2, 3) && !queue.is_within(3, 1) && queue.is_within(4, 0));
        assert!(matches!(queue.front(), Front::PagePiece(PagePiece::Own(_))));
        assert_eq!((queue.front_slot(), queue.front_document()), (Some(1), Some(1)));
        queue.pop();
        queue.end(SlotId::of_index(1));
        assert!(matches!(queue.front(), Front::Unknown));
        // Slot 2 is held back.
        assert_eq!((queue.front_slot(), queue.front_document()), (Some(2), Some(0)));
        assert!(queue.is_within_front(SlotId::of_index(3)) && !queue.is_within_front(SlotId::of_index(1)));
        assert_eq!(queue.take_left(), [1]);
        assert!(queue.take_left().is_empty());
    }
}
