//! A final head becomes a response: checked, stripped, its body bound to its connection.
//!
//! In: what an attempt brought. Out: an [`OriginResponse`], whose body or tunnel holds the connection and counts as in
//! flight until it ends; or why the answer cannot be believed, after which the connection is closed.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use http_body::Body as _;
use hyper::upgrade::Upgraded;
use larder_http::body::Body;
use larder_http::fields::content_type;
use larder_http::message::Tunnel;
use larder_http::trailers;

use crate::answer::{self, OriginResponse};
use crate::attempt::Answered;
use crate::download::{Download, Hold, Incoming};
use crate::error::OriginError;
use crate::in_flight::InFlight;
use crate::lease::Lease;
use crate::reach::Reached;
use crate::request::Asked;
use crate::settings::OriginSettings;
use crate::tunnel::TunnelStream;

/// Checks the final head and makes a response of it; the endpoint is told how it did.
///
/// # Cancel safety
/// May be dropped at any time; the connection is closed.
pub(crate) async fn accept(
    reached: Reached,
    asked: &Asked,
    settings: &OriginSettings,
    in_flight: InFlight,
) -> Result<Box<OriginResponse>, OriginError> {
    match reached.answered.response.status() {
        StatusCode::SWITCHING_PROTOCOLS => Box::pin(accept_tunnel(reached, asked, settings, in_flight)).await,
        _ => accept_content(reached, asked, settings, in_flight),
    }
}

async fn accept_tunnel(
    reached: Reached,
    asked: &Asked,
    settings: &OriginSettings,
    mut in_flight: InFlight,
) -> Result<Box<OriginResponse>, OriginError> {
    let Reached { mut ticket, answered: Answered { lease, response, .. }, timing, attempts } = reached;
    let reused = lease.is_reused;
    let (server, tag) = (Arc::clone(ticket.endpoint().server_name()), ticket.endpoint().tag());
    let (status, fields, upgraded) = match switch(lease, response, asked.websocket, settings).await {
        Ok(switched) => switched,
        Err(error) => {
            ticket.failed();
            return Err(error);
        }
    };
    ticket.succeeded();
    ticket.answered(status, timing.first_byte);
    in_flight.stay(ticket);
    // The stream now owns the socket; hyper's task has ended, and the lease with nothing left to close.
    let tunnel = Tunnel(Box::pin(TunnelStream::new(upgraded, in_flight)));
    Ok(Box::new(OriginResponse {
        status,
        fields,
        content_length: None,
        announced: None,
        body: Body::Empty,
        tunnel: Some(tunnel),
        server,
        attempts,
        tag,
        reused,
        timing,
    }))
}

fn accept_content(
    reached: Reached,
    asked: &Asked,
    settings: &OriginSettings,
    mut in_flight: InFlight,
) -> Result<Box<OriginResponse>, OriginError> {
    let Reached { mut ticket, answered, timing, attempts } = reached;
    let Answered { lease, response, is_upload_complete, uploading } = answered;
    let reused = lease.is_reused;
    let (server, tag) = (Arc::clone(ticket.endpoint().server_name()), ticket.endpoint().tag());
    let (mut parts, incoming) = response.into_parts();
    let framing = answer::check(&parts, &asked.method, &settings.head).inspect_err(|_| ticket.failed())?;
    ticket.succeeded();
    ticket.answered(parts.status, timing.first_byte);
    in_flight.stay(ticket);
    let limit = match content_type::is_stream(&parts.headers) {
        true => settings.timeouts.event_stream,
        false => settings.timeouts.between_bytes,
    };
    let announced = trailers::announced(&parts.headers);
    answer::strip(&mut parts.headers);
    let is_reusable = framing.is_reusable && is_upload_complete && !asked.authenticates_connection;
    let hold = Hold { lease, is_reusable, uploading, in_flight };
    let body = if incoming.is_end_stream() {
        hold.finish();
        Body::Empty
    } else {
        let length = incoming.size_hint().exact();
        Body::Stream { length, stream: Box::pin(Download::new(incoming, hold, limit, asked.total)) }
    };
    Ok(Box::new(OriginResponse {
        status: parts.status,
        fields: parts.headers,
        content_length: framing.content_length,
        announced: announced.filter(|_| !body.is_empty()),
        body,
        tunnel: None,
        server,
        attempts,
        tag,
        reused,
        timing,
    }))
}

/// Takes the connection out of HTTP, if that is what was asked and granted.
async fn switch(
    lease: Lease,
    mut response: Response<Incoming>,
    websocket: bool,
    settings: &OriginSettings,
) -> Result<(StatusCode, HeaderMap, Upgraded), OriginError> {
    let upgrade = hyper::upgrade::on(&mut response);
    let (mut parts, _) = response.into_parts();
    if !websocket || !answer::grants_websocket(&mut parts) {
        return Err(OriginError::UnexpectedUpgrade);
    }
    lease.become_tunnel();
    let upgraded = tokio::time::timeout(settings.timeouts.connect, upgrade)
        .await
        .map_err(|_| OriginError::Closed)?
        .map_err(|_| OriginError::Closed)?;
    answer::strip(&mut parts.headers);
    Ok((parts.status, parts.headers, upgraded))
}
