//! hyper's server on a pipe.

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::converse;
use crate::seen::{Log, Seen, authority, end_to_end};

/// What hyper made of a connection.
pub struct Reading {
    /// What the service saw, and the raw head beside each.
    pub requests: Vec<(Seen, Raw)>,
    /// Why the connection failed, if it did.
    pub error: Option<String>,
}

/// What hyper read before the projection, for the judge's conditions.
#[derive(Clone, Debug)]
pub struct Raw {
    /// The target as hyper understood it.
    pub uri: http::Uri,
    /// Every field, connection-level ones too.
    pub fields: http::HeaderMap,
}

/// Feeds `input` to hyper's server.
pub fn read(input: &[u8]) -> Reading {
    let log = Log::default();
    let raw = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let error = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let (noted, heads, failed) = (log.clone(), raw.clone(), error.clone());
    converse(input, |io| async move {
        let service = service_fn(move |request: Request<Incoming>| {
            let (log, heads) = (noted.clone(), heads.clone());
            async move { Ok::<_, Infallible>(answer(request, &log, &heads).await) }
        });
        let served = http1::Builder::new()
            // The client has closed its side before the first answer.
            .half_close(true)
            .serve_connection(TokioIo::new(io), service)
            .await;
        if let Err(error) = served {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            *failed.lock() = Some(format!("{error}{cause}"));
        }
    });
    let raw = std::mem::take(&mut *raw.lock());
    let error = error.lock().take();
    Reading { requests: log.take().into_iter().zip(raw).collect(), error }
}

async fn answer(
    request: Request<Incoming>,
    log: &Log,
    heads: &parking_lot::Mutex<Vec<Raw>>,
) -> Response<Empty<Bytes>> {
    let (head, mut body) = request.into_parts();
    heads.lock().push(Raw { uri: head.uri.clone(), fields: head.headers.clone() });
    let host = head.headers.get(header::HOST).map(|host| host.as_bytes().to_vec());
    let named = head.uri.authority().map(|a| a.as_str().as_bytes().to_vec()).or(host);
    let place = log.begin(Seen {
        method: head.method.as_str().to_owned(),
        target: origin_form(&head.method, &head.uri),
        authority: named.map(|named| authority(&named)),
        version: format!("{:?}", head.version),
        fields: end_to_end(&head.headers),
        content: Vec::new(),
        whole: false,
    });
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Response::new(Empty::new());
        };
        if let Ok(data) = frame.into_data() {
            log.content(place, &data);
        }
    }
    log.whole(place);
    Response::new(Empty::new())
}

/// Path and query as larder passes them on: `http://a?q` asks for `/?q` (RFC 9112 3.2.1), and OPTIONS of `http://a` for
/// `*` (3.2.4).
fn origin_form(method: &http::Method, uri: &http::Uri) -> String {
    // `http` prints an absent path as `/`; compared, the two differ.
    let root = http::uri::PathAndQuery::from_static("/");
    let is_pathless = uri.path_and_query().is_none_or(|target| target.as_str() == "/" && *target != root);
    if method == http::Method::OPTIONS && uri.authority().is_some() && is_pathless {
        return "*".to_owned();
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    if target.starts_with('?') { format!("/{target}") } else { target.to_owned() }
}
