//! Ending in good order: no new connections, running exchanges finish, idle connections close.
//!
//! In: one call of [`Drain::start`]. Out: every listener and connection that holds a [`DrainSignal`] is woken once;
//! [`Drain::drained`] resolves when the last connection is gone. How long to wait is the caller's affair.
//! The lock guards the list of wakers. It is taken when a connection opens, ends, or moves to another task, never
//! per request: those only read a flag.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use slab::Slab;

/// The side that ends things. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Shared>);

/// The side that is told. Cheap to clone, one for each listener and connection.
#[derive(Clone, Debug)]
pub struct DrainSignal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    started: AtomicBool,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    members: Slab<Option<Waker>>,
    connections: usize,
    waiting: Vec<Waker>,
}

impl Drain {
    /// A drain that has not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// What listeners and connections are given.
    pub fn signal(&self) -> DrainSignal {
        DrainSignal(self.0.clone())
    }

    /// Tells everyone. A second call does nothing.
    pub fn start(&self) {
        if self.0.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let wakers: Vec<_> =
            self.0.list.lock().members.iter_mut().filter_map(|(_, waker)| waker.take()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether [`Drain::start`] was called.
    pub fn is_started(&self) -> bool {
        self.0.started.load(Ordering::SeqCst)
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.0.list.lock().connections
    }

    /// Resolves when no connection is open. Waits for ever where one does not end: bound it by a time limit.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn drained(&self) {
        poll_fn(|cx| {
            let mut list = self.0.list.lock();
            if list.connections == 0 {
                return Poll::Ready(());
            }
            if !list.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                list.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl DrainSignal {
    /// Enters the list as a connection, which [`Drain::drained`] waits for.
    pub(crate) fn join(&self) -> Membership {
        self.enter(true)
    }

    /// Enters the list as a listener.
    pub(crate) fn watch(&self) -> Membership {
        self.enter(false)
    }

    fn enter(&self, is_connection: bool) -> Membership {
        let mut list = self.0.list.lock();
        list.connections += usize::from(is_connection);
        let id = list.members.insert(None);
        drop(list);
        Membership { shared: self.0.clone(), id, is_connection, waker: None }
    }
}

/// One entry in the list; leaves it when dropped.
#[derive(Debug)]
pub(crate) struct Membership {
    shared: Arc<Shared>,
    id: usize,
    is_connection: bool,
    waker: Option<Waker>,
}

impl Membership {
    /// Whether the drain has started.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.started.load(Ordering::Relaxed)
    }

    /// Ready once the drain has started; until then the task will be woken by its start. The flag is read after the
    /// lock was held, so a start in between is either seen here or has found the waker.
    pub(crate) fn poll_draining(&mut self, cx: &Context<'_>) -> Poll<()> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
            if let Some(entry) = self.shared.list.lock().members.get_mut(self.id) {
                entry.clone_from(&self.waker);
            }
        }
        if self.is_draining() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut list = self.shared.list.lock();
        list.members.try_remove(self.id);
        list.connections -= usize::from(self.is_connection);
        let wakers = if list.connections == 0 { std::mem::take(&mut list.waiting) } else { Vec::new() };
        drop(list);
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_drain_wakes_every_member_and_waits_for_connections_only() {
        let drain = Drain::new();
        let _listener = drain.signal().watch();
        let mut member = drain.signal().join();
        let task = tokio::spawn(async move {
            poll_fn(|cx| member.poll_draining(cx)).await;
        });
        assert_eq!(drain.connections(), 1);
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        drain.start();
        drain.start();
        tokio::time::timeout(Duration::from_secs(5), drain.drained()).await.expect("drains");
        assert_eq!(drain.connections(), 0);
        task.await.expect("ends");
    }

    #[tokio::test]
    async fn a_member_that_comes_late_is_told_at_once() {
        let drain = Drain::new();
        drain.start();
        let mut member = drain.signal().join();
        assert!(member.is_draining());
        poll_fn(|cx| member.poll_draining(cx)).await;
    }
}
