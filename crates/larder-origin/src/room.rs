//! Room for one more connection under an origin's cap, and what is given up for it.
//!
//! In: pools, as they are made. Out: an [`OpenConnection`]. The cap counts unused connections too, of every worker and
//! every server, and a request that needs a new one should not fail because others are kept for requests that may
//! never come. So at the cap the longest unused connection is closed: first of the worker that asks, then of the
//! others; only where all are in use is there no room. A worker is a thread.
//!
//! A connection counts until its socket is closed, which its own worker does; who asks waits for that.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connections::{Connections, GivesUp};
use crate::counters::{Counters, bump};
use crate::error::OriginError;

/// What a worker keeps of an origin's connections to one place.
pub(crate) trait Keeps: GivesUp {
    /// The thread whose they are.
    fn worker(&self) -> ThreadId;

    /// Since when the longest unused connection has not been used.
    fn unused_since(&self) -> Option<Instant>;
}

/// An origin's cap on connections.
pub(crate) struct Room {
    pools: Mutex<Vec<Weak<dyn Keeps>>>,
    freed: Notify,
    counters: Arc<Counters>,
    all: Arc<Connections>,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

/// Which cap is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The origin's own.
    Origin,
    /// That of all origins.
    All,
}

/// Lives in the socket's owner and ends with it.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Room>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.connections_open.fetch_sub(1, Ordering::Relaxed);
        self.0.all.close();
        self.0.freed.notify_waiters();
    }
}

impl Room {
    /// Connections count in `counters`, and among `all`.
    pub(crate) fn among(all: &Arc<Connections>, counters: &Arc<Counters>) -> Arc<Self> {
        let (pools, freed) = (Mutex::default(), Notify::new());
        let room = Arc::new(Self { pools, freed, counters: Arc::clone(counters), all: Arc::clone(all) });
        let weak = Arc::downgrade(&room);
        all.join(weak);
        room
    }

    /// From now on `pool` may have to give up what it keeps.
    pub(crate) fn add(&self, pool: Weak<dyn Keeps>) {
        let mut pools = self.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// Counts one more open connection, unless there are `max` already, or too many of all origins.
    pub(crate) fn open(self: &Arc<Self>, max: usize) -> Result<OpenConnection, Full> {
        if !self.all.open() {
            return Err(Full::All);
        }
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        let more = |open| (open < max).then_some(open + 1);
        if self.counters.connections_open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            self.all.close();
            return Err(Full::Origin);
        }
        bump(&self.counters.connections_opened);
        Ok(OpenConnection(Arc::clone(self)))
    }

    /// Counts one more open connection, of which there may be `max`.
    ///
    /// # Errors
    /// [`OriginError::ConnectionLimit`], where all of the origin's are in use or none is closed before `deadline`.
    ///
    /// # Cancel safety
    /// May be dropped at any time; an unused connection may have been closed for nothing.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        max: usize,
        deadline: Instant,
    ) -> Result<OpenConnection, OriginError> {
        loop {
            let mut freed = pin!(self.freed.notified());
            let mut freed_of_all = pin!(self.all.freed.notified());
            // Listens before it looks, so that nothing is missed in between.
            freed.as_mut().enable();
            freed_of_all.as_mut().enable();
            let full = match self.open(max) {
                Ok(open) => return Ok(open),
                Err(full) => full,
            };
            if !self.give_up_one() {
                match full {
                    Full::Origin => return Err(OriginError::ConnectionLimit),
                    Full::All => _ = self.all.give_up_one(),
                }
            }
            // Whoever is faster may take the room. Then another one is given up, as long as there is one.
            let freed = async {
                match full {
                    Full::Origin => freed.await,
                    Full::All => freed_of_all.await,
                }
            };
            tokio::time::timeout_at(deadline, freed).await.map_err(|_| OriginError::ConnectionLimit)?;
        }
    }
}

