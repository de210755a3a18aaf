//! An origin that does exactly what a script says, on a real socket, and remembers what it received.
//!
//! In: one list of steps per connection, in the order of acceptance. Out: the bytes of each connection. Waiting is for
//! events, never for time to pass; everything ends with the test's runtime.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use larder_http::authority::Authority;
use larder_http::body::{Body, BodyError};
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_origin::{
    Affinity, Origin, OriginError, OriginRequest, OriginSettings, OriginState, ServerAddress, ServerState,
};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, mpsc};

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub enum Step {
    /// Reads until one more head is complete.
    Head,
    /// Reads until this text has come.
    Until(&'static str),
    /// Writes, all in one segment where the kernel agrees.
    Send(Vec<u8>),
    /// Waits for [`Scripted::go`].
    Wait,
    /// Tells [`Scripted::reached`].
    Tell,
    /// Sends an end.
    Close,
    /// Closes with a reset.
    Reset,
}

pub fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec())
}

/// The usual answer.
pub fn answer(body: &str) -> Step {
    send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

#[derive(Clone, Debug, Default)]
pub struct Conversation {
    pub received: Vec<u8>,
    /// The peer has closed, or the script has.
    pub is_over: bool,
}

impl Conversation {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }
}

struct Stage {
    scripts: Mutex<VecDeque<Vec<Step>>>,
    conversations: Mutex<Vec<Conversation>>,
    changed: Notify,
    go: Semaphore,
    reached: Semaphore,
}

pub struct Scripted {
    pub address: ServerAddress,
    stage: Arc<Stage>,
}

impl Scripted {
    fn stage(scripts: Vec<Vec<Step>>) -> Arc<Stage> {
        Arc::new(Stage {
            scripts: Mutex::new(scripts.into()),
            conversations: Mutex::default(),
            changed: Notify::new(),
            go: Semaphore::new(0),
            reached: Semaphore::new(0),
        })
    }

