//! One exchange's hold on a connection: all of it in HTTP/1.1, room for one stream in HTTP/2.
//!
//! In: a connection that a pool has, or was just opened. Out: the connection back in its pool, where both messages ended
//! as their framing said and somebody says so; dropped in any other way, the connection is closed, or the stream reset.

use std::sync::Arc;

use crate::connection::Exclusive;
use crate::counters::Counters;
use crate::http2::Slot;
use crate::pool::Pool;

/// One exchange's hold on a connection, or on a place in one.
pub(crate) struct Lease {
    pub(crate) held: Held,
    pool: Arc<Pool>,
    /// Whether others were or are served on it.
    pub(crate) is_reused: bool,
}

/// What is held.
pub(crate) enum Held {
    /// All of a connection.
    Http1(Exclusive),
    /// Room for one stream.
    Http2(Slot),
}

impl Lease {
    pub(crate) fn new(held: Held, pool: Arc<Pool>, is_reused: bool) -> Self {
        Self { held, pool, is_reused }
    }

    /// Ends the exchange cleanly: both messages are complete.
    pub(crate) fn give_back(self) {
        let Self { held, pool, .. } = self;
        match held {
            Held::Http1(connection) => pool.put(connection),
            Held::Http2(slot) => {
                slot.end();
                drop(slot);
                pool.settle();
            }
        }
    }

    /// The connection, where all of it is held.
    pub(crate) fn http1(&mut self) -> Option<&mut Exclusive> {
        match &mut self.held {
            Held::Http1(connection) => Some(connection),
            Held::Http2(_) => None,
        }
    }

    /// The room on a connection, where that is what is held.
    pub(crate) fn slot(&self) -> Option<&Slot> {
        match &self.held {
            Held::Http1(_) => None,
            Held::Http2(slot) => Some(slot),
        }
    }

    /// From now on the connection's bytes are not HTTP.
    pub(crate) fn become_tunnel(&self) {
        if let Held::Http1(connection) = &self.held {
            connection.trace.report_failed_writes();
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.pool.counters()
    }
}
