//! One request to one server, up to its final head: over a kept connection, or a new one.
//!
//! In: a [`Ticket`] for an endpoint and a request ready to be written. Out: the answer and who gave it, or why there is
//! none; every endpoint on the way is told how it did.
//!
//! ```text
//!   kept connection? --yes--> attempt --answer--> done
//!         |                      | once: nothing was written, or a plain read on a connection that had gone stale,
//!         no                     v       or one that has to be sent over HTTP/1.1
//!         +------------------> connect --> other addresses of the server --> once another server and its addresses
//!                                 |  within one connect limit                 |  within another one
//!                                 +-------------------> attempt <-------------+
//! ```
//!
//! The second attempt is made on a connection that was opened after the first had failed, and is the last. Connecting
//! may end on a connection that others opened meanwhile; the first attempt on such a one is as any on a kept one.
//!
//! Until then nothing was sent that could have had an effect, so all of this repeats nothing (RFC 9110 9.2.2).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use larder_http::message::Peer;

use crate::answer::{InterimSink, Timing};
use crate::attempt::{Answered, Failed, attempt};
use crate::error::{Fault, OriginError, OriginFailure, is_our_own};
use crate::fleet::{Chooser, Fleet, Pools, Reach, Ticket};
use crate::lease::Lease;
use crate::progress::Progress;
use crate::request::{Affinity, Asked, Outgoing};
use crate::settings::SentHost;

/// Addresses of one server that one request tries to connect to.
const ADDRESSES_MAX: usize = 16;

/// Of these, so many may use their time up without an answer: with more, each would get too little time for a
/// handshake over a long way.
const SILENT_MAX: usize = 3;

/// What a connection has to be.
#[derive(Clone, Copy)]
struct Wanted {
    /// HTTP/1.1, also where the server would choose otherwise.
    http1: bool,
    /// Opened then or later.
    since: Option<Instant>,
}

/// An answer and where it came from.
pub(crate) struct Reached {
    pub(crate) ticket: Ticket,
    pub(crate) answered: Answered,
    pub(crate) timing: Timing,
    /// How often the request was sent, to any server.
    pub(crate) attempts: u32,
}

/// What a request takes along from server to server.
pub(crate) struct Journey<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) pools: &'a Pools,
    pub(crate) chooser: &'a Chooser,
    pub(crate) asked: &'a Asked,
    pub(crate) affinity: Affinity,
    pub(crate) interims: Option<InterimSink>,
    pub(crate) peer: Option<Peer>,
    pub(crate) progress: Option<Arc<Progress>>,
    pub(crate) begun: Instant,
    /// How long it waited before a server was chosen.
    pub(crate) queued: Duration,
    /// How often it was sent.
    pub(crate) attempts: u32,
    /// The one that it met last.
    pub(crate) server: Option<Arc<str>>,
    /// Endpoints that were asked or could not be connected to.
    pub(crate) tried: Vec<u64>,
    /// Whether connecting has moved on to another server already.
    pub(crate) has_moved: bool,
}

