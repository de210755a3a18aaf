//! Which stream is sent next (RFC 9218 10).
//!
//! In: streams that have something to send and may. Out: one at a time. More urgent ones come first. Among equals a stream is served to its end,
//! and those that are incremental take turns, a frame each.

use std::collections::VecDeque;

use super::priority::{Priority, URGENCIES};

/// Streams in turn, by their places in the connection's list. A stream is in it once at most.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    queues: [VecDeque<usize>; URGENCIES],
    length: usize,
}

impl Schedule {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a stream that is not in it.
    pub(super) fn push(&mut self, key: usize, priority: Priority) {
        if let Some(queue) = self.queues.get_mut(usize::from(priority.urgency)) {
            queue.push_back(key);
            self.length += 1;
        }
    }

    /// Takes out the first stream that `prefers`, of the most urgent ones; where there is none, the first of all.
    pub(super) fn pop(&mut self, prefers: impl Fn(usize) -> bool) -> Option<usize> {
        let mut found = None;
        for (urgency, queue) in self.queues.iter().enumerate() {
            if let Some(place) = queue.iter().position(|key| prefers(*key)) {
                found = Some((urgency, place));
                break;
            }
            if found.is_none() && !queue.is_empty() {
                found = Some((urgency, 0));
            }
        }
        let (urgency, place) = found?;
        let key = self.queues.get_mut(urgency)?.remove(place)?;
        self.length -= 1;
        Some(key)
    }

    /// Puts a stream back that was taken out and has more to send: in front, or behind all others where it is incremental.
    pub(super) fn put_back(&mut self, key: usize, priority: Priority) {
        if let Some(queue) = self.queues.get_mut(usize::from(priority.urgency)) {
            if priority.incremental {
                queue.push_back(key)
            } else {
                queue.push_front(key)
            }
            self.length += 1;
        }
    }

    /// Takes a stream out, where it is in it.
    pub(super) fn remove(&mut self, key: usize) {
        for queue in &mut self.queues {
            if let Some(place) = queue.iter().position(|other| *other == key) {
                queue.remove(place);
                self.length -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(streams: &[(usize, u8, bool)], frames: usize) -> Vec<usize> {
        let of = |key: usize| streams.iter().find(|stream| stream.0 == key).unwrap();
        let priority = |key| Priority { urgency: of(key).1, incremental: of(key).2 };
        let mut schedule = Schedule::default();
        streams.iter().for_each(|stream| schedule.push(stream.0, priority(stream.0)));
        let mut order = Vec::new();
        for _ in 0..frames {
            let key = schedule.pop(|_| true).unwrap();
            order.push(key);
            // Each has two frames.
            if order.iter().filter(|other| **other == key).count() < 2 {
                schedule.put_back(key, priority(key));
            }
        }
        assert!(schedule.is_empty());
        order
    }

    #[test]
    fn the_urgent_come_first_and_equals_in_order_or_in_turns() {
        assert_eq!(order(&[(0, 3, false), (1, 3, false)], 4), [0, 0, 1, 1]);
        assert_eq!(order(&[(0, 3, true), (1, 3, true)], 4), [0, 1, 0, 1]);
        assert_eq!(order(&[(0, 7, false), (1, 0, true), (2, 3, false)], 6), [1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn one_that_is_preferred_overtakes_and_none_is_left_behind() {
        let mut schedule = Schedule::default();
        for (key, urgency) in [(4, 1), (5, 3), (6, 3)] {
            schedule.push(key, Priority { urgency, incremental: false });
        }
        assert_eq!(schedule.pop(|key| key == 6), Some(6));
        assert_eq!(schedule.pop(|_| false), Some(4));
        schedule.remove(4);
        schedule.remove(5);
        assert!(schedule.is_empty() && schedule.pop(|_| true).is_none());
    }
}
