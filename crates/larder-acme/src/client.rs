//! HTTP to the authority (RFC 9112 over TLS), as the library of the protocol asks for it.
//!
//! In: requests. Out: whole answers of bounded size within a bounded time. One client serves one order or one question, so what it has
//! noted of the last answer belongs to that one; its one connection is kept for as long. `Retry-After` reaches the
//! library as a number of seconds of bounded size. The library adds that number to the time, and panics where the sum is too large for it.
//! A date is counted from larder's clock. Deliberately absent: HTTP/2, redirects, cookies, proxies.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error as ProtocolError, HttpClient};
use larder_http::time::{Clock, WallTime};
use larder_tls::Connector;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// From the look-up of the name to the last byte of the answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// For one address of several.
const CONNECT_TIME: Duration = Duration::from_secs(5);
const ADDRESSES_MAX: usize = 8;
/// A chain of certificates has a few KiB.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
const HEAD_BYTES_MAX: usize = 64 * 1024;
const FIELDS_MAX: usize = 100;
/// Longer waits are cut: none of larder's own is longer.
const RETRY_AFTER_MAX: u64 = 30 * 24 * 3600;
/// Given to the library where a plain answer has none. It takes the window of a renewal for an error otherwise.
const RETRY_AFTER_DEFAULT: u64 = 6 * 3600;
const PRODUCT: HeaderValue =
    HeaderValue::from_static(concat!("larder/", env!("CARGO_PKG_VERSION"), " instant-acme"));

type Body = BodyWrapper<Bytes>;
type Sender = http1::SendRequest<Body>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the authority names {0:?}, which is no https URL")]
    Url(String),
    #[error("the name of the authority's server has no address")]
    Name(#[source] io::Error),
    #[error("no connection to {address}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("no secure connection")]
    Secure(#[source] io::Error),
    #[error("no answer")]
    Exchange(#[source] hyper::Error),
    #[error("the request has no valid head")]
    Head,
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

/// A client for one order or question. Clones are the same client.
#[derive(Clone)]
pub(crate) struct CaClient(Arc<Inner>);

struct Inner {
    connector: Arc<Connector>,
    clock: Clock,
    /// The one connection, and to where, while no request is under way.
    kept: Mutex<Option<(Place, Sender)>>,
    last: Mutex<LastAnswer>,
}

/// What the last answer had beside its content, refusals included. Nothing where there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastAnswer {
    pub(crate) status: Option<StatusCode>,
    /// Bounded.
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq)]
struct Place {
    host: String,
    port: u16,
}

impl CaClient {
    /// Speaks TLS by `connector`.
    pub(crate) fn new(connector: Arc<Connector>, clock: Clock) -> Self {
        Self(Arc::new(Inner { connector, clock, kept: Mutex::new(None), last: Mutex::default() }))
    }

    pub(crate) fn last(&self) -> LastAnswer {
        *self.0.last.lock()
    }
}

impl HttpClient for CaClient {
    fn request(
        &self,
        request: Request<Body>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, ProtocolError>> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = match timeout(ANSWER_TIME, inner.ask(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(ClientError::Late(ANSWER_TIME)),
            };
            answer.map_err(|error| ProtocolError::Other(Box::new(error)))
        })
    }
}

