//! Connections between and during exchanges, and the right to use one.
//!
//! In: connections of one worker to one place. Out: a [`Lease`], one exchange's hold on one of them.
//! An HTTP/1.1 connection belongs to its lease: given back it goes to the pool, dropped in any other way it is closed,
//! which is why cancelling an exchange at any await is safe. The one used last is taken first, which keeps a small set
//! warm and lets the rest age out. An HTTP/2 connection stays in the pool and serves as many leases as it has room
//! for; a lease dropped early resets its stream and leaves the others alone. The oldest with room is taken first, for
//! the same reason.
//!
//! Unused connections are closed by a task that runs only while there are connections and ends with the pool.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use hyper::client::conn::http1::SendRequest;
use larder_http::message::Peer;
use parking_lot::Mutex;
use tokio::sync::{MutexGuard, Notify};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::connect::Dial;
use crate::error::OriginError;
use crate::http2::Multiplexed;
use crate::lease::{Held, Lease};
use crate::metrics::Shared;
use crate::place::Place;
use crate::upload::Upload;
use crate::wire::{Trace, WeakSocket};

/// How long a connection in use is taken to remain so before it is looked at again, whatever the limit.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One open connection.
pub(crate) enum Connection {
    /// For one exchange at a time.
    Http1(Exclusive),
    /// For many at once.
    Http2(Arc<Multiplexed>),
}

/// An HTTP/1.1 connection. Dropping it ends its task, and with it the socket, whatever state the exchange is in.
pub(crate) struct Exclusive {
    pub(crate) sender: SendRequest<Upload>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) socket: WeakSocket,
    /// Whether it is one client's and ends with one exchange.
    pub(crate) serves_one: bool,
    pub(crate) _task: AbortOnDrop,
}

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
    shared: Arc<Shared>,
}

