//! What a page holds in memory, beside what stores keep: when it lets go, and when it has to hold more than usual.
//!
//! In: where the front of the page is. Out: documents and pieces that are done with are let go of. Where the page waits and nothing is on its
//! way, one of its limits keeps it back: then it calls a fragment, reads a template further, or lets the run go on. Each of these has a
//! limit in turn, and a page that needs more cannot go on.

use larder_assemble::{IncludeFailure, SlotId};

use super::document::TemplateText;
use super::entry::{FetchCall, FragmentEntry};
use super::page::Page;
use super::room::PageRoom;
use super::{AHEAD_BYTES, AHEAD_BYTES_MAX, WIDENED_BYTES_MAX};

impl Page {
    /// Lets go of documents that were delivered, and runs on where delivery has come near enough.
    pub(super) fn let_go(&mut self) {
        for document in self.queue.take_left() {
            if let Some(document) = self.documents.get_mut(document) {
                document.finish();
            }
        }
        if self.is_paused && self.queue.held_bytes() <= self.ahead_bytes_max / 2 {
            self.advance();
        }
    }

    /// Whether fragments that have come leave no room for others, and no other one is on its way.
    pub(super) fn is_full(&self) -> bool {
        let is_called = |entry: &FragmentEntry| match entry {
            FragmentEntry::UnderWay { call, .. } => call.was_called(),
            _ => false,
        };
        self.room.as_ref().is_some_and(PageRoom::is_full) && !self.asked.values().any(is_called)
    }

    fn is_exhausted(&self) -> bool {
        self.room.as_ref().is_some_and(PageRoom::is_exhausted)
    }

    /// Why nothing will come any more although the page has no end: a template broke, or the page would have to hold too much.
    pub(super) fn stuck(&mut self) -> Option<IncludeFailure> {
        let may_widen = self.widened_bytes < WIDENED_BYTES_MAX;
        let may_come = self.is_done
            || self.documents.iter().any(|document| document.is_arriving(may_widen))
            || (self.is_paused && self.ahead_bytes_max < AHEAD_BYTES_MAX)
            || (!self.tasks.is_empty()
                && (!self.is_exhausted() || !self.is_full() || self.wanted(true).is_some()));
        if may_come {
            return None;
        }
        let is_limit = self.is_paused
            || !self.tasks.is_empty()
            || self.documents.iter().any(|document| document.is_arriving(true));
        Some(if is_limit { IncludeFailure::TooLarge } else { IncludeFailure::Broken })
    }

    /// Holds more than usual, where no fragment is on its way. Whether that has moved the page on already; a fragment that is called comes
    /// later.
    pub(super) fn hold_more(&mut self) -> bool {
        if let Some(call) = self.wanted(true) {
            call.call();
            return false;
        }
        if self.widen(false) {
            return true;
        }
        if self.is_paused && self.ahead_bytes_max < AHEAD_BYTES_MAX {
            self.ahead_bytes_max += AHEAD_BYTES;
            return true;
        }
        if self.documents.iter().any(TemplateText::may_read) {
            return false;
        }
        if !self.is_exhausted()
            && let Some(call) = self.wanted(false)
        {
            call.call();
            return false;
        }
        self.widen(true)
    }

    /// The fragment that is to be called: the one at the front, or else one that the front waits for.
    fn wanted(&mut self, at_front: bool) -> Option<&mut FetchCall> {
        let queue = &self.queue;
        let rank = |slot: SlotId| (!queue.is_within_front(slot), slot);
        let uncalled = self.asked.values_mut().filter_map(|entry| match entry {
            FragmentEntry::UnderWay { waiting, call, .. } if !call.was_called() => {
                let first = waiting.iter().map(|ask| rank(ask.slot)).min()?;
                let is_front = waiting.iter().any(|ask| Some(ask.slot.index()) == queue.front_slot());
                (is_front || !at_front).then_some((first, call))
            }
            _ => None,
        });
        uncalled.min_by_key(|(first, _)| *first).map(|(_, call)| call)
    }

    /// Lets templates be read further that the front may wait for, or `all` of them. Whether there was one.
    fn widen(&mut self, all: bool) -> bool {
        let (queue, front) = (&self.queue, self.queue.front_document());
        let mut has_widened = false;
        for (index, document) in self.documents.iter_mut().enumerate() {
            if all || Some(index) == front || queue.is_within_front(document.slot()) {
                let more = document.widen(WIDENED_BYTES_MAX - self.widened_bytes);
                self.widened_bytes += more;
                has_widened |= more > 0;
            }
        }
        has_widened
    }
}

#[cfg(test)]
mod tests;
