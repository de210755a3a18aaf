//! What a response has brought so far, for those who watch it while it is read.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What a response has brought so far, for those who watch it while it is read, and where its reader is to pause.
#[derive(Clone, Debug)]
pub struct Progress {
    body: Arc<Mutex<Vec<u8>>>,
    /// Bytes of body; `None` before the head of the final response.
    received: Arc<watch::Sender<Option<u64>>>,
    pause_at: Arc<watch::Sender<Option<u64>>>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            body: Arc::default(),
            received: Arc::new(watch::Sender::new(None)),
            pause_at: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Progress {
    /// Stops reading from the socket once this many bytes of body have come, until [`Progress::resume`].
    pub fn pause_at(self, bytes: u64) -> Self {
        self.pause_at.send_replace(Some(bytes));
        self
    }

    /// Lets a paused reader go on.
    pub fn resume(&self) {
        self.pause_at.send_replace(None);
    }

    /// Waits until the head and at least `bytes` of body have come.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn until(&self, bytes: u64) {
        // The sender lives as long as `self`.
        let _ = self
            .received
            .subscribe()
            .wait_for(|received| received.is_some_and(|received| received >= bytes))
            .await;
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.body.lock().clone()
    }

    pub(crate) fn begin(&self) {
        self.received.send_replace(Some(0));
    }

    pub(crate) async fn take(&self, piece: &Bytes) {
        let received = {
            let mut body = self.body.lock();
            body.extend_from_slice(piece);
            body.len() as u64
        };
        self.received.send_replace(Some(received));
        let may_read = |pause_at: &Option<u64>| pause_at.is_none_or(|at| received < at);
        let _ = self.pause_at.subscribe().wait_for(may_read).await;
    }
}
