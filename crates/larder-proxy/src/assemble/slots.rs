//! The slots in which a worker keeps pages, by their template.
//!
//! In: templates, as they are asked for, and pages. Out: the page of a template that is asked for often. Whether a page may still be
//! used is not known here, nor what it is.

use std::any::Any;
use std::sync::Arc;

use larder_store::StoredResponse;
use parking_lot::Mutex;

/// Slots for pages.
const SLOTS: usize = 64;
/// A template has to be found so many times more than others of its slot before its page is kept.
const FINDS_MIN: u32 = 16;
/// So many finds of others take the slot of the most asked template.
const FINDS_MAX: u32 = 256;
/// A kept page is replaced after so many requests that it was not for.
const MISSES_PER_TRY: u32 = 16;

/// The pages of a worker.
pub(crate) struct KeptPages {
    slots: Mutex<[Slot; SLOTS]>,
}

#[derive(Default)]
struct Slot {
    /// The template's address, which tells it from all that are stored.
    template: usize,
    finds: u32,
    page: Option<Arc<dyn Any + Send + Sync>>,
    /// Requests that its page was not for.
    misses: u32,
}

impl Default for KeptPages {
    fn default() -> Self {
        Self { slots: Mutex::new(std::array::from_fn(|_| Slot::default())) }
    }
}

impl KeptPages {
    /// The page of a template, where one is kept; and whether one should be.
    pub(crate) fn find(&self, template: &Arc<StoredResponse>) -> (Option<Arc<dyn Any + Send + Sync>>, bool) {
        let address = Arc::as_ptr(template).addr();
        // Dropped behind the lock: it may hold the last of many bodies.
        let mut _gone = None;
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        if slot.template == address {
            slot.finds = (slot.finds + 1).min(FINDS_MAX);
            return (slot.page.clone(), slot.finds >= FINDS_MIN);
        }
        slot.finds = slot.finds.saturating_sub(1);
        if slot.finds == 0 {
            _gone = std::mem::replace(slot, Slot { template: address, finds: 1, ..Slot::default() }).page;
        }
        (None, false)
    }

    /// Whether a page that was kept may be replaced by the one for another request. Where each request has a page of its own, keeping
    /// them would cost more than it saves.
    pub(crate) fn may_replace(&self, template: &Arc<StoredResponse>) -> bool {
        let address = Arc::as_ptr(template).addr();
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        slot.misses = slot.misses.wrapping_add(1);
        slot.misses.is_multiple_of(MISSES_PER_TRY)
    }

    /// Gives up all pages: the plan that they were made under is over.
    pub(crate) fn forget_all(&self) {
        let mut slots = self.slots.lock();
        let gone = std::mem::replace(&mut *slots, std::array::from_fn(|_| Slot::default()));
        drop(slots);
        drop(gone);
    }

    /// Keeps a page, in place of the one that was kept of its template.
    pub(crate) fn keep(&self, template: &Arc<StoredResponse>, page: Arc<dyn Any + Send + Sync>) {
        let address = Arc::as_ptr(template).addr();
        let mut _gone = None;
        let mut slots = self.slots.lock();
        let slot = &mut slots[slot_of(address)];
        if slot.template == address {
            _gone = slot.page.replace(page);
        }
    }
}

/// Addresses of allocations differ in their middle bits.
fn slot_of(address: usize) -> usize {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(6) as usize % SLOTS
}
