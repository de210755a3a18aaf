//! A connection to Redis, from its first request to its end.
//!
//! In: requests of any callers on this worker. Out: their replies. One task polls it all: the library, which writes requests as they come and
//! gives each reply to the oldest request; and one exchange for each request. Callers wait at a channel and at nothing of the
//! library's. So none of them can take a request back whose reply would be another's then.
//! The connection is closed when a reply is five times as late as its caller waits, and when a value is announced that is too large.
//! So it is when replies are none of their request, were not asked for, or are none at all.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::exchange::exchange;
use super::login::LoggedIn;
use crate::ask::Ask;
use crate::error::Failure;
use crate::server::Server;

/// A request whose replies have not come, up to whether the connection may go on.
type Exchange<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// See the head of the file.
pub(crate) struct Multiplexed(LoggedIn);

impl Multiplexed {
    pub(crate) fn new(opened: LoggedIn) -> Self {
        Self(opened)
    }

    /// Ends with the connection, or when nobody can ask any more.
    pub(crate) async fn run(self, server: &Server, first: Ask, asks: &mut UnboundedReceiver<Ask>) {
        let LoggedIn { connection, mut driver, account, .. } = self.0;
        let mut exchanges = FuturesUnordered::new();
        let begin = |ask: Ask| exchange(server, connection.clone(), Arc::clone(&account), ask);
        let mut ended = put(server, &mut exchanges, first, begin).await;
        let mut may_be_asked = true;
        while ended.is_ok() && (may_be_asked || !exchanges.is_empty()) {
            tokio::select! {
                biased;
                Some(over) = exchanges.next(), if !exchanges.is_empty() => ended = over,
                () = &mut driver => {
                    // One that restarts closes what is not in use.
                    if !exchanges.is_empty() {
                        server.broke(account.failure());
                    }
                    // Replies that have come are handed on, and all others are told. None of them waits any more.
                    drop(driver);
                    while exchanges.next().await.is_some() {}
                    return;
                }
                ask = asks.recv(), if may_be_asked => match ask {
                    Some(ask) => ended = put(server, &mut exchanges, ask, begin).await,
                    None => may_be_asked = false,
                },
            }
        }
        let Err(failure) = ended else { return };
        account.end(failure);
        server.broke(failure);
        drop(driver);
        // Where one reply was none of its request, those that have come for others may be another's as well: their callers
        // learn that the connection was closed.
        if failure != Failure::Malformed {
            while exchanges.next().await.is_some() {}
        }
    }
}

/// Hands a request over behind those from before.
async fn put<'a, F>(
    server: &Server,
    exchanges: &mut FuturesUnordered<Exchange<'a>>,
    ask: Ask,
    begin: impl Fn(Ask) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'a,
{
    // It may have waited for the connection.
    if ask.deadline.answer_by <= Instant::now() {
        server.timed_out(1);
        ask.fail(Failure::TimedOut);
        return Ok(());
    }
    let mut exchange: Exchange<'a> = Box::pin(begin(ask));
    match poll_fn(|context| Poll::Ready(exchange.as_mut().poll(context))).await {
        Poll::Ready(ended) => ended,
        Poll::Pending => {
            exchanges.push(exchange);
            Ok(())
        }
    }
}
