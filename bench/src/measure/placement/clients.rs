//! Ten clients that ask for what nobody has asked for before: 1 MB each time, the next as soon as they have it.
//!
//! In: an address, a seed for the names, a length of time. Out: the bytes that reached them in each second, how long each object
//! took, and the names, so that somebody can look afterwards which of them are stored. Every byte of every answer is
//! checked: who mixes up two objects, or cuts one short, fails the measurement.
//! Deliberately absent: a second request for a name. Nothing here is ever a hit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::origin::{NAME_BYTES, OBJECT_BYTES};
use crate::measure::load::on_load_core;
use harness::origin::body;

pub(super) const CONNECTIONS: usize = 10;
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest wait for one object.
const OBJECT_MAX: Duration = Duration::from_secs(60);

/// What the clients got.
pub(super) struct Traffic {
    /// Bytes that were received in each second of the run; what came after its end is in none.
    pub(super) bytes_by_second: Vec<u64>,
    /// What was asked for and received whole, the last of each client beyond the end of the run.
    pub(super) names: Vec<u64>,
    /// From before sending to the last byte, in order of length.
    pub(super) waits: Vec<Duration>,
}

/// Where the bytes of all clients are counted.
struct Count {
    start: Instant,
    by_second: Vec<AtomicU64>,
}

impl Count {
    fn add(&self, bytes: usize) {
        let second = usize::try_from(self.start.elapsed().as_secs()).unwrap_or(usize::MAX);
        if let Some(count) = self.by_second.get(second) {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// The target of the object of this name.
pub(super) fn target(name: u64) -> String {
    format!("/page/{name:016x}")
}

/// The `number`-th random name of a seed, by the steps of SplitMix64: no two of one seed are the same.
fn name(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_shl(32).wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Has all clients ask at `address` for so many whole seconds.
///
/// # Errors
/// Any answer that is not 200 with the whole object.
pub(super) fn ask_for(address: SocketAddr, seed: u64, seconds: u64) -> Result<Traffic> {
    on_load_core(async move {
        let mut clients = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            clients.push(Client::connect(address).await?);
        }
        let by_second = (0..seconds).map(|_| AtomicU64::new(0)).collect();
        let count = Arc::new(Count { start: Instant::now(), by_second });
        let next = Arc::new(AtomicU64::new(0));
        let length = Duration::from_secs(seconds);
        let tasks: Vec<_> = clients
            .into_iter()
            .map(|client| {
                tokio::spawn(ask_until(client, seed, Arc::clone(&next), Arc::clone(&count), length))
            })
            .collect();
        let mut asked = Vec::new();
        for task in tasks {
            asked.extend(task.await??);
        }
        let mut waits: Vec<Duration> = asked.iter().map(|(_, wait)| *wait).collect();
        waits.sort();
        Ok(Traffic {
            bytes_by_second: count.by_second.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect(),
            names: asked.into_iter().map(|(name, _)| name).collect(),
            waits,
        })
    })?
}

async fn ask_until(
    mut client: Client,
    seed: u64,
    next: Arc<AtomicU64>,
    count: Arc<Count>,
    length: Duration,
) -> Result<Vec<(u64, Duration)>> {
    let mut asked = Vec::new();
    while count.start.elapsed() < length {
        let name = name(seed, next.fetch_add(1, Ordering::Relaxed));
        let began = Instant::now();
        let answer = tokio::time::timeout(OBJECT_MAX, client.ask(name, &count)).await;
        answer.context("no answer").and_then(|answer| answer).with_context(|| target(name))?;
        asked.push((name, began.elapsed()));
    }
    Ok(asked)
}

struct Client {
    stream: TcpStream,
    host: String,
    content: Vec<u8>,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let (content, buffer) = (body(OBJECT_BYTES), vec![0; HEAD_BYTES_MAX + OBJECT_BYTES]);
        Ok(Self { stream, host: address.to_string(), content, buffer })
    }

    async fn ask(&mut self, name: u64, count: &Count) -> Result<()> {
        let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", target(name), self.host);
        self.stream.write_all(request.as_bytes()).await?;
        let (mut filled, mut head_bytes) = (0, None);
        loop {
            let room = self.buffer.get_mut(filled..).filter(|room| !room.is_empty()).context("too long")?;
            let read = self.stream.read(room).await?;
            ensure!(read > 0, "the connection ended after {filled} bytes");
            count.add(read);
            filled += read;
            let received = self.buffer.get(..filled).unwrap_or_default();
            if head_bytes.is_none() {
                head_bytes = read_head(received)?;
            }
            let Some(head_bytes) = head_bytes else { continue };
            let content = received.get(head_bytes..).unwrap_or_default();
            if content.len() >= OBJECT_BYTES {
                ensure!(self.is_object(name, content), "a wrong body of {} bytes", content.len());
                return Ok(());
            }
        }
    }

    fn is_object(&self, name: u64, content: &[u8]) -> bool {
        content.get(..NAME_BYTES) == Some(format!("{name:016x}").as_bytes())
            && content.get(NAME_BYTES..) == self.content.get(NAME_BYTES..)
    }
}

/// How long the head is, once it is whole.
fn read_head(bytes: &[u8]) -> Result<Option<usize>> {
    let looked_at = bytes.get(..bytes.len().min(HEAD_BYTES_MAX)).unwrap_or_default();
    let Some(end) = looked_at.windows(4).position(|four| four == b"\r\n\r\n") else {
        ensure!(looked_at.len() < HEAD_BYTES_MAX, "no end of the head");
        return Ok(None);
    };
    let head = std::str::from_utf8(looked_at.get(..end).unwrap_or_default())?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{}", head.lines().next().unwrap_or_default());
    let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    ensure!(length == Some(OBJECT_BYTES), "a body of {length:?} bytes");
    Ok(Some(end + 4))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use super::*;
    use crate::measure::placement::origin::PacedOrigin;

    #[test]
    fn no_name_comes_twice() {
        let names: HashSet<u64> =
            (1..=3).flat_map(|seed| (0..10_000).map(move |number| name(seed, number))).collect();
        assert_eq!(names.len(), 30_000);
    }

    #[test]
    fn a_head_is_read_once_it_is_whole_and_has_to_be_of_an_object() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nx";
        assert_eq!(read_head(whole).unwrap(), Some(whole.len() - 1));
        assert_eq!(read_head(&whole[..20]).unwrap(), None);
        for refused in ["HTTP/1.1 502 Bad Gateway", "HTTP/1.1 200 OK\r\nContent-Length: 7", "HTTP/1.1 200 OK"]
        {
            assert!(read_head(format!("{refused}\r\n\r\n").as_bytes()).is_err(), "{refused}");
        }
        assert!(read_head(&vec![b'x'; HEAD_BYTES_MAX]).is_err());
    }

    #[test]
    fn clients_get_what_the_origin_gives() {
        let origin = PacedOrigin::start().unwrap();
        let traffic = ask_for(origin.address, 7, 1).unwrap();
        assert_eq!(traffic.names.len() as u64, origin.asked());
        assert_eq!(traffic.names.len(), traffic.waits.len());
        assert!(traffic.bytes_by_second.iter().sum::<u64>() > OBJECT_BYTES as u64);
        assert!(traffic.waits.is_sorted());
    }
}
