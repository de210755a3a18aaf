//! One client's connection, from its accepted transport to its end.
//!
//! In: an [`Accepted`] transport. Out: `detect` tells which protocol the client speaks on it, and `http1` or `http2`
//! serves it to its end.

use std::sync::Arc;

use larder_http::message::Scheme;

use crate::accepted::Accepted;
use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::detect::{Detected, ReadAhead};
use crate::drain::{DrainSignal, Membership};
use crate::error::Refusal;
use crate::listener::Protocol;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;
use crate::tls::{self, OpenHandshake, Shaken};
use crate::{http1, http2};

/// Serves one connection to its end, over the protocol that the client speaks.
///
/// # Cancel safety
/// Dropping it closes the connection; calls of the service that run in it are dropped, and their responses reported
/// as not complete.
pub async fn serve_connection<T: ByteStream, S: Service>(
    accepted: Accepted<T>,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    drain: DrainSignal,
) {
    serve_member(accepted, settings, service, metrics, drain.join()).await;
}

/// The same for a connection that has joined the drain: whoever spawns it joins first, so that a drain that starts
/// before the task first runs waits for it as well.
pub(crate) async fn serve_member<T: ByteStream, S: Service>(
    accepted: Accepted<T>,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    mut membership: Membership,
) {
    let _open = Open::count(metrics.clone());
    serve(accepted, settings, service, metrics, &mut membership).await;
}

/// The same over TLS, from the handshake on, which is counted among those `handshakes` that are under way.
pub(crate) async fn serve_tls_member<T: ByteStream, S: Service>(
    accepted: Accepted<T>,
    handshake: OpenHandshake,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    mut membership: Membership,
) {
    let _open = Open::count(metrics.clone());
    let Some(tls) = settings.tls.clone() else { return };
    match tls::shake(accepted, &tls, handshake, &settings.limits, &metrics).await {
        Shaken::Http(accepted) => serve(accepted, settings, service, metrics, &mut membership).await,
        Shaken::ClearText(accepted) => {
            let Accepted { stream, peer, .. } = accepted;
            let context = ConnectionContext { peer, scheme: Scheme::Http, settings, service, metrics };
            http1::refuse(ReadAhead::new(stream), Refusal::ClearText, &context, &mut membership).await;
        }
        Shaken::Over => {}
    }
}

async fn serve<T: ByteStream, S: Service>(
    accepted: Accepted<T>,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    membership: &mut Membership,
) {
    let Accepted { stream, peer, transport, protocols } = accepted;
    let context = ConnectionContext { peer, scheme: transport.scheme(), settings, service, metrics };
    let mut stream = ReadAhead::new(stream);
    match stream.detect(protocols, &context.settings.limits, &context.metrics, membership).await {
        Detected::Protocol(Protocol::Http1) => http1::serve(stream, &context, membership).await,
        Detected::Protocol(Protocol::Http2) => {
            http2::serve(stream, &context, membership).await;
        }
        Detected::Late => http1::refuse(stream, Refusal::HeadTimeout, &context, membership).await,
        Detected::Nothing => {}
    }
}

/// Holds the gauge of open connections up.
struct Open(Arc<Metrics>);

impl Open {
    fn count(metrics: Arc<Metrics>) -> Self {
        metrics.open.add(1);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.sub(1);
    }
}
