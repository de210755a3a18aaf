//! A server that answers every request, in a way that the test may change while it runs, and says which one it is.
//!
//! In: an address on loopback and a mood. Out: answers whose content is the server's name; what it was asked, and how
//! many connections it has. Waiting is for events, never for time to pass; it ends when dropped.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use larder_origin::ServerAddress;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is done about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// An answer with this status.
    Answers(u16),
    /// Reads and says nothing.
    Silent,
    /// Closes instead of answering.
    Closes,
    /// For `/half`, half of the content, and the rest when the mood changes; for others, good answers.
    Halfway,
    /// A good answer whose content never ends.
    Endless,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    heads: Vec<String>,
    connections: usize,
}

/// One server.
pub struct Replica {
    pub at: SocketAddr,
    mood: watch::Sender<Mood>,
    seen: watch::Receiver<Seen>,
    task: AbortHandle,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `N` servers on one port of 127.0.0.1, 127.0.0.2 and so on, called a, b, c and so on.
pub async fn replicas<const N: usize>() -> [Replica; N] {
    'port: loop {
        let mut listeners: Vec<TcpListener> = Vec::new();
        for last in (1..).take(N) {
            let port = listeners.first().map_or(0, |first| first.local_addr().unwrap().port());
            match TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)).await {
                Ok(listener) => listeners.push(listener),
                // Free on one address and taken on another.
                Err(_) => continue 'port,
            }
        }
        let named = listeners.into_iter().zip('a'..).map(|(listener, name)| Replica::start(listener, name));
        break named.collect::<Vec<_>>().try_into().ok().unwrap();
    }
}

impl Replica {
    fn start(listener: TcpListener, name: char) -> Self {
        let at = listener.local_addr().unwrap();
        let (mood, moods) = watch::channel(Mood::Answers(200));
        let (tell, seen) = watch::channel(Seen::default());
        let tell = Arc::new(tell);
        let task = tokio::spawn(async move {
            // Aborted with this task.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(converse(stream, name, moods.clone(), Open::new(tell.clone())));
            }
        });
        Self { at, mood, seen, task: task.abort_handle() }
    }

    pub fn address(&self) -> ServerAddress {
        ServerAddress::Http { host: self.at.ip().to_string(), port: self.at.port() }
    }

    pub fn ip(&self) -> [u8; 4] {
        match self.at.ip() {
            std::net::IpAddr::V4(ip) => ip.octets(),
            std::net::IpAddr::V6(_) => unreachable!("only IPv4 is bound"),
        }
    }

    pub fn becomes(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// How often `path` was asked for.
    pub fn asked(&self, path: &str) -> usize {
        count(&self.seen.borrow(), path)
    }

    /// Waits until `path` has been asked for `times` more times.
    pub async fn asked_again(&self, path: &str, times: usize) {
        let aim = self.asked(path) + times;
        self.until(|seen| count(seen, path) >= aim).await;
    }

    pub fn heads(&self) -> Vec<String> {
        self.seen.borrow().heads.clone()
    }

    /// Waits until nobody is connected.
    pub async fn is_left_alone(&self) {
        self.until(|seen| seen.connections == 0).await;
    }

    async fn until(&self, is: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        within(seen.wait_for(is)).await.unwrap();
    }
}

/// What `future` gives, in good time.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in good time")
}

fn count(seen: &Seen, path: &str) -> usize {
    seen.heads.iter().filter(|head| head.split(' ').nth(1) == Some(path)).count()
}

/// A connection that is counted as open.
struct Open(Arc<watch::Sender<Seen>>);

impl Open {
    fn new(seen: Arc<watch::Sender<Seen>>) -> Self {
        seen.send_modify(|seen| seen.connections += 1);
        Self(seen)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|seen| seen.connections -= 1);
    }
}

async fn converse(mut stream: TcpStream, name: char, mut moods: watch::Receiver<Mood>, open: Open) {
    stream.set_nodelay(true).unwrap();
    while let Some(head) = read_head(&mut stream).await {
        let mood = match *moods.borrow_and_update() {
            Mood::Halfway if !head.starts_with("GET /half ") => Mood::Answers(200),
            mood => mood,
        };
        open.0.send_modify(|seen| seen.heads.push(head));
        let written = match mood {
            Mood::Answers(status) => {
                stream
                    .write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 1\r\n\r\n{name}").as_bytes())
                    .await
            }
            Mood::Silent => {
                let mut more = [0; 64];
                while stream.read(&mut more).await.is_ok_and(|read| read > 0) {}
                return;
            }
            Mood::Closes => return,
            Mood::Halfway => {
                let half = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{name}");
                stream.write_all(half.as_bytes()).await.unwrap();
                let _ = moods.changed().await;
                stream.write_all(name.to_string().as_bytes()).await
            }
            Mood::Endless => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                while stream.write_all(b"1\r\nx\r\n").await.is_ok() {}
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}
