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

/// A fixed number of counters. They wrap, as Prometheus expects of counters.
#[derive(Debug)]
pub(crate) struct Cells {
    lines: Box<[Line]>,
    len: usize,
    #[cfg(debug_assertions)]
    owner: std::sync::OnceLock<std::thread::ThreadId>,
}

impl Cells {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            lines: (0..len.div_ceil(PER_LINE)).map(|_| Line::default()).collect(),
            len,
            #[cfg(debug_assertions)]
            owner: std::sync::OnceLock::new(),
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
        #[cfg(debug_assertions)]
        {
            let this = std::thread::current().id();
            assert_eq!(*self.owner.get_or_init(|| this), this, "two threads count in the same cells");
        }
        if let Some(cell) = self.cell(index) {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// Adds every cell to the same place in `sums`.
    pub(crate) fn sum_into(&self, sums: &mut [u64]) {
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(self.cell(index).map_or(0, |cell| cell.load(Ordering::Relaxed)));
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
    }
}
