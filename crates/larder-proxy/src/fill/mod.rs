//! From the origin's stream into a growing body.
//!
//! In: a stream and a [`StreamingBody`] that has room. Out: the whole body, what disks kept up with of it, or nothing when it broke,
//! outgrew its room, or nobody was left. While it is kept this runs at the origin's pace, clients or none, or at that of a disk
//! as long as no reader is short of bytes; once it passes through a window, the slowest reader sets the pace. Trailers go to the
//! readers of what passes; what is kept has none. A part that is stored already goes in front or behind ([`mod@completed`]), or lies on disks and is filled up there ([`mod@rest`]).

mod completed;
mod rest;

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::poll_immediate;
use http::HeaderMap;
use larder_http::body::{Body, BodyError, Stream};
use larder_store::{Finished, PushError, StreamingBody};

pub(crate) use completed::completed;
pub(crate) use rest::{AskAgain, Rest, without};

/// How often a fill that waits for the origin looks whether anybody is left.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A fill lets others run after so many bytes, where nothing else makes it wait.
const YIELD_AFTER_BYTES: usize = 512 * 1024;

/// How a fill ended.
#[derive(Debug)]
pub(crate) enum Filled {
    /// All of it was kept and committed.
    Kept,
    /// Some of it was kept and committed.
    InPart,
    /// It went by; nothing is kept.
    Passed,
    /// The origin's body broke; readers have been cut.
    Broken(BodyError),
    /// Nobody was left for too long, or nobody at all while passing.
    Abandoned,
    /// It was given up, because nobody has ever wanted so much of it.
    Unread,
}

/// What a fill has to know and to tell.
pub(crate) struct Around<W, P, G> {
    /// Clients that are about to read.
    pub(crate) waiters: W,
    /// Called when nobody new may join any more.
    pub(crate) passing: P,
    /// Whether it ends here, after so many bytes: nobody has asked for them.
    pub(crate) gives_up: G,
    /// How long it goes on with neither readers nor waiters.
    pub(crate) orphan_time: Duration,
}

/// Whether anybody is left, looked at now and then.
struct Looking {
    looked: Instant,
    orphan_since: Option<Instant>,
}

impl Looking {
    /// Whether the fill is to be given up: nobody has been there for `orphan_time`, or nobody is there for whom alone it flows.
    fn is_abandoned<W: Fn() -> usize, P, G>(
        &mut self,
        streaming: &StreamingBody,
        around: &Around<W, P, G>,
    ) -> bool {
        self.looked = Instant::now();
        if streaming.readers() + (around.waiters)() > 0 {
            self.orphan_since = None;
            return false;
        }
        // Whatever passes is for its readers alone, also while the origin says nothing.
        !streaming.may_keep_more()
            || self.orphan_since.get_or_insert(self.looked).elapsed() >= around.orphan_time
    }

    fn is_due(&self) -> bool {
        self.looked.elapsed() >= LOOK_EVERY
    }
}

