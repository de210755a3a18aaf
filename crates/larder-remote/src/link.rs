//! The one connection of a worker to a server.
//!
//! In: requests of any callers on this worker. Out: their replies. A task of its own has the socket. It is started by the first
//! request, connects when something is asked, and writes requests as they come without waiting for replies.
//! At most 1024 replies are outstanding; beyond that a look-up is a miss (`busy`).
//! The task alone decides how long a connection lives. It is closed when a reply is five times as late as its caller waits,
//! when what comes is no reply or not the one whose turn it is, and when a value is announced that is too large.
//! A caller that leaves drops its end of a channel, and nothing else happens ([`Outstanding`]).
//!
//! ```text
//!   not connected --request, breaker closed--> connecting --first reply--> conversing --closed--> not connected
//!         ^                                        | failed: the breaker opens          \-- a failure for the breaker
//!         +----------------------------------------+
//! ```

use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::codec::{Decoder, Malformed, Request};
use super::dial::{INBOX, Opened, open};
use super::outstanding::{Answer, Arrival, Ask, Outstanding};
use super::server::Server;
use crate::deadline::Limits;
use crate::error::Failure;

/// Replies that may be outstanding at once.
const OUTSTANDING_MAX: usize = 1024;
/// No further request is taken while so many bytes wait to be written.
const OUTBOX_MAX: usize = 64 * 1024;

/// The way to one server. Dropping it ends the task when the last reply has come.
#[derive(Debug)]
pub(super) struct Link {
    server: Arc<Server>,
    limits: Limits,
    value_max: usize,
    room: Arc<Semaphore>,
    /// The task's, from the first request on: before that there may be no runtime.
    asks: OnceLock<UnboundedSender<Ask>>,
}

impl Link {
    pub(super) fn new(server: Arc<Server>, limits: Limits, value_max: usize) -> Self {
        let room = Arc::new(Semaphore::new(OUTSTANDING_MAX));
        Self { server, limits, value_max, room, asks: OnceLock::new() }
    }

    /// Puts a request behind all that were begun before. Its reply comes as long as the limits say, and then there is none. To be
    /// called on a runtime. Whoever drops the receiver drops the reply when it comes, and nothing else.
    ///
    /// # Errors
    /// The server is not asked.
    pub(super) fn begin(&self, request: Request) -> Result<oneshot::Receiver<Answer>, Failure> {
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
    pub(super) async fn ask(&self, request: Request) -> Answer {
        reply_of(self.begin(request)).await
    }

    fn start(&self) -> UnboundedSender<Ask> {
        // Bounded by the places in `room`.
        let (asks, taken) = unbounded_channel();
        tokio::spawn(run(Arc::clone(&self.server), self.limits, self.value_max, taken));
        asks
    }
}

/// Waits for the reply to a request that was begun.
pub(super) async fn reply_of(begun: Result<oneshot::Receiver<Answer>, Failure>) -> Answer {
    // Without a sender the task is gone.
    begun?.await.unwrap_or(Err(Failure::Closed))
}

/// Connects whenever something is asked.
async fn run(server: Arc<Server>, limits: Limits, value_max: usize, mut asks: UnboundedReceiver<Ask>) {
    while let Some(first) = asks.recv().await {
        if !server.may_ask() {
            first.fail(Failure::Skipped);
            continue;
        }
        let opening = timeout_at(Instant::now() + limits.answer(), open(server.address(), server.names()));
        match opening.await {
            Ok(Ok(opened)) => {
                let conversation = Conversation::new(&server, opened, value_max);
                conversation.run(first, &mut asks).await;
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

/// One connection, from its first request to its end.
struct Conversation<'a> {
    server: &'a Server,
    opened: Opened,
    decoder: Decoder,
    inbox: BytesMut,
    outbox: BytesMut,
    outstanding: Outstanding,
}

/// Why a conversation ended.
enum Ended {
    /// Nobody can ask any more, and nobody waits.
    Unused,
    /// The server closed it while nothing was outstanding, as one does that restarts.
    Idle,
    Broken(Failure),
}

impl<'a> Conversation<'a> {
    fn new(server: &'a Server, opened: Opened, value_max: usize) -> Self {
        let (inbox, outbox) = (BytesMut::with_capacity(INBOX), BytesMut::new());
        Self {
            server,
            opened,
            decoder: Decoder::new(value_max),
            inbox,
            outbox,
            outstanding: Outstanding::default(),
        }
    }

    async fn run(mut self, first: Ask, asks: &mut UnboundedReceiver<Ask>) {
        self.put(first);
        let Ended::Broken(failure) = self.converse(asks).await else { return };
        self.outstanding.fail(failure);
        self.server.broke(failure);
    }

    async fn converse(&mut self, asks: &mut UnboundedReceiver<Ask>) -> Ended {
        let mut may_be_asked = true;
        loop {
            let wake_at = self.outstanding.wake_at();
            let opened = &mut self.opened;
            self.inbox.reserve(INBOX);
            tokio::select! {
                biased;
                read = opened.reader.read_buf(&mut self.inbox) => match read {
                    Ok(1..) => if let Err(failure) = self.take_replies() {
                        return Ended::Broken(failure);
                    },
                    Ok(0) | Err(_) if self.outstanding.is_empty() => return Ended::Idle,
                    Ok(0) | Err(_) => return Ended::Broken(Failure::Closed),
                },
                written = opened.writer.write_buf(&mut self.outbox), if !self.outbox.is_empty() => {
                    if written.is_err() {
                        return Ended::Broken(Failure::Closed);
                    }
                    // What a large value has needed is not kept for small requests.
                    if self.outbox.is_empty() && self.outbox.capacity() > OUTBOX_MAX {
                        self.outbox = BytesMut::new();
                    }
                }
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {
                    let expiry = self.outstanding.expire(Instant::now());
                    self.server.timed_out(expiry.told);
                    if expiry.is_over {
                        return Ended::Broken(Failure::TimedOut);
                    }
                }
                ask = asks.recv(), if may_be_asked && self.outbox.len() < OUTBOX_MAX => match ask {
                    Some(ask) => self.put(ask),
                    None => may_be_asked = false,
                },
            }
            if !may_be_asked && self.outstanding.is_empty() {
                return Ended::Unused;
            }
        }
    }

    /// Puts a request into the queue of what is outstanding and among the bytes to be written, both or neither.
    fn put(&mut self, ask: Ask) {
        // It may have waited for the connection, or for the bytes of others.
        if ask.deadline.answer_by <= Instant::now() {
            self.server.timed_out(1);
            ask.fail(Failure::TimedOut);
            return;
        }
        ask.request.write(self.opened.dialect, &mut self.outbox);
        self.outstanding.push(ask);
    }

    fn take_replies(&mut self) -> Result<(), Failure> {
        let malformed = |malformed| match malformed {
            Malformed::TooLarge => Failure::TooLarge,
            Malformed::Line | Malformed::LongLine | Malformed::Ending => Failure::Malformed,
        };
        while let Some(reply) = self.decoder.read(&mut self.inbox).map_err(malformed)? {
            match self.outstanding.answer(reply).map_err(|_| Failure::Malformed)? {
                Arrival::InTime => self.server.answered(),
                Arrival::Late => self.server.answered_late(),
            }
        }
        Ok(())
    }
}
