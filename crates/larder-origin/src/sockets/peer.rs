//! Origins that speak HTTP/2: a proper one, and one made of raw frames for what a proper one never does.
//!
//! [`Peer`] runs the `h2` crate's server side and calls the test's function for each stream. [`Raw`] answers each
//! HEADERS frame with whatever bytes the test gives, and keeps every frame that it received. The testkit's origin speaks
//! HTTP/1 alone.
//! Waiting is for events, never for time to pass; everything ends with the test's runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ServerAddress;
use crate::sockets::patience::PATIENCE;
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::TlsAcceptor;

/// One stream that a client opened.
pub struct Stream {
    pub connection: usize,
    pub request: Request<RecvStream>,
    pub respond: SendResponse<Bytes>,
    pub stage: Arc<Stage>,
}

impl Stream {
    /// Answers with `body`, whole.
    pub fn answer(mut self, body: &'static str) {
        let head = Response::builder().header("content-length", body.len()).body(()).unwrap();
        let mut stream = self.respond.send_response(head, body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        }
    }

    /// Answers with a head alone; content is to follow.
    pub fn begin(&mut self) -> SendStream<Bytes> {
        self.respond.send_response(Response::new(()), false).unwrap()
    }

    /// Reads the request's content; the error is the reset that cut it.
    pub async fn content(&mut self) -> Result<Vec<u8>, h2::Error> {
        let body = self.request.body_mut();
        let mut content = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            content.extend_from_slice(&data);
        }
        Ok(content)
    }
}

/// Sends `bytes` as the window allows.
pub async fn send_all(stream: &mut SendStream<Bytes>, mut bytes: Bytes, ends: bool) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(room)) = room else { return };
        let piece = bytes.split_to(room.min(bytes.len()));
        let is_last = bytes.is_empty() && ends;
        if stream.send_data(piece, is_last).is_err() {
            return;
        }
    }
}

/// What a test and its origin know of each other.
#[derive(Default)]
pub struct Stage {
    accepted: AtomicUsize,
    streams: AtomicUsize,
    notes: Mutex<Vec<String>>,
    frames: Mutex<Vec<Frame>>,
    changed: Notify,
    go: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Stage {
    /// Waits for [`go`](Self::go).
    pub async fn wait(&self) {
        self.go.0.acquire().await.unwrap().forget();
    }

    /// Lets so many waits pass.
    pub fn go(&self, times: usize) {
        self.go.0.add_permits(times);
    }

    /// Remembers `text` for the test.
    pub fn note(&self, text: impl Into<String>) {
        self.notes.lock().push(text.into());
        self.changed.notify_waiters();
    }

    pub fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Streams that were opened so far.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }

    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }

    pub fn frames(&self) -> Vec<Frame> {
        self.frames.lock().clone()
    }

    /// Waits until `is` holds.
    pub async fn until(&self, is: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if is(self) {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("stays at {:?} {:?} {} streams", self.notes(), self.frames(), self.streams());
        }
    }
}

/// How a [`Peer`] is.
#[derive(Default)]
pub struct Manner {
    pub max_streams: Option<u32>,
    pub window: Option<u32>,
    pub tls: Option<TlsAcceptor>,
    /// Connections after so many are taken and get no answer.
    pub answered: Option<usize>,
}

pub struct Peer {
    pub address: ServerAddress,
    pub stage: Arc<Stage>,
}

