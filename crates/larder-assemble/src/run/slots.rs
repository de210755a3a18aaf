//! The slots of a page: which stands where, and what is known of each.
//!
//! In: slots, as they open. Out: the same by their number, until something around them is discarded. What is discarded is dead: answers for
//! it are ignored, and threads that fill it stop. Each slot dies once, so discarding costs no more than opening did.

use bytes::Bytes;
use larder_http::target::reference::{DocumentUri, Reference};

use super::scope::Scope;
use super::step::{DocumentId, SlotId};
use super::thread::{Thread, ThreadId, Words};
use crate::reason::IncludeFailure;

/// All slots of a page.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    is_dead: bool,
    /// What it stands in; none of the page's own.
    around: Option<SlotId>,
    first_child: Option<SlotId>,
    next_sibling: Option<SlotId>,
    role: Role,
}

/// What a slot is for.
#[derive(Debug)]
pub(super) enum Role {
    Page,
    Include(Box<Included>),
    Attempt(Box<Attempted>),
}

/// An include.
#[derive(Debug)]
pub(super) struct Included {
    pub(super) into: SlotId,
    /// Which document has it, at which operation.
    pub(super) document: DocumentId,
    pub(super) operation: usize,
    /// How many includes that is in.
    pub(super) depth: usize,
    /// What is asked for now.
    pub(super) uri: Option<DocumentUri>,
    /// What is asked for if that fails.
    pub(super) otherwise: Option<Result<Reference, IncludeFailure>>,
    pub(super) is_awaited: bool,
    /// The thread that goes on once this slot is filled.
    pub(super) waiter: Option<ThreadId>,
    /// The innermost attempt around it, which it is counted in.
    pub(super) attempt: Option<SlotId>,
    pub(super) scope: Scope,
    pub(super) words: Words,
    /// The scope of a fragment that has ended, where it is captured and its content is still to come.
    pub(super) scope_back: Option<Scope>,
}

/// An attempt.
#[derive(Debug)]
pub(super) struct Attempted {
    /// The thread that has begun it.
    pub(super) owner: ThreadId,
    /// Whether that thread is still in it.
    pub(super) is_running: bool,
    /// Why it has failed.
    pub(super) failure: Option<IncludeFailure>,
    /// Includes and attempts in it that are not decided yet.
    pub(super) open: usize,
    /// The attempt around it, which it is counted in.
    pub(super) outer: Option<SlotId>,
    /// What runs if it fails, once its place is known.
    pub(super) except: Option<Box<Thread>>,
}

impl Slots {
    pub(super) fn new() -> Self {
        let page =
            Slot { is_dead: false, around: None, first_child: None, next_sibling: None, role: Role::Page };
        Self { slots: vec![page] }
    }

    /// A new slot that stands in `into`.
    pub(super) fn open(&mut self, into: SlotId, role: Role) -> SlotId {
        // Each slot takes an operation, of which there are far less.
        let slot = SlotId(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        let parent = self.slots.get_mut(into.index());
        let next_sibling = parent.and_then(|parent| parent.first_child.replace(slot));
        self.slots.push(Slot { is_dead: false, around: Some(into), first_child: None, next_sibling, role });
        slot
    }

    /// The slot that this one stands in.
    pub(super) fn around(&self, slot: SlotId) -> Option<SlotId> {
        self.slots.get(slot.index())?.around
    }

    pub(super) fn is_dead(&self, slot: SlotId) -> bool {
        self.slots.get(slot.index()).is_none_or(|slot| slot.is_dead)
    }

    /// The include that a live slot is for.
    pub(super) fn included(&mut self, slot: SlotId) -> Option<&mut Included> {
        match self.slots.get_mut(slot.index())? {
            Slot { is_dead: false, role: Role::Include(included), .. } => Some(included),
            _ => None,
        }
    }

    /// The attempt that a live slot is for.
    pub(super) fn attempted(&mut self, slot: SlotId) -> Option<&mut Attempted> {
        match self.slots.get_mut(slot.index())? {
            Slot { is_dead: false, role: Role::Attempt(attempted), .. } => Some(attempted),
            _ => None,
        }
    }

    /// Discards what stands in `slot`. Returns how many answers are not awaited any more.
    pub(super) fn discard(&mut self, slot: SlotId) -> usize {
        let mut awaited = 0;
        let mut rest: Vec<SlotId> =
            self.slots.get_mut(slot.index()).and_then(|slot| slot.first_child.take()).into_iter().collect();
        while let Some(next) = rest.pop() {
            let Some(slot) = self.slots.get_mut(next.index()) else { continue };
            rest.extend(slot.next_sibling.take());
            rest.extend(slot.first_child.take());
            slot.is_dead = true;
            awaited += match &slot.role {
                Role::Include(included) => usize::from(included.is_awaited),
                _ => 0,
            };
            slot.role = Role::Page;
        }
        awaited
    }
}

/// What stands where an include of SSI has failed.
pub(super) fn error_text(words: &Words, is_silent: bool) -> Option<Bytes> {
    (!is_silent && !words.error_text.is_empty()).then(|| words.error_text.clone())
}