impl Journey<'_> {
    /// How far it came, where nobody answered.
    pub(crate) fn failed(&self, error: OriginError) -> OriginFailure {
        OriginFailure { error, server: self.server.clone(), attempts: self.attempts, queue: self.queued }
    }

    fn meet(&mut self, ticket: &Ticket) {
        self.tried.push(ticket.endpoint().id());
        self.server = Some(Arc::clone(ticket.endpoint().server_name()));
    }

    /// Sends `outgoing` to the ticket's endpoint, or to somebody else where connecting fails.
    ///
    /// # Cancel safety
    /// May be dropped at any time; the connection is closed, and no endpoint is blamed.
    pub(crate) async fn reach(
        &mut self,
        mut ticket: Ticket,
        mut outgoing: Outgoing,
    ) -> Result<Reached, OriginError> {
        let pool = self.pools.of(ticket.endpoint());
        let mut kept = if self.asked.websocket { pool.take_http1() } else { pool.take() };
        let mut wanted = Wanted { http1: self.asked.websocket, since: None };
        let mut is_second = false;
        loop {
            let begun = Instant::now();
            let lease = match kept.take() {
                Some(lease) => lease,
                None => {
                    // Boxed: most requests find a kept connection, and would carry the state of a handshake about.
                    let (connected, lease) = Box::pin(self.connect(ticket, wanted)).await?;
                    ticket = connected;
                    lease
                }
            };
            self.meet(&ticket);
            // Also one that somebody else opened meanwhile.
            let is_reused = lease.is_reused;
            let connect = (!is_reused).then(|| begun.elapsed());
            if is_reused {
                lease.counters().reused();
            }
            if is_second {
                lease.counters().retried();
            }
            match &self.fleet.settings().host {
                SentHost::Client => {}
                SentHost::Upstream => outgoing.ask_for(&ticket.endpoint().own_name()),
                SentHost::Name(name) => outgoing.ask_for(name),
            }
            let begun = Instant::now();
            // Stays handed over where this is dropped during the attempt.
            let before = self.progress.as_ref().map(|progress| progress.hand_over());
            let (interims, total) = (self.interims.as_ref(), self.asked.total);
            self.attempts += 1;
            let outcome = attempt(lease, outgoing, interims, self.fleet.settings(), total).await;
            self.take_back(before, &outcome);
            let (error, again, needs_http1) = match outcome {
                Ok(answered) => {
                    let timing = Timing { queue: self.queued, connect, first_byte: begun.elapsed() };
                    return Ok(Reached { ticket, answered, timing, attempts: self.attempts });
                }
                Err(Failed { error, again, needs_http1 }) => (error, again, needs_http1),
            };
            let may_repeat = match needs_http1 {
                true => ticket.endpoint().dial().speaks_both(),
                // A connection of its own is as good as a second attempt: nothing is repeated after it.
                false => is_reused,
            };
            match again {
                Some(again) if may_repeat && !is_second => {
                    outgoing = again;
                    is_second = true;
                    wanted = Wanted { http1: wanted.http1 || needs_http1, since: Some(Instant::now()) };
                }
                _ => {
                    self.blame(&mut ticket, &error, begun);
                    return Err(error);
                }
            }
        }
    }

    /// Opens a connection to the ticket's endpoint; if that fails, to other addresses of its server; if that fails, the
    /// same with another server, once. Nothing has been sent by then, so this repeats nothing.
    async fn connect(&mut self, ticket: Ticket, wanted: Wanted) -> Result<(Ticket, Lease), OriginError> {
        let reach = if ticket.is_last_resort() { Reach::Anybody } else { Reach::Available };
        let error = match self.connect_server(ticket, wanted).await {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        if error.fault() != Fault::Origin {
            return Err(error);
        }
        self.fleet.doubt();
        if self.has_moved || self.is_over() {
            return Err(error);
        }
        match self.fleet.assign(self.chooser, &self.affinity, &self.tried, reach) {
            Ok(ticket) => {
                self.has_moved = true;
                self.connect_server(ticket, wanted).await
            }
            Err(_) => Err(error),
        }
    }

    /// The addresses of one server, within one connect limit. Each gets an equal share of the time that is left, so
    /// that one that swallows packets does not use up the others' time; after three of those there is none left.
    async fn connect_server(
        &mut self,
        ticket: Ticket,
        wanted: Wanted,
    ) -> Result<(Ticket, Lease), OriginError> {
        let connect = self.fleet.settings().timeouts.connect;
        let limit = Instant::now() + connect;
        let limit = self.asked.total.map_or(limit, |total| total.min(limit));
        self.meet(&ticket);
        let mut siblings = self.fleet.siblings(&ticket, &self.tried);
        siblings.truncate(ADDRESSES_MAX - 1);
        let mut siblings = siblings.into_iter();
        let mut ticket = Some(ticket);
        let mut last_error = OriginError::NoServer;
        let mut silent = 0;
        loop {
            let next = match ticket.take() {
                Some(first) => Some(first),
                None if silent < SILENT_MAX => {
                    siblings.next().map(|sibling| self.fleet.assign_sibling(&sibling))
                }
                None => None,
            };
            let Some(mut current) = next else {
                return Err(last_error);
            };
            self.meet(&current);
            let begun = Instant::now();
            let share = share(limit.saturating_duration_since(begun), siblings.len(), silent);
            let error = match self.open(&current, wanted, begun + share).await {
                Ok(lease) => return Ok((current, lease)),
                Err(OriginError::ConnectTimeout) if self.is_over() => OriginError::TotalTimeout,
                Err(error) => error,
            };
            let is_silent = matches!(error, OriginError::ConnectTimeout);
            silent += usize::from(is_silent);
            // Where others have used most of the time up, it was not given the chance to answer.
            if !is_silent || share * 4 >= connect {
                self.blame(&mut current, &error, begun);
            }
            if error.fault() != Fault::Origin || matches!(error, OriginError::TotalTimeout) {
                return Err(error);
            }
            last_error = error;
        }
    }

    /// What an attempt has handed over is not on its way any more, where the request can be sent again or cannot be sent at all.
    fn take_back(&self, before: Option<bool>, outcome: &Result<Answered, Failed>) {
        if let (Some(progress), Some(before)) = (&self.progress, before)
            && let Err(Failed { again: Some(_), .. } | Failed { error: OriginError::BadRequest(_), .. }) =
                outcome
        {
            // Nothing was written, or a read that is now sent once more.
            progress.take_back(before);
        }
    }

    async fn open(&self, ticket: &Ticket, wanted: Wanted, deadline: Instant) -> Result<Lease, OriginError> {
        let endpoint = ticket.endpoint();
        let (pool, dial, place) = (self.pools.of(endpoint), endpoint.dial(), endpoint.place());
        if !wanted.http1 {
            return pool.open(dial, place, self.peer.clone(), deadline, wanted.since).await;
        }
        match dial.connect_http1(place, self.peer.clone(), deadline).await {
            Ok(connection) => Ok(pool.lease(connection)),
            // It serves everybody else well.
            Err(OriginError::Tls(_, error))
                if self.asked.websocket && larder_tls::speaks_nothing_offered(&error) =>
            {
                Err(OriginError::NoWebsocket)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the whole exchange has no time left.
    fn is_over(&self) -> bool {
        self.asked.total.is_some_and(|total| total <= Instant::now())
    }

    /// Tells an endpoint what it did, where it did it.
    fn blame(&self, ticket: &mut Ticket, error: &OriginError, begun: Instant) {
        let is_to_blame = match error {
            // Where most of the time was not spent here, the limit says nothing about this endpoint.
            OriginError::TotalTimeout => begun.elapsed() * 2 >= self.begun.elapsed(),
            OriginError::ConnectFailed(error) => !is_our_own(error),
            OriginError::NoServer | OriginError::Dns(_) => false,
            other => other.fault() == Fault::Origin,
        };
        if is_to_blame {
            ticket.failed();
        }
    }
}

/// An address's part of the time that is left, with so many `others` after it and so many before it that were silent.
fn share(left: Duration, others: usize, silent: usize) -> Duration {
    let parts = (others + 1).min(SILENT_MAX.saturating_sub(silent).max(1));
    left / u32::try_from(parts).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_silent_share_the_whole_connect_limit_and_are_three_at_most() {
        for (addresses, expected) in [
            (1, vec![3000]),
            (2, vec![1500, 1500]),
            (3, vec![1000, 1000, 1000]),
            (16, vec![1000, 1000, 1000]),
        ] {
            let mut left = Duration::from_secs(3);
            let mut shares = Vec::new();
            for silent in 0..addresses.min(SILENT_MAX) {
                let share = share(left, addresses - silent - 1, silent);
                left -= share;
                shares.push(share.as_millis());
            }
            assert_eq!(shares, expected, "{addresses} addresses");
        }
        // Those that refuse at once leave their part to the others.
        assert_eq!(share(Duration::from_secs(3), 4, 0), Duration::from_secs(1));
        assert_eq!(share(Duration::from_secs(3), 0, 0), Duration::from_secs(3));
    }
}
