//! How far a request to an origin has come, for whoever has to decide what becomes of it when its client leaves.
//!
//! In: the exchange, which says when the request has left the queue and when some of it was handed to a connection.
//! Out: two facts. Before the first nobody has been asked for anything, so the request can be dropped like one that
//! never was; after the second an origin may have acted on it, whatever error is reported in the end (RFC 9110 9.2.2).
//! Deliberately absent: how much of the request was sent, and what the origin made of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// How far one [`OriginRequest`](crate::OriginRequest) has come. Made by the caller, who keeps one end of it.
#[derive(Debug)]
pub struct Progress {
    seated: watch::Sender<bool>,
    is_written: AtomicBool,
}

impl Progress {
    /// Of a request that is still to be sent.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { seated: watch::Sender::new(false), is_written: AtomicBool::new(false) })
    }

    /// Waits until the request has left the queue and its origin's servers are known, right before one of them is
    /// chosen. Never returns where it fails before that; the time limits of the request itself end the wait then.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn seated(&self) {
        let mut seated = self.seated.subscribe();
        if seated.wait_for(|is_seated| *is_seated).await.is_err() {
            // The sender is part of what is borrowed here.
            std::future::pending::<()>().await;
        }
    }

    /// Whether some of the request was handed to a connection, in any attempt: then a server may have acted on it, and
    /// what it said or did not say afterwards changes nothing about that.
    pub fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    pub(crate) fn sit(&self) {
        self.seated.send_replace(true);
    }

    /// Some of the request may be written from now on. Returns whether that was so before.
    pub(crate) fn hand_over(&self) -> bool {
        self.is_written.swap(true, Ordering::AcqRel)
    }

    /// Nothing of it was written since it was handed over, when this was so `before`.
    pub(crate) fn take_back(&self, before: bool) {
        self.is_written.store(before, Ordering::Release);
    }
}
