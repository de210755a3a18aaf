//! The one trait between the listener and the service behind it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::task::{Context, Waker};

use larder_http::message::{Delivery, Interim, Peer, Request, Response};
use parking_lot::Mutex;

use crate::error::Refusal;

/// Whoever answers requests. One clone per connection.
pub trait Service: Clone + Send + Sync + 'static {
    /// What a service wants to be given back when a response has been delivered or dropped; `()` for nothing.
    type Receipt: Send + 'static;

    /// A request being answered. It is moved until it has to wait for something, so that what is answered at once costs no
    /// more than its answer; `Pin<Box<_>>` is one.
    ///
    /// # Cancel safety
    /// It is dropped, at any await, when the client leaves or its content turns out to be broken.
    type Call: Future<Output = (Response, Self::Receipt)> + Send + Unpin + 'static;

    /// Answers one request. Interim responses for this client go to `interims` while the call is pending.
    fn call(&self, request: Request, interims: &Interims) -> Self::Call;

    /// Tells what became of the response that came with `receipt`: once for each, however it ended.
    fn delivered(&self, receipt: Self::Receipt, delivery: Delivery) {
        let _ = (receipt, delivery);
    }

    /// Tells of a request that the parser refused and the listener answered itself, for the log. It was counted.
    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        let _ = (refusal, peer);
    }
}

/// A call of a service that does not count on being answered at once.
pub type BoxedCall = Pin<Box<dyn Future<Output = (Response, ())> + Send>>;

/// The way for interim (1xx) responses to one client: a short queue that its connection empties in order. Cloning
/// shares the queue. Nothing is kept for clients that cannot take them (HTTP/1.0), nor beyond the limit.
#[derive(Clone, Debug, Default)]
pub struct Interims(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How many more are taken.
    room: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Interim>,
    waker: Option<Waker>,
}

impl Interims {
    /// Sends `interim` to the client, or drops it where the client takes none or has had enough.
    pub fn push(&self, interim: Interim) {
        let waker = {
            let mut queue = self.0.queue.lock();
            let Some(left) = self.0.room.load(Ordering::Relaxed).checked_sub(1) else { return };
            self.0.room.store(left, Ordering::Relaxed);
            queue.waiting.push_back(interim);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Starts an exchange that may send `room` interim responses. Whoever still has a share in the one before has none in
    /// this.
    pub(crate) fn begin(&mut self, room: usize) {
        if self.is_shared() {
            *self = Self::default();
        }
        self.0.room.store(room, Ordering::Relaxed);
    }

    /// Ends the exchange: what is pushed from now on is too late. Gives what is still to be sent. `room` is what it began
    /// with.
    pub(crate) fn end(&self, room: usize) -> VecDeque<Interim> {
        // Most answers come at once, and nobody was ever given a share: then there is nothing to lock.
        if !self.is_shared() && self.0.room.load(Ordering::Relaxed) == room {
            self.0.room.store(0, Ordering::Relaxed);
            return VecDeque::new();
        }
        let mut queue = self.0.queue.lock();
        self.0.room.store(0, Ordering::Relaxed);
        std::mem::take(&mut queue.waiting)
    }

    fn is_shared(&self) -> bool {
        let is_shared = Arc::strong_count(&self.0) > 1;
        // Whoever has let go of a share has done so after its last push.
        fence(Ordering::Acquire);
        is_shared
    }

    /// The next one, or `None` after noting who is to be woken by the next push.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Option<Interim> {
        let mut queue = self.0.queue.lock();
        let next = queue.waiting.pop_front();
        if next.is_none() && !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            queue.waker = Some(cx.waker().clone());
        }
        next
    }
}
