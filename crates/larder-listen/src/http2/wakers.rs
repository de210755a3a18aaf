//! Wakers of streams. All streams of a connection live in one task; a wake tells which of them are due.
//!
//! In: wakes, from any thread. Out: the places of the streams that are due, and a wake of the connection's task. A stream that ended leaves its place
//! to another one, which is polled in vain then, and no worse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;

const BITS: usize = 64;

#[derive(Debug, Default)]
struct Shared {
    /// Whether a bit is set, so that a turn without one takes no lock.
    is_due: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    due: Vec<u64>,
    task: Option<Waker>,
}

/// The wakers of one connection, made when they are needed and kept.
#[derive(Debug, Default)]
pub(super) struct StreamWakers {
    shared: Arc<Shared>,
    wakers: Vec<Waker>,
    /// The task's, as `shared` has it.
    task: Option<Waker>,
}

impl StreamWakers {
    /// Who is to be woken from now on.
    pub(super) fn register(&mut self, task: &Waker) {
        if !self.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            self.task = Some(task.clone());
            self.shared.state.lock().task = Some(task.clone());
        }
    }

    /// The waker of a place.
    pub(super) fn of(&mut self, place: usize) -> Waker {
        while self.wakers.len() <= place {
            let waker = StreamWaker { place: self.wakers.len(), shared: Arc::clone(&self.shared) };
            self.wakers.push(Arc::new(waker).into());
        }
        self.wakers.get(place).cloned().unwrap_or_else(|| Waker::noop().clone())
    }

    /// Moves the places that are due to `places`, in their order.
    pub(super) fn take_due(&self, places: &mut Vec<usize>) {
        if !self.shared.is_due.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.shared.state.lock();
        self.shared.is_due.store(false, Ordering::Relaxed);
        for (at, word) in state.due.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                places.push(at * BITS + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

struct StreamWaker {
    place: usize,
    shared: Arc<Shared>,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let task = {
            let mut state = self.shared.state.lock();
            let (word, bit) = (self.place / BITS, self.place % BITS);
            if state.due.len() <= word {
                state.due.resize(word + 1, 0);
            }
            if let Some(word) = state.due.get_mut(word) {
                *word |= 1 << bit;
            }
            // Woken once, the task comes and finds all bits.
            let was_due = self.shared.is_due.swap(true, Ordering::Release);
            if was_due { None } else { state.task.clone() }
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_wake_tells_who_is_due_and_wakes_the_task_once_a_turn() {
        let (mut wakers, count) = (StreamWakers::default(), Arc::new(Count::default()));
        wakers.register(&Arc::clone(&count).into());
        let (mut due, woken) = (Vec::new(), || count.0.load(Ordering::SeqCst));
        wakers.take_due(&mut due);
        assert!(due.is_empty());
        for place in [70, 3, 70, 0] {
            wakers.of(place).wake();
        }
        assert_eq!(woken(), 1);
        wakers.take_due(&mut due);
        assert_eq!(due, [0, 3, 70]);
        due.clear();
        wakers.take_due(&mut due);
        assert!(due.is_empty());
        let waker = wakers.of(5);
        std::thread::spawn(move || waker.wake_by_ref()).join().unwrap();
        wakers.take_due(&mut due);
        assert_eq!((due, woken()), (vec![5], 2));
    }
}
