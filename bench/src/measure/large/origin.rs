//! An origin of large bodies, as fast as the loopback, that answers ranges.
//!
//! In: `GET /NAME/BYTES`, perhaps with one Range and If-Range. Out: that many bytes, or that part of them, cacheable for years,
//! with a strong entity tag; and how many bytes of bodies were sent so far.
//! The byte at a position follows from the position alone, by a block whose length is prime: a piece in the wrong place shows.
//! One thread for each connection, on the load's core. Deliberately absent: everything else of HTTP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::measure::contender::LOAD_CORE;

/// Bytes after which the content repeats itself; a prime.
const BLOCK_BYTES: usize = 1_048_573;
/// Sent at once.
const PIECE_BYTES: usize = 256 * 1024;
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const TAG: &str = "\"one\"";

/// What every body is made of.
pub(super) struct Content(Vec<u8>);

impl Content {
    pub(super) fn new() -> Arc<Self> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let block: Vec<u8> = (0..BLOCK_BYTES).map(|_| next()).collect();
        // Twice, so that a piece never wraps.
        Arc::new(Self([&block[..], &block[..PIECE_BYTES]].concat()))
    }

    /// Up to `most` bytes from this position on; no more than are sent at once.
    pub(super) fn at(&self, position: u64, most: u64) -> &[u8] {
        let start = usize::try_from(position % BLOCK_BYTES as u64).unwrap_or_default();
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(PIECE_BYTES);
        self.0.get(start..start + length).unwrap_or_default()
    }
}

/// A running origin, ended when it is dropped.
pub(super) struct LargeOrigin {
    pub(super) address: SocketAddr,
    sent: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LargeOrigin {
    /// Starts listening on a free port.
    ///
    /// # Errors
    /// No port is to be had.
    pub(super) fn start(content: &Arc<Content>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("origin")?;
        let address = listener.local_addr()?;
        let (sent, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (content, counter, over) = (Arc::clone(content), Arc::clone(&sent), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (content, counter) = (Arc::clone(&content), Arc::clone(&counter));
                // An error ends this connection only.
                std::thread::spawn(move || {
                    on_load_core();
                    drop(answer_all(stream, &content, &counter));
                });
            }
        });
        Ok(Self { address, sent, is_over, thread: Some(thread) })
    }

    /// Bytes of bodies sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for LargeOrigin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes it up to see that.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Puts this thread where the load is. Where that is refused, it stays where it is.
pub(super) fn on_load_core() {
    let mut core = CpuSet::new();
    core.set(LOAD_CORE);
    let _ = sched_setaffinity(None, &core);
}

fn answer_all(mut stream: TcpStream, content: &Content, sent: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    loop {
        let mut byte = [0; 2048];
        let read = stream.read(&mut byte)?;
        if read == 0 || head.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
        head.extend_from_slice(byte.get(..read).unwrap_or_default());
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let request = String::from_utf8_lossy(&head).into_owned();
        head.clear();
        let Some(complete) = complete_of(&request) else {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let range = range_of(&request, complete);
        let status = match &range {
            Some(Range { start, end }) => {
                format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{complete}", end - 1)
            }
            None => "200 OK".to_owned(),
        };
        let Range { mut start, end } = range.unwrap_or(0..complete);
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\
             Accept-Ranges: bytes\r\nETag: {TAG}\r\nCache-Control: max-age=100000000\r\n\r\n",
            end - start
        );
        stream.write_all(answer.as_bytes())?;
        if request.starts_with("HEAD ") {
            continue;
        }
        while start < end {
            let piece = content.at(start, end - start);
            stream.write_all(piece)?;
            start += piece.len() as u64;
            sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
}

/// The number at the target's end.
fn complete_of(request: &str) -> Option<u64> {
    request.split(' ').nth(1)?.rsplit('/').next()?.parse().ok()
}

fn field<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let lines = request.split("\r\n").skip(1);
    let mut found =
        lines.filter_map(|line| line.split_once(':')).filter(|(own, _)| own.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// The one range that is asked for, unless If-Range names something else.
fn range_of(request: &str, complete: u64) -> Option<Range<u64>> {
    if field(request, "if-range").is_some_and(|tag| tag != TAG) {
        return None;
    }
    let (first, last) = field(request, "range")?.strip_prefix("bytes=")?.split_once('-')?;
    let end =
        if last.is_empty() { complete } else { last.parse::<u64>().ok()?.checked_add(1)?.min(complete) };
    let start = first.parse().ok()?;
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_answered_unless_if_range_names_something_else() {
        let asked = |lines: &str| range_of(&format!("GET /a/100 HTTP/1.1\r\n{lines}\r\n"), 100);
        assert_eq!(complete_of("GET /a/100 HTTP/1.1\r\n"), Some(100));
        assert_eq!(asked("Range: bytes=5-9\r\n"), Some(5..10));
        assert_eq!(asked("range: bytes=5-\r\nIf-Range: \"one\"\r\n"), Some(5..100));
        assert_eq!(asked("Range: bytes=5-\r\nIf-Range: \"other\"\r\n"), None);
        assert_eq!(asked(""), None);
        assert_eq!(asked("Range: bytes=100-\r\n"), None);
    }

    #[test]
    fn the_content_follows_from_the_position_alone() {
        let content = Content::new();
        let at = |position| content.at(position, u64::MAX).to_vec();
        assert_eq!(at(0), at(BLOCK_BYTES as u64));
        assert_eq!(at(10)[..100], at(0)[10..110]);
        assert_eq!(at(BLOCK_BYTES as u64 - 5)[5..100], at(0)[..95]);
        assert_eq!(content.at(7, 3).len(), 3);
    }
}
