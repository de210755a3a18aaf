//! An exchange, from its request to the end of its response's body or tunnel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::{Counters, bump};
use crate::fleet::{Seat, Ticket};

/// Lives as long as the exchange, and so does what it holds.
#[derive(Debug)]
pub(crate) struct InFlight {
    counters: Arc<Counters>,
    seat: Option<Seat>,
    ticket: Option<Ticket>,
    /// The counter of the one that asked.
    received: Option<Arc<AtomicU64>>,
}

impl InFlight {
    /// Counts one more exchange.
    pub(crate) fn begin(counters: &Arc<Counters>) -> Self {
        bump(&counters.requests);
        bump(&counters.in_flight);
        Self { counters: Arc::clone(counters), seat: None, ticket: None, received: None }
    }

    /// Counts against the origin's cap from now on, where there is one.
    pub(crate) fn sit(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// A tunnel counts against the origin's cap no more.
    pub(crate) fn leave_seat(&mut self) {
        self.seat = None;
    }

    /// Adds the content that comes to this, too.
    pub(crate) fn count_at(&mut self, received: Option<Arc<AtomicU64>>) {
        self.received = received;
    }

    /// So much content came.
    pub(crate) fn received(&self, bytes: usize) {
        if let Some(ticket) = &self.ticket {
            ticket.received(bytes);
        }
        if let Some(received) = &self.received {
            received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Counts at its endpoint.
    pub(crate) fn stay(&mut self, ticket: Ticket) {
        self.ticket = Some(ticket);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
