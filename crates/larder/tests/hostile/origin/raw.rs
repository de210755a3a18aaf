//! An origin that does on its socket exactly what a script says, in steps.
//!
//! In: answers for [`EVIL`], one per request. Out: how often it was asked and how many connections are open. Answers to
//! [`EVIL`] wait at a gate until all clients of a case are there. Any other path gets [`CLEAN`]: if
//! bytes of one answer leak into the next, that is where it shows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use larder_testkit::wire::{Wire, latin1};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where the case's answers are.
pub const EVIL: &str = "/evil";
/// The content of everything else.
pub const CLEAN: &str = "clean";
/// The content of [`EVIL`] once its script has come to an end.
pub const SECOND: &str = "second";

/// The longest that a connection waits for anything.
const LIMIT: Duration = Duration::from_secs(15);

/// One thing to do. What follows the last step is an orderly close.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends them one at a time, with a pause before each.
    Drip(Vec<u8>, Duration),
    /// Sends them again and again until the peer is gone.
    Flood(Vec<u8>),
    /// Time passes.
    Pause(Duration),
    /// Reads this many bytes of the request's content.
    Read(usize),
    /// Closes with a reset.
    Reset,
    /// Waits until the peer is gone.
    Stay,
    /// The next request on this connection.
    Keep,
}

#[derive(Debug, Default)]
struct Record {
    asked: usize,
    played: usize,
    open: usize,
}

struct Shared {
    scripts: Vec<Vec<Step>>,
    record: Mutex<Record>,
    gate: watch::Sender<bool>,
}

pub struct RawOrigin {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accept: JoinHandle<()>,
}

impl RawOrigin {
    /// Starts on a free port. `scripts` are the answers to [`EVIL`], in order.
    pub async fn start(scripts: Vec<Vec<Step>>) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let addr = listener.local_addr().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared { scripts, record: Mutex::default(), gate: watch::Sender::new(false) });
        let for_all = Arc::clone(&shared);
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&for_all);
                shared.record.lock().open += 1;
                tokio::spawn(async move {
                    shared.connection(Wire::new(stream, LIMIT)).await;
                    shared.record.lock().open -= 1;
                });
            }
        });
        Ok(Self { addr, shared, accept })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Lets the answers go.
    pub fn release(&self) {
        self.shared.gate.send_replace(true);
    }

    /// How often [`EVIL`] was asked for.
    pub fn asked(&self) -> usize {
        self.shared.record.lock().asked
    }

    /// How many of the scripts have come to their end, one way or another.
    pub fn played(&self) -> usize {
        self.shared.record.lock().played
    }

    /// How many of its connections are open.
    pub fn open(&self) -> usize {
        self.shared.record.lock().open
    }
}

impl Drop for RawOrigin {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

impl Shared {
    async fn connection(&self, mut wire: Wire) {
        while let Ok(Some(head)) = wire.read_head().await {
            let head = latin1(&head);
            let is_evil = head.contains(EVIL);
            let is_head = head.starts_with("HEAD ");
            let number = {
                let mut record = self.record.lock();
                record.asked += usize::from(is_evil);
                record.asked
            };
            let script = if is_evil { self.scripts.get(number - 1) } else { None };
            let kept = match script {
                Some(steps) => {
                    // The sender lives as long as `self`.
                    let _ = self.gate.subscribe().wait_for(|open| *open).await;
                    let kept = play(&mut wire, steps).await;
                    self.record.lock().played += 1;
                    kept
                }
                None => {
                    let content = if is_evil { SECOND } else { CLEAN };
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n{}",
                        content.len(),
                        if is_head { "" } else { content }
                    );
                    wire.write(answer.as_bytes()).await.map(|()| After::Keep)
                }
            };
            match kept {
                Ok(After::Keep) => {}
                Ok(After::Close) | Err(_) => break,
                Ok(After::Reset) => return wire.reset(),
            }
        }
        let _ = wire.close_write().await;
        // Unread bytes of a request would turn the close into a reset.
        while let Ok(1..) = wire.fill("end").await {}
    }
}

enum After {
    Keep,
    Close,
    Reset,
}

async fn play(wire: &mut Wire, steps: &[Step]) -> Result<After, larder_testkit::Error> {
    for step in steps {
        match step {
            Step::Send(bytes) => wire.write(bytes).await?,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(*pause).await;
                    wire.write(&[*byte]).await?;
                }
            }
            Step::Flood(bytes) => loop {
                wire.write(bytes).await?;
            },
            Step::Pause(time) => tokio::time::sleep(*time).await,
            Step::Read(count) => while wire.ahead().len() < *count && wire.fill("content").await? > 0 {},
            Step::Reset => return Ok(After::Reset),
            Step::Stay => while wire.fill("end of the peer").await? > 0 {},
            Step::Keep => return Ok(After::Keep),
        }
    }
    Ok(After::Close)
}
