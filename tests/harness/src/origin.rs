//! A tiny origin for measurements and conformance runs.
//!
//! In: HTTP/1.1 requests on a free loopback port; the last segment of the path, where it is a number, is the length
//! of the body. Out: 200 with that many bytes, derived from the length alone so that whoever asks can tell a wrong
//! byte, cacheable for an hour, with an entity tag that follows from the length. The query `fields=N` adds so many
//! fields. Pages of fragments are in pages.rs. Counts what it is asked, but for health checks.
//! Deliberately absent: speed. Behind a cache it is asked once per URL.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::pages;

const LENGTH_DEFAULT: usize = 134;
const LENGTH_MAX: usize = 1 << 24;
const LINES_MAX: usize = 256;
const FIELDS_MAX: usize = 100;
/// What a health check asks for.
const HEALTH: &str = "/healthz";
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A running origin. Dropped, it accepts nobody any more; a connection that is open ends with its client, or after
/// a minute without a request.
pub struct Origin {
    /// Where it listens.
    pub address: SocketAddr,
    asked: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    /// `None` once it is joined.
    accepting: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts listening on a free port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("origin")?;
        let address = listener.local_addr()?;
        let asked = Arc::new(AtomicU64::new(0));
        let stopped = Arc::new(AtomicBool::new(false));
        let (counter, stop) = (Arc::clone(&asked), Arc::clone(&stopped));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let counter = Arc::clone(&counter);
                // An error ends this connection only; the proxy in front sees it closed.
                thread::spawn(move || drop(answer(&stream, &counter)));
            }
        });
        Ok(Self { address, asked, stopped, accepting: Some(accepting) })
    }

    /// How many requests were answered so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // It waits for a connection, and looks then. Where none can be made, it is left waiting.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

/// The body of length `length`, the same each time.
pub fn body(length: usize) -> Vec<u8> {
    b"the larder keeps what was cooked once and serves it as if it were fresh. "
        .iter()
        .copied()
        .cycle()
        .take(length)
        .collect()
}

/// The entity tag of the body of length `length`.
pub fn entity_tag(length: usize) -> String {
    format!("\"{length:x}\"")
}

fn answer(stream: &TcpStream, asked: &AtomicU64) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        if !request.health {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        let (mut head, content) = match request.page {
            Some(page) => of_page(page, request.reads_surrogates),
            None => plain(request.length),
        };
        for number in 0..request.fields {
            let _ = write!(head, "X-Field-{number}: a value of some length, as applications send it\r\n");
        }
        head.push_str("\r\n");
        let mut message = head.into_bytes();
        if !request.head_only {
            message.extend_from_slice(&content);
        }
        let mut writer = stream;
        writer.write_all(&message)?;
        if request.close {
            break;
        }
    }
    Ok(())
}

/// Head and body of so many bytes; the empty line is left out.
fn plain(length: usize) -> (String, Vec<u8>) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nCache-Control: max-age=3600\r\n\
         ETag: {}\r\n",
        entity_tag(length)
    );
    (head, body(length))
}

/// The same of a page or a fragment, after its time. Only who says that it reads the field is told of a language.
fn of_page(page: pages::Answer, reads_surrogates: bool) -> (String, Vec<u8>) {
    take(page.delay);
    let lifetime = if page.may_be_stored { "max-age=3600" } else { "no-store" };
    let language =
        if page.is_esi && reads_surrogates { "Surrogate-Control: content=\"ESI/1.0\"\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nCache-Control: {lifetime}\r\n{language}",
        page.content.len()
    );
    (head, page.content)
}

/// What an application spends on an answer, here without computing anything.
#[expect(clippy::disallowed_methods, reason = "no worker here: a thread of one connection")]
fn take(delay: Duration) {
    if !delay.is_zero() {
        thread::sleep(delay);
    }
}

