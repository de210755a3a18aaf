//! An exchange, from its request to the end of its response's body or tunnel.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::counters::{Counters, bump};
use crate::fleet::{Seat, Ticket};

/// Lives as long as the exchange, and so does what it holds.
#[derive(Debug)]
pub(crate) struct InFlight {
    counters: Arc<Counters>,
    seat: Option<Seat>,
    ticket: Option<Ticket>,
}

impl InFlight {
    /// Counts one more exchange.
    pub(crate) fn begin(counters: &Arc<Counters>) -> Self {
        bump(&counters.requests);
        bump(&counters.in_flight);
        Self { counters: Arc::clone(counters), seat: None, ticket: None }
    }

    /// Counts against the origin's cap from now on, where there is one.
    pub(crate) fn sit(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// A tunnel counts against the origin's cap no more.
    pub(crate) fn leave_seat(&mut self) {
        self.seat = None;
    }

    /// So much content came.
    pub(crate) fn received(&self, bytes: usize) {
        if let Some(ticket) = &self.ticket {
            ticket.received(bytes);
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
