//! Which stores an invalidation reaches: all that there are when it begins.
//!
//! In: stores that are opened, and closed. Out: for an invalidation, every store, whatever config it is of; for a store that is
//! opened while larder runs, whether it has missed any. Both are decided under one lock: an invalidation that begins before
//! a store is known counts as missed by it, one that begins later finds it. A store that is closed can be reached by none
//! from that moment on, and takes along how many there had been.

use std::sync::{Arc, Weak};

use larder_store::Store;
use parking_lot::Mutex;

/// Of how many invalidations a store has heard, or would have, had it been there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard(u64);

#[derive(Debug, Default)]
struct State {
    stores: Vec<Weak<Store>>,
    /// Invalidations that have begun.
    begun: u64,
}

/// The stores. Shared by whoever invalidates, opens and closes. The lock is held for no longer than a look at the list.
#[derive(Debug, Default)]
pub struct Reach(Mutex<State>);

/// A store that was not known, and whether it has heard of everything.
pub(crate) struct Joined {
    pub(crate) store: Arc<Store>,
    pub(crate) is_believed: bool,
}

impl Reach {
    /// Begins an invalidation: all stores that it has to reach. It takes its number afterwards.
    pub(crate) fn begin(&self) -> Vec<Arc<Store>> {
        let mut state = self.0.lock();
        state.begun += 1;
        state.stores.iter().filter_map(Weak::upgrade).collect()
    }

    /// All stores that are open.
    pub(crate) fn stores(&self) -> Vec<Weak<Store>> {
        self.0.lock().stores.clone()
    }

    /// From now on these are reached, too; those of them that were not known until now. `heard` says how far each had heard when
    /// it was closed in this process: nothing since larder started for one that was not open before.
    pub(crate) fn join(&self, stores: &[Arc<Store>], heard: &dyn Fn(&Arc<Store>) -> Heard) -> Vec<Joined> {
        let mut state = self.0.lock();
        let State { stores: known, begun } = &mut *state;
        known.retain(|store| store.strong_count() > 0);
        let is_known =
            |store: &Arc<Store>| known.iter().any(|other| std::ptr::eq(other.as_ptr(), &raw const **store));
        let new: Vec<_> = stores.iter().filter(|store| !is_known(store)).cloned().collect();
        known.extend(new.iter().map(Arc::downgrade));
        let joined = |store: Arc<Store>| Joined { is_believed: heard(&store).0 == *begun, store };
        new.into_iter().map(joined).collect()
    }

    /// Takes a store out that nobody else uses, to be closed. No invalidation finds it any more.
    ///
    /// # Errors
    /// Somebody uses it.
    pub fn part(&self, store: Arc<Store>) -> Result<(Store, Heard), Arc<Store>> {
        let state = self.0.lock();
        let store = Arc::try_unwrap(store)?;
        // What it alone holds is not walked any more.
        store.stop_taking_stock();
        Ok((store, Heard(state.begun)))
    }
}

#[cfg(test)]
mod tests {
    use larder_store::MemoryStoreSettings;

    use super::*;

    fn store() -> Arc<Store> {
        Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 10 })
    }

    fn is_believed(reach: &Reach, heard: Heard) -> bool {
        let store = store();
        let joined = reach.join(&[Arc::clone(&store)], &|_| heard);
        assert!(joined.len() == 1 && reach.join(&[store], &|_| heard).is_empty(), "once");
        joined.iter().all(|joined| joined.is_believed)
    }

    #[test]
    fn a_store_that_was_closed_is_believed_unless_something_was_invalidated_meanwhile() {
        let reach = Reach::default();
        assert!(is_believed(&reach, Heard::default()), "nothing was invalidated since larder started");
        let one = store();
        reach.join(&[Arc::clone(&one)], &|_| Heard::default());
        assert!(reach.begin().iter().any(|store| Arc::ptr_eq(store, &one)));
        let one = reach.part(one);
        let Ok((_, heard)) = one else { unreachable!("nobody uses it") };
        assert!(is_believed(&reach, heard));
        assert!(!is_believed(&reach, Heard::default()), "it was not there");
        reach.begin();
        assert!(!is_believed(&reach, heard));
    }

    #[test]
    fn a_store_that_is_used_is_not_closed() {
        let reach = Reach::default();
        let store = store();
        reach.join(&[Arc::clone(&store)], &|_| Heard::default());
        let reached = reach.begin();
        let Err(store) = reach.part(store) else { unreachable!("an invalidation is at it") };
        drop(reached);
        assert!(reach.part(store).is_ok());
        assert!(reach.begin().is_empty());
    }
}
