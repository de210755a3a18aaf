//! Space-Saving: which keys have the largest sums, with a fixed number of counters (Metwally et al. 2005).
//!
//! In: keys, each with its hash and an increment. Out: for the largest keys a count that is never too low, and by how much it may be too
//! high. A key that is new takes the place of the least one, and begins with its count, which becomes the new one's error.
//! Counters are bounded by number and by bytes. Long keys use up the bytes first, and then the least counters go without another in their place.
//! So the count of the largest that ever went is kept as the floor. No key that has no counter can have a larger sum, and new ones begin there.
//! To find the least counter, an indexed heap is kept. A known key is looked up by its borrowed text, so nothing is allocated for it.
//! Deliberately absent: time. Increments grow with it where sums are to decay, and [`SpaceSaving::scale`] makes all of them smaller again.

use hashbrown::HashTable;
use larder_http::time::WallTime;

/// What the allocator may add to a key.
const KEY_OVERHEAD: usize = 16;

/// What is known of one key beside its sum.
#[derive(Clone, Debug)]
struct Counter {
    key: Box<str>,
    hash: u64,
    error: f64,
    last: WallTime,
}

/// The sum of the key in a slot.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    count: f64,
    slot: u16,
}

/// What is told of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) key: Box<str>,
    pub(super) count: f64,
    pub(super) error: f64,
    pub(super) last: WallTime,
}

/// The counters of one table. Slots, places and the index always agree, so they are indexed without a check.
#[derive(Debug)]
pub(super) struct SpaceSaving {
    counters: Vec<Counter>,
    /// Counters that are in use; none has a larger count than the two below it. Counts lie here, so that to move one reads little memory.
    heap: Vec<Ranked>,
    /// Where each slot stands in the heap.
    places: Vec<u16>,
    /// The slots in use by their key.
    index: HashTable<u16>,
    /// The other slots.
    free: Vec<u16>,
    /// No key without a counter has a larger sum.
    floor: f64,
    key_bytes: usize,
    count_max: usize,
    bytes_max: usize,
    folded: u64,
}

impl SpaceSaving {
    /// At most so many counters, and so many bytes for everything. Nothing is allocated before the first key comes.
    pub(super) fn new(count_max: u16, bytes_max: usize) -> Self {
        Self {
            counters: Vec::new(),
            heap: Vec::new(),
            places: Vec::new(),
            index: HashTable::new(),
            free: Vec::new(),
            floor: 0.0,
            key_bytes: 0,
            count_max: count_max.into(),
            bytes_max,
            folded: 0,
        }
    }

    /// Adds to the sum of a key; `hash` is of the key alone.
    pub(super) fn add(&mut self, hash: u64, key: &str, increment: f64, last: WallTime) {
        let Self { counters, heap, places, index, .. } = self;
        let known = index.find(hash, |slot| *counters[usize::from(*slot)].key == *key);
        if let Some(slot) = known.map(|slot| usize::from(*slot)) {
            counters[slot].last = counters[slot].last.max(last);
            let place = usize::from(places[slot]);
            heap[place].count += increment;
            self.sink(place);
        } else if self.has_made_room(key.len() + KEY_OVERHEAD) {
            let counter = Counter { key: key.into(), hash, error: self.floor, last };
            self.insert(counter, self.floor + increment);
        }
    }

