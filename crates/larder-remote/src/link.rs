//! The one connection of a worker to a server.
//!
//! In: requests of any callers on this worker. Out: their replies. A task of its own has the connection. It is started by the first
//! request, connects when something is asked, and then hands requests on as they come.
//! At most 1024 replies are outstanding; beyond that a look-up is a miss (`busy`).
//! The task alone decides how long a connection lives. A caller that leaves drops its end of a channel, and nothing else happens.
//!
//! ```text
//!   not connected --request, breaker closed--> connecting --first reply--> conversing --closed--> not connected
//!         ^                                        | failed: the breaker opens          \-- a failure for the breaker
//!         +----------------------------------------+
//! ```

use std::sync::{Arc, OnceLock};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::ask::{Answer, Ask, OUTSTANDING_MAX};
use crate::deadline::Limits;
use crate::error::Failure;
use crate::protocol::Dialer;
use crate::request::Request;
use crate::server::Server;

/// The way to one server. Dropping it ends the task when the last reply has come.
#[derive(Debug)]
pub(crate) struct Link {
    server: Arc<Server>,
    dialer: Arc<Dialer>,
    limits: Limits,
    room: Arc<Semaphore>,
    /// The task's, from the first request on: before that there may be no runtime.
    asks: OnceLock<UnboundedSender<Ask>>,
}

impl Link {
    pub(crate) fn new(server: Arc<Server>, dialer: Arc<Dialer>, limits: Limits) -> Self {
        let room = Arc::new(Semaphore::new(OUTSTANDING_MAX));
        Self { server, dialer, limits, room, asks: OnceLock::new() }
    }

    /// Puts a request behind all that were begun before. Its reply comes as long as the limits say, and then there is none. To be
    /// called on a runtime. Whoever drops the receiver drops the reply when it comes, and nothing else.
    ///
    /// # Errors
    /// The server is not asked.
    pub(crate) fn begin(&self, request: Request) -> Result<oneshot::Receiver<Answer>, Failure> {
        if !self.server.may_ask() {
            return Err(Failure::Skipped);
        }
        let Ok(seat) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(Failure::Busy);
        };
        let (reply, answer) = oneshot::channel();
        let deadline = self.limits.from(Instant::now());
        let asks = self.asks.get_or_init(|| self.start());
        // Where the task is gone, so is the runtime; both ends fail alike.
        let _ = asks.send(Ask { request, deadline, reply, seat });
        Ok(answer)
    }

    /// Asks, and waits for the reply.
    ///
    /// # Errors
    /// There is no reply, for this reason.
    ///
    /// # Cancel safety
    /// As for [`Link::begin`], which the first poll calls.
    pub(crate) async fn ask(&self, request: Request) -> Answer {
        reply_of(self.begin(request)).await
    }

    fn start(&self) -> UnboundedSender<Ask> {
        // Bounded by the places in `room`.
        let (asks, taken) = unbounded_channel();
        tokio::spawn(run(Arc::clone(&self.server), Arc::clone(&self.dialer), self.limits, taken));
        asks
    }
}

/// Waits for the reply to a request that was begun.
pub(crate) async fn reply_of(begun: Result<oneshot::Receiver<Answer>, Failure>) -> Answer {
    // Without a sender the task is gone.
    begun?.await.unwrap_or(Err(Failure::Closed))
}

/// Connects whenever something is asked.
async fn run(server: Arc<Server>, dialer: Arc<Dialer>, limits: Limits, mut asks: UnboundedReceiver<Ask>) {
    while let Some(first) = asks.recv().await {
        if !server.may_ask() {
            first.fail(Failure::Skipped);
            continue;
        }
        match timeout_at(Instant::now() + limits.answer(), dialer.open()).await {
            Ok(Ok(session)) => {
                let _open = server.connected();
                session.converse(&server, first, &mut asks).await;
            }
            Ok(Err(error)) => fail_all(&server, first, &mut asks, &error.to_string()),
            Err(_) => fail_all(&server, first, &mut asks, "no reply came in time"),
        }
    }
}

fn fail_all(server: &Server, first: Ask, asks: &mut UnboundedReceiver<Ask>, why: &str) {
    server.connect_failed(why);
    first.fail(Failure::Connect);
    while let Ok(ask) = asks.try_recv() {
        ask.fail(Failure::Connect);
    }
}