impl Peer {
    pub async fn start<F>(manner: Manner, act: impl Fn(Stream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (listener, port) = listen().await;
        let address = match manner.tls {
            Some(_) => ServerAddress::Https { host: "localhost".into(), port },
            None => ServerAddress::Http { host: "127.0.0.1".into(), port },
        };
        let stage = Arc::new(Stage::default());
        let act: Act = Arc::new(move |stream| Box::pin(act(stream)));
        let (accepting, manner) = (stage.clone(), Arc::new(manner));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                let connection = accepting.accepted.fetch_add(1, Ordering::SeqCst);
                let (act, stage, manner) = (act.clone(), accepting.clone(), manner.clone());
                tokio::spawn(async move {
                    if manner.answered.is_some_and(|most| connection >= most) {
                        stage.note(format!("connection {connection} hangs"));
                        std::future::pending::<()>().await;
                    }
                    match &manner.tls {
                        None => serve(connection, socket, &manner, act, stage).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(socket).await {
                                serve(connection, stream, &manner, act, stage).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, stage }
    }
}

type Act = Arc<dyn Fn(Stream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    connection: usize,
    socket: S,
    manner: &Manner,
    act: Act,
    stage: Arc<Stage>,
) {
    let mut builder = Builder::new();
    if let Some(most) = manner.max_streams {
        builder.max_concurrent_streams(most);
    }
    if let Some(window) = manner.window {
        builder.initial_window_size(window);
    }
    let Ok(mut server) = builder.handshake::<_, Bytes>(socket).await else { return };
    while let Some(Ok((request, respond))) = server.accept().await {
        stage.streams.fetch_add(1, Ordering::SeqCst);
        stage.changed.notify_waiters();
        tokio::spawn(act(Stream { connection, request, respond, stage: stage.clone() }));
    }
    stage.note(format!("connection {connection} ended"));
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A frame that a [`Raw`] origin received.
#[derive(Clone, Debug)]
pub struct Frame {
    pub connection: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
/// Numbers of settings.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Writes a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A field block of `:status` and `lines`, uncompressed (RFC 7541 6.2.2).
pub fn block(status: u16, lines: &[(&str, &str)]) -> Vec<u8> {
    let status = status.to_string();
    let mut bytes = Vec::new();
    for (name, value) in std::iter::once((":status", status.as_str())).chain(lines.iter().copied()) {
        bytes.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "one length byte is enough for these tests");
            bytes.push(text.len() as u8);
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

pub fn head(stream: u32, status: u16, lines: &[(&str, &str)], flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(status, lines))
}

pub fn data(stream: u32, text: &str, flags: u8) -> Vec<u8> {
    frame(DATA, flags, stream, text.as_bytes())
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// What a [`Raw`] origin does about a request.
pub enum Reply {
    Send(Vec<u8>),
    /// Sends this and closes.
    Close(Vec<u8>),
}

pub struct Raw {
    pub address: ServerAddress,
    pub stage: Arc<Stage>,
}

impl Raw {
    /// `reply` gets the number of the connection and of the stream.
    pub async fn start(reply: impl Fn(usize, u32) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(&[], reply).await
    }

    /// The same, where its first frame says `settings`, each a number and a value.
    pub async fn with(
        settings: &[(u16, u32)],
        reply: impl Fn(usize, u32) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let settings = settings.iter().flat_map(|(id, value)| {
            id.to_be_bytes().into_iter().chain(value.to_be_bytes()).collect::<Vec<u8>>()
        });
        let hello = Arc::new(frame(SETTINGS, 0, 0, &settings.collect::<Vec<u8>>()));
        let (listener, port) = listen().await;
        let stage = Arc::new(Stage::default());
        let (accepting, reply) = (stage.clone(), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                let connection = accepting.accepted.fetch_add(1, Ordering::SeqCst);
                let (stage, reply, hello) = (accepting.clone(), reply.clone(), hello.clone());
                tokio::spawn(async move {
                    let _ = serve_raw(connection, socket, &hello, &stage, &*reply).await;
                    stage.note(format!("connection {connection} ended"));
                });
            }
        });
        Self { address: ServerAddress::Http { host: "127.0.0.1".into(), port }, stage }
    }
}

async fn serve_raw(
    connection: usize,
    mut socket: TcpStream,
    hello: &[u8],
    stage: &Stage,
    reply: &(dyn Fn(usize, u32) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write_all(hello).await?;
    loop {
        let mut start = [0; 9];
        socket.read_exact(&mut start).await?;
        let [a, b, c, kind, flags, id @ ..] = start;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        socket.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(id);
        stage.frames.lock().push(Frame { connection, kind, flags, stream, payload: payload.clone() });
        stage.changed.notify_waiters();
        match kind {
            SETTINGS if flags == 0 => socket.write_all(&frame(SETTINGS, 1, 0, &[])).await?,
            PING if flags == 0 => socket.write_all(&frame(PING, 1, 0, &payload)).await?,
            HEADERS => {
                stage.streams.fetch_add(1, Ordering::SeqCst);
                match reply(connection, stream) {
                    Reply::Send(bytes) => socket.write_all(&bytes).await?,
                    Reply::Close(bytes) => {
                        socket.write_all(&bytes).await?;
                        // An end, not a reset: what was sent is to be read.
                        socket.shutdown().await?;
                        let mut rest = Vec::new();
                        socket.read_to_end(&mut rest).await?;
                        return Ok(());
                    }
                }
            }
            _ => {}
        }
    }
}
