//! Connections of one worker to one place, between exchanges.
//!
//! In: connections that may be used again. Out: the same, as long as they are usable; `open` leases them to exchanges.
//! An HTTP/1.1 connection belongs to its lease. Given back it goes to the pool. Dropped in any other way it is closed,
//! which is why cancelling an exchange at any await is safe. The one used last is taken first, which keeps a small set
//! warm and lets the others age out. An HTTP/2 connection stays in the pool and serves as many leases as it has room
//! for; a lease dropped early resets its stream and leaves the others alone. The oldest with room is taken first, for
//! the same reason.
//!
//! Unused connections are closed by a task that runs only while there are connections and ends with the pool.

mod open;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::abort::AbortOnDrop;
use crate::connection::Exclusive;
use crate::connections::GivesUp;
use crate::counters::Counters;
use crate::http2::{Multiplexed, Slot};
use crate::resources::OriginResources;
use crate::room::Keeps;

/// How long a connection in use is taken to remain so before it is looked at again, whatever the limit.
const BUSY_FOR: Duration = Duration::from_secs(1);

struct Idle {
    connection: Exclusive,
    since: Instant,
}

/// The connections of one worker to one place.
pub(crate) struct Pool {
    /// HTTP/1.1, unused, the latest last.
    idle: Mutex<Vec<Idle>>,
    /// HTTP/2, used or not, the oldest first.
    multiplexed: Mutex<Vec<Arc<Multiplexed>>>,
    /// Held while a connection is opened that others can share, and until its peer has said for how many there is room,
    /// so that a burst opens one and not a hundred. An async lock: who waits has a deadline, and who holds it may be
    /// dropped.
    opening: tokio::sync::Mutex<()>,
    /// Notified of each place that becomes free on an HTTP/2 connection, for one of those who wait for another.
    freed: Arc<Notify>,
    /// Whether the latest connection turned out to be HTTP/1.1, so that there is no point in waiting for another's.
    chose_http1: AtomicBool,
    /// Present while the task that closes old connections runs.
    sweeper: Mutex<Option<AbortOnDrop>>,
    /// Whose it is.
    worker: ThreadId,
    max_idle: usize,
    idle_limit: Duration,
    resources: Arc<OriginResources>,
}

impl Pool {
    /// An empty pool. With `max_idle` 0 nothing is kept and nothing is shared: a connection for each exchange.
    pub(crate) fn new(max_idle: usize, idle_limit: Duration, resources: Arc<OriginResources>) -> Arc<Self> {
        let pool = Arc::new(Self {
            idle: Mutex::new(Vec::new()),
            multiplexed: Mutex::new(Vec::new()),
            opening: tokio::sync::Mutex::new(()),
            freed: Arc::default(),
            chose_http1: AtomicBool::new(false),
            sweeper: Mutex::new(None),
            worker: thread::current().id(),
            max_idle,
            idle_limit,
            resources,
        });
        let weak = Arc::downgrade(&pool);
        pool.resources.room.add(weak);
        pool
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.resources.counters
    }

    /// The HTTP/1.1 connection used last. Those found unusable on the way are closed.
    fn take_exclusive(&self) -> Option<Exclusive> {
        loop {
            let Idle { connection, since } = self.idle.lock().pop()?;
            // Not ready means that hyper still has something unfinished on it; not quiet, that the origin closed it
            // or sent what nobody asked for.
            if since.elapsed() < self.idle_limit
                && connection.sender.is_ready()
                && connection.socket.is_quiet()
            {
                return Some(connection);
            }
            self.resources.counters.stale();
        }
    }

    /// A place on an HTTP/2 connection, on one opened `since` then where that is asked for.
    fn take_slot(&self, since: Option<Instant>) -> Option<Slot> {
        let (slot, closed) = {
            let mut multiplexed = self.multiplexed.lock();
            let closed = self.take_closed(&mut multiplexed);
            let mut fit = multiplexed.iter().filter(|connection| is_since(connection, since));
            (fit.find_map(|connection| connection.enter(&self.freed)), closed)
        };
        for _ in closed {
            self.resources.counters.stale();
        }
        slot
    }

