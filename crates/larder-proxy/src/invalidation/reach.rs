//! Which stores an invalidation reaches: all that there are when it begins.
//!
//! In: stores that are opened, and closed. Out: for an invalidation, every store, whatever config it is of; for a store that is
//! opened, whether it has missed any. Both are decided under one lock: an invalidation that begins before
//! a store is known counts as missed by it, one that begins later finds it. A store that is closed can be reached by none
//! from that moment on, and takes along how many there had been.
//! What was missed while another process ran, or none of the config, journals tell ([`periods`](super::periods)). They are written to
//! under a lock of their own, which the first invalidation of a period waits for, and no other.

use std::sync::{Arc, Weak};

use larder_store::{Note, Store};
use parking_lot::Mutex;

use super::periods::{Belief, KnownPeriods};

/// Of how many invalidations a store has heard, or would have, had it been there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard(u64);

#[derive(Debug, Default)]
struct State {
    stores: Vec<Weak<Store>>,
    /// Invalidations that have begun.
    begun: u64,
    /// The highest number that was told.
    number: u64,
    /// How often stores have gone.
    gone: u64,
    /// How often that had happened when all that are left noted a period.
    noted: Option<u64>,
}

impl State {
    /// Takes note of stores that have gone.
    fn look_after(&mut self) {
        let before = self.stores.len();
        self.stores.retain(|store| store.strong_count() > 0);
        self.gone += u64::from(self.stores.len() < before);
    }

    /// The stores that are open.
    fn open(&mut self) -> Vec<Arc<Store>> {
        self.look_after();
        let open: Vec<_> = self.stores.iter().filter_map(Weak::upgrade).collect();
        // One may go at this moment, if it is of a config that never came into force.
        self.gone += u64::from(open.len() < self.stores.len());
        open
    }

    fn is_noted(&self) -> bool {
        self.noted == Some(self.gone)
    }
}

/// The stores. Shared by whoever invalidates, opens and closes. The lock of the list is held for no longer than a look at it.
#[derive(Debug, Default)]
pub struct Reach {
    state: Mutex<State>,
    periods: Mutex<KnownPeriods>,
    /// Held while journals note a period, one after the other.
    noting: Mutex<()>,
}

/// What is known of a store that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It was closed in this process, and nothing was invalidated since.
    Heard,
    /// It was not open in this process, in which nothing was invalidated yet: its journal tells.
    Unknown,
    /// Something was invalidated that it has not heard of.
    Missed,
}

/// A store that was not known.
pub(crate) struct Joined {
    pub(crate) store: Arc<Store>,
    pub(crate) trust: Trust,
}

impl Reach {
    /// Begins an invalidation: all stores that it has to reach. It takes its number afterwards, above `number`. The first one of a period
    /// is noted in all journals before this ends.
    pub(crate) fn begin(&self, number: u64) -> Vec<Arc<Store>> {
        let (stores, is_noted) = {
            let mut state = self.state.lock();
            state.begun += 1;
            state.number = state.number.max(number);
            (state.open(), state.is_noted())
        };
        if !is_noted {
            self.begin_period(number);
        }
        stores
    }

    #[cold]
    fn begin_period(&self, number: u64) {
        let _noting = self.noting.lock();
        let (stores, gone) = {
            let mut state = self.state.lock();
            let stores = state.open();
            if state.is_noted() {
                // Another was the first, and it is noted by now.
                return;
            }
            (stores, state.gone)
        };
        let note = self.periods.lock().begin(number);
        stores.iter().for_each(|store| store.mark(&note));
        self.state.lock().noted = Some(gone);
    }

    /// All stores that are open.
    pub(crate) fn stores(&self) -> Vec<Weak<Store>> {
        let mut state = self.state.lock();
        state.look_after();
        state.stores.clone()
    }

    /// From now on these are reached, too; those of them that were not known until now. `heard` says how far each had heard when
    /// it was closed in this process: `None` for one that was not open before.
    pub(crate) fn join(
        &self,
        stores: &[Arc<Store>],
        heard: &dyn Fn(&Arc<Store>) -> Option<Heard>,
    ) -> Vec<Joined> {
        let mut state = self.state.lock();
        state.look_after();
        let is_known = |store: &&Arc<Store>| {
            state.stores.iter().any(|other| std::ptr::eq(other.as_ptr(), &raw const ***store))
        };
        let new: Vec<_> = stores.iter().filter(|store| !is_known(store)).cloned().collect();
        state.stores.extend(new.iter().map(Arc::downgrade));
        let trust = |store: &Arc<Store>| match heard(store) {
            Some(heard) if heard.0 == state.begun => Trust::Heard,
            None if state.begun == 0 => Trust::Unknown,
            _ => Trust::Missed,
        };
        new.into_iter().map(|store| Joined { trust: trust(&store), store }).collect()
    }

