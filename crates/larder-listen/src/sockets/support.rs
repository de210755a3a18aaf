//! A listener on a real loopback socket, a small service behind it that does what the path says, and a raw client in front.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{
    AnyService, BoxedCall, Drain, Interims, Listener, Metrics, Refusal, Service, Settings, Slots, Transport,
    accept_loop,
};
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_body::Frame;
use larder_http::body::{Body, BodyError};
use larder_http::message::{
    Delivery, Duplex, Interim, Peer, PreparedFields, Request, Response, ResponseHead, Tunnel,
};
use larder_testkit::Error;
use larder_testkit::client::Connection;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// So much content has `/breaks-late`: more than one side of a connection takes at first, and less than both do.
pub const BREAKS_LATE_BYTES: usize = 256 * 1024;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// What reached the service.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub fields: HeaderMap,
    pub body: Result<Vec<u8>, BodyError>,
    pub trailers: HeaderMap,
}

#[derive(Clone, Default)]
pub struct TestService {
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub delivered: Arc<Mutex<Vec<Delivery>>>,
    pub refused: Arc<Mutex<Vec<Refusal>>>,
    pub calls: Arc<AtomicUsize>,
    pub running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for TestService {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, interims: &Interims) -> BoxedCall {
        let (service, interims) = (self.clone(), interims.clone());
        Box::pin(async move { (service.answer(request, interims).await, ()) })
    }

    fn delivered(&self, (): (), delivery: Delivery) {
        self.delivered.lock().push(delivery);
    }

    fn refused(&self, refusal: Refusal, _: Option<Peer>) {
        self.refused.lock().push(refusal);
    }
}

impl TestService {
    async fn answer(&self, request: Request, interims: Interims) -> Response {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(self.running.clone());
        let head = request.head;
        let path = head.target.path().to_owned();
        let line = format!("{} {} {} {:?}", head.method, head.authority, head.target, head.version);
        let websocket = request.websocket;
        let mut trailers = HeaderMap::new();
        let body = if path.starts_with("/ignore") {
            // Gone before the answer.
            drop(request.body);
            Ok(Vec::new())
        } else {
            read_all(request.body, &mut trailers).await
        };
        self.seen.lock().push(Seen { line: line.clone(), fields: head.fields, body: body.clone(), trailers });
        match path.as_str() {
            "/never" => std::future::pending().await,
            "/later" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                text("late")
            }
            "/ignore" => text("ignored"),
            "/ignore-late" => {
                // What its client may send has come by then.
                tokio::time::sleep(Duration::from_millis(100)).await;
                stream(None, vec![Ok("ignored")])
            }
            "/204" => with_status(204, Body::Empty),
            "/304" => with_status(304, Body::Empty),
            "/empty" => with_status(200, Body::Empty),
            "/pieces" => {
                let pieces: Vec<Bytes> = (0..200_u32).map(|n| Bytes::from(vec![n as u8; 10_007])).collect();
                with_status(200, Body::Pieces { owner: Arc::new(pieces), range: 5..2_001_000 })
            }
            "/known" => stream(Some(10), vec![Ok("01234"), Ok("56789")]),
            "/unknown" => stream(None, vec![Ok("01234"), Ok(""), Ok("56789")]),
            "/short" => stream(Some(11), vec![Ok("01234"), Ok("56789")]),
            "/long" => stream(Some(9), vec![Ok("01234"), Ok("56789")]),
            "/broken" => stream(None, vec![Ok("01234"), Err(BodyError::Cut)]),
            "/breaks-late" => {
                let frame: &'static str = Box::leak("#".repeat(BREAKS_LATE_BYTES / 4).into_boxed_str());
                stream(None, vec![Ok(frame), Ok(frame), Ok(frame), Ok(frame), Err(BodyError::Cut)])
            }
            "/slow" => {
                let stream = Script { frames: vec![Ok("01234")], hangs: true };
                with_status(200, Body::Stream { length: None, stream: Box::pin(stream) })
            }
            "/interims" => {
                for n in 0..20 {
                    let mut fields = HeaderMap::new();
                    fields.insert("link", HeaderValue::from_str(&format!("</{n}>")).unwrap());
                    interims.push(Interim { status: StatusCode::EARLY_HINTS, fields });
                    tokio::task::yield_now().await;
                }
                text("final")
            }
            "/one-piece" => with_status(200, Bytes::from(vec![b'x'; 50_000]).into()),
            "/long-head" => {
                let mut response = text("long");
                for n in 0..40 {
                    let name = HeaderName::try_from(format!("x-long-{n}")).unwrap();
                    // Octets that Huffman's code makes no shorter.
                    response.head.fields.insert(name, HeaderValue::try_from("~^{}".repeat(250)).unwrap());
                }
                response
            }
            "/stored" => {
                let mut map = HeaderMap::new();
                map.insert("x-stored", HeaderValue::from_static("1"));
                map.insert("date", HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
                let mut response = text("stored");
                response.head.stored = Some(Arc::new(PreparedFields::new(map)));
                response
            }
            "/switch" if websocket => {
                let (mine, theirs) = tokio::io::duplex(1024);
                tokio::spawn(async move {
                    let (mut read, mut write) = tokio::io::split(theirs);
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    let _ = write.shutdown().await;
                });
                let mut response = with_status(101, Body::Empty);
                response.head.fields.insert("sec-websocket-accept", HeaderValue::from_static("x"));
                response.tunnel = Some(Tunnel(Box::pin(Mine(mine))));
                response
            }
            "/101" => with_status(101, Body::Empty),
            "/close" => {
                let mut response = text("bye");
                response.close = true;
                response
            }
            _ => {
                let body = body.unwrap_or_default();
                text(&format!("{line}\n{}", String::from_utf8_lossy(&body)))
            }
        }
    }
}

