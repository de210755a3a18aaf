//! Stores that a reload has taken out, while requests from before it are still under way.
//!
//! In: a store that no config names any more. Out: the same store, where a later reload brings it back before the last of
//! those requests has ended; else it is closed then, on a thread of its own, so that nobody waits for its disks. A store in memory
//! alone is not kept: a new one is as good. Until it is closed it is reached by every invalidation, and how many there had been then is
//! kept: a reload that opens its directories again learns from that whether it has missed any.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_proxy::{Heard, Reach};
use larder_store::Store;
use parking_lot::{Condvar, Mutex};

/// How often it is asked whether anybody still uses a store.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a reload waits for a store that is just being closed.
const CLOSING_MAX: Duration = Duration::from_secs(15);

/// Stores that were closed, and of which it is known how far they had heard.
const CLOSED_MAX: usize = 64;

#[derive(Default)]
struct State {
    /// Nothing once it was taken up again, or is being closed.
    store: Option<Arc<Store>>,
    /// Known once it is closed, unless it has not written everything down.
    heard: Option<Heard>,
    is_over: bool,
}

struct Removed {
    /// The one that it was opened with.
    config: larder_config::Store,
    state: Mutex<State>,
    changed: Condvar,
    reach: Arc<Reach>,
}

/// The stores that were removed: those that may still be open, and the last that were closed.
pub(super) struct RemovedStores {
    all: VecDeque<Arc<Removed>>,
    reach: Arc<Reach>,
}

/// Whether two configs mean one store: the same directories or servers, used in the same way. Sizes of memory and of files may differ.
pub(super) fn is_same_place(one: &larder_config::Store, other: &larder_config::Store) -> bool {
    let files = |config: &larder_config::Store| {
        let files = config.files.as_ref();
        files.map(|files| (files.path.clone(), files.mode, files.default_type.clone()))
    };
    let place = |config: &larder_config::Store| {
        let values = (config.memcached.clone(), config.redis.clone());
        (config.disks.clone(), config.layout, config.idle, values, files(config))
    };
    place(one) == place(other)
}

/// Whether a store has anything that outlives it.
pub(super) fn has_directories(config: &larder_config::Store) -> bool {
    !config.disks.is_empty() || config.files.is_some()
}

impl RemovedStores {
    pub(super) fn new(reach: Arc<Reach>) -> Self {
        Self { all: VecDeque::new(), reach }
    }

    /// Closes a store as soon as nobody uses it; `config` is the one that it was opened with.
    pub(super) fn add(&mut self, config: larder_config::Store, store: Arc<Store>) {
        self.all.retain(|removed| removed.is_of_use());
        let closed = self.all.iter().filter(|removed| removed.state.lock().is_over).count();
        if closed > CLOSED_MAX
            && let Some(oldest) = self.all.iter().position(|removed| removed.state.lock().is_over)
        {
            self.all.remove(oldest);
        }
        let state = Mutex::new(State { store: Some(store), ..State::default() });
        let reach = Arc::clone(&self.reach);
        let removed = Arc::new(Removed { config, state, changed: Condvar::new(), reach });
        self.all.push_back(Arc::clone(&removed));
        let closing = Arc::clone(&removed);
        let started =
            std::thread::Builder::new().name("store-close".to_owned()).spawn(move || closing.close_unused());
        if started.is_err() {
            // Nobody waits for those who use it; how far it had heard is not known then.
            let store = removed.state.lock().store.take();
            store.inspect(|store| store.close());
            removed.end(None);
        }
    }

    /// The store of a config, where it is still open. Waits for one that is just being closed, so that its directories can be
    /// opened anew.
    pub(super) fn find(&self, config: &larder_config::Store) -> Option<Arc<Store>> {
        if !has_directories(config) {
            return None;
        }
        let touches = |removed: &&Arc<Removed>| is_same_place(&removed.config, config);
        self.all.iter().filter(touches).find_map(|removed| removed.open_or_closed())
    }

    /// How far the store of a config had heard when it was closed, the last time.
    pub(super) fn heard(&self, config: &larder_config::Store) -> Option<Heard> {
        let mut closed = self.all.iter().rev().filter(|removed| is_same_place(&removed.config, config));
        closed.next()?.state.lock().heard
    }

    /// It is in force again.
    pub(super) fn forget(&mut self, store: &Arc<Store>, config: &larder_config::Store) {
        self.all.retain(|removed| {
            let mut state = removed.state.lock();
            let is_it = state.store.as_ref().is_some_and(|other| Arc::ptr_eq(other, store));
            if is_it {
                *state = State { is_over: true, ..State::default() };
                removed.changed.notify_all();
            }
            // One that was closed is open again by another value, which hears for itself.
            !(is_it || state.is_over && is_same_place(&removed.config, config))
        });
    }

    /// What may still be open. Whoever ends larder closes these too.
    pub(super) fn open(&self) -> Vec<Arc<Store>> {
        self.all.iter().filter_map(|removed| removed.state.lock().store.clone()).collect()
    }
}

impl Removed {
    fn close_unused(&self) {
        let mut state = self.state.lock();
        let (store, heard) = loop {
            // Whoever takes it up again does so under the lock.
            let Some(store) = state.store.take() else { return };
            match self.reach.part(store) {
                Ok(parted) => break parted,
                Err(store) => {
                    state.store = Some(store);
                    self.changed.wait_for(&mut state, ASK_EVERY);
                }
            }
        };
        drop(state);
        store.close();
        self.end(Some(heard).filter(|_| !store.is_behind()));
    }

    fn end(&self, heard: Option<Heard>) {
        let mut state = self.state.lock();
        (state.heard, state.is_over) = (heard, true);
        self.changed.notify_all();
    }

    /// Whether it is open, or it is known how far it had heard.
    fn is_of_use(&self) -> bool {
        let state = self.state.lock();
        !state.is_over || state.heard.is_some()
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
