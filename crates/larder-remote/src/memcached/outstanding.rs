//! Requests of one connection whose replies have not come, in the order in which they were written.
//!
//! In: each request when its bytes are on their way, each reply, the time. Out: every reply at the request whose turn it is.
//! This is the invariant of the crate: an entry leaves the queue when its reply has come, or with the connection, and never because its
//! caller has left. The caller has the receiving half of a channel and nothing else. A reply for which nobody waits is
//! read and dropped, and the next one is the next entry's.
//! The order alone is not trusted where a reply says more. A value names its key; one with another key, or a reply
//! that such a request cannot have, ends the connection, and nobody gets it.
//! Deliberately absent: the socket and the clock.

use std::collections::VecDeque;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::ask::{Answer, Ask};
use crate::deadline::Deadline;
use crate::error::Failure;
use crate::key::RemoteKey;
use crate::reply::Reply;
use crate::request::Request;

/// What a reply has to be about.
#[derive(Debug)]
enum Asked {
    Get(RemoteKey),
    Set,
    Delete,
    NoOp,
}

impl Asked {
    fn is_answered_by(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (Self::Get(key), Reply::Value(value)) => key.as_bytes() == value.key,
            (Self::Get(key), Reply::Absent(named)) => {
                named.as_ref().is_none_or(|named| key.as_bytes() == named)
            }
            (Self::Set, Reply::Stored | Reply::NotStored) => true,
            (Self::Delete, Reply::Deleted | Reply::NotFound) => true,
            (Self::NoOp, Reply::NoOp | Reply::Unknown) => true,
            (Self::Get(_) | Self::Set | Self::Delete, Reply::ServerError(_)) => true,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Waiting {
    asked: Asked,
    deadline: Deadline,
    /// `None` once the time of its caller is over.
    reply: Option<oneshot::Sender<Answer>>,
    _seat: OwnedSemaphorePermit,
}

/// Requests without a reply, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    waiting: VecDeque<Waiting>,
    /// So many of the oldest have had their time.
    expired: usize,
}

/// A reply that belongs to no request, or to another one than its turn says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign;

/// Whether the time of the caller was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    InTime,
    Late,
}

/// What the passing of time has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    /// So many callers were told that their time is over.
    pub(super) told: u32,
    /// The connection has to be closed.
    pub(super) is_over: bool,
}

impl Outstanding {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a request whose bytes come next on the connection. Requests come in the order of their deadlines.
    pub(super) fn push(&mut self, ask: Ask) {
        let asked = match ask.request {
            Request::Get(key) => Asked::Get(key),
            Request::Set { .. } | Request::Claim { .. } => Asked::Set,
            Request::Delete(_) => Asked::Delete,
            Request::Touch(_) | Request::NoOp | Request::Asking(_) => Asked::NoOp,
        };
        let Ask { deadline, reply, seat, .. } = ask;
        self.waiting.push_back(Waiting { asked, deadline, reply: Some(reply), _seat: seat });
    }

    /// Hands the next reply to the oldest request.
    ///
    /// # Errors
    /// It is not this request's. Whose it is cannot be known, so the connection has to be closed.
    pub(super) fn answer(&mut self, reply: Reply) -> Result<Arrival, Foreign> {
        if !self.waiting.front().is_some_and(|oldest| oldest.asked.is_answered_by(&reply)) {
            return Err(Foreign);
        }
        let was_expired = self.expired > 0;
        self.expired = self.expired.saturating_sub(1);
        if let Some(sender) = self.waiting.pop_front().and_then(|oldest| oldest.reply) {
            // Its caller may have left.
            let _ = sender.send(Ok(reply));
        }
        Ok(if was_expired { Arrival::Late } else { Arrival::InTime })
    }

    /// Tells callers whose time is over.
    pub(super) fn expire(&mut self, now: Instant) -> Expiry {
        let mut told = 0;
        while let Some(waiting) = self.waiting.get_mut(self.expired).filter(|w| w.deadline.answer_by <= now) {
            if let Some(sender) = waiting.reply.take() {
                let _ = sender.send(Err(Failure::TimedOut));
            }
            self.expired += 1;
            told += 1;
        }
        let is_over = self.waiting.front().is_some_and(|oldest| oldest.deadline.close_at <= now);
        Expiry { told, is_over }
    }

    /// When [`Outstanding::expire`] has something to do next.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let close = self.waiting.front().map(|oldest| oldest.deadline.close_at);
        let answer = self.waiting.get(self.expired).map(|next| next.deadline.answer_by);
        close.into_iter().chain(answer).min()
    }

    /// The connection is gone: tells all callers.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.expired = 0;
        for sender in self.waiting.drain(..).filter_map(|waiting| waiting.reply) {
            let _ = sender.send(Err(failure));
        }
    }
}

#[cfg(test)]
mod tests;
