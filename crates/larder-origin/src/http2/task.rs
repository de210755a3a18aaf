//! The task of one HTTP/2 connection.
//!
//! It drives `h2` until the connection ends. When nobody owns the connection any more it says GOAWAY and gives the
//! peer a moment to take it. While streams are open and the peer is silent it sends a PING. Without it, on a path
//! that broke without a message, one exchange after the other would wait for its own limit on a connection that looks
//! open.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::Connection;
use h2::{Ping, PingPong};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep, sleep_until};

use super::load::Load;
use crate::wire::{Mark, Trace, Wire};

/// Silence, while streams are open, after which the peer is asked, and again as long for its answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a connection that is left may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Runs `connection` to its end. How it ended is told to each of its streams.
pub(super) async fn drive(
    connection: Connection<Wire, Bytes>,
    mut watch: Watch,
    settle: watch::Sender<bool>,
    is_owned: oneshot::Receiver<Infallible>,
) {
    let mut connection = pin!(connection);
    let mut is_owned = pin!(is_owned);
    let mut goodbye: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        if goodbye.is_none() && is_owned.as_mut().poll(cx).is_ready() {
            goodbye = Some(Box::pin(sleep_until(Instant::now() + GOODBYE)));
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if watch.has_heard() {
            // What a peer says first are its settings (RFC 9113 3.4), and `h2` has just read them.
            settle.send_if_modified(|is_settled| !std::mem::replace(is_settled, true));
        }
        match &mut goodbye {
            Some(goodbye) => goodbye.as_mut().poll(cx),
            None => watch.poll_dead(cx),
        }
    })
    .await;
}

/// Notices a peer that is gone without having said so.
pub(super) struct Watch {
    ping: Option<PingPong>,
    trace: Arc<Trace>,
    load: Arc<Load>,
    begin: Mark,
    timer: Pin<Box<Sleep>>,
    mark: Mark,
    is_asked: bool,
}

impl Watch {
    pub(super) fn new(ping: Option<PingPong>, trace: Arc<Trace>, load: Arc<Load>) -> Self {
        let mark = trace.mark();
        let timer = Box::pin(sleep_until(Instant::now() + SILENCE));
        Self { ping, trace, load, begin: mark, timer, mark, is_asked: false }
    }

    /// Whether the peer has said anything at all.
    fn has_heard(&self) -> bool {
        self.trace.has_read_since(self.begin)
    }

    /// Ready when a PING had no answer, nor anything else come, for the whole limit.
    fn poll_dead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(ping) = &mut self.ping else {
            return Poll::Pending;
        };
        if self.is_asked && ping.poll_pong(cx).is_ready() {
            self.is_asked = false;
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let is_silent = !self.trace.has_read_since(self.mark);
            self.mark = self.trace.mark();
            self.timer.as_mut().reset(Instant::now() + SILENCE);
            if self.is_asked && is_silent {
                return Poll::Ready(());
            }
            if is_silent && !self.is_asked && self.load.in_use.load(Ordering::Relaxed) > 0 {
                // It wakes this task, so that the frame goes out and the answer is waited for.
                self.is_asked = ping.send_ping(Ping::opaque()).is_ok();
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use larder_http::message::Scheme;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::Multiplexed;
    use super::*;
    use crate::resources::OriginResources;
    use crate::settings::HeadLimits;
    use crate::wire::{Socket, Transport};

    /// A server that takes everything, answers PINGs or not, and requests never.
    async fn serve(listener: TcpListener, answers_pings: bool) {
        const EMPTY_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        socket.read_exact(&mut [0; 24]).await.unwrap();
        socket.write_all(EMPTY_SETTINGS).await.unwrap();
        let mut head = [0; 9];
        while socket.read_exact(&mut head).await.is_ok() {
            let mut payload = vec![0; usize::from(head[2]) + 256 * usize::from(head[1])];
            socket.read_exact(&mut payload).await.unwrap();
            if head[3] == 6 && answers_pings {
                head[4] = 1;
                socket.write_all(&[&head, payload.as_slice()].concat()).await.unwrap();
            }
        }
    }

    #[track_caller]
    fn check(answers_pings: bool, has_stream: bool, expected: Option<u64>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            // The clock here runs ahead of the kernel's, so nothing may wait there.
            socket.set_nodelay(true).unwrap();
            tokio::spawn(serve(listener, answers_pings));
            let socket = Socket::Tcp(Arc::new(socket));
            let weak = socket.downgrade();
            let wire = Wire::new(
                Transport::Clear(socket),
                OriginResources::among(&Arc::default()).room.open(1).unwrap(),
            );
            let limits = HeadLimits::default();
            let connection = Multiplexed::start(wire, weak, Scheme::Http, &limits).await.unwrap();
            let begun = Instant::now();
            let ended = async {
                let _slot = has_stream.then(|| Multiplexed::enter_new(&connection, &Arc::default()));
                while connection.is_open() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            };
            let outcome = tokio::time::timeout(Duration::from_secs(120), ended).await;
            let lasted = outcome.ok().map(|()| begun.elapsed().as_secs() / 10 * 10);
            assert_eq!(lasted, expected, "answers: {answers_pings}, stream: {has_stream}");
        });
    }

    #[test]
    fn a_peer_that_is_silent_while_streams_are_open_has_to_answer() {
        // The settings' own acknowledgements are what was heard last, in the first ten seconds.
        check(false, true, Some(30));
        check(true, true, None);
        check(false, false, None);
    }
}
