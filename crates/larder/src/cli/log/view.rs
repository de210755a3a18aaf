//! The live view of a running larder, kept open: one connection after another, until it is not worth while any more.
//!
//! In: which larder, and what to ask it for. Out: what comes, in pieces. A connection that ends after it has worked is an outage: it
//! is said once, and larder is asked again after a wait that grows, until an answer comes or a minute has passed. Where the first
//! connection fails already, or larder refuses, there is nothing to wait for.

use std::time::{Duration, Instant};

use http::StatusCode;

use super::stream::{STREAM_LINE_BYTES_MAX, StreamBlock, StreamReader};
use crate::cli::admin::{AdminClientError, RunningLarder};
use crate::cli::ended::Ended;
use crate::cli::output::{printable, say};

pub(super) const WHAT: &str = "shows what happens now";

const WAIT_MIN: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How long an outage may last.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

/// A view, with the connection that it has now.
pub(in crate::cli) struct LiveView {
    larder: RunningLarder,
    /// What is asked for when the first connection is lost.
    again: String,
    connection: LiveConnection,
    outage: Option<Outage>,
}

/// One connection to the live view, as long as it lasts.
pub(in crate::cli) struct LiveConnection {
    answer: crate::cli::admin::Answer,
    reader: StreamReader,
}

/// Why nothing more comes over a connection.
pub(in crate::cli) enum Lost {
    /// It ended, with an error or without.
    Connection(Option<AdminClientError>),
    /// What came cannot be read.
    Broken(Ended),
}

impl LiveView {
    /// Opens it with `first`, and after each outage with `again`.
    ///
    /// # Errors
    /// The first connection fails.
    pub(in crate::cli) async fn open(
        larder: RunningLarder,
        first: &str,
        again: String,
    ) -> Result<Self, Ended> {
        let connection = LiveConnection::open(&larder, first, STREAM_LINE_BYTES_MAX).await.map_err(ended)?;
        Ok(Self { larder, again, connection, outage: None })
    }

    /// What comes next. It may be nothing but a sign of life.
    ///
    /// # Errors
    /// An outage was too long, larder refuses, or what it says cannot be read.
    pub(in crate::cli) async fn next(&mut self) -> Result<Vec<StreamBlock>, Ended> {
        loop {
            match self.connection.next().await {
                Ok(blocks) => {
                    self.outage = None;
                    return Ok(blocks);
                }
                Err(Lost::Broken(ended)) => return Err(ended),
                Err(Lost::Connection(error)) => self.open_again(error).await?,
            }
        }
    }

    /// Gives the connection up for a new one. `why` is said.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(in crate::cli) async fn give_up(&mut self, why: &str) -> Result<(), Ended> {
        say(format_args!("larder: {why}: connecting again"));
        self.outage = Some(Outage::begun(Instant::now()));
        self.open_again(None).await
    }

    async fn open_again(&mut self, error: Option<AdminClientError>) -> Result<(), Ended> {
        let address = self.larder.address();
        let outage = self.outage.get_or_insert_with(|| {
            let address = printable(address);
            say(format_args!("larder: the connection to {address} has ended: connecting again"));
            Outage::begun(Instant::now())
        });
        let mut last = error;
        while let Some(wait) = outage.wait(Instant::now()) {
            tokio::time::sleep(wait).await;
            match LiveConnection::open(&self.larder, &self.again, STREAM_LINE_BYTES_MAX).await {
                Ok(connection) => {
                    self.connection = connection;
                    return Ok(());
                }
                Err(error) if passes(&error) => last = Some(error),
                Err(error) => return Err(ended(error)),
            }
        }
        let silent = || AdminClientError::Exchange(address.to_owned(), "it ends each time".into());
        Err(Ended::Asking(last.unwrap_or_else(silent)))
    }
}

impl LiveConnection {
    /// Opens it. Its blocks have at most so many bytes.
    ///
    /// # Errors
    /// No larder answers, or not with the stream.
    pub(in crate::cli) async fn open(
        larder: &RunningLarder,
        target: &str,
        bytes_max: usize,
    ) -> Result<Self, AdminClientError> {
        let answer = larder.ask_for_events(target, WHAT).await?;
        Ok(Self { answer, reader: StreamReader::new(bytes_max) })
    }

    /// The blocks that are complete with the next bytes.
    ///
    /// # Errors
    /// Nothing more comes.
    pub(in crate::cli) async fn next(&mut self) -> Result<Vec<StreamBlock>, Lost> {
        let mut blocks = Vec::new();
        loop {
            match self.reader.next() {
                Ok(Some(block)) => blocks.push(block),
                Err(_) if !blocks.is_empty() => return Ok(blocks),
                Err(error) => return Err(Lost::Broken(self.answer.broke(error).into())),
                Ok(None) if !blocks.is_empty() => return Ok(blocks),
                Ok(None) => break,
            }
        }
        let bytes = self.answer.next().await.map_err(|error| Lost::Connection(Some(error)))?;
        self.reader.push(bytes.ok_or(Lost::Connection(None))?);
        Ok(blocks)
    }
}

/// The time without a connection.
struct Outage {
    began: Instant,
    /// Before the next attempt.
    wait: Duration,
}

impl Outage {
    const fn begun(now: Instant) -> Self {
        Self { began: now, wait: WAIT_MIN }
    }

    /// How long to wait before the next attempt; `None` to give up.
    fn wait(&mut self, now: Instant) -> Option<Duration> {
        let doubled = self.wait.saturating_mul(2).min(WAIT_MAX);
        let wait = std::mem::replace(&mut self.wait, doubled);
        (now.saturating_duration_since(self.began) < OUTAGE_MAX).then_some(wait)
    }
}

/// Whether it may be otherwise in a moment: larder is started anew, or has not noticed yet that the last connection is gone.
pub(in crate::cli) const fn passes(error: &AdminClientError) -> bool {
    matches!(
        error,
        AdminClientError::NotRunning(..)
            | AdminClientError::Exchange(..)
            | AdminClientError::Time(..)
            | AdminClientError::Refused(StatusCode::SERVICE_UNAVAILABLE, _)
    )
}

fn ended(error: AdminClientError) -> Ended {
    match error {
        AdminClientError::NoLarder(_, _, StatusCode::NOT_FOUND)
        | AdminClientError::Refused(StatusCode::NOT_FOUND, _) => Ended::NoLiveView,
        error => Ended::Asking(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_of_an_outage_grow_and_come_to_an_end() {
        let began = Instant::now();
        let (mut outage, mut waits, mut now) = (Outage::begun(began), Vec::new(), began);
        while let Some(wait) = outage.wait(now) {
            now += wait;
            waits.push(wait.as_millis());
            assert!(waits.len() < 100, "no end");
        }
        assert_eq!(waits.get(..5), Some(&[200, 400, 800, 1600, 2000][..]));
        assert_eq!(waits.last(), Some(&2000));
        assert!(now - began >= OUTAGE_MAX && now - began < OUTAGE_MAX + WAIT_MAX);
    }

    #[test]
    fn what_will_not_change_ends_the_command() {
        let refused = |status: u16| {
            AdminClientError::Refused(StatusCode::from_u16(status).unwrap_or_default(), String::new())
        };
        assert!(passes(&refused(503)) && passes(&AdminClientError::Time("a".to_owned(), WAIT_MAX)));
        assert!(!passes(&refused(400)) && !passes(&AdminClientError::TokenWrong("a".to_owned())));
        assert!(matches!(ended(refused(404)), Ended::NoLiveView));
        assert!(matches!(ended(refused(400)), Ended::Asking(_)));
    }
}
