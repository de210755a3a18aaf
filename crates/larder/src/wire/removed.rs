//! Stores that a reload has taken out, while requests from before it are still under way.
//!
//! In: a store that no config names any more. Out: the same store, where a later reload brings it back before the last of
//! those requests has ended; else it is closed then, on a thread of its own, so that nobody waits for its disks. A store in memory
//! alone is not kept: a new one is as good. Deliberately absent: what invalidations such a store hears of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_store::Store;
use parking_lot::{Condvar, Mutex};

/// How often it is asked whether anybody still uses a store.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a reload waits for a store that is just being closed.
const CLOSING_MAX: Duration = Duration::from_secs(15);

#[derive(Default)]
struct State {
    /// Nothing once it was taken up again, or is being closed.
    store: Option<Arc<Store>>,
    is_over: bool,
}

struct Removed {
    config: larder_config::Store,
    state: Mutex<State>,
    changed: Condvar,
}

/// The stores that were removed and may still be open.
#[derive(Default)]
pub(super) struct RemovedStores(Vec<Arc<Removed>>);

/// Whether two configs mean one store: the same directories, used in the same way. Sizes of memory and of files may differ.
pub(super) fn is_same_place(one: &larder_config::Store, other: &larder_config::Store) -> bool {
    let files = |config: &larder_config::Store| {
        let files = config.files.as_ref();
        files.map(|files| (files.path.clone(), files.mode, files.default_type.clone()))
    };
    (&one.disks, one.layout, one.idle, files(one)) == (&other.disks, other.layout, other.idle, files(other))
}

/// Whether a store has anything that outlives it.
pub(super) fn has_directories(config: &larder_config::Store) -> bool {
    !config.disks.is_empty() || config.files.is_some()
}

impl RemovedStores {
    /// Closes a store as soon as nobody uses it.
    pub(super) fn add(&mut self, config: larder_config::Store, store: Arc<Store>) {
        self.0.retain(|removed| !removed.state.lock().is_over);
        let state = Mutex::new(State { store: Some(store), is_over: false });
        let removed = Arc::new(Removed { config, state, changed: Condvar::new() });
        self.0.push(Arc::clone(&removed));
        let closing = Arc::clone(&removed);
        let started =
            std::thread::Builder::new().name("store-close".to_owned()).spawn(move || closing.close_unused());
        if started.is_err() {
            let store = removed.state.lock().store.take();
            removed.end(store);
        }
    }

    /// The store of a config, where it is still open. Waits for one that is just being closed, so that its directories can be
    /// opened anew.
    pub(super) fn find(&self, config: &larder_config::Store) -> Option<Arc<Store>> {
        if !has_directories(config) {
            return None;
        }
        let touches = |removed: &&Arc<Removed>| is_same_place(&removed.config, config);
        self.0.iter().filter(touches).find_map(|removed| removed.open_or_closed())
    }

    /// It is in force again.
    pub(super) fn forget(&mut self, store: &Arc<Store>) {
        self.0.retain(|removed| {
            let mut state = removed.state.lock();
            let is_it = state.store.as_ref().is_some_and(|other| Arc::ptr_eq(other, store));
            if is_it {
                *state = State { store: None, is_over: true };
                removed.changed.notify_all();
            }
            !is_it
        });
    }

    /// What may still be open. Whoever ends larder closes these too.
    pub(super) fn open(&self) -> Vec<Arc<Store>> {
        self.0.iter().filter_map(|removed| removed.state.lock().store.clone()).collect()
    }
}

impl Removed {
    fn close_unused(&self) {
        let mut state = self.state.lock();
        loop {
            match &state.store {
                None => return,
                // Whoever takes it up again does so under the lock.
                Some(store) if Arc::strong_count(store) == 1 => break,
                Some(_) => drop(self.changed.wait_for(&mut state, ASK_EVERY)),
            }
        }
        let store = state.store.take();
        drop(state);
        self.end(store);
    }

    fn end(&self, store: Option<Arc<Store>>) {
        if let Some(store) = store {
            store.close();
        }
        self.state.lock().is_over = true;
        self.changed.notify_all();
    }

    fn open_or_closed(&self) -> Option<Arc<Store>> {
        let until = Instant::now() + CLOSING_MAX;
        let mut state = self.state.lock();
        while state.store.is_none() && !state.is_over && Instant::now() < until {
            self.changed.wait_until(&mut state, until);
        }
        state.store.clone()
    }
}
