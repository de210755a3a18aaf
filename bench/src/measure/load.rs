//! Clients that measure: HTTP/1.1 with keep-alive, each answer with its wait, its status and what it brought.
//!
//! In: an address and a target. Out: an [`Answer`] per request, or how it broke. Written here and not taken from a
//! load tool, because a tool's summary hides what these measurements ask: which rendering was served, how old it was,
//! and what each single client got. All clients share one thread, pinned to the load's core.
//! Deliberately absent: chunked content and redirects, which no server under measurement sends.

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::contender::LOAD_CORE;
use super::slow_app::{PAGE_BYTES, number_in};

const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest wait for one answer; a client that waits longer counts as failed.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const DESCRIPTORS: u64 = 16_384;
/// Answers to one client of a closed loop: more than half a minute at ten thousand a second brings.
const ANSWERS_EXPECTED: usize = 1 << 19;

/// Runs `work` to its end on a thread of its own, on the load's core.
pub(super) fn on_load_core<T: Send>(work: impl Future<Output = T> + Send) -> Result<T> {
    let run = || {
        let mut core = CpuSet::new();
        core.set(LOAD_CORE);
        sched_setaffinity(None, &core).context("pinning to the load's core")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(work))
    };
    std::thread::scope(|scope| scope.spawn(run).join().map_err(|_| anyhow!("the load's thread panicked"))?)
}

/// CPU time of this thread so far.
pub(super) fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Room for the clients, the origin's connections and the servers that are started from here.
pub(super) fn allow_descriptors() -> Result<()> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= DESCRIPTORS) {
        return Ok(());
    }
    ensure!(
        now.maximum.is_none_or(|most| most >= DESCRIPTORS),
        "{DESCRIPTORS} descriptors are needed (ulimit -n)"
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), ..now })?)
}

/// A whole answer.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) sent: Instant,
    pub(super) first_byte: Instant,
    pub(super) done: Instant,
    pub(super) status: u16,
    /// Which rendering it is; `None` unless it is a whole page of this target.
    pub(super) rendering: Option<usize>,
}

/// Why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    /// The connection ended before a whole head.
    NoHead,
    /// The connection ended within the content.
    Cut,
    /// Not within the limit.
    Late,
    /// Nothing that these clients understand.
    Odd,
}

/// One connection.
pub(super) struct Client {
    stream: TcpStream,
    host: String,
    buffer: Box<[u8]>,
}

impl Client {
    /// Connects.
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        Self::connect_as(address, &address.to_string()).await
    }

    /// The same, as a client that knows the server by another authority.
    pub(super) async fn connect_as(address: SocketAddr, host: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let buffer = vec![0; HEAD_BYTES_MAX + PAGE_BYTES].into_boxed_slice();
        Ok(Self { stream, host: host.to_owned(), buffer })
    }

    /// Asks and reads the whole answer. After an error the connection is of no more use.
    pub(super) async fn ask(&mut self, target: &str) -> Result<Answer, Broken> {
        let sent = self.send(target).await?;
        self.receive(target, sent).await
    }

    /// Sends a request; says when it began to.
    pub(super) async fn send(&mut self, target: &str) -> Result<Instant, Broken> {
        let sent = Instant::now();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        // A request is smaller than any socket's buffer: this does not wait.
        self.stream.write_all(request.as_bytes()).await.map_err(|_| Broken::NoHead)?;
        Ok(sent)
    }

    /// Reads the answer to what was `sent` then.
    pub(super) async fn receive(&mut self, target: &str, sent: Instant) -> Result<Answer, Broken> {
        match tokio::time::timeout(ANSWER_MAX, self.read_answer(target, sent)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Broken::Late),
        }
    }

    async fn read_answer(&mut self, target: &str, sent: Instant) -> Result<Answer, Broken> {
        let mut filled = self.read(0).await.ok_or(Broken::NoHead)?;
        let first_byte = Instant::now();
        let head = loop {
            if let Some(head) = read_head(self.buffer.get(..filled).unwrap_or_default())? {
                break head;
            }
            filled += self.read(filled).await.ok_or(Broken::NoHead)?;
        };
        let whole = head.bytes + head.content_bytes;
        if whole > self.buffer.len() {
            return Err(Broken::Odd);
        }
        while filled < whole {
            filled += self.read(filled).await.ok_or(Broken::Cut)?;
        }
        if filled > whole {
            return Err(Broken::Odd);
        }
        let content = self.buffer.get(head.bytes..whole).unwrap_or_default();
        let rendering = number_in(content, target);
        Ok(Answer { sent, first_byte, done: Instant::now(), status: head.status, rendering })
    }

    /// How many more bytes there are, `None` at the connection's end.
    async fn read(&mut self, from: usize) -> Option<usize> {
        let room = self.buffer.get_mut(from..).unwrap_or_default();
        self.stream.read(room).await.ok().filter(|read| *read > 0)
    }
}

