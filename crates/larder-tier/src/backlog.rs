//! What waits to be written behind a store's memory, beyond what each queue has of its own.
//!
//! In: a queue that is full, and wants so many bytes more. Out: the right to hold them, which counts against the store's memory
//! like everything that is kept there, and is at most a quarter of it for all queues of the store together.
//! [`Backlog::lend`] takes what is free and never evicts, since it is called under the locks of those who store;
//! [`Backlog::make_room`] evicts, and is for who holds no lock.

use std::sync::{Arc, Weak};

use crate::budget::{Budget, Reservation};

/// A memory that lends what is free of it.
pub trait Lender: Send + Sync {
    /// What its bytes are counted in.
    fn budget(&self) -> &Arc<Budget>;

    /// So many bytes, by evicting where that is needed.
    fn make_room(&self, bytes: u64) -> Option<Reservation>;
}

/// The part of a store's memory that may wait to be written.
const MEMORY_PART: u64 = 4;

/// What the queues of one store may borrow.
#[derive(Debug)]
pub struct Backlog {
    /// What all of them have borrowed, and the most they may.
    borrowed: Arc<Budget>,
    /// The memory's own budget. Lending asks nothing else of the memory, because it happens under the lock of a queue. A handle
    /// of the memory could be the last one. Its drop would end the bodies there, and with them the queue's own disk.
    free: Arc<Budget>,
    // The memory holds bodies that hold the disks that hold this.
    memory: Weak<dyn Lender>,
}

/// Bytes that a queue has borrowed; given back on drop.
#[derive(Debug)]
pub struct Lent {
    borrowed: Reservation,
    memory: Reservation,
}

impl Backlog {
    /// What may be borrowed of this memory.
    pub fn of<L: Lender + 'static>(memory: &Arc<L>) -> Arc<Self> {
        let free = Arc::clone(memory.budget());
        let borrowed = Budget::new(free.cap() / MEMORY_PART);
        let lender: Weak<L> = Arc::downgrade(memory);
        Arc::new(Self { borrowed, free, memory: lender })
    }

    /// The memory has another cap.
    pub fn resize(&self, memory_bytes: u64) {
        self.borrowed.resize(memory_bytes / MEMORY_PART);
    }

    /// The most that may be borrowed.
    pub fn max_bytes(&self) -> u64 {
        self.borrowed.cap()
    }

    /// So many bytes of what is free.
    pub fn lend(&self, bytes: u64) -> Option<Lent> {
        let borrowed = self.borrowed.reserve(bytes)?;
        let memory = self.free.reserve(bytes)?;
        Some(Lent { borrowed, memory })
    }

    /// Sees to it that so many bytes can be lent, by evicting; false where that is no use. Not to be called under a lock.
    pub fn make_room(&self, bytes: u64) -> bool {
        let may_borrow = self.borrowed.reserve(bytes).is_some();
        may_borrow && self.memory.upgrade().is_some_and(|memory| memory.make_room(bytes).is_some())
    }
}

impl Lent {
    /// How many there are.
    pub fn bytes(&self) -> u64 {
        self.borrowed.bytes()
    }

    /// Takes over what was lent later.
    pub fn absorb(&mut self, more: Self) {
        self.borrowed.absorb(more.borrowed);
        self.memory.absorb(more.memory);
    }

    /// Keeps `bytes` and gives the rest back. Never grows.
    pub fn shrink_to(&mut self, bytes: u64) {
        self.borrowed.shrink_to(bytes);
        self.memory.shrink_to(bytes);
    }
}

/// What one queue has: so many bytes of its own, and beyond them what it has borrowed. Behind the queue's lock.
#[derive(Debug, Default)]
pub struct Borrowing {
    from: Option<Arc<Backlog>>,
    lent: Option<Lent>,
}

impl Borrowing {
    /// From now on it may borrow there.
    pub fn begin(&mut self, from: &Arc<Backlog>) {
        self.from = Some(Arc::clone(from));
    }

    /// Whether so many bytes may be held, of which `own` need no loan; borrows what is missing.
    pub fn allows(&mut self, bytes: u64, own: u64) -> bool {
        let missing = bytes.saturating_sub(own).saturating_sub(self.lent());
        if missing == 0 {
            return true;
        }
        let Some(more) = self.from.as_ref().and_then(|from| from.lend(missing)) else { return false };
        match &mut self.lent {
            Some(lent) => lent.absorb(more),
            None => self.lent = Some(more),
        }
        true
    }

    /// No more than so many bytes are held: what was borrowed beyond that goes back.
    pub fn held(&mut self, bytes: u64, own: u64) {
        match bytes.saturating_sub(own) {
            0 => self.lent = None,
            borrowed => self.lent.iter_mut().for_each(|lent| lent.shrink_to(borrowed)),
        }
    }

    /// Bytes borrowed.
    fn lent(&self) -> u64 {
        self.lent.as_ref().map_or(0, Lent::bytes)
    }

    /// The most that the queue may hold, were it alone.
    pub fn max_bytes(&self, own: u64) -> u64 {
        own + self.from.as_ref().map_or(0, |from| from.max_bytes())
    }

    /// See [`Backlog::make_room`].
    pub fn source(&self) -> Option<Arc<Backlog>> {
        self.from.clone()
    }
}
