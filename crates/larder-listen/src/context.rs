//! What the protocols know of the connection that they serve.

use std::sync::Arc;

use larder_http::message::{Peer, Scheme};

use crate::metrics::Metrics;
use crate::settings::Settings;

/// What one connection, or one stream of it, is served with.
#[derive(Clone)]
pub(crate) struct ConnectionContext<S> {
    pub(crate) peer: Peer,
    pub(crate) scheme: Scheme,
    pub(crate) settings: Arc<Settings>,
    pub(crate) service: S,
    pub(crate) metrics: Arc<Metrics>,
}
