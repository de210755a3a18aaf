//! The slots in which a worker keeps pages, by their template.
//!
//! In: templates, as they are asked for, and pages. Out: the pages of a template that is asked for often: a few, since a page may
//! differ by visitor in a few ways. Whether a page may still be used is not known here, nor what it is.

use std::any::Any;
use std::sync::Arc;

use larder_store::StoredResponse;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Slots for pages.
const SLOTS: usize = 64;
/// A template has to be found so many times more than others of its slot before its page is kept.
const FINDS_MIN: u32 = 16;
/// So many finds of others take the slot of the most asked template.
const FINDS_MAX: u32 = 256;
/// Pages of a template.
pub(crate) const PAGES_MAX: usize = 4;
/// A page is replaced after so many requests that none of those kept was for.
const MISSES_PER_TRY: u32 = 16;

/// A page, as it is kept.
pub(crate) type AnyPage = Arc<dyn Any + Send + Sync>;

/// The pages of a template.
pub(crate) type AnyPages = SmallVec<[AnyPage; PAGES_MAX]>;

/// The pages of a worker.
pub(crate) struct KeptPages {
    slots: Mutex<[Slot; SLOTS]>,
}

#[derive(Default)]
struct Slot {
    /// The template's address, which tells it from all that are stored.
    template: usize,
    finds: u32,
    /// The one that was used last goes first.
    pages: AnyPages,
    /// Requests that none of its pages was for.
    misses: u32,
}

impl Default for KeptPages {
    fn default() -> Self {
        Self { slots: Mutex::new(std::array::from_fn(|_| Slot::default())) }
    }
}

impl KeptPages {
    /// The pages of a template that are kept; and whether one should be.
    pub(crate) fn find(&self, template: &Arc<StoredResponse>) -> (AnyPages, bool) {
        let address = Arc::as_ptr(template).addr();
        // Dropped behind the lock: it may hold the last of many bodies.
        let mut _gone = None;
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        if slot.template == address {
            slot.finds = (slot.finds + 1).min(FINDS_MAX);
            return (slot.pages.clone(), slot.finds >= FINDS_MIN);
        }
        slot.finds = slot.finds.saturating_sub(1);
        if slot.finds == 0 {
            _gone = Some(std::mem::replace(slot, Slot { template: address, finds: 1, ..Slot::default() }));
        }
        (AnyPages::new(), false)
    }

    /// Whether the page for a request that none of the kept ones is for may be kept; `replaces` says that it takes the place of one of
    /// them. Where each request has a page of its own, keeping them would cost more than it saves.
    pub(crate) fn may_keep(&self, template: &Arc<StoredResponse>, replaces: bool) -> bool {
        let address = Arc::as_ptr(template).addr();
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        slot.misses = slot.misses.wrapping_add(1);
        let has_room = !replaces && slot.pages.len() < PAGES_MAX;
        has_room || slot.misses.is_multiple_of(MISSES_PER_TRY)
    }

    /// One of several was used.
    pub(crate) fn note_used(&self, template: &Arc<StoredResponse>, page: &AnyPage) {
        let address = Arc::as_ptr(template).addr();
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        let at = slot.pages.iter().position(|other| Arc::ptr_eq(other, page));
        if let Some(at) = at.filter(|_| slot.template == address) {
            slot.pages[..=at].rotate_right(1);
        }
    }

    /// Gives up all pages: the plan that they were made under is over.
    pub(crate) fn forget_all(&self) {
        let mut slots = self.slots.lock();
        let gone = std::mem::replace(&mut *slots, std::array::from_fn(|_| Slot::default()));
        drop(slots);
        drop(gone);
    }

    /// Keeps a page of a template, in place of those that `replaces` says, or else of the one that was not used for the longest time.
    pub(crate) fn keep(
        &self,
        template: &Arc<StoredResponse>,
        page: AnyPage,
        replaces: impl Fn(&AnyPage) -> bool,
    ) {
        let address = Arc::as_ptr(template).addr();
        let mut gone = AnyPages::new();
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        if slot.template == address {
            slot.pages.retain(|other| {
                let stays = !replaces(other);
                if !stays {
                    gone.push(Arc::clone(other));
                }
                stays
            });
            if slot.pages.len() == PAGES_MAX {
                gone.extend(slot.pages.pop());
            }
            slot.pages.insert(0, page);
        }
        drop(slots);
        drop(gone);
    }
}

/// Addresses of allocations differ in their middle bits.
fn slot_of(address: usize) -> usize {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(6) as usize % SLOTS
}
