//! A client that keeps a connection and asks for one object after the other, and what the origin behind it answers.
//!
//! In: an address and a target. Out: whether the answer came from the cache; every answer is checked to be the whole
//! object. As cheap as a client can be that looks at each answer: where the server is asked for ten million objects,
//! the client must not be what is measured.
//! Deliberately absent: pipelining and any other framing than Content-Length, which all servers send here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::contender::floor;
use super::load::on_load_core;

/// The length of an object's body, where a measurement does not say otherwise.
pub(super) const OBJECT_BYTES: usize = 1024;
/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The longest head.
const HEAD_BYTES_MAX: usize = 3072;

/// What the origin answers, whatever it is asked for: the fields that an application's pages have, and an object.
pub(super) fn object() -> Vec<u8> {
    object_of(OBJECT_BYTES)
}

/// The same with an object of so many bytes.
pub(super) fn object_of(bytes: usize) -> Vec<u8> {
    let fields = [
        "Server: origin",
        "Date: Sat, 01 Nov 2025 10:00:00 GMT",
        "Content-Type: text/html; charset=utf-8",
        "Cache-Control: public, max-age=100000000",
        "ETag: \"5f3a-1b2c3d\"",
    ];
    floor::answer("200 OK", &fields.map(str::to_owned), &vec![b'x'; bytes])
}

/// Where an answer came from, by its Cache-Status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Was {
    Hit,
    /// Not a hit, or not said.
    Other,
}

/// One connection.
pub(super) struct Asker<S = TcpStream> {
    stream: S,
    /// What every request ends with.
    tail: String,
    request: String,
    /// The body that every answer has to have.
    body: Box<[u8]>,
    buffer: Box<[u8]>,
}

impl Asker {
    /// Connects.
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        Self::connect_for(address, OBJECT_BYTES).await
    }

    /// Connects, for objects of so many bytes.
    pub(super) async fn connect_for(address: SocketAddr, bytes: usize) -> Result<Self> {
        Self::connect_as(address, address, bytes).await
    }

    /// The same, as a client that knows the server by another authority.
    pub(super) async fn connect_as(address: SocketAddr, host: SocketAddr, bytes: usize) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream, host, bytes))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Asker<S> {
    /// Over what is connected already.
    pub(super) fn over(stream: S, host: SocketAddr, bytes: usize) -> Self {
        let tail = format!(" HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let (body, buffer) = (vec![b'x'; bytes].into(), vec![0; HEAD_BYTES_MAX + bytes].into());
        Self { stream, tail, request: String::new(), body, buffer }
    }

    /// Asks for `target` and reads the whole answer.
    ///
    /// # Errors
    /// Anything but 200 with the whole object.
    pub(super) async fn ask(&mut self, target: &str) -> Result<Was> {
        let answer = tokio::time::timeout(ANSWER_MAX, self.exchange(target)).await;
        answer.with_context(|| format!("{target}: no answer"))?.with_context(|| target.to_owned())
    }

    async fn exchange(&mut self, target: &str) -> Result<Was> {
        self.request.clear();
        self.request.push_str("GET ");
        self.request.push_str(target);
        self.request.push_str(&self.tail);
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut filled = 0;
        loop {
            let room = self.buffer.get_mut(filled..).filter(|room| !room.is_empty()).context("too long")?;
            let read = self.stream.read(room).await?;
            ensure!(read > 0, "the connection ended");
            filled += read;
            if let Some(was) = read_answer(self.buffer.get(..filled).unwrap_or_default(), &self.body)? {
                return Ok(was);
            }
        }
    }
}

/// Asks for the targets of the numbers below `requests`, in this order, over so many connections; says how many were hits.
///
/// # Errors
/// Anything but 200 with the whole object, on any of them.
pub(super) fn ask_all(
    address: SocketAddr,
    connections: usize,
    requests: u64,
    target: impl Fn(u64) -> String + Clone + Send + Sync + 'static,
) -> Result<u64> {
    ask_all_for(address, (connections, OBJECT_BYTES), requests, target)
}

/// The same for objects of so many bytes.
pub(super) fn ask_all_for(
    address: SocketAddr,
    (connections, bytes): (usize, usize),
    requests: u64,
    target: impl Fn(u64) -> String + Clone + Send + Sync + 'static,
) -> Result<u64> {
    on_load_core(async move {
        let (next, hits) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = Vec::with_capacity(connections);
        for _ in 0..connections {
            let mut asker = Asker::connect_for(address, bytes).await?;
            let (next, hits, target) = (Arc::clone(&next), Arc::clone(&hits), target.clone());
            tasks.push(tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return anyhow::Ok(());
                    }
                    if asker.ask(&target(number)).await? == Was::Hit {
                        hits.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(hits.load(Ordering::Relaxed))
    })?
}

/// Where the answer came from, once it is whole.
fn read_answer(bytes: &[u8], body: &[u8]) -> Result<Option<Was>> {
    let Some(head_bytes) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(bytes.get(..head_bytes).unwrap_or_default())?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{}", head.lines().next().unwrap_or_default());
    let content = bytes.get(head_bytes + 4..).unwrap_or_default();
    if content.len() < body.len() {
        return Ok(None);
    }
    if content != body {
        bail!("a wrong body of {} bytes", content.len());
    }
    let status = head.lines().filter_map(|line| line.split_once(": "));
    let mut status = status.filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
    let is_hit = status.any(|(_, value)| value.split(';').any(|part| part.trim() == "hit"));
    Ok(Some(if is_hit { Was::Hit } else { Was::Other }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answer(fields: &str, body: &[u8]) -> Vec<u8> {
        [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat()
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let body = [b'x'; 100];
        let check =
            |fields: &str, was| assert_eq!(read_answer(&answer(fields, &body), &body).unwrap(), Some(was));
        check("Cache-Status: larder; hit; ttl=5\r\n", Was::Hit);
        check("cache-status: larder; fwd=uri-miss; stored\r\n", Was::Other);
        check("X: larder; hit\r\n", Was::Other);
        let whole = answer("", &body);
        assert_eq!(read_answer(&whole[..10], &body).unwrap(), None);
        assert_eq!(read_answer(&whole[..whole.len() - 1], &body).unwrap(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        let body = [b'x'; 100];
        assert!(read_answer(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", &body).is_err());
        assert!(read_answer(&answer("", &[b'y'; 100]), &body).is_err());
        assert!(read_answer(&answer("", &[b'x'; 101]), &body).is_err());
    }
}
