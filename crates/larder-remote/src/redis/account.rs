//! What was asked of one connection, and what has come.
//!
//! In: requests as they are handed to the library, replies as they come from the socket. Out: whether a reply was asked for, and why the
//! connection has ended. The library gives each reply to the oldest request that has none. So a reply that nobody has asked
//! for would be that of the next one who asks; it ends the connection instead.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Failure;

/// See the head of the file. Both ends are polled by one task; atomics are for the types' sake.
#[derive(Debug)]
pub(super) struct Account {
    /// Replies that are due.
    due: AtomicUsize,
    failure: OnceLock<Failure>,
    /// The same in words, where there is more to say than the kind.
    said: OnceLock<&'static str>,
}

impl Account {
    /// So many replies are due at once.
    pub(super) fn new(due: usize) -> Self {
        Self { due: AtomicUsize::new(due), failure: OnceLock::new(), said: OnceLock::new() }
    }

    /// So many replies are due from now on. To be called before they are asked for.
    pub(super) fn asked(&self, replies: usize) {
        self.due.fetch_add(replies, Ordering::Relaxed);
    }

    /// So many replies have come.
    ///
    /// # Errors
    /// [`Failure::Malformed`]: nobody has asked for them.
    pub(super) fn come(&self, replies: usize) -> Result<(), Failure> {
        let taken =
            self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| due.checked_sub(replies));
        taken.map(drop).map_err(|_| Failure::Malformed)
    }

    /// Replies that are due.
    pub(super) fn due(&self) -> usize {
        self.due.load(Ordering::Relaxed)
    }

    /// Replies that were due, and will not come.
    pub(super) fn forgive(&self) {
        self.due.store(0, Ordering::Relaxed);
    }

    /// The connection has to end, for this reason. The first one stays.
    pub(super) fn end(&self, failure: Failure) {
        let _ = self.failure.set(failure);
    }

    /// Why it has ended, in words. The first ones stay.
    pub(super) fn say(&self, why: &'static str) {
        let _ = self.said.set(why);
    }

    /// Those words.
    pub(super) fn said(&self) -> Option<&'static str> {
        self.said.get().copied()
    }

    /// Why it has ended: nothing else is known where the server has closed it.
    pub(super) fn failure(&self) -> Failure {
        self.failure.get().copied().unwrap_or(Failure::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_nobody_asked_for_is_malformed() {
        let account = Account::new(1);
        assert_eq!(account.come(1), Ok(()));
        assert_eq!(account.come(1), Err(Failure::Malformed));
        account.asked(2);
        assert_eq!(account.come(3), Err(Failure::Malformed));
        assert_eq!((account.come(2), account.come(0)), (Ok(()), Ok(())));
    }

    #[test]
    fn the_first_reason_stays() {
        let account = Account::new(0);
        assert_eq!(account.failure(), Failure::Closed);
        account.end(Failure::TooLarge);
        account.end(Failure::Malformed);
        assert_eq!(account.failure(), Failure::TooLarge);
    }
}
