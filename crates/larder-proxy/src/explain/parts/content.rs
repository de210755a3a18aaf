//! What stands where in a page that is explained: its slots, their pieces, and the includes that were noted in each.
//!
//! In: the steps of a run. Out: the content of a captured slot, which becomes a variable; how the page begins, and its pieces; and the
//! order in which includes are told, those of a discarded attempt too, which a page itself forgets.

use std::ops::Range;

use bytes::Bytes;
use larder_assemble::{IncludeFailure, SlotId};

use crate::assemble::{GOOD_BYTES, PartBody};

/// A piece of a page.
pub(super) enum ContentPiece {
    Text {
        document: usize,
        range: Range<u64>,
    },
    Own(Bytes),
    /// A fragment; its content, as far as that is wanted.
    Body(Option<PartBody>),
    Slot(SlotId),
    /// Nothing can be sent from here on.
    Failed(IncludeFailure),
}

/// All slots of a page.
pub(super) struct Content {
    slots: Vec<Slot>,
    /// Slots that become variables, once all of their content is known.
    captured: Vec<SlotId>,
}

#[derive(Default)]
struct Slot {
    pieces: Vec<ContentPiece>,
    /// Slots in it, those that were discarded too.
    inner: Vec<usize>,
    notes: Vec<usize>,
    body: Option<Option<PartBody>>,
    has_ended: bool,
    is_gone: bool,
}

/// How a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With content, and it goes on to its end.
    Good,
    /// With content; later something fails for which nothing stands in.
    Cut(IncludeFailure),
    /// With such a failure.
    Failed(IncludeFailure),
}

impl Default for Content {
    fn default() -> Self {
        Self { slots: vec![Slot::default()], captured: Vec::new() }
    }
}

impl Content {
    fn slot(&mut self, slot: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(slot.index())
    }

    pub(super) fn open(&mut self, slot: SlotId, into: SlotId, is_captured: bool) {
        if self.slots.len() <= slot.index() {
            self.slots.resize_with(slot.index() + 1, Slot::default);
        }
        if let Some(outer) = self.slot(into) {
            outer.inner.push(slot.index());
            if !is_captured {
                outer.pieces.push(ContentPiece::Slot(slot));
            }
        }
    }

    pub(super) fn put(&mut self, slot: SlotId, piece: ContentPiece) {
        if let Some(slot) = self.slot(slot).filter(|slot| !slot.is_gone) {
            slot.pieces.push(piece);
        }
    }

    /// The body for a slot is known.
    pub(super) fn bring(&mut self, slot: SlotId, body: Option<PartBody>) {
        if let Some(slot) = self.slot(slot) {
            slot.body = Some(body);
        }
    }

    pub(super) fn put_body(&mut self, slot: SlotId) {
        if let Some(slot) = self.slot(slot)
            && let Some(body) = slot.body.take()
        {
            slot.pieces.push(ContentPiece::Body(body));
        }
    }

    pub(super) fn end(&mut self, slot: SlotId) {
        if let Some(slot) = self.slot(slot) {
            slot.has_ended = true;
        }
    }

    pub(super) fn discard(&mut self, slot: SlotId) {
        let Some(outer) = self.slot(slot) else { return };
        outer.has_ended = false;
        outer.pieces.clear();
        let mut inner = outer.inner.clone();
        while let Some(slot) = inner.pop().and_then(|index| self.slots.get_mut(index)) {
            if !slot.is_gone {
                inner.extend(&slot.inner);
                slot.is_gone = true;
                slot.pieces.clear();
            }
        }
    }

    pub(super) fn is_gone(&self, slot: SlotId) -> bool {
        self.slots.get(slot.index()).is_some_and(|slot| slot.is_gone)
    }

    pub(super) fn note(&mut self, slot: SlotId, note: usize) {
        if let Some(slot) = self.slot(slot) {
            slot.notes.push(note);
        }
    }

    pub(super) fn notes(&self, slot: SlotId) -> &[usize] {
        self.slots.get(slot.index()).map_or(&[], |slot| &slot.notes)
    }