    pub async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address =
            ServerAddress::Http { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
        let stage = Self::stage(scripts);
        let actors = stage.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let stage = actors.clone();
                let Some((number, steps)) = stage.enter() else {
                    continue;
                };
                tokio::spawn(async move { stage.act_tcp(number, steps, socket).await });
            }
        });
        Self { address, stage }
    }

    /// The same, where `wrap` makes something else of the accepted socket (TLS).
    pub async fn start_wrapped<S, F>(
        scripts: Vec<Vec<Step>>,
        wrap: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = std::io::Result<S>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stage = Self::stage(scripts);
        let actors = stage.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let wrapped = wrap(socket);
                let stage = actors.clone();
                tokio::spawn(async move {
                    let Ok(socket) = wrapped.await else { return };
                    let Some((number, steps)) = stage.enter() else {
                        return;
                    };
                    stage.act(number, steps, socket).await;
                });
            }
        });
        Self { address: ServerAddress::Https { host: "localhost".into(), port }, stage }
    }

    pub async fn start_unix(path: &std::path::Path, scripts: Vec<Vec<Step>>) -> Self {
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let stage = Self::stage(scripts);
        let actors = stage.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let stage = actors.clone();
                let Some((number, steps)) = stage.enter() else {
                    continue;
                };
                tokio::spawn(async move { stage.act(number, steps, socket).await });
            }
        });
        Self { address: ServerAddress::Unix(path.into()), stage }
    }

    /// Lets one [`Step::Wait`] pass.
    pub fn go(&self) {
        self.stage.go.add_permits(1);
    }

    /// Waits for one [`Step::Tell`].
    pub async fn reached(&self) {
        let permit = tokio::time::timeout(PATIENCE, self.stage.reached.acquire()).await;
        permit.expect("the script gets there").unwrap().forget();
    }

    pub fn connections(&self) -> usize {
        self.stage.conversations.lock().len()
    }

    pub fn conversation(&self, number: usize) -> Conversation {
        self.stage.conversations.lock().get(number).cloned().unwrap_or_default()
    }

    /// Waits until a conversation is as `is` wants it, and returns it.
    pub async fn until(&self, number: usize, is: impl Fn(&Conversation) -> bool) -> Conversation {
        let waiting = async {
            loop {
                let changed = self.stage.changed.notified();
                let conversation = self.conversation(number);
                if is(&conversation) {
                    return conversation;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(conversation) => conversation,
            Err(_) => panic!("conversation {number} stays at {:?}", self.conversation(number).text()),
        }
    }

    /// Waits until a connection has ended, and returns what it received.
    pub async fn ended(&self, number: usize) -> String {
        self.until(number, |conversation| conversation.is_over).await.text()
    }
}

impl Stage {
    fn enter(&self) -> Option<(usize, Vec<Step>)> {
        let steps = self.scripts.lock().pop_front();
        let mut conversations = self.conversations.lock();
        conversations.push(Conversation { is_over: steps.is_none(), ..Conversation::default() });
        self.changed.notify_waiters();
        Some((conversations.len() - 1, steps?))
    }

    async fn act_tcp(&self, number: usize, steps: Vec<Step>, socket: TcpStream) {
        socket.set_nodelay(true).unwrap();
        let resets = steps.iter().any(|step| matches!(step, Step::Reset));
        if resets {
            socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
        }
        self.act(number, steps, socket).await;
    }

    async fn act<S: AsyncRead + AsyncWrite + Unpin>(&self, number: usize, steps: Vec<Step>, mut socket: S) {
        let mut seen = 0;
        for step in steps {
            let more = match step {
                Step::Head => self.read_until(number, &mut socket, &mut seen, "\r\n\r\n").await,
                Step::Until(text) => self.read_until(number, &mut socket, &mut seen, text).await,
                Step::Send(bytes) => socket.write_all(&bytes).await.is_ok() && socket.flush().await.is_ok(),
                Step::Wait => {
                    self.go.acquire().await.unwrap().forget();
                    true
                }
                Step::Tell => {
                    self.reached.add_permits(1);
                    true
                }
                Step::Close => socket.shutdown().await.is_ok(),
                Step::Reset => false,
            };
            if !more {
                drop(socket);
                return self.over(number);
            }
        }
        while self.read_some(number, &mut socket).await {}
        self.over(number);
    }

    async fn read_until<S: AsyncRead + Unpin>(
        &self,
        number: usize,
        socket: &mut S,
        seen: &mut usize,
        text: &str,
    ) -> bool {
        loop {
            let found = {
                let conversations = self.conversations.lock();
                let rest = &conversations[number].received[*seen..];
                rest.windows(text.len()).position(|window| window == text.as_bytes())
            };
            if let Some(at) = found {
                *seen += at + text.len();
                return true;
            }
            if !self.read_some(number, socket).await {
                return false;
            }
        }
    }

    async fn read_some<S: AsyncRead + Unpin>(&self, number: usize, socket: &mut S) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        let read = socket.read(&mut buffer).await.unwrap_or(0);
        self.conversations.lock()[number].received.extend_from_slice(&buffer[..read]);
        self.changed.notify_waiters();
        read > 0
    }

    fn over(&self, number: usize) {
        self.conversations.lock()[number].is_over = true;
        self.changed.notify_waiters();
    }
}

/// larder's side of the wire.
pub struct Larder {
    pub origin: Arc<Origin>,
    pub state: Arc<OriginState>,
}

impl Larder {
    pub fn new(address: &ServerAddress, change: impl FnOnce(&mut OriginSettings)) -> Self {
        let mut settings = OriginSettings::new("app", vec![address.clone()]);
        change(&mut settings);
        Self::with(settings)
    }

    /// In front of several servers.
    pub fn with(settings: OriginSettings) -> Self {
        let state = OriginState::new();
        let origin = Arc::new(Origin::new(Arc::new(settings), state.clone()).unwrap());
        Self { origin, state }
    }

    /// Another worker, or the same one after a reload.
    pub fn after(&self, settings: impl Into<Arc<OriginSettings>>) -> Self {
        let origin = Arc::new(Origin::new(settings.into(), self.state.clone()).unwrap());
        Self { origin, state: self.state.clone() }
    }

