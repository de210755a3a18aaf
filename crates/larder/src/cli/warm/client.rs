//! A client that keeps one connection to larder.
//!
//! In: a URL. Out: the head of the answer, then its body piece by piece. A connection that larder has closed between two requests is
//! replaced once, without a word. Every wait has a limit. Redirects are answers like others: they are not followed.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use larder_http::message::Scheme;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::url::WarmUrl;

/// How long larder may take to accept.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long an answer may take to begin: an origin's own limits for a head, and some more.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// How long it may be silent within a body.
const SILENCE_TIME: Duration = Duration::from_secs(60);
/// The longest that one answer may take, from the request to its last byte.
pub(super) const WHOLE_TIME: Duration = Duration::from_secs(600);
/// Fields of an answer: as many as larder takes from an origin, and those that it adds.
const FIELDS_MAX: usize = 300;

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfetched {
    #[error("no connection")]
    Connect(#[source] io::Error),
    #[error("no answer within {} s", ANSWER_TIME.as_secs())]
    Time,
    #[error("the connection broke")]
    Broke(#[source] hyper::Error),
    #[error("the body was silent for {} s", SILENCE_TIME.as_secs())]
    Silent,
    #[error("no end of the answer within {} min", .0.as_secs() / 60)]
    Endless(Duration),
}

/// One client.
pub(super) struct WarmClient {
    /// Host and port of the listener.
    address: String,
    /// Sent with each request.
    fields: HeaderMap,
    kept: Option<KeptConnection>,
}

struct KeptConnection {
    sender: SendRequest<Empty<Bytes>>,
    local: IpAddr,
    /// Carries the bytes; ends with the connection.
    _driver: JoinSet<()>,
}

impl WarmClient {
    pub(super) fn new(address: String, fields: HeaderMap) -> Self {
        Self { address, fields, kept: None }
    }

    /// Connects, unless it is connected. Returns the address under which larder sees this client.
    ///
    /// # Errors
    /// Nobody accepts.
    pub(super) async fn connect(&mut self) -> Result<IpAddr, Unfetched> {
        if let Some(kept) = self.kept.as_ref().filter(|kept| !kept.sender.is_closed()) {
            return Ok(kept.local);
        }
        let connecting = timeout(CONNECT_TIME, TcpStream::connect(&self.address));
        let stream = connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = stream.map_err(Unfetched::Connect)?;
        stream.set_nodelay(true).map_err(Unfetched::Connect)?;
        let local = stream.local_addr().map_err(Unfetched::Connect)?.ip();
        let shaking = http1::Builder::new().max_headers(FIELDS_MAX).handshake(TokioIo::new(stream));
        let (sender, connection) = shaking.await.map_err(Unfetched::Broke)?;
        let mut driver = JoinSet::new();
        // Its errors reach the exchange that they break.
        driver.spawn(async { drop(connection.await) });
        self.kept = Some(KeptConnection { sender, local, _driver: driver });
        Ok(local)
    }

    /// Asks for a URL. The body has to be read before the next question, else the connection is given up.
    ///
    /// # Errors
    /// No head of an answer comes.
    pub(super) async fn ask(
        &mut self,
        url: &WarmUrl,
        accept_encoding: &HeaderValue,
    ) -> Result<Response<Incoming>, Unfetched> {
        let is_new = self.kept.is_none();
        match self.try_ask(url, accept_encoding).await {
            // larder may close an idle connection at any moment, and a GET may be repeated.
            Err(Unfetched::Broke(_)) if !is_new => {
                self.forget();
                self.try_ask(url, accept_encoding).await
            }
            answered => answered,
        }
    }

    async fn try_ask(
        &mut self,
        url: &WarmUrl,
        accept_encoding: &HeaderValue,
    ) -> Result<Response<Incoming>, Unfetched> {
        let request = self.request(url, accept_encoding);
        self.connect().await?;
        let Some(kept) = &mut self.kept else {
            return Err(Unfetched::Connect(io::ErrorKind::NotConnected.into()));
        };
        let asking = async {
            kept.sender.ready().await?;
            kept.sender.send_request(request).await
        };
        let answered = match timeout(ANSWER_TIME, asking).await {
            Ok(answered) => answered.map_err(Unfetched::Broke),
            Err(_) => Err(Unfetched::Time),
        };
        if answered.is_err() {
            self.forget();
        }
        answered
    }

    fn request(&self, url: &WarmUrl, accept_encoding: &HeaderValue) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from(url.target.clone());
        let fields = request.headers_mut();
        fields.reserve(self.fields.len() + 3);
        // An authority has no byte that a value may not have.
        if let Ok(host) = HeaderValue::from_maybe_shared(url.authority.as_bytes().clone()) {
            fields.insert(HOST, host);
        }
        fields.insert(ACCEPT_ENCODING, accept_encoding.clone());
        if url.scheme == Scheme::Https {
            fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(Scheme::Https.as_str()));
        }
        for (name, value) in &self.fields {
            fields.append(name, value.clone());
        }
        request
    }

    /// Gives the connection up.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }
}

/// The next bytes of a body; `None` at its end.
///
/// # Errors
/// It breaks off, or is silent for too long.
pub(super) async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, Unfetched> {
    loop {
        let frame = timeout(SILENCE_TIME, body.frame()).await.map_err(|_| Unfetched::Silent)?;
        match frame.transpose().map_err(Unfetched::Broke)?.map(hyper::body::Frame::into_data) {
            None => return Ok(None),
            Some(Ok(piece)) => return Ok(Some(piece)),
            // Trailers.
            Some(Err(_)) => {}
        }
    }
}
