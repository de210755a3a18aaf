//! Leases: on a connection that the pool has, or on one that is opened for it.
//!
//! In: an exchange that needs a connection. Out: a [`Lease`]. Where exchanges can share a connection, one is opened at a time, so
//! that a burst opens one and not a hundred.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use larder_http::message::Peer;
use tokio::sync::MutexGuard;
use tokio::time::Instant;

use super::{Pool, is_since};
use crate::connect::Dial;
use crate::connection::Connection;
use crate::error::OriginError;
use crate::http2::Multiplexed;
use crate::lease::{Held, Lease};
use crate::place::Place;

/// What there is for a request that cannot have a kept connection.
enum Turn<'a> {
    /// A place on a connection after all.
    Place(Lease),
    /// The right to open one that others wait for.
    Open(MutexGuard<'a, ()>),
}

impl Pool {
    /// A connection that can take a request now. Those found unusable on the way are closed.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        self.take_multiplexed(None).or_else(|| self.take_http1())
    }

    /// The same where the exchange needs HTTP/1.1: the connection used last.
    pub(crate) fn take_http1(self: &Arc<Self>) -> Option<Lease> {
        Some(self.hold(Held::Http1(self.take_exclusive()?), true))
    }

    fn take_multiplexed(self: &Arc<Self>, since: Option<Instant>) -> Option<Lease> {
        Some(self.hold(Held::Http2(self.take_slot(since)?), true))
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
}
