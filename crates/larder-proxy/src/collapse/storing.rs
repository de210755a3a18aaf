//! Whether what a fetch brought is stored: known when its body has ended, and told then to whoever has to write it down.
//!
//! In: the outcome, once; the first word counts. Out: that word, at once where it is known, else when it is. A storing that
//! is dropped without one says that the body was incomplete, so that nobody waits for ever. The lock is held for moves of
//! a few words; who waits is called without it.

use parking_lot::Mutex;

/// What became of it: stored, or why not, in a word.
pub(crate) type StoringResult = Result<(), &'static str>;

/// Of a fetch that ended without saying so.
const LOST: &str = "incomplete";

type Waiting = Box<dyn FnOnce(StoringResult) + Send>;

/// How storing the result of one fetch ended.
pub(crate) struct Storing(Mutex<State>);

enum State {
    Open(Vec<Waiting>),
    Settled(StoringResult),
}

impl Default for Storing {
    fn default() -> Self {
        Self(Mutex::new(State::Open(Vec::new())))
    }
}

impl std::fmt::Debug for Storing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Storing")
    }
}

impl Storing {
    /// Says what became of it, unless that has been said.
    pub(crate) fn settle(&self, outcome: StoringResult) {
        let mut state = self.0.lock();
        let State::Open(waiting) = &mut *state else { return };
        let waiting = std::mem::take(waiting);
        *state = State::Settled(outcome);
        drop(state);
        waiting.into_iter().for_each(|then| then(outcome));
    }

    /// Calls `then` with what became of it, as soon as that is known.
    pub(crate) fn when_settled(&self, then: impl FnOnce(StoringResult) + Send + 'static) {
        let mut state = self.0.lock();
        match &mut *state {
            State::Open(waiting) => waiting.push(Box::new(then)),
            State::Settled(outcome) => {
                let outcome = *outcome;
                drop(state);
                then(outcome);
            }
        }
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.settle(Err(LOST));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn check(say: impl FnOnce(Storing), expected: StoringResult) {
        let (storing, told) = (Storing::default(), Arc::new(AtomicU32::new(0)));
        for _ in 0..2 {
            let told = Arc::clone(&told);
            storing.when_settled(move |outcome| {
                assert_eq!(outcome, expected);
                told.fetch_add(1, Ordering::Relaxed);
            });
        }
        say(storing);
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn everybody_is_told_the_first_word_or_that_there_was_none() {
        check(|storing| storing.settle(Ok(())), Ok(()));
        check(drop, Err(LOST));
        check(
            |storing| {
                storing.settle(Err("queue-full"));
                storing.settle(Ok(()));
                storing.when_settled(|outcome| assert_eq!(outcome, Err("queue-full")));
            },
            Err("queue-full"),
        );
    }
}
