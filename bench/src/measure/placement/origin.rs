//! An origin whose every answer takes its time: 1 MB at 25 MB/s.
//!
//! In: requests for objects by their names, 16 hexadecimal digits at the target's end. Out: 1 000 000 bytes that begin with
//! that name, cacheable for years, sent piece by piece as they become due.
//! Ten connections get 250 MB/s together: six times what one of the slow disks takes, three times what both do, and
//! a fraction of what either core could move. So what a cache costs its clients is not CPU time but waiting, and shows:
//! whoever keeps a client waiting for a disk gets its next request later, and that time is not made up for.
//! Deliberately absent: a pace for all connections together. After a wait it would send faster, and hide it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::measure::contender::LOAD_CORE;
use harness::origin::body;

/// The length of every object's body.
pub(super) const OBJECT_BYTES: usize = 1_000_000;
/// From the head of an answer to its last byte.
pub(super) const ANSWER_TAKES: Duration = Duration::from_millis(40);
/// A piece is due every 2.5 ms, which the runtime's timer can tell apart.
const PIECES: u32 = 16;
/// The name that every body begins with.
pub(super) const NAME_BYTES: usize = 16;
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// A running origin, ended when it is dropped.
pub(super) struct PacedOrigin {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
    /// `None` once it is told.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PacedOrigin {
    /// Starts listening on a free port, on the load's core.
    pub(super) fn start() -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").context("origin")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let asked = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counter = Arc::clone(&asked);
        let thread = std::thread::spawn(move || {
            let mut core = CpuSet::new();
            core.set(LOAD_CORE);
            // Where that is refused, the clients fail to be pinned as well, and say so.
            let _ = sched_setaffinity(None, &core);
            runtime.block_on(accept(listener, counter, stopped));
        });
        Ok(Self { address, asked, stop: Some(stop), thread: Some(thread) })
    }

    /// How many objects were asked for so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for PacedOrigin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: std::net::TcpListener, asked: Arc<AtomicU64>, mut stopped: oneshot::Receiver<()>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let content: Arc<[u8]> = body(OBJECT_BYTES).into();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => return,
        };
        if let Ok((stream, _)) = accepted {
            let (content, asked) = (Arc::clone(&content), Arc::clone(&asked));
            // An error ends this connection only; the proxy in front sees it closed.
            tokio::spawn(async move { drop(answer_all(stream, &content, &asked).await) });
        }
    }
}

async fn answer_all(mut stream: TcpStream, content: &[u8], asked: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; REQUEST_BYTES_MAX];
    let mut filled = 0;
    loop {
        let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else { return Ok(()) };
        let read = stream.read(room).await?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let request = buffer.get(..filled).unwrap_or_default();
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        if let Some(name) = name_in(request) {
            asked.fetch_add(1, Ordering::Relaxed);
            send(&mut stream, name, content).await?;
        } else {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?;
        }
        filled = 0;
    }
}

async fn send(stream: &mut TcpStream, name: &[u8], content: &[u8]) -> std::io::Result<()> {
    let began = Instant::now();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {OBJECT_BYTES}\r\n\
         Cache-Control: max-age=100000000\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), name].concat()).await?;
    let content = content.get(NAME_BYTES..).unwrap_or_default();
    let piece_bytes = content.len().div_ceil(PIECES as usize);
    for (number, piece) in (1..).zip(content.chunks(piece_bytes)) {
        sleep_until(began + ANSWER_TAKES * number / PIECES).await;
        stream.write_all(piece).await?;
    }
    Ok(())
}

/// The last digits of the target; `None` where it ends otherwise.
fn name_in(request: &[u8]) -> Option<&[u8]> {
    let target = request.split(|byte| *byte == b' ').nth(1)?;
    let name = target.get(target.len().checked_sub(NAME_BYTES)?..)?;
    name.iter().all(u8::is_ascii_hexdigit).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_name_is_the_end_of_the_target() {
        let name = b"0123456789abcdef";
        assert_eq!(name_in(b"GET /page/0123456789abcdef HTTP/1.1\r\n\r\n"), Some(&name[..]));
        for odd in ["GET /healthz HTTP/1.1\r\n", "GET /page/0123456789abcdeg HTTP/1.1", "GET", ""] {
            assert_eq!(name_in(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn an_object_takes_its_time_and_begins_with_its_name() {
        let origin = PacedOrigin::start().unwrap();
        let mut stream = std::net::TcpStream::connect(origin.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for name in ["0123456789abcdef", "fedcba9876543210"] {
            let began = std::time::Instant::now();
            write!(stream, "GET /page/{name} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend_from_slice(&byte);
            }
            assert!(String::from_utf8(head).unwrap().contains("Content-Length: 1000000\r\n"));
            let mut content = vec![0; OBJECT_BYTES];
            stream.read_exact(&mut content).unwrap();
            assert!(began.elapsed() >= ANSWER_TAKES, "{:?}", began.elapsed());
            assert!(content.starts_with(name.as_bytes()));
            assert_eq!(content[NAME_BYTES..], body(OBJECT_BYTES)[NAME_BYTES..]);
        }
        assert_eq!(origin.asked(), 2);
    }
}
