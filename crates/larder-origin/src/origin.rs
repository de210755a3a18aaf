//! One exchange with an origin, from a typed request to a checked response.
//!
//! In: an [`OriginRequest`]. Out: an [`OriginResponse`], or an [`OriginFailure`].
//!
//! ```text
//!   build -> queue -> fleet: whom? -> reach (connect, send, final head) -> accept -> body / tunnel
//!                        ^                |
//!                        +---- retry -----+  only where configured: idempotent, content in memory, within the budget
//! ```
//!
//! Every other failure is reported, never repeated: the origin may have acted on the request. A request that is dropped
//! at any point gives back its place in the queue and says nothing about the server that it was at.
//! Deliberately absent: who is chosen (`fleet`), and what happens at the one that was (`reach`).

use std::sync::Arc;

use http::Method;
use tokio::time::Instant;

use crate::accept::accept;
use crate::answer::OriginResponse;
use crate::attempt::first_few;
use crate::error::{OriginError, OriginFailure, SetupError};
use crate::fleet::{Chooser, Fleet, Pools, Reach, Ticket};
use crate::in_flight::InFlight;
use crate::reach::{Journey, Reached};
use crate::request::{Asked, OriginRequest, Outgoing, authenticates_connection};
use crate::resources::OriginResources;
use crate::settings::{OriginSettings, Retry, ServerAddress};
use crate::state::OriginState;

/// An origin as one worker sees it. Used from that worker's runtime only; ends its idle connections when dropped.
pub struct Origin {
    fleet: Arc<Fleet>,
    resources: Arc<OriginResources>,
    pools: Arc<Pools>,
    chooser: Chooser,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("settings", self.settings()).finish_non_exhaustive()
    }
}

/// A server whose name has no address at the moment.
#[derive(Debug)]
pub struct Unresolved {
    /// The server.
    pub server: Arc<ServerAddress>,
    /// Why.
    pub error: OriginError,
}

impl Origin {
    /// Prepares `settings` for this worker; opens nothing. Workers that are handed the same settings share what is
    /// known of the servers; new settings take over from those before what is known of the servers that stay.
    ///
    /// # Errors
    /// No servers, a limit of time beyond a year, or TLS that cannot be set up.
    pub fn new(settings: Arc<OriginSettings>, state: Arc<OriginState>) -> Result<Self, SetupError> {
        let fleet = state.fleet(&settings)?;
        let pools = fleet.pools();
        Ok(Self { fleet, resources: Arc::clone(&state.resources), pools, chooser: Chooser::new() })
    }

    /// What this origin was made from.
    pub fn settings(&self) -> &Arc<OriginSettings> {
        self.fleet.settings()
    }

