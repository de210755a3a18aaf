//! Names whose files are about to be removed.
//!
//! In: invalidations, as they are asked for. Out: look-ups that do not find what is still there for a moment, because the
//! writing thread has not got to it. Nearly always empty, and then a look costs one load.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::name::Name;

/// The names, and how many removals of each wait.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    count: AtomicUsize,
    names: Mutex<HashMap<Name, u32>>,
}

impl Doomed {
    pub(super) fn add(&self, name: &Name) {
        *self.names.lock().entry(name.clone()).or_insert(0) += 1;
        self.count.fetch_add(1, Ordering::Release);
    }

    /// One removal of it is done.
    pub(super) fn done(&self, name: &Name) {
        let mut names = self.names.lock();
        if let Some(waiting) = names.get_mut(name) {
            *waiting -= 1;
            if *waiting == 0 {
                names.remove(name);
            }
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    pub(super) fn has(&self, name: &Name) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.names.lock().contains_key(name)
    }
}
