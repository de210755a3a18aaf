//! Documents whose bytes break off: what stands in for them, or where the page ends.
//!
//! In: the slot of a document of which no more will come, although it has no end. Out: a failure of what holds it back. Nothing of an attempt
//! is sent before all in it is decided, and nothing of a captured slot before it is complete. So a document that breaks in there is
//! a failed fragment like any other: `except` runs, or the variable is what `onerror` names, or empty. Of all other documents a
//! part may have been sent. There the page ends where the document does, also in SSI, and also where failed includes are left out.
//! Deliberately absent: how it is known that a body broke.

use super::Run;
use super::slots::Included;
use super::step::{SlotId, Step};
use super::thread::{Level, Thread};
use crate::reason::IncludeFailure;

impl Run {
    /// No more will come of the template that fills `slot`. True where something else stands in for it, so that nothing of its text is
    /// named any more.
    pub fn broke(&mut self, slot: SlotId) -> bool {
        let document = self.documents.iter_mut().rev().find(|document| document.slot == slot);
        let Some(document) = document.filter(|document| !document.has_ended) else { return false };
        document.is_broken = true;
        if self.slots.is_dead(slot) {
            return false;
        }
        let Some(held) = self.held_around(slot) else { return false };
        match self.slots.included(held).map(|included| included.is_awaited) {
            Some(true) => self.lose_captured(held, IncludeFailure::Broken),
            // Its content was judged before.
            Some(false) => return false,
            None => self.fail_attempt(held, IncludeFailure::Broken),
        }
        true
    }

    /// The innermost attempt or captured slot around what fills `slot`, that slot included, of which nothing was sent yet.
    fn held_around(&mut self, slot: SlotId) -> Option<SlotId> {
        let mut next = Some(slot);
        while let Some(slot) = next {
            let is_undecided = |run: &mut Self| {
                run.slots.attempted(slot).is_some_and(|attempted| attempted.failure.is_none())
            };
            if self.is_captured(slot) || is_undecided(self) {
                return Some(slot);
            }
            next = self.slots.around(slot);
        }
        None
    }

    /// What was to become a variable has failed, although it may have content.
    pub(super) fn lose_captured(&mut self, slot: SlotId, reason: IncludeFailure) {
        self.settle_answer(slot);
        let Some(Included { uri, scope_back, .. }) = self.slots.included(slot) else { return };
        *scope_back = None;
        // A template was given for it.
        if uri.is_none() {
            self.awaited -= self.slots.discard(slot);
            // What stands in the slot ends by itself. What fills it would go on.
            for thread in &mut self.threads {
                thread.take_if(|thread| thread.slot == slot);
            }
            let threads = &self.threads;
            self.stalled.retain(|id| threads.get(*id).is_some_and(Option::is_some));
            self.steps.push_back(Step::Discard { slot });
        }
        self.failed(slot, reason);
    }

    /// A thread has come to where its document breaks off, and nothing around that is held back.
    pub(super) fn break_off(&mut self, thread: &mut Thread) {
        let attempt = thread.levels.iter().enumerate().find_map(|(index, level)| match level {
            Level::Try(level) if !level.is_in_except => Some((index, level.clone())),
            _ => None,
        });
        if let Some((index, level)) = attempt {
            self.drop_unfinished(level.slot);
            thread.levels.truncate(index);
            (thread.slot, thread.attempt, thread.scope) =
                (level.outer_slot, level.outer_attempt, level.scope);
        }
        self.steps.push_back(Step::Failed { slot: thread.slot, reason: IncludeFailure::Broken });
        self.end(thread);
    }

    /// Of an attempt without an end, nobody knows whether it would have succeeded. One with an end is decided by its includes.
    fn drop_unfinished(&mut self, slot: SlotId) {
        let Some(attempted) = self.slots.attempted(slot).filter(|attempted| attempted.is_running) else {
            return;
        };
        attempted.is_running = false;
        attempted.open = 0;
        if attempted.failure.replace(IncludeFailure::Broken).is_none() {
            self.awaited -= self.slots.discard(slot);
            self.steps.push_back(Step::Discard { slot });
        }
        self.close_attempt(slot);
    }
}