    /// The content of an answer to `request`.
    pub async fn text(&self, request: OriginRequest) -> Result<String, OriginError> {
        let response = self.origin.send(request).await?;
        let (content, outcome) = read(response.body).await;
        outcome.unwrap();
        Ok(String::from_utf8(content).unwrap())
    }

    /// The states of all servers' addresses.
    pub fn states(&self) -> Vec<ServerState> {
        self.state.servers().iter().map(|server| server.state).collect()
    }

    /// Waits until those are `expected`.
    pub async fn become_(&self, expected: &[ServerState]) {
        let waiting = async {
            while self.states() != expected {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("{:?} stays, expected {expected:?}", self.state.servers());
        }
    }

    /// Ends this side and waits until nothing of it is left.
    pub async fn ends_without_leaks(self) {
        let Self { origin, state } = self;
        drop(origin);
        state.is_quiet().await;
    }
}

/// Gauges that come back to zero, however many turns of the runtime it takes.
pub trait Quiet {
    async fn is_quiet(&self);
}

impl Quiet for Arc<OriginState> {
    async fn is_quiet(&self) {
        let quiet = async {
            while self.counters().connections_open() + self.counters().in_flight() > 0 {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, quiet).await.is_err() {
            panic!(
                "left behind: {} connections, {} exchanges",
                self.counters().connections_open(),
                self.counters().in_flight()
            );
        }
    }
}

/// The value of a metric, labels ignored and summed.
pub fn metric(state: &OriginState, wanted: &str) -> u64 {
    let mut sum = 0;
    state.for_each(&mut |name, _, _, value| {
        if name == wanted {
            sum += value;
        }
    });
    sum
}

pub fn request(method: Method, target: &'static str, body: Body) -> OriginRequest {
    OriginRequest {
        method,
        target: Target::parse(Bytes::from_static(target.as_bytes())).unwrap(),
        authority: Authority::parse(Bytes::from_static(b"app.example"), Scheme::Http).unwrap(),
        fields: HeaderMap::new(),
        body,
        trailers: Default::default(),
        websocket: false,
        interims: None,
        affinity: Affinity::default(),
        peer: None,
        progress: None,
    }
}

pub fn get(target: &'static str) -> OriginRequest {
    request(Method::GET, target, Body::Empty)
}

/// Reads a body to its end; what came before a break is kept.
pub async fn read(body: Body) -> (Vec<u8>, Result<(), BodyError>) {
    let mut bytes = Vec::new();
    let mut stream = match body {
        Body::Empty => return (bytes, Ok(())),
        Body::Stream { stream, .. } => stream,
        other => panic!("an origin's body is never {other:?}"),
    };
    let reading = async {
        while let Some(frame) = stream.frame().await {
            match frame {
                Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(PATIENCE, reading).await.expect("the body ends");
    (bytes, outcome)
}

/// Reads a body that ends well, and what comes behind its data.
pub async fn read_all(body: Body) -> (Vec<u8>, HeaderMap) {
    let Body::Stream { stream, .. } = body else { panic!("not a stream: {body:?}") };
    let collected = tokio::time::timeout(PATIENCE, stream.collect()).await.expect("the body ends");
    let collected = collected.expect("it ends well");
    let trailers = collected.trailers().cloned().unwrap_or_default();
    (collected.to_bytes().to_vec(), trailers)
}

/// A body whose frames, trailers among them, the test sends when it likes. Dropping the sender ends it.
pub fn frames() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(64);
    (sender, Body::Stream { length: None, stream: Box::pin(Frames(receiver)) })
}

struct Frames(mpsc::Receiver<Frame<Bytes>>);

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// A body whose pieces the test sends when it likes. Dropping the sender ends it.
pub struct Piecemeal(mpsc::Receiver<Result<Bytes, BodyError>>);

pub fn piecemeal(length: Option<u64>) -> (mpsc::Sender<Result<Bytes, BodyError>>, Body) {
    let (sender, receiver) = mpsc::channel(64);
    (sender, Body::Stream { length, stream: Box::pin(Piecemeal(receiver)) })
}

impl HttpBody for Piecemeal {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|item| item.map(|item| item.map(Frame::data)))
    }
}
