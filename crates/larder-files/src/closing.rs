//! Closing a file where nobody waits for it.

/// Somebody who drops things on a thread that may wait.
pub(super) trait Closer: Send + Sync {
    /// Drops `what` there; or here, where that thread has ended.
    fn close_behind(&self, what: Box<dyn Send>);
}