impl GivesUp for Room {
    fn give_up_one(&self) -> bool {
        let here = thread::current().id();
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        let mut unused: Vec<_> = pools
            .iter()
            .filter_map(|pool| Some((pool.worker() != here, pool.unused_since()?, pool)))
            .collect();
        unused.sort_by_key(|(is_elsewhere, since, _)| (*is_elsewhere, *since));
        let gave_up = unused.into_iter().any(|(_, _, pool)| pool.give_up_one());
        if gave_up {
            self.counters.gave_up();
        }
        gave_up
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::connect::Dial;
    use crate::in_flight::InFlight;
    use crate::place::Place;
    use crate::pool::Pool;
    use crate::resources::OriginResources;
    use crate::settings::{OriginSettings, ServerAddress};

    #[test]
    fn gauges_return_to_zero_and_the_cap_holds() {
        let resources = OriginResources::among(&Arc::default());
        let one = resources.room.open(1).unwrap();
        assert!(matches!(resources.room.open(1), Err(Full::Origin)));
        let exchange = InFlight::begin(&resources.counters);
        assert_eq!((resources.counters.connections_open(), resources.counters.in_flight()), (1, 1));
        drop((one, exchange));
        assert_eq!((resources.counters.connections_open(), resources.counters.in_flight()), (0, 0));
        assert!(resources.room.open(1).is_ok());
    }

    /// One worker's way to a server that takes everything and says nothing.
    struct Worker {
        pool: Arc<Pool>,
        dial: Dial,
        place: Place,
    }

    impl Worker {
        fn new(resources: &Arc<OriginResources>, listener: &TcpListener) -> Self {
            let unused = ServerAddress::Http { host: "unused".into(), port: 1 };
            let mut settings = OriginSettings::new("app", vec![unused]);
            settings.max_connections = 2;
            let dial = Dial::new(None, "unused", &settings, &resources.room).unwrap();
            let place = Place::Tcp(listener.local_addr().unwrap());
            Self { pool: Pool::new(8, Duration::from_secs(60), Arc::clone(resources)), dial, place }
        }

        async fn open(&self) -> Result<crate::lease::Lease, OriginError> {
            let deadline = Instant::now() + Duration::from_secs(10);
            self.pool.open(&self.dial, &self.place, None, deadline, None).await
        }

        fn keeps(&self) -> bool {
            self.pool.unused_since().is_some()
        }
    }

    #[test]
    fn a_worker_gives_up_its_own_connections_then_those_of_others_and_none_in_use() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resources = OriginResources::among(&Arc::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (ready, is_ready) = mpsc::channel();
        let (end, ends) = tokio::sync::oneshot::channel::<()>();
        let there = thread::spawn({
            let (resources, listener) = (resources.clone(), listener.try_clone().unwrap());
            move || {
                runtime().block_on(async {
                    let worker = Worker::new(&resources, &listener);
                    worker.open().await.unwrap().give_back();
                    ready.send(worker.pool.clone()).unwrap();
                    let _ = ends.await;
                });
            }
        });
        let of_other = is_ready.recv().unwrap();
        runtime().block_on(async {
            let (one, two) = (Worker::new(&resources, &listener), Worker::new(&resources, &listener));
            one.open().await.unwrap().give_back();
            assert!(one.keeps() && of_other.unused_since().is_some());
            // The other worker's is unused for longer.
            let _first = two.open().await.unwrap();
            assert!(!one.keeps() && of_other.unused_since().is_some());
            let _second = two.open().await.unwrap();
            assert!(of_other.unused_since().is_none());
            assert!(matches!(two.open().await, Err(OriginError::ConnectionLimit)));
            assert_eq!(resources.counters.connections_open(), 2);
        });
        end.send(()).unwrap();
        there.join().unwrap();
    }

    #[tokio::test]
    async fn the_cap_of_all_origins_closes_an_unused_one_of_another_and_waits_for_one_in_use() {
        let all = Arc::new(crate::Connections::default());
        all.limit(2);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let [one, two] = [(), ()].map(|()| OriginResources::among(&all));
        let [one, two] = [&one, &two].map(|resources| Worker::new(resources, &listener));
        one.open().await.unwrap().give_back();
        let second = two.open().await.unwrap();
        let third = two.open().await.unwrap();
        assert!(!one.keeps(), "the unused one was given up");
        let (waiting, ()) = tokio::join!(one.open(), async {
            tokio::task::yield_now().await;
            drop(second);
        });
        assert!(waiting.is_ok());
        drop(third);
    }
}