    /// At a start, before anything of it is used: what a journal says, of which `last` is the highest number.
    pub(crate) fn look_at(&self, last: u64, notes: &[Note]) {
        self.periods.lock().look_at(last, notes);
    }

    /// What is to be thought of a journal whose store is about to be used.
    pub(crate) fn belief(&self, last: u64, notes: &[Note]) -> Belief {
        self.periods.lock().belief(last, notes)
    }

    /// A store is in use from now on: it notes what the others have noted.
    pub(crate) fn welcome(&self, store: &Store, number: u64) {
        let _noting = self.noting.lock();
        if let Some(note) = self.note(number) {
            store.mark(&note);
        }
    }

    /// What every journal is to say of periods; nothing before the first.
    pub(crate) fn note(&self, number: u64) -> Option<Note> {
        self.periods.lock().joining(number)
    }

    /// Takes a store out that nobody else uses, to be closed. No invalidation finds it any more.
    ///
    /// # Errors
    /// Somebody uses it.
    pub fn part(&self, store: Arc<Store>) -> Result<(Store, Heard), Arc<Store>> {
        let (store, heard, number) = {
            let state = self.state.lock();
            let store = Arc::try_unwrap(store)?;
            // What it alone holds is not walked any more.
            store.stop_taking_stock();
            (store, Heard(state.begun), state.number)
        };
        let note = self.periods.lock().leaving(number);
        store.mark(&note);
        Ok((store, heard))
    }
}

#[cfg(test)]
mod tests {
    use larder_store::MemoryStoreSettings;

    use super::*;

    fn store() -> Arc<Store> {
        Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 10 })
    }

    fn trust(reach: &Reach, heard: Option<Heard>) -> Trust {
        let store = store();
        let joined = reach.join(&[Arc::clone(&store)], &|_| heard);
        assert!(joined.len() == 1 && reach.join(&[store], &|_| heard).is_empty(), "once");
        joined[0].trust
    }

    #[test]
    fn a_store_that_was_closed_is_believed_unless_something_was_invalidated_meanwhile() {
        let reach = Reach::default();
        assert_eq!(trust(&reach, None), Trust::Unknown, "nothing was invalidated since larder started");
        let one = store();
        reach.join(&[Arc::clone(&one)], &|_| None);
        assert!(reach.begin(1).iter().any(|store| Arc::ptr_eq(store, &one)));
        let one = reach.part(one);
        let Ok((_, heard)) = one else { unreachable!("nobody uses it") };
        assert_eq!(trust(&reach, Some(heard)), Trust::Heard);
        assert_eq!(trust(&reach, None), Trust::Missed, "it was not there");
        reach.begin(2);
        assert_eq!(trust(&reach, Some(heard)), Trust::Missed);
    }

    #[test]
    fn a_store_that_is_used_is_not_closed() {
        let reach = Reach::default();
        let store = store();
        reach.join(&[Arc::clone(&store)], &|_| None);
        let reached = reach.begin(1);
        let Err(store) = reach.part(store) else { unreachable!("an invalidation is at it") };
        drop(reached);
        assert!(reach.part(store).is_ok());
        assert!(reach.begin(2).is_empty());
    }

    #[test]
    fn a_period_ends_when_a_store_has_gone_however_it_went() {
        let reach = Reach::default();
        let last = || reach.note(0).map(|note| note.what.get(note.what.len() - 8..).map(<[u8]>::to_vec));
        let stores = [store(), store(), store()];
        reach.join(&stores, &|_| None);
        assert_eq!(last(), None);
        reach.begin(1);
        let first = last();
        reach.begin(2);
        assert_eq!(last(), first);
        let [one, other, _stays] = stores;
        // One that no config in force has ever named is dropped.
        drop(one);
        reach.begin(3);
        let second = last();
        assert_ne!(second, first);
        assert!(reach.part(other).is_ok());
        reach.begin(4);
        assert!(last() != second && last().is_some());
    }
}
