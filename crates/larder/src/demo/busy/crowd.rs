//! The visitors of the busy demo: keep-alive connections that ask at a rate of their own, whatever the answers are.
//!
//! In: larder's address and a [`Tide`]. Out: requests, until the crowd is dropped. Arrivals are random and come from a fixed seed. A visitor
//! whose answer is late asks the next one at once, but never makes up for more than a second.
//! Deliberately absent: a judgement of answers. This shop fails now and then, and larder's own figures show it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Empty};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::connection::ClientConnection;
use super::super::load::LoadError;
use super::chance::Chance;
use super::tide::Tide;
use super::visits::{ShopRequest, Tastes};

/// How long a visitor waits for a whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// How much of the time that was lost by waiting is made up for.
const LATE_MAX: Duration = Duration::from_secs(1);
/// Requests per second of one visitor, as far as there are visitors enough.
const RATE_OF_ONE: u32 = 5;
/// How many visitors there are at least and at most.
const VISITORS: (u32, u32) = (8, 400);

/// What a crowd does.
#[derive(Clone)]
pub(super) struct Crowd {
    address: SocketAddr,
    tide: Tide,
    visitors: u32,
    tastes: Arc<Tastes>,
    answers: Arc<AtomicU64>,
    began: Instant,
}

impl Crowd {
    /// One that asks larder at `address`, around `rate` times a second.
    pub(super) fn new(address: SocketAddr, rate: u32) -> Self {
        let (least, most) = VISITORS;
        Self {
            address,
            tide: Tide::new(rate),
            visitors: (rate / RATE_OF_ONE).clamp(least, most),
            tastes: Arc::new(Tastes::new()),
            answers: Arc::new(AtomicU64::new(0)),
            began: Instant::now(),
        }
    }

    /// Whole answers so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Asks until it is dropped. Needs a runtime.
    ///
    /// # Errors
    /// No connection comes about; nothing else ends it.
    ///
    /// # Cancel safety
    /// Dropping it ends every visitor.
    pub(super) async fn visit(&self) -> LoadError {
        let mut visitors = JoinSet::new();
        for number in 0..self.visitors {
            visitors.spawn(self.clone().ask(Chance::new(number.into())));
        }
        match visitors.join_next().await {
            Some(Ok(error)) => error,
            Some(Err(error)) => error.into(),
            None => std::future::pending().await,
        }
    }

    /// One visitor.
    async fn ask(self, mut chance: Chance) -> LoadError {
        let (mut due, mut kept) = (Instant::now(), None);
        loop {
            let rate = self.tide.rate(self.began.elapsed()) / f64::from(self.visitors);
            due = (due + chance.gap(rate)).max(Instant::now() - LATE_MAX);
            sleep_until(due).await;
            let request = self.tastes.request(&mut chance);
            let connection = match kept.take() {
                Some(connection) => connection,
                None => match ClientConnection::open(self.address).await {
                    Ok(connection) => connection,
                    Err(error) => return error,
                },
            };
            // A connection that broke, or whose answer did not come, is replaced by a new one.
            kept = timeout(ANSWER_TIME, self.exchange(connection, &request)).await.ok().and_then(Result::ok);
            if kept.is_some() {
                self.answers.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// One request and all of its answer. Gives back the connection.
    async fn exchange(
        &self,
        mut connection: ClientConnection,
        request: &ShopRequest,
    ) -> Result<ClientConnection, LoadError> {
        let host = request.host.map_or_else(|| self.address.to_string(), str::to_owned);
        let request = Request::builder()
            .method(request.method.clone())
            .uri(&request.target)
            .header(HOST, host)
            .header(USER_AGENT, &request.user_agent)
            .body(Empty::<Bytes>::new())?;
        connection.sender.ready().await?;
        let mut response = connection.sender.send_request(request).await?;
        while let Some(frame) = response.frame().await {
            frame?;
        }
        Ok(connection)
    }
}
