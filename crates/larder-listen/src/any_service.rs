//! One type for services of any kind.
//!
//! In: a service whose calls are boxed and want nothing back. Out: a [`Service`] that passes everything on to it.

use std::sync::Arc;

use larder_http::message::{Delivery, Peer, Request};

use crate::error::Refusal;
use crate::service::{BoxedCall, Interims, Service};

/// A service of any type. The listener is compiled anew for each type of service, over each transport: services that answer few requests
/// share this one. Cloning shares the service.
#[derive(Clone)]
pub struct AnyService(Arc<dyn Erased>);

impl AnyService {
    /// A share in `service`.
    pub fn new(service: impl Service<Receipt = (), Call = BoxedCall>) -> Self {
        Self(Arc::new(service))
    }
}

impl Service for AnyService {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, interims: &Interims) -> BoxedCall {
        self.0.call(request, interims)
    }

    fn delivered(&self, (): (), delivery: Delivery) {
        self.0.delivered(delivery);
    }

    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        self.0.refused(refusal, peer);
    }
}

/// [`Service`] without what a trait object cannot have.
trait Erased: Send + Sync {
    fn call(&self, request: Request, interims: &Interims) -> BoxedCall;
    fn delivered(&self, delivery: Delivery);
    fn refused(&self, refusal: Refusal, peer: Option<Peer>);
}

impl<S: Service<Receipt = (), Call = BoxedCall>> Erased for S {
    fn call(&self, request: Request, interims: &Interims) -> BoxedCall {
        Service::call(self, request, interims)
    }

    fn delivered(&self, delivery: Delivery) {
        Service::delivered(self, (), delivery);
    }

    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        Service::refused(self, refusal, peer);
    }
}