impl Pool {
    /// An empty pool. With `max_idle` 0 nothing is kept and nothing is shared: a connection for each exchange.
    pub(crate) fn new(max_idle: usize, idle_limit: Duration, shared: Arc<Shared>) -> Arc<Self> {
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
            shared,
        });
        pool.shared.room.add(&pool);
        pool
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The thread that made it.
    pub(crate) fn worker(&self) -> ThreadId {
        self.worker
    }

    /// A connection that can take a request now. Those found unusable on the way are closed.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        self.take_multiplexed(None).or_else(|| self.take_http1())
    }

    /// The same where the exchange needs HTTP/1.1: the connection used last.
    pub(crate) fn take_http1(self: &Arc<Self>) -> Option<Lease> {
        loop {
            let Idle { connection, since } = self.idle.lock().pop()?;
            // Not ready means that hyper still has something unfinished on it; not quiet, that the origin closed it
            // or sent what nobody asked for.
            if since.elapsed() < self.idle_limit
                && connection.sender.is_ready()
                && connection.socket.is_quiet()
            {
                return Some(self.hold(Held::Http1(connection), true));
            }
            self.shared.metrics.stale();
        }
    }

    /// A place on an HTTP/2 connection, on one opened `since` then where that is asked for.
    fn take_multiplexed(self: &Arc<Self>, since: Option<Instant>) -> Option<Lease> {
        let (slot, closed) = {
            let mut multiplexed = self.multiplexed.lock();
            let closed = self.take_closed(&mut multiplexed);
            let mut fit = multiplexed.iter().filter(|connection| is_since(connection, since));
            (fit.find_map(|connection| connection.enter(&self.freed)), closed)
        };
        for _ in closed {
            self.shared.metrics.stale();
        }
        slot.map(|slot| self.hold(Held::Http2(slot), true))
    }

    /// Takes out what can take no stream any more; streams that it carries go on. To be dropped after the lock.
    fn take_closed(&self, multiplexed: &mut Vec<Arc<Multiplexed>>) -> Vec<Arc<Multiplexed>> {
        multiplexed.extract_if(.., |connection| !connection.is_usable(self.idle_limit)).collect()
    }

    /// Opens a connection and leases it. Where others may share what comes of it, only one is opened at a time, and
    /// who waits takes a place on it instead, or one that becomes free elsewhere meanwhile. A request whose connection
    /// has failed asks for one opened `since` then, because those before may fail it in the same way.
    ///
    /// # Cancel safety
    /// May be dropped at any time; a half-open connection is closed and the next in line opens its own.
    pub(crate) async fn open(
        self: &Arc<Self>,
        dial: &Dial,
        place: &Place,
        peer: Option<Peer>,
        deadline: Instant,
        since: Option<Instant>,
    ) -> Result<Lease, OriginError> {
        let connecting = dial.connect(place, peer, deadline);
        let may_wait = self.max_idle > 0 && dial.may_share();
        if !may_wait || self.chose_http1.load(Ordering::Relaxed) {
            return Ok(self.learn(connecting.await?));
        }
        let opened = match tokio::time::timeout_at(deadline, self.turn(since)).await {
            Ok(Turn::Place(lease)) => return Ok(lease),
            Ok(Turn::Open(opening)) => {
                let _opening = (!self.chose_http1.load(Ordering::Relaxed)).then_some(opening);
                connecting.await
            }
            Err(_) => Err(OriginError::ConnectTimeout),
        };
        match opened {
            Ok(connection) => Ok(self.learn(connection)),
            Err(error) => self.take_multiplexed(since).ok_or(error),
        }
    }

    /// Waits until somebody else's connection has a place, or it is this one's turn to open another.
    async fn turn(self: &Arc<Self>, since: Option<Instant>) -> Turn<'_> {
        let mut opening = pin!(self.turn_to_open(since));
        if since.is_some() {
            // A place that becomes free is one on an older connection as a rule.
            return opening.await;
        }
        loop {
            tokio::select! {
                biased;
                turn = &mut opening => return turn,
                () = self.freed.notified() => {
                    if let Some(lease) = self.take_multiplexed(None) {
                        return Turn::Place(lease);
                    }
                }
            }
        }
    }

    /// The same, where places that become free meanwhile do not count.
    async fn turn_to_open(self: &Arc<Self>, since: Option<Instant>) -> Turn<'_> {
        let opening = self.opening.lock().await;
        if let Some(lease) = self.take_multiplexed(since) {
            return Turn::Place(lease);
        }
        let unsettled = {
            let multiplexed = self.multiplexed.lock();
            let mut fit = multiplexed.iter().filter(|connection| is_since(connection, since));
            fit.find_map(|connection| connection.unsettled())
        };
        if let Some(unsettled) = unsettled {
            unsettled.settles().await;
            if let Some(lease) = self.take_multiplexed(since) {
                return Turn::Place(lease);
            }
        }
        Turn::Open(opening)
    }

    /// Leases a connection whose version the server was free to choose.
    fn learn(self: &Arc<Self>, connection: Connection) -> Lease {
        self.chose_http1.store(matches!(connection, Connection::Http1(_)), Ordering::Relaxed);
        self.lease(connection)
    }

    /// A first lease on a new connection.
    pub(crate) fn lease(self: &Arc<Self>, connection: Connection) -> Lease {
        match connection {
            Connection::Http1(connection) => self.hold(Held::Http1(connection), false),
            Connection::Http2(connection) => {
                let slot = Multiplexed::enter_new(&connection, &self.freed);
                if self.max_idle > 0 {
                    self.multiplexed.lock().push(connection);
                    self.start_sweeper();
                }
                self.hold(Held::Http2(slot), false)
            }
        }
    }

    fn hold(self: &Arc<Self>, held: Held, is_reused: bool) -> Lease {
        Lease::new(held, self.clone(), is_reused)
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

    /// Since when its longest unused connection has not been used.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let exclusive = self.idle.lock().first().map(|idle| idle.since);
        let multiplexed = longest_unused(&self.multiplexed.lock()).map(|(since, _)| since);
        exclusive.into_iter().chain(multiplexed).min()
    }

    /// Closes its longest unused connection, HTTP/1.1 before HTTP/2. False where there is none.
    pub(crate) fn give_up_one(&self) -> bool {
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

/// What there is for a request that cannot have a kept connection.
enum Turn<'a> {
    /// A place on a connection after all.
    Place(Lease),
    /// The right to open one that others wait for.
    Open(MutexGuard<'a, ()>),
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
