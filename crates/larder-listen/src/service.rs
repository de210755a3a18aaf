//! The one trait between the front door and the house.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};

use larder_http::message::{Interim, Peer, Request, Response};
use parking_lot::Mutex;

use crate::error::Refusal;

/// Whoever answers requests. One clone per connection.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers one request. Interim responses for this client go to `interims` while the call is pending.
    ///
    /// # Cancel safety
    /// The future is dropped, at any await, when the client leaves or its content turns out to be broken.
    fn call(&self, request: Request, interims: &Interims) -> impl Future<Output = Response> + Send;

    /// Tells of a request that the parser refused and the listener answered itself, for the log. It was counted.
    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        let _ = (refusal, peer);
    }
}

/// The way for interim (1xx) responses to one client: a short queue that its connection empties in order. Cloning
/// shares the queue. Nothing is kept for clients that cannot take them (HTTP/1.0), nor beyond the limit.
#[derive(Clone, Debug, Default)]
pub struct Interims(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Interim>,
    room: usize,
    waker: Option<Waker>,
}

impl Interims {
    /// Sends `interim` to the client, or drops it where the client takes none or has had enough.
    pub fn push(&self, interim: Interim) {
        let waker = {
            let mut queue = self.0.lock();
            if queue.room == 0 {
                return;
            }
            queue.room -= 1;
            queue.waiting.push_back(interim);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Starts an exchange that may send `room` interim responses; forgets those of the one before.
    pub(crate) fn begin(&self, room: usize) {
        let mut queue = self.0.lock();
        queue.room = room;
        queue.waiting.clear();
    }

    /// Ends the exchange: what is pushed from now on is too late. Gives what is still to be sent.
    pub(crate) fn end(&self) -> VecDeque<Interim> {
        let mut queue = self.0.lock();
        queue.room = 0;
        std::mem::take(&mut queue.waiting)
    }

    /// The next one, or `None` after noting who is to be woken by the next push.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Option<Interim> {
        let mut queue = self.0.lock();
        let next = queue.waiting.pop_front();
        if next.is_none() && !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            queue.waker = Some(cx.waker().clone());
        }
        next
    }
}
