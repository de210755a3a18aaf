//! Requests that purge, and their senders: one that waits for each answer, and some that send at a steady rate beside a load.
//!
//! In: an address and what is purged. Out: how long each purge took from its first byte to the end of its answer, which has
//! to be 200; a steady sender takes a 404 or 412 as well, with which nginx tells that nothing was stored.
//! A steady sender makes up for nothing: what was due while its server stood still is not sent later.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::measure::contender::LOAD_CORE;
use crate::measure::load::on_load_core;

/// Longest purge: one that walks a million objects.
const ANSWER_MAX: Duration = Duration::from_secs(120);
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// From the answer of one purge to the next: the walk that larder makes behind its first ones falls among them.
const PAUSE: Duration = Duration::from_millis(10);
/// Of a steady sender: one waits behind all clients, so it takes several for the rate.
const CONNECTIONS: u32 = 8;
/// A longer wait is that of a server that stood still.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The token in bench/full.toml. The others let loopback purge, and do not look at it.
pub(in crate::measure) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// What is purged, in words that several servers understand.
#[derive(Clone, Debug)]
pub(in crate::measure) enum Purge {
    /// What carries a tag, as FOSHttpCache asks Varnish's xkey for it.
    Tag { tag: String, is_soft: bool },
    /// What lies under URLs that match, as a ban.
    Pattern(String),
    /// A URL.
    Url(String),
}

impl Purge {
    pub(in crate::measure) fn hard(tag: impl Into<String>) -> Self {
        Self::Tag { tag: tag.into(), is_soft: false }
    }

    pub(super) fn soft(tag: impl Into<String>) -> Self {
        Self::Tag { tag: tag.into(), is_soft: true }
    }

    fn request(&self, host: SocketAddr) -> String {
        let (line, field) = match self {
            Self::Tag { tag, is_soft: false } => ("PURGEKEYS /".to_owned(), format!("xkey-purge: {tag}\r\n")),
            Self::Tag { tag, is_soft: true } => {
                ("PURGEKEYS /".to_owned(), format!("xkey-softpurge: {tag}\r\n"))
            }
            Self::Pattern(pattern) => ("BAN /".to_owned(), format!("X-Url: {pattern}\r\n")),
            Self::Url(target) => (format!("PURGE {target}"), String::new()),
        };
        format!("{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n{field}\r\n")
    }
}

/// A connection over which purges are sent.
pub(in crate::measure) struct Purger {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Purger {
    pub(in crate::measure) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, buffer: Vec::new() })
    }

    /// Purges; says the status, and how long that took.
    ///
    /// # Errors
    /// No whole answer.
    pub(in crate::measure) async fn purge(&mut self, purge: &Purge) -> Result<(u16, Duration)> {
        let request = purge.request(self.address);
        let answered = timeout(ANSWER_MAX, self.exchange(&request)).await;
        answered.with_context(|| format!("{purge:?}: no answer"))?.with_context(|| format!("{purge:?}"))
    }

    async fn exchange(&mut self, request: &str) -> Result<(u16, Duration)> {
        let began = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection ended");
            if let Some(status) = whole(&self.buffer)? {
                return Ok((status, began.elapsed()));
            }
        }
    }
}

/// The status of an answer, once it is whole.
fn whole(bytes: &[u8]) -> Result<Option<u16>> {
    let Some(head_bytes) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        ensure!(bytes.len() < HEAD_BYTES_MAX, "a head without end");
        return Ok(None);
    };
    let head = std::str::from_utf8(bytes.get(..head_bytes).unwrap_or_default())?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    let length = head.lines().filter_map(|line| line.split_once(": ")).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    let content_bytes = bytes.len() - head_bytes - 4;
    Ok((content_bytes >= length.context("no Content-Length")?).then_some(status))
}

/// Sends these purges one after the other, each a little after the answer to the one before; says how long they took.
///
/// # Errors
/// Any answer but 200.
pub(super) fn one_by_one(address: SocketAddr, purges: Vec<Purge>) -> Result<Vec<Duration>> {
    on_load_core(async move {
        let mut purger = Purger::connect(address).await?;
        let mut took = Vec::with_capacity(purges.len());
        for purge in purges {
            let (status, wait) = purger.purge(&purge).await?;
            ensure!(status == 200, "{purge:?}: status {status}");
            took.push(wait);
            sleep(PAUSE).await;
        }
        anyhow::Ok(took)
    })?
}

