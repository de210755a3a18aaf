//! Connections between exchanges, and the right to use one.
//!
//! In: connections whose exchange ended cleanly. Out: the one used last, if it is still open, young enough and quiet.
//! Taking the latest keeps a small set warm and lets the rest age out. A [`Lease`] is one exchange's hold on one
//! connection: given back it goes to the pool, dropped in any other way it closes the connection, which is why
//! cancelling an exchange at any await is safe.
//!
//! Idle connections are closed by a task that runs only while there are some and ends with the pool.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::metrics::Shared;
use crate::upload::Upload;
use crate::wire::{Trace, WeakSocket};

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One open connection. Dropping it ends its task, and with it the socket, whatever state the exchange is in.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Upload>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) socket: WeakSocket,
    pub(crate) _task: AbortOnDrop,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// The unused connections of one worker to one server, the latest last.
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    /// Present while the task that closes old connections runs.
    sweeper: Mutex<Option<AbortOnDrop>>,
    max_idle: usize,
    idle_limit: Duration,
    shared: Arc<Shared>,
}

impl Pool {
    pub(crate) fn new(max_idle: usize, idle_limit: Duration, shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            idle: Mutex::new(Vec::new()),
            sweeper: Mutex::new(None),
            max_idle,
            idle_limit,
            shared,
        })
    }

    /// The connection used last that can take a request now. Those found unusable on the way are closed.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        loop {
            let Idle { connection, since } = self.idle.lock().pop()?;
            // Not ready means that hyper still has something unfinished on it; not quiet, that the origin closed it
            // or sent what nobody asked for.
            if since.elapsed() < self.idle_limit
                && connection.sender.is_ready()
                && connection.socket.is_quiet()
            {
                return Some(Lease { connection, pool: self.clone(), is_reused: true });
            }
            self.shared.metrics.stale();
        }
    }

    /// A first lease on a new connection.
    pub(crate) fn lease(self: &Arc<Self>, connection: Connection) -> Lease {
        Lease { connection, pool: self.clone(), is_reused: false }
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        if self.max_idle == 0 || connection.sender.is_closed() {
            return;
        }
        let displaced = {
            let mut idle = self.idle.lock();
            let displaced = (idle.len() >= self.max_idle).then(|| idle.remove(0));
            idle.push(Idle { connection, since: Instant::now() });
            displaced
        };
        drop(displaced);
        let mut sweeper = self.sweeper.lock();
        if sweeper.is_none() {
            let task = tokio::spawn(sweep(Arc::downgrade(self), self.idle_limit));
            *sweeper = Some(AbortOnDrop(task.abort_handle()));
        }
    }

    /// Closes what is too old. Returns when to look again; `None` where nothing is left, and then the caller has to
    /// end, because the next connection starts another sweeper.
    fn close_old(&self) -> Option<Instant> {
        let mut sweeper = self.sweeper.lock();
        let mut old = Vec::new();
        let next = {
            let mut idle = self.idle.lock();
            let keep_from =
                idle.iter().position(|entry| entry.since.elapsed() < self.idle_limit).unwrap_or(idle.len());
            old.extend(idle.drain(..keep_from));
            idle.first().map(|oldest| oldest.since + self.idle_limit)
        };
        if next.is_none() {
            *sweeper = None;
        }
        next
    }
}

/// Ends when the pool is empty or gone. Never holds the pool while it waits.
async fn sweep(pool: Weak<Pool>, idle_limit: Duration) {
    let mut next = Instant::now() + idle_limit;
    loop {
        tokio::time::sleep_until(next).await;
        let Some(at) = pool.upgrade().and_then(|pool| pool.close_old()) else {
            return;
        };
        next = at;
    }
}

/// One exchange's hold on a connection.
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    pool: Arc<Pool>,
    pub(crate) is_reused: bool,
}

impl Lease {
    /// Ends the exchange cleanly: both messages are complete.
    pub(crate) fn give_back(self) {
        let Self { connection, pool, .. } = self;
        pool.put(connection);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.pool.shared
    }
}
