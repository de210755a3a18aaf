//! The listener's side of a worker: each request goes to [`serve`](crate::serve), and each delivery to the log.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use larder_http::message::{Delivery, Peer, Request};
use larder_listen::{
    BoundSocket, DrainSignal, Handshakes, Interims, Metrics, Refusal, Service, Settings, Slots, accept_loop,
};
use larder_observe::{Ending, LogRecord};

use crate::receipt::Receipt;
use crate::serve::Serving;
use crate::worker::Worker;

/// The listener's side of a worker.
#[derive(Clone, Debug)]
pub struct ProxyService(pub Arc<Worker>);

impl ProxyService {
    /// [`larder_listen::accept_loop`] for requests to this worker. In a box, so that the listener is compiled into this crate and not into its
    /// caller's, whose code is optimised for being built quickly.
    ///
    /// # Errors
    /// Those of the loop.
    ///
    /// # Cancel safety
    /// That of the loop.
    pub fn accept(
        self,
        socket: BoundSocket,
        settings: Arc<ArcSwap<Settings>>,
        slots: Arc<Slots>,
        metrics: Arc<Metrics>,
        drain: DrainSignal,
        handshakes: Arc<Handshakes>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
        Box::pin(accept_loop(socket, settings, self, slots, metrics, drain, handshakes))
    }
}

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
