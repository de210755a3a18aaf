//! The origin of the counted larder: an answer for each target, given only when larder sleeps.
//!
//! In: requests without content, on any number of connections. Out: the same bytes for a target each time, in one write, and how
//! often below the folder that is measured; health checks ask elsewhere. The tiny origin of the other measurements answers as soon as it can, and its fields are its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::callgrind::Idle;

/// Longest head of a request; larder sends what the client sent and a little more.
const HEAD_MAX: u64 = 65_536;
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A head and its body for a target.
pub(super) type Answers = dyn Fn(&str) -> Vec<u8> + Send + Sync;

/// A running origin; it lasts as long as this process.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Origin {
    /// Starts listening on a free port. Requests below `folder` count.
    pub(super) fn start(folder: &'static str, answers: Arc<Answers>, idle: &Idle) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("origin")?;
        let address = listener.local_addr()?;
        let asked = Arc::new(AtomicU64::new(0));
        let (counter, idle) = (Arc::clone(&asked), idle.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counter, answers, idle) = (Arc::clone(&counter), Arc::clone(&answers), idle.clone());
                // An error ends this connection only; larder answers 502 then, which the client does not accept.
                thread::spawn(move || drop(serve(&stream, folder, &*answers, &idle, &counter)));
            }
        });
        Ok(Self { address, asked })
    }

    /// How many requests that count were answered so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

fn serve(
    mut stream: &TcpStream,
    folder: &str,
    answers: &Answers,
    idle: &Idle,
    asked: &AtomicU64,
) -> Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(target) = read_head(&mut reader)? {
        asked.fetch_add(u64::from(target.starts_with(folder)), Ordering::Relaxed);
        let answer = answers(&target);
        idle.wait()?;
        stream.write_all(&answer)?;
    }
    Ok(())
}

/// Reads up to the empty line: the target, or nothing at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> Result<Option<String>> {
    let mut head = reader.by_ref().take(HEAD_MAX);
    let mut line = String::new();
    let mut target = None;
    while head.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            return Ok(target);
        }
        target = target.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        line.clear();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_head_gives_its_target_and_half_a_head_none() {
        let read = |mut bytes: &[u8]| read_head(&mut bytes).unwrap();
        assert_eq!(read(b"GET /page/hot HTTP/1.1\r\nHost: a\r\n\r\n").as_deref(), Some("/page/hot"));
        assert_eq!(read(b"GET /page/hot HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(read(b""), None);
    }
}