/// Fills `growing` from `body`. `commit` gets the body, or what was kept of it, before any reader sees its end.
///
/// # Cancel safety
/// Dropping it leaves the readers waiting: the caller aborts `growing` then.
pub(crate) async fn fill<W: Fn() -> usize, P: Fn(), G: Fn(u64) -> bool>(
    streaming: &StreamingBody,
    body: Body,
    around: Around<W, P, G>,
    commit: impl FnOnce(&Finished),
) -> Filled {
    let mut stream = match body {
        Body::Stream { stream, .. } => stream,
        Body::Full(bytes) => return finished(streaming, (Some(bytes), None), commit).await,
        Body::Empty | Body::Pieces { .. } => return finished(streaming, (None, None), commit).await,
    };
    let mut arrived = 0;
    let mut looking = Looking { looked: Instant::now(), orphan_since: None };
    // What is in memory already comes without ever waiting: others on this worker get their turn all the same.
    let mut unyielding_bytes = 0;
    // Bytes wait here until it is known whether they are the last ones, as far as that is known without waiting.
    let (mut held, mut trailers) = (None, None);
    loop {
        let next = match held.take() {
            Some(bytes) => match poll_immediate(next_data(&mut stream, &mut trailers)).await {
                Some(next) => {
                    held = Some(bytes);
                    next
                }
                None => {
                    if publish(streaming, bytes, &around).await.is_err() {
                        return abandoned(streaming, commit);
                    }
                    continue;
                }
            },
            None => {
                let next = tokio::time::timeout(LOOK_EVERY, next_data(&mut stream, &mut trailers)).await;
                if looking.is_abandoned(streaming, &around) {
                    return abandoned(streaming, commit);
                }
                match next {
                    Ok(next) => next,
                    Err(_elapsed) => continue,
                }
            }
        };
        match next {
            Some(Ok(bytes)) => {
                arrived += bytes.len() as u64;
                if (around.gives_up)(arrived) {
                    streaming.abort(BodyError::Lost);
                    return Filled::Unread;
                }
                unyielding_bytes += bytes.len();
                if unyielding_bytes >= YIELD_AFTER_BYTES {
                    unyielding_bytes = 0;
                    tokio::task::yield_now().await;
                }
                if let Some(before) = held.replace(bytes)
                    && publish(streaming, before, &around).await.is_err()
                {
                    return abandoned(streaming, commit);
                }
                // A disk that is slower than the origin may set the pace: then this goes on for long without ever being idle.
                if looking.is_due() && looking.is_abandoned(streaming, &around) {
                    return abandoned(streaming, commit);
                }
            }
            Some(Err(error)) => {
                // What came before the break is still the clients' to have.
                if let Some(bytes) = held.take() {
                    let _ = publish(streaming, bytes, &around).await;
                }
                match error {
                    // Nobody knows what it was.
                    BodyError::Framing => streaming.abort(error),
                    _ => streaming.give_up(error, commit),
                }
                return Filled::Broken(error);
            }
            None => return finished(streaming, (held, trailers), commit).await,
        }
    }
}

async fn publish<W: Fn() -> usize, P: Fn(), G: Fn(u64) -> bool>(
    streaming: &StreamingBody,
    bytes: Bytes,
    around: &Around<W, P, G>,
) -> Result<(), PushError> {
    if !streaming.is_keeping() {
        (around.passing)();
        if !streaming.may_keep_more() {
            let_waiters_in(streaming, &around.waiters).await;
        }
    }
    streaming.push(bytes).await
}

/// A body that passes stops when nobody reads. Those who were told of it a moment ago, on other workers perhaps, get
/// a moment to begin.
async fn let_waiters_in(streaming: &StreamingBody, waiters: &impl Fn() -> usize) {
    for _ in 0..100 {
        if streaming.readers() > 0 || waiters() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn finished(
    streaming: &StreamingBody,
    (last, trailers): (Option<Bytes>, Option<HeaderMap>),
    commit: impl FnOnce(&Finished),
) -> Filled {
    match streaming.end(last, trailers, commit).await {
        Ok(Finished::Whole(_)) => Filled::Kept,
        Ok(Finished::Part { .. }) => Filled::InPart,
        Ok(Finished::Passed) => Filled::Passed,
        Err(PushError::NoReaders) => {
            streaming.abort(BodyError::Lost);
            Filled::Abandoned
        }
    }
}

fn abandoned(streaming: &StreamingBody, commit: impl FnOnce(&Finished)) -> Filled {
    streaming.give_up(BodyError::Lost, commit);
    Filled::Abandoned
}

/// The next data; `trailers` gets what comes behind the last.
///
/// # Cancel safety
/// Nothing is lost.
async fn next_data(
    stream: &mut Stream,
    trailers: &mut Option<HeaderMap>,
) -> Option<Result<Bytes, BodyError>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::as_mut(stream).poll_frame(cx)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            Ok(Err(frame)) => *trailers = frame.into_trailers().ok(),
            Err(error) => return Some(Err(error)),
        }
    }
}
