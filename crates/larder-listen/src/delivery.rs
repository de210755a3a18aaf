//! The report on how the delivery of a response ended, made exactly once, also when the connection's task is dropped.

use larder_http::message::Delivery;
use tokio::time::Instant;

use crate::service::Service;

/// Gives the service its receipt back when dropped.
pub(crate) struct Report<'a, S: Service> {
    service: &'a S,
    receipt: Option<S::Receipt>,
    /// Content bytes handed on so far.
    pub(crate) body_bytes: u64,
    /// Set when everything was handed on.
    pub(crate) complete: bool,
    /// When it was over, where somebody has looked at a clock already.
    pub(crate) ended: Option<Instant>,
}

impl<'a, S: Service> Report<'a, S> {
    pub(crate) fn new(service: &'a S, receipt: S::Receipt) -> Self {
        Self { service, receipt: Some(receipt), body_bytes: 0, complete: false, ended: None }
    }
}

impl<S: Service> Drop for Report<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            let at = self.ended.unwrap_or_else(Instant::now).into_std();
            let delivery = Delivery { body_bytes: self.body_bytes, complete: self.complete, at };
            self.service.delivered(receipt, delivery);
        }
    }
}