/// Sends so many purges, as fast as they are answered.
///
/// # Errors
/// Any answer but 200.
pub(super) fn at_once(address: SocketAddr, purges: impl Iterator<Item = Purge> + Send) -> Result<()> {
    on_load_core(async move {
        let mut purger = Purger::connect(address).await?;
        for purge in purges {
            let (status, _) = purger.purge(&purge).await?;
            ensure!(status == 200, "{purge:?}: status {status}");
        }
        anyhow::Ok(())
    })?
}

/// What a steady sender has seen so far.
#[derive(Default)]
pub(super) struct Seen {
    next: AtomicU64,
    waits: Mutex<Vec<Duration>>,
    failed: Mutex<Option<String>>,
}

impl Seen {
    /// The waits of its purges, in order of length.
    ///
    /// # Errors
    /// It has failed.
    pub(super) fn waits(&self) -> Result<Vec<Duration>> {
        if let Some(why) = &*self.failed.lock() {
            anyhow::bail!("the purges beside it failed: {why}");
        }
        let mut waits = self.waits.lock().clone();
        waits.sort_unstable();
        Ok(waits)
    }
}

/// Purges at a steady rate, until it is dropped.
pub(super) struct Steady {
    pub(super) seen: Arc<Seen>,
    /// `None` once it is told.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Steady {
    /// Sends `rate` purges per second, on the load's core; `purge` makes each of its number.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn start(address: SocketAddr, rate: u32, purge: fn(u64) -> Purge) -> Result<Self> {
        let seen = Arc::<Seen>::default();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let told = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let mut core = CpuSet::new();
            core.set(LOAD_CORE);
            // Where that is refused, the clients fail to be pinned as well, and say so.
            let _ = sched_setaffinity(None, &core);
            runtime.block_on(async {
                tokio::select! {
                    failed = send_all(address, rate, purge, &told) => *told.failed.lock() = failed.err().map(|e| format!("{e:#}")),
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { seen, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn send_all(address: SocketAddr, rate: u32, purge: fn(u64) -> Purge, seen: &Arc<Seen>) -> Result<()> {
    let (every, start) = (Duration::from_secs(1) * CONNECTIONS / rate, Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CONNECTIONS {
        let (purger, seen) = (Purger::connect(address).await?, Arc::clone(seen));
        tasks.spawn(send(purger, start + every * number / CONNECTIONS, every, purge, seen));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn send(
    mut purger: Purger,
    mut due: Instant,
    every: Duration,
    purge: fn(u64) -> Purge,
    seen: Arc<Seen>,
) -> Result<()> {
    loop {
        sleep_until(due).await;
        let number = seen.next.fetch_add(1, Ordering::Relaxed);
        let (status, wait) = purger.purge(&purge(number)).await?;
        ensure!([200, 404, 412].contains(&status), "status {status}");
        if wait < WAIT_MAX {
            seen.waits.lock().push(wait);
        }
        due = (due + every).max(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufRead as _, BufReader, Write as _};

    use super::*;

    #[test]
    fn an_answer_to_a_purge_is_read_to_its_end() {
        let answer = b"HTTP/1.1 200 Purged\r\nContent-length: 6\r\n\r\nPurged";
        assert_eq!(whole(answer).unwrap(), Some(200));
        assert_eq!(whole(&answer[..answer.len() - 1]).unwrap(), None);
        assert_eq!(whole(b"HTTP/1.1 404 Not Found\r\n").unwrap(), None);
        assert!(whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "without its length");
    }

    #[test]
    fn purges_are_sent_at_a_steady_rate_until_that_ends() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let steady = Steady::start(address, 1000, |number| Purge::hard(format!("tag-{number}"))).unwrap();
        let mut servers = Vec::new();
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().unwrap();
            servers.push(std::thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let mut tags = Vec::new();
                for line in lines.map_while(Result::ok) {
                    tags.extend(line.strip_prefix("xkey-purge: tag-").map(|tag| tag.parse::<u64>().unwrap()));
                    if line.is_empty()
                        && write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
                    {
                        break;
                    }
                }
                tags
            }));
        }
        let began = Instant::now();
        while steady.seen.waits().unwrap().len() < 200 {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        // 25 periods of each connection, of which the first begins at once.
        assert!(began.elapsed() > Duration::from_millis(150), "{:?}", began.elapsed());
        drop(steady);
        let mut tags: Vec<u64> = servers.into_iter().flat_map(|server| server.join().unwrap()).collect();
        tags.sort_unstable();
        assert!(tags.len() >= 200 && tags.iter().zip(0..).all(|(tag, number)| *tag == number));
    }
}
