//! The stream of the live view, kept open for as long as the screen is.
//!
//! In: what is to come over it, which may change. Out: what comes, and when the connection is lost and there again, over a queue with a bound: a screen that is
//! busy makes larder wait, and larder then leaves requests out. An outage lasts as long as it lasts; the waits in it grow to 2 s.

use std::time::Duration;

use http::StatusCode;
use tokio::sync::{mpsc, watch};

use super::asks::TopAnswer;
use super::state::TopFed;
use crate::cli::admin::{AdminClientError, RunningLarder};
use crate::cli::log::view::{LiveConnection, Lost, passes};
use crate::cli::output::chain;

/// Figures of a thousand rules in one line.
const TICK_BYTES_MAX: usize = 2 * 1024 * 1024;
const WAIT_MIN: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What follows an attempt.
enum Follow {
    /// Another one, after a wait that grows.
    Wait,
    /// Another one at once, with what is to come now.
    Again,
    /// Nothing: there is no such stream, or the screen is closed.
    End,
}

/// Keeps the stream open until the screen is closed.
pub(super) async fn keep_fed(
    larder: RunningLarder,
    mut wanted: watch::Receiver<String>,
    fed: mpsc::Sender<TopFed>,
) {
    let mut wait = WAIT_MIN;
    loop {
        let target = wanted.borrow_and_update().clone();
        match opened(&larder, &target, &mut wanted, &fed, &mut wait).await {
            Follow::Again => {}
            Follow::End => return,
            Follow::Wait => {
                tokio::time::sleep(wait).await;
                wait = wait.saturating_mul(2).min(WAIT_MAX);
            }
        }
    }
}

/// One connection, from its beginning to its end.
async fn opened(
    larder: &RunningLarder,
    target: &str,
    wanted: &mut watch::Receiver<String>,
    fed: &mpsc::Sender<TopFed>,
    wait: &mut Duration,
) -> Follow {
    let mut connection = match LiveConnection::open(larder, target, TICK_BYTES_MAX).await {
        Ok(connection) => connection,
        Err(error) => return refused(error, wanted, fed).await,
    };
    if fed.send(TopFed::Connected).await.is_err() {
        return Follow::End;
    }
    *wait = WAIT_MIN;
    loop {
        let next = tokio::select! {
            changed = wanted.changed() => return if changed.is_ok() { Follow::Again } else { Follow::End },
            next = connection.next() => next,
        };
        let lost = match next {
            Ok(blocks) => {
                for block in blocks {
                    if fed.send(TopFed::Block(block)).await.is_err() {
                        return Follow::End;
                    }
                }
                continue;
            }
            Err(Lost::Connection(None)) => "the connection has ended".to_owned(),
            Err(Lost::Connection(Some(error))) => chain(&error),
            Err(Lost::Broken(_)) => "what comes is no stream of figures".to_owned(),
        };
        return match fed.send(TopFed::Lost(lost)).await {
            Ok(()) => Follow::Wait,
            Err(_) => Follow::End,
        };
    }
}

/// There is no stream.
async fn refused(
    error: AdminClientError,
    wanted: &mut watch::Receiver<String>,
    fed: &mpsc::Sender<TopFed>,
) -> Follow {
    let (said, follow) = match error {
        error if passes(&error) => (TopFed::Lost(chain(&error)), Follow::Wait),
        AdminClientError::TokenWanted(_) | AdminClientError::TokenWrong(_) => {
            (TopFed::Answer(TopAnswer::Refused(error)), Follow::End)
        }
        AdminClientError::NoLarder(_, _, StatusCode::NOT_FOUND) => (TopFed::Absent, Follow::End),
        AdminClientError::Refused(StatusCode::BAD_REQUEST, why) => {
            // Without a filter it is the figures that it does not know.
            let is_filter =
                wanted.borrow().contains("&requests=") && !wanted.borrow().ends_with("&requests=");
            if !is_filter {
                (TopFed::Absent, Follow::End)
            } else {
                // The screen leaves the filter out then.
                if fed.send(TopFed::Refused(why)).await.is_err() || wanted.changed().await.is_err() {
                    return Follow::End;
                }
                return Follow::Again;
            }
        }
        error => (TopFed::Lost(chain(&error)), Follow::Wait),
    };
    if fed.send(said).await.is_err() { Follow::End } else { follow }
}