    /// Resolves every server's name once, for a warning at start. Takes at most ten seconds.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn probe(&self) -> Vec<Unresolved> {
        let failed = self.fleet.look_up_all().await;
        failed.into_iter().map(|(server, error)| Unresolved { server, error }).collect()
    }

    /// Whether there is no server that takes requests as usual: each is ejected for its failures, about to be tried
    /// again with one request, or unhealthy; or no name has an address. [`send`](Self::send) tries all the same.
    pub fn is_down(&self) -> bool {
        self.fleet.is_down()
    }

    /// Whether it is time for one request to find out whether a server is well again. While the origin
    /// [is down](Self::is_down), whoever can do without it waits for that moment.
    pub fn is_probe_due(&self) -> bool {
        self.fleet.is_probe_due()
    }

    /// Whether requests wait in the queue at this moment, so that what can wait should not be asked now.
    pub fn is_queueing(&self) -> bool {
        self.resources.queue.waiting() > 0
    }

    /// Looks names up again and asks servers how they are, until dropped. Run once per process and origin, on any
    /// worker; without it names are looked up once and no server is checked.
    ///
    /// # Cancel safety
    /// Dropping the future ends it.
    pub async fn tend(&self) {
        self.fleet.tend().await;
    }

    /// Sends a request and waits for the final head; the body is still to be pulled.
    ///
    /// # Errors
    /// Why there is no final head. Whatever is wrong with the body comes later, from its stream.
    ///
    /// # Cancel safety
    /// Dropping the future at any point closes its connection; it never goes back to the pool.
    pub fn send(
        &self,
        request: OriginRequest,
    ) -> impl Future<Output = Result<Box<OriginResponse>, OriginFailure>> + Send {
        // Boxed: the future is large, lives inside others, and a request to the origin is rare beside a hit. Made before it is waited
        // for, or the request would be copied into one more future.
        let exchange = Box::pin(self.exchange(request));
        async move {
            let outcome = exchange.await;
            if let Err(error) = &outcome {
                self.resources.counters.failed(error);
            }
            outcome
        }
    }

    async fn exchange(&self, request: OriginRequest) -> Result<Box<OriginResponse>, OriginFailure> {
        let mut in_flight = InFlight::begin(&self.resources.counters);
        let settings = self.fleet.settings();
        let begun = Instant::now();
        let total = settings.timeouts.total.map(|total| begun + total);
        let OriginRequest {
            method,
            target,
            authority,
            fields,
            body,
            trailers,
            websocket,
            interims,
            affinity,
            peer,
            progress,
            received,
        } = request;
        in_flight.count_at(received);
        let unsent = |error| OriginFailure::before_all(error, begun.elapsed());
        let authenticates_connection = authenticates_connection(&fields);
        let outgoing =
            Outgoing::new(method.clone(), &target, &authority, fields, body, (websocket, &trailers));
        let mut outgoing = outgoing.map_err(unsent)?;
        let asked = Asked { method, websocket, total, authenticates_connection };

        let queue = &self.resources.queue;
        let seat = queue.enter(&settings.in_flight, self.fleet.number(), total).await;
        in_flight.sit(seat.map_err(unsent)?);
        let ready = self.fleet.ready();
        let ready = match total {
            None => ready.await,
            Some(total) => {
                tokio::time::timeout_at(total, ready).await.unwrap_or(Err(OriginError::TotalTimeout))
            }
        };
        ready.map_err(unsent)?;

        if let Some(progress) = &progress {
            progress.sit();
        }
        let mut journey = Journey {
            fleet: &self.fleet,
            pools: &self.pools,
            chooser: &self.chooser,
            asked: &asked,
            affinity,
            interims: interims.map(first_few),
            peer,
            progress,
            begun,
            queued: begun.elapsed(),
            attempts: 0,
            server: None,
            tried: Vec::new(),
            has_moved: false,
        };
        let first = self.fleet.assign(&self.chooser, &affinity, &[], Reach::Anybody);
        let mut ticket = first.map_err(unsent)?;
        let retry = settings.retry.as_ref().filter(|_| is_idempotent(&asked.method) && !websocket);
        if let Some(retry) = &settings.retry {
            self.resources.budget.earn(retry.budget_percent);
        }
        let mut retries = retry.map_or(0, |retry| retry.servers);
        // An answer that another server is to better. Where none does, it is one all the same.
        let mut fallback = None;
        let reached = loop {
            let spare = if retries > 0 { outgoing.replay() } else { None };
            let mut outcome = journey.reach(ticket, outgoing).await;
            let is_bad_status = note_status(settings.retry.as_ref(), &mut outcome);
            let wants_another = is_bad_status || matches!(&outcome, Err(error) if is_covered(retry, error));
            let other = match (retry, spare) {
                (Some(retry), Some(spare)) if wants_another => {
                    self.elsewhere(&journey, retry).map(|ticket| (ticket, spare))
                }
                _ => None,
            };
            match (other, outcome) {
                (None, Ok(reached)) => break reached,
                // Its content could not be read either.
                (None, Err(error @ OriginError::TotalTimeout)) => return Err(journey.failed(error)),
                (None, Err(error)) => break fallback.ok_or_else(|| journey.failed(error))?,
                (Some((elsewhere, spare)), outcome) => {
                    fallback = outcome.ok().or(fallback);
                    retries -= 1;
                    (ticket, outgoing) = (elsewhere, spare);
                }
            }
        };
        accept(reached, &asked, settings, in_flight).await.map_err(|error| journey.failed(error))
    }

    /// Another server for a request that failed, where there is one that can be asked and the budget allows it.
    fn elsewhere(&self, journey: &Journey<'_>, retry: &Retry) -> Option<Ticket> {
        if !self.fleet.has_other(&journey.tried) {
            return None;
        }
        // Before a server is chosen: what is not sent must not count as its request, nor use up its turn.
        let budget = &self.resources.budget;
        if !budget.spend(retry.budget_percent) {
            self.resources.counters.retry_refused();
            return None;
        }
        let found = self.fleet.assign(&self.chooser, &journey.affinity, &journey.tried, Reach::Available);
        match found {
            Ok(_) => self.resources.counters.retried_elsewhere(),
            Err(_) => budget.give_back(),
        }
        found.ok()
    }
}

/// Whether the answer's status is one that counts as a failure; its server is told.
fn note_status(retry: Option<&Retry>, outcome: &mut Result<Reached, OriginError>) -> bool {
    let (Some(retry), Ok(reached)) = (retry, outcome) else {
        return false;
    };
    let is_bad = retry.statuses.contains(&reached.answered.response.status().as_u16());
    if is_bad {
        reached.ticket.failed();
    }
    is_bad
}

/// Whether this failure is one after which another server may be asked.
fn is_covered(retry: Option<&Retry>, error: &OriginError) -> bool {
    let Some(retry) = retry else { return false };
    match error {
        OriginError::ConnectRefused
        | OriginError::ConnectTimeout
        | OriginError::ConnectFailed(_)
        | OriginError::Tls(..)
        | OriginError::Closed => retry.on_error,
        OriginError::FirstByteTimeout => retry.on_timeout,
        _ => false,
    }
}

/// RFC 9110 9.2.2; QUERY is safe and so idempotent too.
fn is_idempotent(method: &Method) -> bool {
    method.is_idempotent() || method.as_str() == "QUERY"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a handshake in it, it once took 7936 bytes, which each request copied.
    const EXCHANGE_BYTES_MAX: usize = 6144;

    fn size_of_future<'a, F: Future>(_: impl FnOnce(&'a Origin, OriginRequest) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_exchange_is_small_when_it_begins() {
        let bytes = size_of_future(Origin::exchange);
        assert!(bytes <= EXCHANGE_BYTES_MAX, "{bytes}");
    }
}