struct Asked {
    length: usize,
    page: Option<pages::Answer>,
    /// It names what it can do with a surrogate's fields.
    reads_surrogates: bool,
    /// Fields to add.
    fields: usize,
    health: bool,
    head_only: bool,
    close: bool,
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.by_ref().take(65_536).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let fields = query.split('&').find_map(|part| part.strip_prefix("fields=")?.parse().ok()).unwrap_or(0);
    let health = path == HEALTH;
    let length = path.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(LENGTH_DEFAULT);
    let head_only = line.starts_with("HEAD ");
    let mut asked = Asked {
        length: length.min(LENGTH_MAX),
        page: pages::answer(path),
        reads_surrogates: false,
        fields: FIELDS_MAX.min(fields),
        health,
        head_only,
        close: false,
    };
    let (mut content, mut chunked) = (0_u64, false);
    for _ in 0..LINES_MAX {
        let mut field = String::new();
        reader.by_ref().take(65_536).read_line(&mut field)?;
        let field = field.trim_end().to_ascii_lowercase();
        if field.is_empty() {
            break;
        }
        if let Some(value) = field.strip_prefix("content-length:") {
            content = value.trim().parse().unwrap_or(0);
        }
        asked.close |= field == "connection: close";
        chunked |= field.starts_with("transfer-encoding:");
        asked.reads_surrogates |= field.starts_with("surrogate-capability:");
    }
    if chunked {
        skip_chunks(reader)?;
    } else {
        std::io::copy(&mut reader.by_ref().take(content), &mut std::io::sink())?;
    }
    Ok(Some(asked))
}

fn skip_chunks(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let mut size = String::new();
        reader.by_ref().take(65_536).read_line(&mut size)?;
        let size = size.split(';').next().unwrap_or("0").trim();
        let size = u64::from_str_radix(size, 16).unwrap_or(0);
        // The line end after the data, or after the last chunk.
        std::io::copy(&mut reader.by_ref().take(size + 2), &mut std::io::sink())?;
        if size == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;

    /// One request by a plain client: status and body.
    fn fetch(address: SocketAddr, path: &str) -> Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        // The address is the Host that wrk sends as well: one name, one key.
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").context("no end of the head")?;
        let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).into_owned();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("no status")?;
        Ok((status, answer.split_off(end + 4)))
    }

    #[test]
    fn the_body_follows_from_the_path() {
        let origin = Origin::start().unwrap();
        assert_eq!(fetch(origin.address, "/a/57?x=1").unwrap(), (200, body(57)));
        assert_eq!(fetch(origin.address, "/").unwrap(), (200, body(LENGTH_DEFAULT)));
        assert_eq!(origin.asked(), 2);
        assert_eq!(fetch(origin.address, HEALTH).unwrap().0, 200);
        assert_eq!(origin.asked(), 2);
    }

    #[test]
    fn a_page_of_fragments_follows_from_the_path_too() {
        let origin = Origin::start().unwrap();
        let path = "/page/esi/plain/2x100/500";
        assert_eq!(fetch(origin.address, path).unwrap(), (200, pages::answer(path).unwrap().content));
        let head = |page: &str, reads_surrogates| of_page(pages::answer(page).unwrap(), reads_surrogates).0;
        assert!(head(path, true).contains("Surrogate-Control: content=\"ESI/1.0\"\r\n"));
        assert!(!head(path, false).contains("Surrogate"));
        assert!(head("/page/part/slow/1/100", true).contains("no-store"));
    }

    #[test]
    fn an_origin_that_is_dropped_accepts_nobody() {
        let origin = Origin::start().unwrap();
        let address = origin.address;
        assert!(TcpStream::connect(address).is_ok());
        drop(origin);
        // The port may be another test's by now, for as long as that lasts.
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_ok() {
            assert!(Instant::now() < deadline, "it still accepts");
            crate::children::pause();
        }
    }

    #[test]
    fn fields_are_added_where_they_are_asked_for() {
        let origin = Origin::start().unwrap();
        for (target, fields) in [("/9", 0), ("/9?fields=30", 30), ("/9?a=b&fields=2", 2), ("/9?fields=x", 0)]
        {
            let mut stream = TcpStream::connect(origin.address).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert_eq!(answer.matches("X-Field-").count(), fields, "{target}");
            assert!(answer.contains("ETag: \"9\"\r\n"));
        }
    }
}