    fn insert(&mut self, counter: Counter, count: f64) {
        let hash = counter.hash;
        self.key_bytes += counter.key.len() + KEY_OVERHEAD;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.counters[usize::from(slot)] = counter;
                slot
            }
            None => {
                self.counters.push(counter);
                self.places.push(0);
                (self.counters.len() - 1) as u16
            }
        };
        let counters = &self.counters;
        self.index.insert_unique(hash, slot, |slot| counters[usize::from(*slot)].hash);
        self.heap.push(Ranked { count, slot });
        self.rise(self.heap.len() - 1);
    }

    /// Lets the least counters go until there is one free, with so many bytes.
    fn has_made_room(&mut self, bytes: usize) -> bool {
        if self.counters.capacity() == 0 {
            self.counters.reserve_exact(self.count_max);
            self.heap.reserve_exact(self.count_max);
            self.places.reserve_exact(self.count_max);
            self.free.reserve_exact(self.count_max);
            self.index.reserve(self.count_max, |_| 0);
        }
        while self.heap.len() >= self.count_max || self.bytes() + bytes > self.bytes_max {
            if !self.fold() {
                return false;
            }
        }
        true
    }

    /// Lets the least counter go. False where there is none.
    fn fold(&mut self) -> bool {
        if self.heap.is_empty() {
            return false;
        }
        let Ranked { count, slot } = self.heap.swap_remove(0);
        if !self.heap.is_empty() {
            self.sink(0);
        }
        self.floor = self.floor.max(count);
        let counter = &mut self.counters[usize::from(slot)];
        self.key_bytes -= counter.key.len() + KEY_OVERHEAD;
        counter.key = Box::default();
        if let Ok(entry) = self.index.find_entry(counter.hash, |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
        self.folded += 1;
        true
    }

    /// Multiplies all sums.
    pub(super) fn scale(&mut self, factor: f64) {
        self.floor *= factor;
        self.heap.iter_mut().for_each(|ranked| ranked.count *= factor);
        self.counters.iter_mut().for_each(|counter| counter.error *= factor);
    }

    /// Forgets all keys. How many gave way stays.
    pub(super) fn clear(&mut self) {
        let count_max = u16::try_from(self.count_max).unwrap_or(u16::MAX);
        *self = Self { folded: self.folded, ..Self::new(count_max, self.bytes_max) };
    }

    /// Every key that has a counter, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = Counted> + '_ {
        self.heap.iter().map(|Ranked { count, slot }| {
            let Counter { key, error, last, .. } = self.counters[usize::from(*slot)].clone();
            Counted { key, count: *count, error, last }
        })
    }

    /// How often a key gave way.
    pub(super) fn folded(&self) -> u64 {
        self.folded
    }

    /// So much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.counters.capacity() * size_of::<Counter>()
            + self.heap.capacity() * size_of::<Ranked>()
            + (self.places.capacity() + self.free.capacity()) * size_of::<u16>()
            + self.index.allocation_size()
            + self.key_bytes
    }

    fn put(&mut self, place: usize, ranked: Ranked) {
        self.heap[place] = ranked;
        self.places[usize::from(ranked.slot)] = place as u16;
    }

    /// Moves a counter up to where it belongs.
    fn rise(&mut self, mut place: usize) {
        let moved = self.heap[place];
        while let Some(above) = place.checked_sub(1).map(|before| before / 2) {
            if self.heap[above].count <= moved.count {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, moved);
    }

    /// Moves a counter down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        let moved = self.heap[place];
        while let Some(left) = self.heap.get(2 * place + 1) {
            let right = self.heap.get(2 * place + 2).filter(|right| right.count < left.count);
            let (least, below) = right.map_or((*left, 2 * place + 1), |right| (*right, 2 * place + 2));
            if moved.count <= least.count {
                break;
            }
            self.put(place, least);
            place = below;
        }
        self.put(place, moved);
    }

    /// Fails where slots, places and the index do not agree.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.heap.len() + self.free.len(), self.counters.len());
        assert_eq!((self.index.len(), self.places.len()), (self.heap.len(), self.counters.len()));
        let keys: usize = self.all().map(|counted| counted.key.len() + KEY_OVERHEAD).sum();
        assert_eq!(keys, self.key_bytes);
        for (place, Ranked { count, slot }) in self.heap.iter().enumerate() {
            let counter = &self.counters[usize::from(*slot)];
            assert_eq!(usize::from(self.places[usize::from(*slot)]), place);
            assert!(place == 0 || self.heap[(place - 1) / 2].count <= *count, "no heap");
            assert!(self.floor <= *count && counter.error <= *count);
            let found = self.index.find(counter.hash, |other| other == slot);
            assert_eq!(found, Some(slot));
        }
        assert!(self.heap.len() <= self.count_max && self.bytes() <= self.bytes_max);
    }

    #[cfg(test)]
    pub(super) fn floor(&self) -> f64 {
        self.floor
    }
}
