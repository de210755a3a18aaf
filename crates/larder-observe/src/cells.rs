//! Counter cells that one worker owns. Cells of different workers never share a cache line, so counting never makes
//! cores wait for each other; whoever reads adds the workers up.
//!
//! An add is a load and a store. A hit counts seven times, and a `fetch_add` (about 5 ns) each time would be a
//! thirtieth of what it costs beside the kernel. Two threads that counted in one cell would lose counts, so a debug
//! build watches that only the thread that counted first does.

use std::sync::atomic::{AtomicU64, Ordering};

/// 128 bytes: two lines, because the neighbour line is prefetched with the one that was asked for.
const PER_LINE: usize = 16;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; PER_LINE]);

/// Counters whose number is known only when they are made. They wrap, as Prometheus expects of counters.
#[derive(Debug)]
pub(crate) struct Cells {
    lines: Box<[Line]>,
    len: usize,
    owner: Owner,
}

/// Counters whose number is known to the compiler: they lie where their owner lies, and a place that is known as well costs no check.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct FixedCells<const N: usize> {
    cells: [AtomicU64; N],
    owner: Owner,
}

/// What has counters that can be added up.
pub(crate) trait SumInto {
    /// Adds every cell to the same place in `sums`.
    fn sum_into(&self, sums: &mut [u64]);
}

/// The thread that counted first; nothing where nobody looks.
#[derive(Debug, Default)]
struct Owner {
    #[cfg(debug_assertions)]
    thread: std::sync::OnceLock<std::thread::ThreadId>,
}

impl Owner {
    #[inline(always)]
    fn check(&self) {
        #[cfg(debug_assertions)]
        {
            let this = std::thread::current().id();
            assert_eq!(*self.thread.get_or_init(|| this), this, "two threads count in the same cells");
        }
    }
}

#[inline(always)]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

fn add_to(sum: &mut u64, cell: Option<&AtomicU64>) {
    *sum = sum.wrapping_add(cell.map_or(0, |cell| cell.load(Ordering::Relaxed)));
}

impl<const N: usize> Default for FixedCells<N> {
    fn default() -> Self {
        Self { cells: std::array::from_fn(|_| AtomicU64::new(0)), owner: Owner::default() }
    }
}

impl<const N: usize> FixedCells<N> {
    /// Adds to one cell; an index beyond the end counts nowhere. For one thread, always the same.
    #[inline(always)]
    pub(crate) fn add(&self, index: usize, n: u64) {
        self.owner.check();
        if let Some(cell) = self.cells.get(index) {
            add(cell, n);
        }
    }
}

impl<const N: usize> SumInto for FixedCells<N> {
    fn sum_into(&self, sums: &mut [u64]) {
        for (index, sum) in sums.iter_mut().enumerate() {
            add_to(sum, self.cells.get(index));
        }
    }
}

impl Cells {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            lines: (0..len.div_ceil(PER_LINE)).map(|_| Line::default()).collect(),
            len,
            owner: Owner::default(),
        }
    }

    fn cell(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.len {
            return None;
        }
        self.lines.get(index / PER_LINE).and_then(|line| line.0.get(index % PER_LINE))
    }

    /// Adds to one cell; an index beyond the end counts nowhere. For one thread, always the same.
    pub(crate) fn add(&self, index: usize, n: u64) {
        self.owner.check();
        if let Some(cell) = self.cell(index) {
            add(cell, n);
        }
    }
}

impl SumInto for Cells {
    fn sum_into(&self, sums: &mut [u64]) {
        for (index, sum) in sums.iter_mut().enumerate() {
            add_to(sum, self.cell(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_across_lines_and_ignore_what_is_beyond() {
        let cells = Cells::new(20);
        for index in [0, 15, 16, 19, 20, usize::MAX] {
            cells.add(index, 2);
        }
        let mut sums = [1; 20];
        cells.sum_into(&mut sums);
        assert_eq!(sums.iter().filter(|n| **n == 3).count(), 4);
        assert_eq!(sums.iter().sum::<u64>(), 28);
        let cells = FixedCells::<17>::default();
        for index in [0, 15, 16, 17, usize::MAX] {
            cells.add(index, 2);
        }
        cells.sum_into(&mut sums);
        assert_eq!((sums.iter().sum::<u64>(), sums[16]), (34, 5));
    }
}
