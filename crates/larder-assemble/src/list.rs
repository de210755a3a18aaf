//! A list that one side appends to while others read it, without a lock.
//!
//! In: items, from the one that compiles. Out: references that stay valid, for every page that runs meanwhile. Blocks double in size and never
//! move. Deliberately absent: removal, and more than one writer; a second one would only lose its items.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const BLOCKS: usize = 14;
const FIRST: usize = 8;

/// How many items a list takes: the blocks of 8, 16, 32 ... together.
#[cfg(test)]
const ITEMS_MAX: usize = FIRST * ((1 << BLOCKS) - 1);

type Block<T> = OnceLock<Box<[OnceLock<T>]>>;

/// Such a list.
pub(crate) struct List<T> {
    blocks: [Block<T>; BLOCKS],
    len: AtomicUsize,
}

impl<T> List<T> {
    pub(crate) fn new() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS], len: AtomicUsize::new(0) }
    }

    /// Appends; false where the list is full.
    pub(crate) fn push(&self, item: T) -> bool {
        let index = self.len.load(Ordering::Relaxed);
        let (block, offset) = place(index);
        let Some(block_at) = self.blocks.get(block) else { return false };
        let slots = block_at.get_or_init(|| (0..FIRST << block).map(|_| OnceLock::new()).collect());
        let is_set = slots.get(offset).is_some_and(|slot| slot.set(item).is_ok());
        self.len.store(index + usize::from(is_set), Ordering::Release);
        is_set
    }

    /// How many there are by now.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// The item at `index`, if it is there by now.
    pub(crate) fn item(&self, index: usize) -> Option<&T> {
        let (block, offset) = place(index);
        self.blocks.get(block)?.get()?.get(offset)?.get()
    }

    /// All that are there by now.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map_while(|index| self.item(index))
    }
}

fn place(index: usize) -> (usize, usize) {
    let Some(number) = (index / FIRST).checked_add(1) else { return (BLOCKS, 0) };
    let block = number.ilog2() as usize;
    (block, index - FIRST * ((1 << block) - 1))
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_where_they_are() {
        let list = List::new();
        for item in 0..10_000_usize {
            assert!(list.item(item).is_none());
            assert!(list.push(item));
            assert_eq!(list.item(item), Some(&item));
        }
        assert!(list.iter().copied().eq(0..10_000));
        assert_eq!(list.item(usize::MAX), None);
        assert_eq!(list.item(ITEMS_MAX), None);
    }

    #[test]
    fn a_full_list_takes_no_more() {
        let list = List::new();
        assert_eq!((0..=ITEMS_MAX).take_while(|_| list.push(())).count(), ITEMS_MAX);
        assert_eq!(list.len(), ITEMS_MAX);
    }
}