impl Inner {
    async fn ask(&self, request: Request<Body>) -> Result<BytesResponse, ClientError> {
        *self.last.lock() = LastAnswer::default();
        let place = place(request.uri())?;
        let is_plain = request.method() == Method::GET;
        let request = addressed(request, &place)?;
        let (response, sender) = self.exchange(&place, request).await?;
        let (mut parts, body) = response.into_parts();
        // The head has a bound of its own, in the connection.
        let whole = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(unread)?;
        let whole = whole.to_bytes();
        let asked = retry_after(&parts.headers, self.clock.now().wall);
        *self.last.lock() =
            LastAnswer { status: Some(parts.status), retry_after: asked.map(Duration::from_secs) };
        if is_plain {
            usable_directory(&whole)?;
        }
        parts.headers.remove(RETRY_AFTER);
        if let Some(seconds) = asked.or(is_plain.then_some(RETRY_AFTER_DEFAULT)) {
            parts.headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        *self.kept.lock() = Some((place, sender));
        Ok(BytesResponse { parts, body: Box::new(whole) })
    }

    /// Sends over the kept connection, and over a new one where that has ended before anything was sent.
    async fn exchange(
        &self,
        place: &Place,
        mut request: Request<Body>,
    ) -> Result<(Response<Incoming>, Sender), ClientError> {
        let kept = self.kept.lock().take().filter(|(to, sender)| to == place && !sender.is_closed());
        if let Some((_, mut sender)) = kept
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ClientError::Exchange(error.into_error())),
                },
            }
        }
        let mut sender = self.dial(place).await?;
        let response = sender.send_request(request).await.map_err(ClientError::Exchange)?;
        Ok((response, sender))
    }

    async fn dial(&self, place: &Place) -> Result<Sender, ClientError> {
        let host = place.host.as_str();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = tokio::net::lookup_host((bare, place.port)).await.map_err(ClientError::Name)?;
        let mut last = ClientError::Name(io::ErrorKind::NotFound.into());
        for address in found.take(ADDRESSES_MAX) {
            let connected = timeout(CONNECT_TIME, TcpStream::connect(address)).await;
            let stream = match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => stream,
                Err(source) => {
                    last = ClientError::Connect { address, source };
                    continue;
                }
            };
            let stream = self.connector.connect(bare, stream).await.map_err(ClientError::Secure)?;
            let (sender, connection) = http1::Builder::new()
                .max_buf_size(HEAD_BYTES_MAX)
                .max_headers(FIELDS_MAX)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(ClientError::Exchange)?;
            // Ends with its sender, at the latest when this client is dropped.
            tokio::spawn(connection);
            return Ok(sender);
        }
        Err(last)
    }
}

/// Where a URL of the authority leads to.
fn place(uri: &Uri) -> Result<Place, ClientError> {
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) if !host.is_empty() => {
            Ok(Place { host: host.to_owned(), port: uri.port_u16().unwrap_or(443) })
        }
        _ => Err(ClientError::Url(uri.to_string().chars().take(200).collect())),
    }
}

/// Refuses a directory whose URL for nonces is none: the library panics at that one, and takes any other for an error.
fn usable_directory(body: &[u8]) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Nonces {
        #[serde(rename = "newNonce")]
        url: String,
    }
    match serde_json::from_slice::<Nonces>(body) {
        Ok(Nonces { url }) => match url.parse::<Uri>() {
            Ok(uri) => place(&uri).map(drop),
            Err(_) => Err(ClientError::Url(url.chars().take(200).collect())),
        },
        // No directory. Whether it had to be one is known to the library.
        Err(_) => Ok(()),
    }
}

/// The request as it is sent: the target without scheme and authority (RFC 9112 3.2.1), `Host`, and larder's name (RFC 8555 6.1).
fn addressed(request: Request<Body>, place: &Place) -> Result<Request<Body>, ClientError> {
    let (mut parts, body) = request.into_parts();
    let authority = match place.port {
        443 => place.host.clone(),
        port => format!("{}:{port}", place.host),
    };
    let host = HeaderValue::from_str(&authority).map_err(|_| ClientError::Head)?;
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    parts.uri = target.parse().map_err(|_| ClientError::Head)?;
    parts.headers.insert(HOST, host);
    parts.headers.insert(USER_AGENT, PRODUCT);
    Ok(Request::from_parts(parts, body))
}

fn unread(error: Box<dyn std::error::Error + Send + Sync>) -> ClientError {
    match error.downcast::<hyper::Error>() {
        Ok(error) => ClientError::Exchange(*error),
        Err(other) if other.is::<LengthLimitError>() => ClientError::TooLarge(ANSWER_BYTES_MAX),
        Err(_) => ClientError::Head,
    }
}

/// `Retry-After` in seconds from now (RFC 9110 10.2.3), bounded; `None` where there is none that can be read.
fn retry_after(headers: &HeaderMap, now: WallTime) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // A number that is too large for the type is too large anyway.
        text.parse().unwrap_or(u64::MAX)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(UNIX_EPOCH).ok()?.as_secs().saturating_sub(now.secs())
    };
    Some(seconds.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests;
