//! One exchange with an origin, from a typed request to a checked response.
//!
//! In: an [`OriginRequest`]. Out: an [`OriginResponse`], or an [`OriginError`].
//!
//! ```text
//!   build -> kept connection? --yes--> send --+--> head --> check --> body / tunnel
//!                |                     |      |
//!                no -> connect -> send-+      +--> 1xx to the sink
//!                        ^             |
//!                        +---- once ---+  nothing was written, or GET/HEAD without a body on a used
//!                                         connection that closed before one byte of answer (RFC 9110 9.2.2)
//! ```
//!
//! Every other failure is reported, never repeated: the origin may have acted on the request.
//! Deliberately absent: choosing a server by load or health; servers take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::response::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use larder_http::body::Body;
use larder_http::message::Tunnel;
use tokio::time::Instant;

use crate::answer::{self, OriginResponse, Timing};
use crate::attempt::{Answered, Failed, attempt};
use crate::connect::Server;
use crate::download::{Download, Hold};
use crate::error::{OriginError, SetupError};
use crate::metrics::{InFlight, Shared};
use crate::pool::Lease;
use crate::request::{OriginRequest, Outgoing};
use crate::settings::{OriginSettings, ServerAddress};
use crate::tunnel::TunnelStream;

/// An origin as one worker sees it. Used from that worker's runtime only; ends its idle connections when dropped.
pub struct Origin {
    settings: Arc<OriginSettings>,
    shared: Arc<Shared>,
    servers: Vec<Server>,
    turn: AtomicUsize,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("settings", &self.settings).finish_non_exhaustive()
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
    /// Prepares `settings` for this worker; opens nothing.
    ///
    /// # Errors
    /// No servers, a limit of time beyond a year, or TLS that cannot be set up.
    pub fn new(settings: Arc<OriginSettings>, shared: Arc<Shared>) -> Result<Self, SetupError> {
        let servers: Result<Vec<_>, _> =
            settings.servers.iter().map(|address| Server::new(address, &settings, &shared)).collect();
        let servers = servers?;
        if servers.is_empty() {
            return Err(SetupError::NoServers);
        }
        settings.check_times()?;
        Ok(Self { settings, shared, servers, turn: AtomicUsize::new(0) })
    }

    /// What this origin was made from.
    pub fn settings(&self) -> &Arc<OriginSettings> {
        &self.settings
    }

