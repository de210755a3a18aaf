//! The listener's side of a worker: each request goes to [`serve`](crate::serve), and each delivery to the log.

use std::sync::Arc;

use larder_http::message::{Delivery, Peer, Request};
use larder_listen::{Interims, Refusal, Service};
use larder_observe::{Ending, LogRecord};

use crate::receipt::Receipt;
use crate::serve::Serving;
use crate::worker::Worker;

/// The listener's side of a worker.
#[derive(Clone, Debug)]
pub struct ProxyService(pub Arc<Worker>);

impl Service for ProxyService {
    type Receipt = Receipt;

    type Call = Serving;

    fn call(&self, request: Request, interims: &Interims) -> Serving {
        crate::serve::serve(&self.0, request, interims)
    }

    fn delivered(&self, receipt: Receipt, delivery: Delivery) {
        if let Some(account) = receipt.0 {
            account.close(&self.0, delivery);
        }
    }

    /// What the parser refused has no head that could be believed: the line says who, when, and which rule.
    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        let worker = &self.0;
        if let (Some(log), Some(peer)) = (worker.proxy.access_log().as_ref(), peer) {
            let mut record = LogRecord::new(worker.proxy.clock.now().wall, peer.remote.ip());
            record.status = refusal.status();
            record.refusal = Some(refusal.as_str());
            log.write(
                worker.index,
                record.line(log.format()),
                &Ending { complete: true, ..Ending::default() },
            );
        }
    }
}
