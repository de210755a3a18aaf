//! Attempts: the output of `attempt` is held back until every include in it is decided; one that fails discards it all.
//!
//! The thread that begins an attempt does not wait for it. It notes where `except` begins, goes on behind the `try`, and a thread of its
//! own runs `except` if an include fails later. So what `attempt` or `except` assigns ends with it: what follows must
//! not depend on how the attempt ends.

use super::Run;
use super::slots::{Attempted, Role};
use super::step::{SlotId, SlotKind, Step};
use super::thread::{End, Level, Skip, Thread, ThreadId, TryLevel, Until};
use crate::reason::IncludeFailure;

impl Run {
    /// An attempt begins in `thread`.
    pub(super) fn begin_attempt(&mut self, id: ThreadId, thread: &mut Thread) {
        let into = thread.slot;
        let attempted = Attempted {
            owner: id,
            is_running: true,
            failure: None,
            open: 0,
            outer: thread.attempt,
            except: None,
        };
        let slot = self.slots.open(into, Role::Attempt(Box::new(attempted)));
        if let Some(outer) = thread.attempt.and_then(|outer| self.slots.attempted(outer)) {
            outer.open += 1;
        }
        self.steps.push_back(Step::Open { slot, into, kind: SlotKind::Held });
        thread.levels.push(Level::Try(Box::new(TryLevel {
            slot,
            is_in_except: false,
            outer_slot: into,
            outer_attempt: thread.attempt,
            scope: thread.scope.clone(),
        })));
        thread.slot = slot;
        thread.attempt = Some(slot);
    }

    /// `thread` has come to the `except` of an attempt that has not failed so far: it is noted, and skipped. `thread` stands
    /// behind the marker.
    pub(super) fn note_except(&mut self, thread: &mut Thread) {
        if let Some(Level::Try(level)) = thread.levels.last() {
            let mut except = Thread::of_document(
                thread.document,
                thread.depth,
                level.slot,
                level.outer_attempt,
                level.scope.clone(),
            );
            (except.operation, except.cursor, except.end) = (thread.operation, thread.cursor, End::Except);
            let slot = level.slot;
            if let Some(attempted) = self.slots.attempted(slot) {
                attempted.except = Some(Box::new(except));
                attempted.is_running = false;
            }
            self.judge(slot);
        }
        thread.skip(Until::LevelEnd);
    }

    /// `thread` has come to the end of a `try`.
    pub(super) fn end_try(&mut self, thread: &mut Thread, level: TryLevel) {
        let TryLevel { slot, is_in_except, outer_slot, outer_attempt, scope } = level;
        (thread.slot, thread.attempt, thread.scope) = (outer_slot, outer_attempt, scope);
        let Some(attempted) = self.slots.attempted(slot) else { return };
        if is_in_except {
            self.close_attempt(slot);
        } else if attempted.is_running {
            // There is no `except`.
            attempted.is_running = false;
            self.judge(slot);
        }
    }

    /// An attempt has all that stands in its place.
    pub(super) fn close_attempt(&mut self, slot: SlotId) {
        self.steps.push_back(Step::End { slot });
        let outer = self.slots.attempted(slot).and_then(|attempted| attempted.outer.take());
        if let Some(outer) = outer {
            self.decided_within(outer);
        }
    }

    /// One of those that an attempt waits for is decided.
    pub(super) fn decided_within(&mut self, slot: SlotId) {
        if let Some(attempted) = self.slots.attempted(slot) {
            attempted.open = attempted.open.saturating_sub(1);
            self.judge(slot);
        }
    }

    /// An attempt that is over, and in which nothing is open, has succeeded.
    fn judge(&mut self, slot: SlotId) {
        let Some(attempted) = self.slots.attempted(slot) else { return };
        if attempted.failure.is_some() || attempted.is_running || attempted.open > 0 {
            return;
        }
        attempted.except = None;
        self.steps.push_back(Step::Release { slot });
        self.close_attempt(slot);
    }

    /// An include in an attempt has failed, and nothing else stands in for it.
    pub(super) fn fail_attempt(&mut self, slot: SlotId, reason: IncludeFailure) {
        let Some(attempted) = self.slots.attempted(slot).filter(|attempted| attempted.failure.is_none())
        else {
            return;
        };
        attempted.failure = Some(reason);
        attempted.open = 0;
        let (owner, is_running, except) = (attempted.owner, attempted.is_running, attempted.except.take());
        self.awaited -= self.slots.discard(slot);
        self.steps.push_back(Step::Discard { slot });
        match (is_running, except) {
            (true, _) => match self.threads.get_mut(owner).and_then(Option::as_mut) {
                Some(thread) => thread.is_unwound = true,
                // It runs at this moment, and looks at its attempts itself.
                None => self.unwound.push(owner),
            },
            (false, Some(except)) => self.begin(*except),
            (false, None) => self.fail_outwards(slot),
        }
    }

    /// A failed attempt has no `except`: the failure goes further out.
    pub(super) fn fail_outwards(&mut self, slot: SlotId) {
        let Some(attempted) = self.slots.attempted(slot) else { return };
        match (attempted.outer, attempted.failure) {
            (Some(outer), Some(reason)) => self.fail_attempt(outer, reason),
            (_, reason) => {
                self.miss(slot, reason.unwrap_or(IncludeFailure::Status));
                self.close_attempt(slot);
            }
        }
    }

    /// Brings a thread of which an attempt has failed to the `except` of the outermost such one, by skipping.
    pub(super) fn unwind(&mut self, thread: &mut Thread) {
        thread.is_unwound = false;
        let mut failed = None;
        for (index, level) in thread.levels.iter().enumerate() {
            if let Level::Try(level) = level
                && !level.is_in_except
                && self
                    .slots
                    .attempted(level.slot)
                    .is_some_and(|attempted| attempted.failure.is_some() && attempted.is_running)
            {
                failed = Some((index, level.clone()));
                break;
            }
        }
        let Some((index, level)) = failed else { return };
        let inner = thread.levels.len() - index - 1;
        let skipped = thread.skip.map_or(0, |skip| skip.depth + usize::from(skip.until == Until::BlockEnd));
        thread.levels.truncate(index + 1);
        thread.skip = Some(Skip { until: Until::Except, depth: inner + skipped });
        (thread.slot, thread.attempt, thread.scope) = (level.slot, level.outer_attempt, level.scope);
    }

    /// Begins the `except` of a failed attempt in the thread that is in it.
    pub(super) fn begin_except(&mut self, thread: &mut Thread) {
        if let Some(Level::Try(level)) = thread.levels.last_mut() {
            level.is_in_except = true;
            if let Some(attempted) = self.slots.attempted(level.slot) {
                attempted.is_running = false;
            }
        }
    }
}
