//! From the origin's stream into a growing body.
//!
//! In: a stream and a [`StreamingBody`] that has room. Out: the whole body, what disks kept up with of it, or nothing when it broke,
//! outgrew its room, or nobody was left. While it is kept this runs at the origin's pace, clients or none, or at that of a disk
//! as long as no reader is short of bytes; once it passes through a window, the slowest reader sets the pace. Trailers go to the
//! readers of what passes; what is kept has none. A part that is stored already goes in front or behind ([`mod@completed`]), or lies on disks and is filled up there ([`mod@rest`]).
//! A template is decoded ([`mod@decoded`]) and compiled ([`mod@compiled`]) on the way.

mod compiled;
mod completed;
mod decoded;
mod in_memory;
mod rest;
#[cfg(test)]
mod script;

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::poll_immediate;
use http::HeaderMap;
use larder_http::body::{Body, BodyError, Stream};
use larder_store::{Finished, PushError, StreamingBody};
use tokio::time::timeout;

pub(crate) use compiled::compiled;
pub(crate) use completed::completed;
pub(crate) use decoded::{Coding, UnknownCoding, coding_of, decoded};
pub(crate) use in_memory::as_stream;
pub(crate) use rest::{AskAgain, Rest, without};

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
pub(crate) struct Around<P, G> {
    /// Called when nobody new may join any more.
    pub(crate) passing: P,
    /// Whether it ends here, after so many bytes: nobody has asked for them.
    pub(crate) gives_up: G,
    /// How long it goes on with neither readers nor waiters.
    pub(crate) orphan_time: Duration,
}

/// How pouring a stream into a body ended.
enum Poured {
    /// With these last bytes and trailers.
    Whole(Option<Bytes>, Option<HeaderMap>),
    Broken(BodyError),
    Unread,
    /// It passes, and nobody reads it.
    NoReaders,
}

/// Fills `streaming` from `body`. `commit` gets the body, or what was kept of it, before any reader sees its end. It is
/// given up when nobody has been there for `orphan_time`, or nobody at all where it flows for its readers alone.
///
/// # Cancel safety
/// Dropping it leaves the readers waiting: the caller aborts `streaming` then.
pub(crate) async fn fill<P: Fn(), G: Fn(u64) -> bool>(
    streaming: &StreamingBody,
    body: Body,
    around: Around<P, G>,
    commit: impl FnOnce(&Finished),
) -> Filled {
    let stream = match body {
        Body::Stream { stream, .. } => stream,
        Body::Full(bytes) => return finished(streaming, (Some(bytes), None), commit).await,
        Body::Empty | Body::Pieces { .. } => return finished(streaming, (None, None), commit).await,
    };
    // A disk that is slower than the origin may set the pace: then pouring waits for long, and nobody may be left.
    let poured = tokio::select! {
        biased;
        poured = pour(streaming, stream, &around) => poured,
        () = abandonment(streaming, around.orphan_time) => Poured::NoReaders,
    };
    match poured {
        Poured::Whole(last, trailers) => finished(streaming, (last, trailers), commit).await,
        Poured::Broken(error) => {
            match error {
                // What it was cannot be known.
                BodyError::Framing => streaming.abort(error),
                _ => streaming.give_up(error, commit),
            }
            Filled::Broken(error)
        }
        Poured::Unread => {
            streaming.abort(BodyError::Lost);
            Filled::Unread
        }
        Poured::NoReaders => {
            streaming.give_up(BodyError::Lost, commit);
            Filled::Abandoned
        }
    }
}

/// Resolves when nobody is left to fill it for.
async fn abandonment(streaming: &StreamingBody, orphan_time: Duration) {
    let audience = streaming.audience();
    loop {
        audience.empty().await;
        // Whatever passes is for its readers alone, also while the origin says nothing.
        if !streaming.may_keep_more() || timeout(orphan_time, audience.present()).await.is_err() {
            return;
        }
    }
}

async fn pour<P: Fn(), G: Fn(u64) -> bool>(
    streaming: &StreamingBody,
    mut stream: Stream,
    around: &Around<P, G>,
) -> Poured {
    let mut arrived = 0;
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
                    if publish(streaming, bytes, around).await.is_err() {
                        return Poured::NoReaders;
                    }
                    continue;
                }
            },
            None => next_data(&mut stream, &mut trailers).await,
        };
        match next {
            Some(Ok(bytes)) => {
                arrived += bytes.len() as u64;
                if (around.gives_up)(arrived) {
                    return Poured::Unread;
                }
                unyielding_bytes += bytes.len();
                if unyielding_bytes >= YIELD_AFTER_BYTES {
                    unyielding_bytes = 0;
                    tokio::task::yield_now().await;
                }
                if let Some(before) = held.replace(bytes)
                    && publish(streaming, before, around).await.is_err()
                {
                    return Poured::NoReaders;
                }
            }
            Some(Err(error)) => {
                // What came before the break is still the clients' to have.
                if let Some(bytes) = held.take() {
                    let _ = publish(streaming, bytes, around).await;
                }
                return Poured::Broken(error);
            }
            None => return Poured::Whole(held, trailers),
        }
    }
}

async fn publish<P: Fn(), G: Fn(u64) -> bool>(
    streaming: &StreamingBody,
    bytes: Bytes,
    around: &Around<P, G>,
) -> Result<(), PushError> {
    if !streaming.is_keeping() {
        (around.passing)();
    }
    streaming.push(bytes).await
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
