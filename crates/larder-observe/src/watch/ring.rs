//! The newest of what came, bounded by number and by bytes.

use std::collections::VecDeque;
use std::sync::Arc;

/// Values that are shared with their readers.
#[derive(Debug)]
pub(super) struct Ring<T> {
    values: VecDeque<(Arc<T>, usize)>,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
    has_let_go: bool,
}

impl<T> Ring<T> {
    pub(super) fn new(count_max: usize, bytes_max: usize) -> Self {
        Self { values: VecDeque::new(), bytes: 0, count_max, bytes_max, has_let_go: false }
    }

    /// Adds a value of so many bytes; the oldest go.
    pub(super) fn push(&mut self, value: Arc<T>, bytes: usize) {
        self.values.push_back((value, bytes));
        self.bytes += bytes;
        while self.values.len() > self.count_max || self.bytes > self.bytes_max {
            let Some((_, bytes)) = self.values.pop_front() else { break };
            self.bytes -= bytes;
            self.has_let_go = true;
        }
    }

    /// All values, newest first.
    pub(super) fn newest_first(&self) -> Vec<Arc<T>> {
        self.values.iter().rev().map(|(value, _)| Arc::clone(value)).collect()
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
        self.has_let_go = false;
    }

    /// Whether an old value went, since it was empty.
    pub(super) fn has_let_go(&self) -> bool {
        self.has_let_go
    }

    /// What the values take, without what others hold of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_where_there_are_too_many_or_too_large_ones() {
        let mut ring = Ring::new(3, 100);
        for (value, bytes, expected, sum) in [
            (1, 10, vec![1], 10),
            (2, 10, vec![2, 1], 20),
            (3, 10, vec![3, 2, 1], 30),
            (4, 10, vec![4, 3, 2], 30),
            (5, 80, vec![5, 4, 3], 100),
            (6, 15, vec![6, 5], 95),
            (7, 101, vec![], 0),
            (8, 100, vec![8], 100),
        ] {
            ring.push(Arc::new(value), bytes);
            assert_eq!(ring.newest_first().iter().map(|value| **value).collect::<Vec<_>>(), expected);
            assert_eq!(ring.bytes(), sum);
            assert_eq!(ring.has_let_go(), value >= 4);
        }
        ring.clear();
        assert!(ring.newest_first().is_empty() && ring.bytes() == 0 && !ring.has_let_go());
    }
}