async fn read_all(body: Body, trailers: &mut HeaderMap) -> Result<Vec<u8>, BodyError> {
    let Body::Stream { mut stream, .. } = body else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(data) => all.extend_from_slice(&data),
            Err(frame) => *trailers = frame.into_trailers().unwrap(),
        }
    }
    Ok(all)
}

fn with_status(status: u16, body: Body) -> Response {
    Response::new(ResponseHead::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new()), body)
}

fn text(text: &str) -> Response {
    let mut response = with_status(200, Bytes::copy_from_slice(text.as_bytes()).into());
    response.head.fields.insert(HeaderName::from_static("x-service"), HeaderValue::from_static("yes"));
    response
}

fn stream(length: Option<u64>, mut frames: Vec<Result<&'static str, BodyError>>) -> Response {
    frames.reverse();
    with_status(200, Body::Stream { length, stream: Box::pin(Script { frames, hangs: false }) })
}

struct Script {
    frames: Vec<Result<&'static str, BodyError>>,
    hangs: bool,
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = BodyError;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.frames.pop() {
            None if self.hangs => Poll::Pending,
            next => Poll::Ready(next.map(|frame| frame.map(|text| Frame::data(Bytes::from(text))))),
        }
    }
}

/// A tunnel's end that is not the origin's.
struct Mine(tokio::io::DuplexStream);

impl Duplex for Mine {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(bytes);
        Pin::new(&mut self.0).poll_read(cx, &mut into).map_ok(|()| into.filled().len())
    }

    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A listener under test.
pub struct Listening {
    pub address: SocketAddr,
    pub service: TestService,
    pub metrics: Arc<Metrics>,
    pub drain: Drain,
}

impl Listening {
    pub fn open() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::on(Transport::Tcp, settings)
    }

    pub fn on(transport: Transport, settings: Settings) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut bound = Listener { transport, ..address.into() }.bind(1).unwrap();
        let (service, metrics, drain) = (TestService::default(), Arc::new(Metrics::default()), Drain::new());
        tokio::spawn(accept_loop(
            bound.sockets.pop().unwrap(),
            Arc::new(arc_swap::ArcSwap::from_pointee(settings)),
            AnyService::new(service.clone()),
            Slots::new(100),
            metrics.clone(),
            drain.signal(),
            Arc::default(),
        ));
        Self { address: bound.listener.address, service, metrics, drain }
    }

    pub async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends `bytes` and reads to the end of the connection.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.write(bytes).await;
        client.rest().await
    }

    pub fn lines(&self) -> Vec<String> {
        self.service.seen.lock().iter().map(|seen| seen.line.clone()).collect()
    }
}

/// A raw client, and what it reads as text.
pub struct Client {
    pub connection: Connection,
}

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within 10 s")
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { connection: Connection::open(address, PATIENCE).await.unwrap() }
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // The other side may have refused and closed before it has read everything.
        let _ = soon(self.connection.write(bytes.as_ref())).await;
    }

    /// Everything up to the end of the connection; a reset is marked.
    pub async fn rest(&mut self) -> String {
        let (all, end) = self.connection.read_to_end().await;
        let all = String::from_utf8_lossy(&all).into_owned();
        match end {
            Ok(()) => all,
            Err(Error::Io(_)) => all + "[reset]",
            Err(error) => panic!("{error} after {all:?}"),
        }
    }

    /// Reads until `end` has come.
    pub async fn until(&mut self, end: &str) -> String {
        let came = self.connection.read_until(end.as_bytes()).await;
        let came = came.unwrap_or_else(|error| panic!("{error}, after {:?}", self.connection.ahead()));
        String::from_utf8_lossy(&came).into_owned()
    }
}

/// Waits until `holds`, which something else brings about.
pub async fn eventually(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Without its Date line, which differs from run to run.
pub fn without_date(response: &str) -> String {
    response.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}
