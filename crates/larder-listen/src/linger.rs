//! The last moments of a connection whose client is to see what was written.
//!
//! In: a stream to which all is written. Out: the end of our direction, and a short while in which what still comes is read and thrown away: closing
//! a socket with unread bytes would reset it, and the client could lose the answer.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

use crate::byte_stream::ByteStream;
use crate::detect::READ_BYTES;
use crate::metrics::Metrics;
use crate::settings::Limits;
use crate::timer::Timer;

/// Ends our direction, and reads on unless the client's has ended.
///
/// # Cancel safety
/// Dropped, the stream closes at once.
pub(crate) async fn linger<T: ByteStream>(
    io: &mut T,
    is_at_end: bool,
    timer: &mut Timer,
    limits: &Limits,
    metrics: &Metrics,
) {
    let deadline = Instant::now() + limits.linger_time;
    let mut room = limits.unread_bytes_max;
    let ended = poll_fn(|cx| match Pin::new(&mut *io).poll_shutdown(cx) {
        Poll::Ready(ended) => Poll::Ready(ended.is_ok()),
        // Over TLS the end has to be written.
        Poll::Pending => timer.poll(cx, deadline).map(|()| false),
    });
    if !ended.await || is_at_end {
        return;
    }
    let mut read = BytesMut::with_capacity(READ_BYTES);
    poll_fn(|cx| {
        loop {
            read.clear();
            match pin!(io.read_buf(&mut read)).poll(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(bytes)) => {
                    metrics.bytes_in.add(bytes as u64);
                    match room.checked_sub(bytes as u64) {
                        Some(left) => room = left,
                        None => {
                            metrics.unread_closed.add(1);
                            return Poll::Ready(());
                        }
                    }
                }
                Poll::Pending => return timer.poll(cx, deadline),
            }
        }
    })
    .await;
}