#[derive(PartialEq, Eq, Debug)]
struct Head {
    bytes: usize,
    status: u16,
    content_bytes: usize,
}

/// The head, once it is whole.
fn read_head(bytes: &[u8]) -> Result<Option<Head>, Broken> {
    let looked_at = bytes.get(..bytes.len().min(HEAD_BYTES_MAX)).unwrap_or_default();
    let Some(end) = looked_at.windows(4).position(|w| w == b"\r\n\r\n") else {
        return if bytes.len() >= HEAD_BYTES_MAX { Err(Broken::Odd) } else { Ok(None) };
    };
    let text = std::str::from_utf8(looked_at.get(..end).unwrap_or_default()).map_err(|_| Broken::Odd)?;
    let status =
        text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).ok_or(Broken::Odd)?;
    let length = text.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    });
    Ok(Some(Head { bytes: end + 4, status, content_bytes: length.ok_or(Broken::Odd)? }))
}

/// What a closed loop brought.
pub(super) struct Loop {
    pub(super) answers: Vec<Answer>,
    pub(super) took: Duration,
    /// CPU time that the clients took for themselves: near `took`, they were the limit and not the server.
    pub(super) load_cpu: Duration,
}

/// `clients` connections ask for one target again and again, each as soon as it has its answer, for `length`.
///
/// # Errors
/// Any answer that is not 200 with a whole page.
pub(super) fn closed_loop(
    address: SocketAddr,
    target: &'static str,
    clients: usize,
    length: Duration,
) -> Result<Loop> {
    on_load_core(async move {
        let mut connected = Vec::with_capacity(clients);
        for _ in 0..clients {
            connected.push(Client::connect(address).await?);
        }
        let (start, cpu) = (Instant::now(), thread_cpu_time());
        let tasks: Vec<_> = connected
            .into_iter()
            .map(|client| tokio::spawn(ask_until(client, target, start + length)))
            .collect();
        let mut of_clients = Vec::with_capacity(clients);
        for task in tasks {
            of_clients.push(task.await??);
        }
        let load_cpu = thread_cpu_time().saturating_sub(cpu);
        let took = start.elapsed();
        // Put together only when all have ended: the copying would hold up whoever is still waiting.
        Ok(Loop { answers: of_clients.concat(), took, load_cpu })
    })?
}

async fn ask_until(mut client: Client, target: &'static str, end: Instant) -> Result<Vec<Answer>> {
    // Reserved at once, and taken page by page: a vector that grows is copied, and ten of them in turn held all clients
    // up for a tenth of a second.
    let mut answers = Vec::with_capacity(ANSWERS_EXPECTED);
    while Instant::now() < end {
        match client.ask(target).await {
            Ok(answer) if answer.status == 200 && answer.rendering.is_some() => answers.push(answer),
            Ok(answer) => bail!("status {} or a wrong page after {} answers", answer.status, answers.len()),
            Err(broken) => bail!("{broken:?} after {} answers", answers.len()),
        }
    }
    Ok(answers)
}

/// What `share` of the sorted `waits` do not exceed; `share` in 0..=1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
pub(super) fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).or(sorted.last()).copied().unwrap_or_default()
}

/// A duration in milliseconds.
pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\nhello";
        assert_eq!(read_head(&whole[..30]), Ok(None));
        assert_eq!(read_head(whole), Ok(Some(Head { bytes: 38, status: 200, content_bytes: 5 })));
        assert_eq!(read_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Broken::Odd));
        assert_eq!(read_head(b"garbage\r\n\r\n"), Err(Broken::Odd));
        assert_eq!(read_head(&[b'a'; HEAD_BYTES_MAX]), Err(Broken::Odd));
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let waits: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&waits, 0.5), Duration::from_millis(50));
        assert_eq!(quantile(&waits, 0.99), Duration::from_millis(99));
        assert_eq!(quantile(&waits, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
