//! A connection to memcached, from its first request to its end.
//!
//! In: requests of any callers on this worker. Out: their replies. Requests are written as they come, without waiting for replies.
//! The connection is closed when a reply is five times as late as its caller waits, when what comes is no reply or not the one
//! whose turn it is, and when a value is announced that is too large.
//! A caller that leaves drops its end of a channel, and nothing else happens ([`Outstanding`]).

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

use super::codec::{Decoder, Malformed};
use super::dial::{INBOX, Opened};
use super::outstanding::{Arrival, Outstanding};
use crate::ask::Ask;
use crate::error::Failure;
use crate::server::Server;

/// No further request is taken while so many bytes wait to be written.
const OUTBOX_MAX: usize = 64 * 1024;

/// See the head of the file.
pub(crate) struct Conversation<'a> {
    server: &'a Server,
    opened: Opened,
    decoder: Decoder,
    inbox: BytesMut,
    outbox: BytesMut,
    outstanding: Outstanding,
}

/// Why a conversation ended.
enum Ended {
    /// All senders are gone, and no reply is due.
    Unused,
    /// The server closed it while nothing was outstanding, as one does that restarts.
    Idle,
    Broken(Failure),
}

impl<'a> Conversation<'a> {
    /// Takes values of up to `value_max` bytes.
    pub(crate) fn new(server: &'a Server, opened: Opened, value_max: usize) -> Self {
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

    /// Ends with the connection, or when nobody can ask any more.
    pub(crate) async fn run(mut self, first: Ask, asks: &mut UnboundedReceiver<Ask>) {
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