    /// All that was noted, in the order of the page.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let mut rest = vec![SlotId::PAGE.index()];
        while let Some(slot) = rest.pop().and_then(|index| self.slots.get(index)) {
            order.extend(&slot.notes);
            rest.extend(slot.inner.iter().rev());
        }
        order
    }

    /// The content of a slot will be asked for once it is complete.
    pub(super) fn capture(&mut self, slot: SlotId) {
        self.captured.push(slot);
    }

    /// The content of captured slots that are complete, or why there is none. Each is told once.
    pub(super) fn complete_captured(
        &mut self,
        bodies: &[&Bytes],
    ) -> Vec<(SlotId, Result<Bytes, IncludeFailure>)> {
        let mut complete = Vec::new();
        for slot in std::mem::take(&mut self.captured) {
            match self.joined(slot, bodies) {
                Some(content) => complete.push((slot, content)),
                None if self.is_gone(slot) => {}
                None => self.captured.push(slot),
            }
        }
        complete
    }

    /// All that stands in a slot; `None` where some of it is not known yet.
    fn joined(&self, slot: SlotId, bodies: &[&Bytes]) -> Option<Result<Bytes, IncludeFailure>> {
        let (mut joined, mut failed) = (Vec::new(), None);
        let is_complete = self.walk(slot, |piece| {
            match piece {
                ContentPiece::Text { document, range } => {
                    let offset = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
                    let range = offset(range.start)..offset(range.end);
                    let text = bodies.get(*document).and_then(|body| body.get(range));
                    joined.extend_from_slice(text.unwrap_or_default());
                }
                ContentPiece::Own(bytes) => joined.extend_from_slice(bytes),
                ContentPiece::Body(body) => match body.as_ref().and_then(PartBody::joined) {
                    Some(bytes) => joined.extend_from_slice(&bytes),
                    None => failed = Some(IncludeFailure::TooLarge),
                },
                ContentPiece::Failed(reason) => failed = Some(*reason),
                ContentPiece::Slot(_) => {}
            }
            if joined.len() > GOOD_BYTES {
                failed = Some(IncludeFailure::TooLarge);
            }
            failed.is_none()
        });
        match failed {
            Some(reason) => Some(Err(reason)),
            None => is_complete.then(|| Ok(joined.into())),
        }
    }

    /// How the page begins.
    pub(super) fn beginning(&self) -> Beginning {
        let (mut has_begun, mut beginning) = (false, Beginning::Good);
        self.walk(SlotId::PAGE, |piece| {
            if let ContentPiece::Failed(reason) = piece {
                beginning = if has_begun { Beginning::Cut(*reason) } else { Beginning::Failed(*reason) };
                return false;
            }
            has_begun |= !matches!(piece, ContentPiece::Slot(_));
            true
        });
        beginning
    }

    /// The pieces of a slot and of all slots in it, in order; stops where `each` says so, or where something is missing.
    /// Whether the end was reached.
    pub(super) fn walk(&self, slot: SlotId, mut each: impl FnMut(&ContentPiece) -> bool) -> bool {
        let mut path = vec![(slot.index(), 0)];
        while let Some((index, at)) = path.pop() {
            let Some(slot) = self.slots.get(index).filter(|slot| !slot.is_gone) else { continue };
            match slot.pieces.get(at) {
                None if !slot.has_ended => return false,
                None => {}
                Some(piece) => {
                    if !each(piece) {
                        return false;
                    }
                    path.push((index, at + 1));
                    if let ContentPiece::Slot(inner) = piece {
                        path.push((inner.index(), 0));
                    }
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What else is in here is tested by whole pages.
    #[test]
    fn a_page_begins_with_its_first_piece() {
        let fail = || ContentPiece::Failed(IncludeFailure::Status);
        for (pieces, expected) in [
            (vec![], Beginning::Good),
            (vec![ContentPiece::Body(None), ContentPiece::Own("x".into())], Beginning::Good),
            (vec![fail(), ContentPiece::Own("x".into())], Beginning::Failed(IncludeFailure::Status)),
            (
                vec![ContentPiece::Text { document: 0, range: 0..1 }, fail()],
                Beginning::Cut(IncludeFailure::Status),
            ),
        ] {
            let mut content = Content::default();
            pieces.into_iter().for_each(|piece| content.put(SlotId::PAGE, piece));
            content.end(SlotId::PAGE);
            assert_eq!(content.beginning(), expected);
        }
    }
}