    /// Takes out what can take no stream any more; streams that it carries go on. To be dropped after the lock.
    fn take_closed(&self, multiplexed: &mut Vec<Arc<Multiplexed>>) -> Vec<Arc<Multiplexed>> {
        multiplexed.extract_if(.., |connection| !connection.is_usable(self.idle_limit)).collect()
    }

    /// Keeps a connection that may be used again.
    pub(crate) fn put(self: &Arc<Self>, connection: Exclusive) {
        if self.max_idle == 0 || connection.serves_one || connection.sender.is_closed() {
            return;
        }
        let displaced = {
            let mut idle = self.idle.lock();
            let displaced = (idle.len() >= self.max_idle).then(|| idle.remove(0));
            idle.push(Idle { connection, since: Instant::now() });
            displaced
        };
        drop(displaced);
        self.start_sweeper();
    }

    /// Closes the longest unused HTTP/2 connection where there are more than may be kept.
    pub(crate) fn settle(&self) {
        let displaced = {
            let mut multiplexed = self.multiplexed.lock();
            let unused = multiplexed.iter().filter(|connection| connection.unused_since().is_some()).count();
            match longest_unused(&multiplexed) {
                Some((_, at)) if unused > self.max_idle => Some(multiplexed.remove(at)),
                _ => None,
            }
        };
        drop(displaced);
    }

    fn start_sweeper(self: &Arc<Self>) {
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
        let next_idle = {
            let mut idle = self.idle.lock();
            let keep_from =
                idle.iter().position(|entry| entry.since.elapsed() < self.idle_limit).unwrap_or(idle.len());
            old.extend(idle.drain(..keep_from));
            idle.first().map(|oldest| oldest.since + self.idle_limit)
        };
        let (_closed, next_unused) = {
            let mut multiplexed = self.multiplexed.lock();
            let closed = self.take_closed(&mut multiplexed);
            let busy_or_since = |connection: &Arc<Multiplexed>| match connection.unused_since() {
                Some(since) => since + self.idle_limit,
                None => Instant::now() + self.idle_limit.max(BUSY_FOR),
            };
            (closed, multiplexed.iter().map(busy_or_since).min())
        };
        let next = [next_idle, next_unused].into_iter().flatten().min();
        if next.is_none() {
            *sweeper = None;
        }
        next
    }
}

impl Keeps for Pool {
    fn worker(&self) -> ThreadId {
        self.worker
    }

    fn unused_since(&self) -> Option<Instant> {
        let exclusive = self.idle.lock().first().map(|idle| idle.since);
        let multiplexed = longest_unused(&self.multiplexed.lock()).map(|(since, _)| since);
        exclusive.into_iter().chain(multiplexed).min()
    }
}

impl GivesUp for Pool {
    /// Closes its longest unused connection, HTTP/1.1 before HTTP/2. False where there is none.
    fn give_up_one(&self) -> bool {
        let exclusive = {
            let mut idle = self.idle.lock();
            (!idle.is_empty()).then(|| idle.remove(0))
        };
        if exclusive.is_some() {
            return true;
        }
        let multiplexed = {
            let mut multiplexed = self.multiplexed.lock();
            longest_unused(&multiplexed).map(|(_, at)| multiplexed.remove(at))
        };
        multiplexed.is_some()
    }
}

/// Whether it was opened `since` then, where that is asked for.
fn is_since(connection: &Arc<Multiplexed>, since: Option<Instant>) -> bool {
    since.is_none_or(|since| connection.opened() >= since)
}

/// Since when the longest unused one is that, and where it stands.
fn longest_unused(multiplexed: &[Arc<Multiplexed>]) -> Option<(Instant, usize)> {
    let unused = |(at, connection): (usize, &Arc<Multiplexed>)| Some((connection.unused_since()?, at));
    multiplexed.iter().enumerate().filter_map(unused).min()
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
