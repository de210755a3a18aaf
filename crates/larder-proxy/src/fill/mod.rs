//! From the origin's stream into a growing body.
//!
//! In: a stream and a [`Growing`] that has room. Out: the whole body, or nothing when it broke, outgrew its room, or
//! nobody was left. While everything is kept this runs at the origin's pace, clients or none; once it passes through a
//! window, the slowest reader sets the pace. A part that is stored already goes in front or behind ([`mod@completed`]).

mod completed;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::poll_immediate;
use larder_http::body::{Body, BodyError, Stream};
use larder_store::{Growing, PushError, StoredBody};

pub(crate) use completed::completed;

/// How often a fill that waits for the origin looks whether anybody is left.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A fill lets others run after so many bytes, where nothing else makes it wait.
const YIELD_AFTER_BYTES: usize = 512 * 1024;

/// How a fill ended.
#[derive(Debug)]
pub(crate) enum Filled {
    /// All of it was kept and committed.
    Kept,
    /// It went by; nothing is kept.
    Passed,
    /// The origin's body broke; readers have been cut.
    Broken(BodyError),
    /// Nobody was left for too long, or nobody at all while passing.
    Abandoned,
}

/// What a fill has to know and to tell.
pub(crate) struct Around<W, P> {
    /// Clients that are about to read.
    pub(crate) waiters: W,
    /// Called when nobody new may join any more.
    pub(crate) passing: P,
    /// How long it goes on with neither readers nor waiters.
    pub(crate) orphan_time: Duration,
}

/// Fills `growing` from `body`. `commit` gets the whole body, where all of it was kept, before any reader sees its end.
///
/// # Cancel safety
/// Dropping it leaves the readers waiting: the caller aborts `growing` then.
pub(crate) async fn fill<W: Fn() -> usize, P: Fn()>(
    growing: &Growing,
    body: Body,
    around: Around<W, P>,
    commit: impl FnOnce(&Arc<StoredBody>),
) -> Filled {
    let mut stream = match body {
        Body::Stream { stream, .. } => stream,
        Body::Full(bytes) => return finished(growing, Some(bytes), commit).await,
        Body::Empty | Body::Pieces { .. } => return finished(growing, None, commit).await,
    };
    let mut orphan_since = None;
    // What is in memory already comes without ever waiting: others on this worker get their turn all the same.
    let mut unyielding_bytes = 0;
    // Bytes wait here until it is known whether they are the last ones, as far as that is known without waiting.
    let mut held = None;
    loop {
        let next = match held.take() {
            Some(bytes) => match poll_immediate(next_data(&mut stream)).await {
                Some(next) => {
                    held = Some(bytes);
                    next
                }
                None => {
                    if publish(growing, bytes, &around).await.is_err() {
                        return abandoned(growing);
                    }
                    continue;
                }
            },
            None => {
                let next = tokio::time::timeout(LOOK_EVERY, next_data(&mut stream)).await;
                if growing.readers() + (around.waiters)() > 0 {
                    orphan_since = None;
                } else if !growing.is_keeping()
                    || orphan_since.get_or_insert_with(Instant::now).elapsed() >= around.orphan_time
                {
                    // Whatever passes is for its readers alone, also while the origin says nothing.
                    return abandoned(growing);
                }
                match next {
                    Ok(next) => next,
                    Err(_elapsed) => continue,
                }
            }
        };
        match next {
            Some(Ok(bytes)) => {
                unyielding_bytes += bytes.len();
                if unyielding_bytes >= YIELD_AFTER_BYTES {
                    unyielding_bytes = 0;
                    tokio::task::yield_now().await;
                }
                if let Some(before) = held.replace(bytes)
                    && publish(growing, before, &around).await.is_err()
                {
                    return abandoned(growing);
                }
            }
            Some(Err(error)) => {
                // What came before the break is still the clients' to have.
                if let Some(bytes) = held.take() {
                    let _ = publish(growing, bytes, &around).await;
                }
                growing.abort(error);
                return Filled::Broken(error);
            }
            None => return finished(growing, held, commit).await,
        }
    }
}

async fn publish<W: Fn() -> usize, P: Fn()>(
    growing: &Growing,
    bytes: Bytes,
    around: &Around<W, P>,
) -> Result<(), PushError> {
    if !growing.is_keeping() {
        (around.passing)();
        let_waiters_in(growing, &around.waiters).await;
    }
    growing.push(bytes).await
}

/// A body that passes stops when nobody reads. Those who were told of it a moment ago, on other workers perhaps, get
/// a moment to begin.
async fn let_waiters_in(growing: &Growing, waiters: &impl Fn() -> usize) {
    for _ in 0..100 {
        if growing.readers() > 0 || waiters() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn finished(growing: &Growing, last: Option<Bytes>, commit: impl FnOnce(&Arc<StoredBody>)) -> Filled {
    match growing.finish(last, commit).await {
        Ok(Some(_)) => Filled::Kept,
        Ok(None) => Filled::Passed,
        Err(PushError::NoReaders) => abandoned(growing),
    }
}

fn abandoned(growing: &Growing) -> Filled {
    growing.abort(BodyError::Lost);
    Filled::Abandoned
}

/// The next data; trailers are dropped.
async fn next_data(stream: &mut Stream) -> Option<Result<Bytes, BodyError>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::as_mut(stream).poll_frame(cx)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            Ok(Err(_trailers)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}
