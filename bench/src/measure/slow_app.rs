//! The application that a cache must protect: slow, strictly sequential where wanted, silent about caching, mortal.
//!
//! In: HTTP/1.1 GET requests with keep-alive on a loopback port. Out: pages of one length that begin and end with the
//! number of their rendering and name the target they were made for, so that a torn, mixed or foreign page shows.
//! It counts requests and the most of them in flight at once (from the request's head to the last byte of the answer,
//! waiting for the kitchen included), and remembers when each rendering had been sent whole.
//! It runs on a thread of its own and sleeps while it "renders": it costs next to nothing beside what is measured.
//! Deliberately absent: any word about caching, which is what a microcache is for.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::load::on_load_core;

/// Length of each page.
pub(super) const PAGE_BYTES: usize = 57_000;
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How an exchange ends.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Ending {
    /// With the whole page.
    #[default]
    Whole,
    /// Rendered, and then closed without a byte.
    BeforeHead,
    /// Closed after half the page.
    MidBody,
}

/// How the application works.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// How long one page takes.
    pub(super) render: Duration,
    /// Whether a page waits until the one before it is done.
    pub(super) one_at_a_time: bool,
}

/// A running application; it lasts as long as this process.
pub(super) struct SlowApp {
    pub(super) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    habits: Habits,
    /// Held while a page is rendered, where only one may be.
    kitchen: tokio::sync::Mutex<()>,
    asked: AtomicU64,
    in_flight: AtomicU64,
    in_flight_most: AtomicU64,
    /// By number of rendering: when its last byte had been handed to the kernel. Guards nothing else.
    sent: Mutex<Vec<Option<Instant>>>,
    ending: Mutex<Ending>,
}

impl SlowApp {
    /// Starts listening on a free port.
    pub(super) fn start(habits: Habits) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("the application's port")?;
        // 1000 connections may arrive at once; bind() of the standard library asks for 128 only.
        rustix::net::listen(&listener, 4096)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            habits,
            kitchen: tokio::sync::Mutex::new(()),
            asked: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            in_flight_most: AtomicU64::new(0),
            sent: Mutex::new(Vec::new()),
            ending: Mutex::new(Ending::Whole),
        });
        let shared = Arc::clone(&state);
        // The thread ends with the process.
        drop(std::thread::spawn(move || on_load_core(async move { serve(listener, shared).await })));
        Ok(Self { address, state })
    }

    /// How many requests came so far.
    pub(super) fn asked(&self) -> u64 {
        self.state.asked.load(Ordering::Relaxed)
    }

    /// How many are in flight now.
    pub(super) fn in_flight(&self) -> u64 {
        self.state.in_flight.load(Ordering::Relaxed)
    }

    /// The most that were in flight at once.
    pub(super) fn in_flight_most(&self) -> u64 {
        self.state.in_flight_most.load(Ordering::Relaxed)
    }

    /// From now on exchanges end like this.
    pub(super) fn end_with(&self, ending: Ending) {
        *self.state.ending.lock() = ending;
    }

    /// Counts from zero again. Nothing may be in flight.
    pub(super) fn forget(&self) {
        self.state.asked.store(0, Ordering::Relaxed);
        self.state.in_flight_most.store(0, Ordering::Relaxed);
    }

    /// By number of rendering: when its last byte had been sent, `None` before that.
    pub(super) fn sent(&self) -> Vec<Option<Instant>> {
        self.state.sent.lock().clone()
    }
}

/// Counts one exchange for as long as it lasts.
struct InFlight<'a>(&'a State);

impl<'a> InFlight<'a> {
    fn begin(state: &'a State) -> Self {
        state.asked.fetch_add(1, Ordering::Relaxed);
        let now = state.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        state.in_flight_most.fetch_max(now, Ordering::Relaxed);
        Self(state)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let state = Arc::clone(&state);
        // An error ends this connection only; the proxy in front sees it closed.
        tokio::spawn(async move { drop(answer(stream, &state).await) });
    }
}

async fn answer(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(HEAD_BYTES_MAX);
    while let Some(target) = read_request(&mut stream, &mut buffer).await? {
        let _in_flight = InFlight::begin(state);
        let ending = *state.ending.lock();
        let number = {
            let mut sent = state.sent.lock();
            sent.push(None);
            sent.len() - 1
        };
        if state.habits.one_at_a_time {
            let _alone = state.kitchen.lock().await;
            tokio::time::sleep(state.habits.render).await;
        } else {
            tokio::time::sleep(state.habits.render).await;
        }
        let mut message =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {PAGE_BYTES}\r\n\r\n")
                .into_bytes();
        message.extend_from_slice(&page(number, &target));
        match ending {
            Ending::Whole => stream.write_all(&message).await?,
            Ending::BeforeHead => return Ok(()),
            Ending::MidBody => {
                let half = message.get(..message.len() / 2).unwrap_or_default();
                return stream.write_all(half).await;
            }
        }
        if let Some(slot) = state.sent.lock().get_mut(number) {
            *slot = Some(Instant::now());
        }
    }
    Ok(())
}

/// The target of the next request, `None` at an orderly end. Only requests without content come here.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<String>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).into_owned();
            buffer.drain(..end + 4);
            return Ok(Some(head.split(' ').nth(1).unwrap_or("/").to_owned()));
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(std::io::Error::other("a head without an end"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The rendering of this number for `target`: both at its begin, the number at its end again.
fn page(number: usize, target: &str) -> Vec<u8> {
    let mut page = format!("rendering {number} of {target}\n").into_bytes();
    let end = format!("\nrendering {number}\n");
    page.resize(PAGE_BYTES - end.len(), b'.');
    page.extend_from_slice(end.as_bytes());
    page
}

/// The number in a page made for `target`; `None` where the page is torn, mixed or another target's.
pub(super) fn number_in(page: &[u8], target: &str) -> Option<usize> {
    if page.len() != PAGE_BYTES {
        return None;
    }
    let line = page.get(..page.iter().position(|byte| *byte == b'\n')?)?;
    let (number, of) = std::str::from_utf8(line).ok()?.strip_prefix("rendering ")?.split_once(" of ")?;
    let whole = of == target && page.ends_with(format!("\nrendering {number}\n").as_bytes());
    number.parse().ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_its_number_and_a_torn_or_foreign_one_does_not() {
        let whole = page(17, "/a");
        assert_eq!(whole.len(), PAGE_BYTES);
        assert_eq!(number_in(&whole, "/a"), Some(17));
        assert_eq!(number_in(&whole, "/b"), None);
        assert_eq!(number_in(&whole[..PAGE_BYTES - 1], "/a"), None);
        let mut mixed = page(18, "/a");
        mixed.splice(PAGE_BYTES / 2.., whole[PAGE_BYTES / 2..].iter().copied());
        assert_eq!(number_in(&mixed, "/a"), None);
    }
}
