//! The report on how a response left the house, made exactly once, also when the connection's task is dropped.

use larder_http::message::Delivery;

use crate::service::Service;

/// Gives the service its receipt back when dropped.
pub(crate) struct Report<'a, S: Service> {
    service: &'a S,
    receipt: Option<S::Receipt>,
    /// Content bytes handed on so far.
    pub(crate) body_bytes: u64,
    /// Set when everything was handed on.
    pub(crate) complete: bool,
}

impl<'a, S: Service> Report<'a, S> {
    pub(crate) fn new(service: &'a S, receipt: S::Receipt) -> Self {
        Self { service, receipt: Some(receipt), body_bytes: 0, complete: false }
    }
}

impl<S: Service> Drop for Report<'_, S> {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            let delivery = Delivery { body_bytes: self.body_bytes, complete: self.complete };
            self.service.delivered(receipt, delivery);
        }
    }
}
