//! An origin that tags what it answers.
//!
//! In: requests for objects by their numbers, `/object/17`. Out: a short body, cacheable for years, and in `xkey` the tags of that
//! number: `all`, one of [`GROUPS`] groups, its own, and as many more as the origin was started with. Each of those is on
//! [`SHARED_BY`] objects of a row.
//! Deliberately absent: any other field that a cache would have to judge.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::measure::contender::LOAD_CORE;

/// Objects are in one of so many groups, by their numbers.
pub(super) const GROUPS: u64 = 400;
/// Objects that share a tag.
pub(super) const SHARED_BY: u64 = 100;
/// The length of every object's body.
pub(super) const OBJECT_BYTES: usize = 134;
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// A running origin, ended when it is dropped.
pub(super) struct TaggingOrigin {
    pub(super) address: SocketAddr,
    /// `None` once it is told.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TaggingOrigin {
    /// Starts listening on a free port, on the load's core, and gives each object so many tags beyond the first three.
    pub(super) fn start(more_tags: u64) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").context("origin")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            let mut core = CpuSet::new();
            core.set(LOAD_CORE);
            // Where that is refused, the clients fail to be pinned as well, and say so.
            let _ = sched_setaffinity(None, &core);
            runtime.block_on(accept(listener, more_tags, stopped));
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for TaggingOrigin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The target of an object.
pub(super) fn target(number: u64) -> String {
    format!("/object/{number}")
}

async fn accept(listener: std::net::TcpListener, more_tags: u64, mut stopped: oneshot::Receiver<()>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => return,
        };
        if let Ok((stream, _)) = accepted {
            // An error ends this connection only; the proxy in front sees it closed.
            tokio::spawn(async move { drop(answer_all(stream, more_tags).await) });
        }
    }
}

async fn answer_all(mut stream: TcpStream, more_tags: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; REQUEST_BYTES_MAX];
    let (mut filled, mut answer) = (0, String::new());
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
        answer.clear();
        put_answer(&mut answer, number_in(request), more_tags);
        stream.write_all(answer.as_bytes()).await?;
        filled = 0;
    }
}

fn put_answer(answer: &mut String, number: Option<u64>, more_tags: u64) {
    let Some(number) = number else {
        return answer.push_str("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    };
    answer.push_str(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: public, max-age=100000000\r\nxkey: ",
    );
    put_tags(answer, number, more_tags);
    let _ = write!(answer, "\r\nContent-Length: {OBJECT_BYTES}\r\n\r\n");
    answer.extend(std::iter::repeat_n('x', OBJECT_BYTES));
}

fn put_tags(to: &mut String, number: u64, more_tags: u64) {
    let _ = write!(to, "all group-{} object-{number}", number % GROUPS);
    for place in 0..more_tags {
        let _ = write!(to, " product-{:06}", number / SHARED_BY * more_tags + place);
    }
}

/// The number that the target ends with.
fn number_in(request: &[u8]) -> Option<u64> {
    let target = request.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(target.strip_prefix(b"/object/")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn an_object_has_the_tags_of_its_number() {
        let mut tags = String::new();
        put_tags(&mut tags, 1234, 2);
        assert_eq!(tags, "all group-34 object-1234 product-000024 product-000025");
        assert_eq!(number_in(b"GET /object/1234 HTTP/1.1\r\n\r\n"), Some(1234));
        for odd in ["GET /object/x HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\n", "GET", ""] {
            assert_eq!(number_in(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn each_shared_tag_is_on_so_many_objects() {
        let mut carried: HashMap<String, u64> = HashMap::new();
        for number in 0..10 * SHARED_BY {
            let mut tags = String::new();
            put_tags(&mut tags, number, 20);
            tags.split(' ').skip(3).for_each(|tag| *carried.entry(tag.to_owned()).or_default() += 1);
        }
        assert_eq!(carried.len(), 200);
        assert!(carried.values().all(|objects| *objects == SHARED_BY));
    }

    #[test]
    fn an_object_is_answered_as_clients_expect_it() {
        let origin = TaggingOrigin::start(0).unwrap();
        let hits = crate::measure::asker::ask_all_for(origin.address, (2, OBJECT_BYTES), 10, target).unwrap();
        assert_eq!(hits, 0);
    }
}
