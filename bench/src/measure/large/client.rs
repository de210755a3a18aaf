//! A client that reads one large body, at a pace or as fast as it comes, and looks at every byte.
//!
//! In: where, a target, how fast at most. Out: how long it took. A wrong status, a wrong byte or a body that is cut is an error.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::origin::{Content, on_load_core};

/// Longest wait for bytes.
const PATIENCE: Duration = Duration::from_secs(30);
/// A client at a pace is behind or ahead of it by no more than this takes.
const STEP: Duration = Duration::from_millis(5);

/// Reads `bytes` bytes of a target.
#[expect(clippy::disallowed_methods, reason = "no worker here: a client with a thread of its own")]
pub(super) fn download(
    address: SocketAddr,
    (target, bytes): (&str, u64),
    bytes_per_s: Option<u64>,
    content: &Content,
) -> Result<Duration> {
    let work = || {
        on_load_core();
        let began = Instant::now();
        let (mut stream, status, rest) =
            ask(address, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))?;
        ensure!(status == 200, "status {status}");
        let mut position = check(content, 0, bytes, &rest)?;
        let mut buffer = vec![0; 256 * 1024];
        while position < bytes {
            if let Some(rate) = bytes_per_s {
                let due = Duration::from_nanos(position.saturating_mul(1_000_000_000) / rate);
                let ahead = due.saturating_sub(began.elapsed());
                if ahead > STEP {
                    std::thread::sleep(ahead);
                }
            }
            let read = stream.read(&mut buffer)?;
            ensure!(read > 0, "cut after {position} bytes");
            position = check(content, position, bytes, buffer.get(..read).unwrap_or_default())?;
        }
        Ok(began.elapsed())
    };
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|_| bail!("the client panicked"))
}

/// The status of an answer without content.
pub(super) fn status(address: SocketAddr, method: &str, target: &str, fields: &str) -> Result<u16> {
    let (_, status, _) =
        ask(address, &format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"))?;
    Ok(status)
}

fn ask(address: SocketAddr, request: &str) -> Result<(TcpStream, u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut buffer = [0; 4096];
        let more = stream.read(&mut buffer)?;
        ensure!(more > 0, "closed before an answer");
        read.extend_from_slice(buffer.get(..more).unwrap_or_default());
    };
    let rest = read.split_off(end);
    let head = String::from_utf8_lossy(&read).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context(head.clone())?;
    Ok((stream, status, rest))
}

/// Looks at bytes that begin at a position; says where they end.
fn check(content: &Content, mut position: u64, end: u64, mut bytes: &[u8]) -> Result<u64> {
    ensure!(position + bytes.len() as u64 <= end, "more than {end} bytes");
    while !bytes.is_empty() {
        let expected = content.at(position, bytes.len() as u64);
        let (now, later) = bytes.split_at(expected.len());
        ensure!(now == expected, "wrong bytes at {position}");
        position += now.len() as u64;
        bytes = later;
    }
    Ok(position)
}
