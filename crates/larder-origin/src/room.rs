//! Room for one more connection under an origin's cap, and what is given up for it.
//!
//! In: pools, as they are made. Out: an [`OpenConnection`]. The cap counts unused connections too, of every worker and
//! every server, and a request that needs a new one should not fail because others are kept for requests that may
//! never come. So at the cap the longest unused connection is closed: first of the worker that asks, then of the
//! others; only where all are in use is there no room. A worker is a thread.
//!
//! A connection counts until its socket is closed, which its own worker does; who asks waits for that.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::OriginError;
use crate::metrics::{Full, OpenConnection, Shared};
use crate::pool::Pool;

/// All pools of an origin.
#[derive(Default)]
pub(crate) struct Room {
    pools: Mutex<Vec<Weak<Pool>>>,
    freed: Notify,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl Room {
    /// From now on `pool` may have to give up what it keeps.
    pub(crate) fn add(&self, pool: &Arc<Pool>) {
        let mut pools = self.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// A connection has been closed.
    pub(crate) fn free(&self) {
        self.freed.notify_waiters();
    }

    /// Begins to close an unused connection. False where there is none.
    pub(crate) fn give_up_one(&self) -> bool {
        let here = thread::current().id();
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        let mut unused: Vec<_> = pools
            .iter()
            .filter_map(|pool| Some((pool.worker() != here, pool.unused_since()?, pool)))
            .collect();
        unused.sort_by_key(|(is_elsewhere, since, _)| (*is_elsewhere, *since));
        unused.into_iter().any(|(_, _, pool)| pool.give_up_one())
    }
}

/// Counts one more open connection to the origin of `shared`, of which there may be `max`.
///
/// # Errors
/// [`OriginError::ConnectionLimit`], where all of the origin's are in use or none is closed before `deadline`.
///
/// # Cancel safety
/// May be dropped at any time; an unused connection may have been closed for nothing.
pub(crate) async fn enter(
    shared: &Arc<Shared>,
    max: usize,
    deadline: Instant,
) -> Result<OpenConnection, OriginError> {
    loop {
        let mut freed = pin!(shared.room.freed.notified());
        let mut freed_of_all = pin!(shared.all.freed.notified());
        // Listens before it looks, so that nothing is missed in between.
        freed.as_mut().enable();
        freed_of_all.as_mut().enable();
        let full = match shared.open(max) {
            Ok(open) => return Ok(open),
            Err(full) => full,
        };
        if shared.room.give_up_one() {
            shared.metrics.gave_up();
        } else if full == Full::Origin {
            return Err(OriginError::ConnectionLimit);
        } else {
            shared.all.give_up_one();
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::connect::Dial;
    use crate::place::Place;
    use crate::settings::{OriginSettings, ServerAddress};

    /// One worker's way to a server that takes everything and says nothing.
    struct Worker {
        pool: Arc<Pool>,
        dial: Dial,
        place: Place,
    }

    impl Worker {
        fn new(shared: &Arc<Shared>, listener: &TcpListener) -> Self {
            let unused = ServerAddress::Http { host: "unused".into(), port: 1 };
            let mut settings = OriginSettings::new("app", vec![unused]);
            settings.max_connections = 2;
            let dial = Dial::new(None, "unused", &settings, shared).unwrap();
            let place = Place::Tcp(listener.local_addr().unwrap());
            Self { pool: Pool::new(8, Duration::from_secs(60), shared.clone()), dial, place }
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
        let shared = Shared::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (ready, is_ready) = mpsc::channel();
        let (end, ends) = tokio::sync::oneshot::channel::<()>();
        let there = thread::spawn({
            let (shared, listener) = (shared.clone(), listener.try_clone().unwrap());
            move || {
                runtime().block_on(async {
                    let worker = Worker::new(&shared, &listener);
                    worker.open().await.unwrap().give_back();
                    ready.send(worker.pool.clone()).unwrap();
                    let _ = ends.await;
                });
            }
        });
        let of_other = is_ready.recv().unwrap();
        runtime().block_on(async {
            let (one, two) = (Worker::new(&shared, &listener), Worker::new(&shared, &listener));
            one.open().await.unwrap().give_back();
            assert!(one.keeps() && of_other.unused_since().is_some());
            // The other worker's is unused for longer.
            let _first = two.open().await.unwrap();
            assert!(!one.keeps() && of_other.unused_since().is_some());
            let _second = two.open().await.unwrap();
            assert!(of_other.unused_since().is_none());
            assert!(matches!(two.open().await, Err(OriginError::ConnectionLimit)));
            assert_eq!(shared.metrics.connections_open(), 2);
        });
        end.send(()).unwrap();
        there.join().unwrap();
    }

    #[tokio::test]
    async fn the_cap_of_all_origins_closes_an_unused_one_of_another_and_waits_for_one_in_use() {
        let all = Arc::new(crate::Connections::default());
        all.limit(2);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let [one, two] = [(), ()].map(|()| Shared::among(&all));
        let [one, two] = [&one, &two].map(|shared| Worker::new(shared, &listener));
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
