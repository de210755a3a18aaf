//! The report on how a response left the house, made exactly once, also when the connection's task is dropped.

use larder_http::message::{Delivery, OnDelivered};

/// Calls its [`OnDelivered`] when dropped.
pub(crate) struct Report {
    on_delivered: Option<OnDelivered>,
    /// Content bytes handed on so far.
    pub(crate) body_bytes: u64,
    /// Set when everything was handed on.
    pub(crate) complete: bool,
}

impl Report {
    pub(crate) fn new(on_delivered: Option<OnDelivered>) -> Self {
        Self { on_delivered, body_bytes: 0, complete: false }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(on_delivered) = self.on_delivered.take() {
            on_delivered(Delivery { body_bytes: self.body_bytes, complete: self.complete });
        }
    }
}