    /// Resolves every server's name once, for a warning at start. Takes at most the connect limit per server.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn probe(&self) -> Vec<Unresolved> {
        let mut unresolved = Vec::new();
        for server in &self.servers {
            if let Err(error) = server.resolve(&self.settings).await {
                unresolved.push(Unresolved { server: server.address.clone(), error });
            }
        }
        unresolved
    }

    /// Sends a request and waits for the final head; the body is still to be pulled.
    ///
    /// # Errors
    /// Why there is no final head. Whatever is wrong with the body comes later, from its stream.
    ///
    /// # Cancel safety
    /// Dropping the future at any point closes its connection; it never goes back to the pool.
    pub async fn send(&self, request: OriginRequest) -> Result<OriginResponse, OriginError> {
        let in_flight = self.shared.begin();
        // Boxed: the future is large, lives inside others, and a request to the origin is rare beside a hit.
        let outcome = Box::pin(self.exchange(request, in_flight)).await;
        if let Err(error) = &outcome {
            self.shared.metrics.failed(error);
        }
        outcome
    }

    async fn exchange(
        &self,
        request: OriginRequest,
        in_flight: InFlight,
    ) -> Result<OriginResponse, OriginError> {
        let OriginRequest { method, target, authority, fields, body, websocket, interims } = request;
        let outgoing = Outgoing::new(method.clone(), &target, &authority, fields, body, websocket)?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let server = self.server(turn)?;

        let mut begun = Instant::now();
        let mut connect = None;
        let kept = match server.pool.take() {
            Some(lease) => {
                self.shared.metrics.reused();
                attempt(lease, outgoing, interims.as_ref(), &self.settings).await
            }
            None => Err(Failed { error: OriginError::Closed, again: Some(outgoing) }),
        };
        let (server, answered) = match kept {
            Ok(answered) => (server, answered),
            Err(Failed { error, again: None }) => return Err(error),
            Err(Failed { again: Some(outgoing), .. }) => {
                let (server, lease) = self.connect(turn).await?;
                connect = Some(begun.elapsed());
                begun = Instant::now();
                // A new connection is the second attempt, or as good as one: nothing is repeated after it.
                let outcome = attempt(lease, outgoing, interims.as_ref(), &self.settings).await;
                (server, outcome.map_err(|failed| failed.error)?)
            }
        };
        let timing = Timing { connect, first_byte: begun.elapsed() };
        self.accept(server, answered, &method, websocket, in_flight, timing).await
    }

    fn server(&self, turn: usize) -> Result<&Server, OriginError> {
        let index = turn.checked_rem(self.servers.len()).unwrap_or(0);
        // `new` refuses an origin without servers; an error costs nothing and cannot panic.
        self.servers.get(index).ok_or(OriginError::ConnectRefused)
    }

    /// Opens a connection to the server whose turn it is; if that fails, to the next one, once. Nothing has been
    /// sent by then, so this repeats nothing.
    async fn connect(&self, turn: usize) -> Result<(&Server, Lease), OriginError> {
        let mut server = self.server(turn)?;
        let mut outcome = server.connect(&self.settings, &self.shared).await;
        if outcome.is_err() && self.servers.len() > 1 {
            server = self.server(turn.wrapping_add(1))?;
            outcome = server.connect(&self.settings, &self.shared).await;
        }
        Ok((server, server.pool.lease(outcome?)))
    }

    /// Checks the final head and makes a response of it.
    async fn accept(
        &self,
        server: &Server,
        answered: Answered,
        method: &Method,
        websocket: bool,
        in_flight: InFlight,
        timing: Timing,
    ) -> Result<OriginResponse, OriginError> {
        let Answered { lease, response, is_upload_complete } = answered;
        let reused = lease.is_reused;
        let server = server.address.clone();
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (status, fields, tunnel) = self.switch(lease, response, websocket, in_flight).await?;
            let tunnel = Some(tunnel);
            let (content_length, body) = (None, Body::Empty);
            return Ok(OriginResponse {
                status,
                fields,
                content_length,
                body,
                tunnel,
                server,
                reused,
                timing,
            });
        }
        let (mut parts, incoming) = response.into_parts();
        let framing = answer::check(&parts, method, &self.settings.head)?;
        let limit = match is_event_stream(&parts) {
            true => self.settings.timeouts.event_stream,
            false => self.settings.timeouts.between_bytes,
        };
        answer::strip(&mut parts.headers);
        let is_reusable = framing.is_reusable && is_upload_complete;
        let hold = Hold { lease, is_reusable, _in_flight: in_flight };
        let body = if incoming.is_end_stream() {
            hold.finish();
            Body::Empty
        } else {
            let length = incoming.size_hint().exact();
            Body::Stream { length, stream: Box::pin(Download::new(incoming, hold, limit)) }
        };
        Ok(OriginResponse {
            status: parts.status,
            fields: parts.headers,
            content_length: framing.content_length,
            body,
            tunnel: None,
            server,
            reused,
            timing,
        })
    }

    /// Takes the connection out of HTTP, if that is what was asked and granted.
    async fn switch(
        &self,
        lease: Lease,
        mut response: Response<Incoming>,
        websocket: bool,
        in_flight: InFlight,
    ) -> Result<(StatusCode, http::HeaderMap, Tunnel), OriginError> {
        let upgrade = hyper::upgrade::on(&mut response);
        let (mut parts, _) = response.into_parts();
        if !websocket || !answer::grants_websocket(&mut parts) {
            return Err(OriginError::UnexpectedUpgrade);
        }
        lease.connection.trace.become_tunnel();
        let upgraded = tokio::time::timeout(self.settings.timeouts.connect, upgrade)
            .await
            .map_err(|_| OriginError::Closed)?
            .map_err(|_| OriginError::Closed)?;
        answer::strip(&mut parts.headers);
        // The stream now owns the socket; hyper's task has ended, and the lease with nothing left to close.
        let stream = TunnelStream::new(upgraded, in_flight);
        Ok((parts.status, parts.headers, Tunnel(Box::new(stream))))
    }
}

fn is_event_stream(parts: &Parts) -> bool {
    parts
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.as_bytes().split(|b| *b == b';').next())
        .is_some_and(|media_type| media_type.trim_ascii().eq_ignore_ascii_case(b"text/event-stream"))
}
