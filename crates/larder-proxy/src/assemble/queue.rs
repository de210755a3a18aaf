//! The pieces of a page, in the order in which they are sent.
//!
//! In: slots and their pieces, in the order in which a run names them, which is mixed. Out: the front of the page. A slot stands among the
//! pieces of another one. What a slot holds back, and what is not there yet, holds back all that follows; never what is before.
//! Each slot is entered and left once, so going to the front costs no more than the pieces did.

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
    Again(DocumentUri),
    /// Another slot.
    Slot(SlotId),
    /// Nothing can be sent from here on.
    Failed(IncludeFailure),
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
}

#[derive(Default)]
struct Slot {
    pieces: VecDeque<PagePiece>,
    children: Vec<usize>,
    is_held: bool,
    has_ended: bool,
    is_gone: bool,
    /// What was given for it, until the run says where it goes.
    body: Option<PagePiece>,
}

impl Default for Queue {
    fn default() -> Self {
        let mut slots = Vec::with_capacity(FEW);
        slots.push(Slot::default());
        Self { slots, path: vec![SlotId::PAGE.index()] }
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
        }
        if let Some(outer) = self.slot(into) {
            outer.children.push(slot.index());
            if kind != SlotKind::Captured {
                outer.pieces.push_back(PagePiece::Slot(slot));
            }
        }
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
        if let Some(slot) = self.slot(slot).filter(|slot| !slot.is_gone) {
            slot.pieces.push_back(piece);
        }
    }

    /// The body for a slot is there.
    pub(crate) fn bring(&mut self, slot: SlotId, body: PagePiece) {
        if let Some(slot) = self.slot(slot).filter(|slot| !slot.is_gone) {
            slot.body = Some(body);
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
        let Some(outer) = self.slot(slot) else { return };
        (outer.is_held, outer.has_ended) = (false, false);
        outer.pieces.clear();
        let mut inner = std::mem::take(&mut outer.children);
        while let Some(index) = inner.pop() {
            if let Some(slot) = self.slots.get_mut(index) {
                inner.append(&mut slot.children);
                *slot = Slot { is_gone: true, ..Slot::default() };
            }
        }
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
        self.path.last() == Some(&slot.index())
    }

    /// The front was sent.
    pub(crate) fn pop(&mut self) {
        if let Some(slot) = self.path.last().and_then(|index| self.slots.get_mut(*index)) {
            slot.pieces.pop_front();
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
