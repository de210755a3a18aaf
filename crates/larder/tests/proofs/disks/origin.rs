//! The origin of the catalogue: each resource in its present version, whole or in part; a POST makes the next one.
//!
//! In: requests over HTTP/1.1. Out: bodies that derive from what was asked, and a count of the requests. Large bodies come
//! with pauses, so that some are always on their way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::Error;
use larder_testkit::seeded::bytes_of;
use larder_testkit::wire::{Fields, Framing, Wire, latin1, split_head};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::catalogue::{Catalogue, Resource};
use crate::support::BOUND;

const PIECE_BYTES: u64 = 64 * 1024;
const PAUSE: Duration = Duration::from_millis(2);

/// A running origin; ends when it is dropped.
pub(crate) struct Origin {
    addr: SocketAddr,
    pub(crate) catalogue: Arc<Catalogue>,
    gets: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Origin {
    pub(crate) async fn start(catalogue: Catalogue) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, catalogue, gets) =
            (listener.local_addr().unwrap(), Arc::new(catalogue), Arc::<AtomicU64>::default());
        let accepting = tokio::spawn({
            let (catalogue, gets) = (Arc::clone(&catalogue), Arc::clone(&gets));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (catalogue, gets) = (Arc::clone(&catalogue), Arc::clone(&gets));
                    // A larder that was killed cuts its connections; nothing else ends one.
                    tokio::spawn(async move { serve(stream, &catalogue, &gets).await });
                }
            }
        });
        Self { addr, catalogue, gets, accepting }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// GETs so far.
    pub(crate) fn gets(&self) -> u64 {
        self.gets.load(Ordering::SeqCst)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, catalogue: &Catalogue, gets: &AtomicU64) -> Result<(), Error> {
    let mut wire = Wire::new(stream, BOUND);
    while let Some(head) = wire.read_head().await? {
        let (line, block) = split_head(&head)?;
        let (line, fields) = (latin1(line), Fields::parse(block)?);
        let mut framing = Framing::stated(&fields, Framing::Ended)?;
        while wire.read_piece(&mut framing, &mut Fields::default()).await?.is_some() {}
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some(resource) = Resource::of(target) else {
            wire.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?;
            continue;
        };
        if method == "POST" {
            let version = catalogue.change(resource);
            let answer = format!("HTTP/1.1 200 OK\r\nETag: \"v{version}\"\r\nContent-Length: 0\r\n\r\n");
            wire.write(answer.as_bytes()).await?;
            continue;
        }
        gets.fetch_add(1, Ordering::SeqCst);
        answer(&mut wire, catalogue, resource, &fields).await?;
    }
    Ok(())
}

async fn answer(
    wire: &mut Wire,
    catalogue: &Catalogue,
    resource: Resource,
    asked: &Fields,
) -> Result<(), Error> {
    let version = catalogue.version(resource);
    let tag = format!("\"v{version}\"");
    let may_part = asked.first("if-range").is_none_or(|known| known == tag);
    let range = asked.first("range").filter(|_| may_part).and_then(|range| part(range, resource.bytes));
    let (first, last) = range.unwrap_or((0, resource.bytes - 1));
    let is_chunked = resource.is_chunked() && range.is_none();
    let mut head = match range {
        Some((first, last)) => {
            format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}\r\n",
                resource.bytes
            )
        }
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    head.push_str(&format!("ETag: {tag}\r\nCache-Control: max-age=86400\r\n"));
    if resource.has_flavours() {
        head.push_str("Vary: X-Flavour\r\n");
    }
    match is_chunked {
        true => head.push_str("Transfer-Encoding: chunked\r\n\r\n"),
        false => head.push_str(&format!("Content-Length: {}\r\n\r\n", last + 1 - first)),
    }
    wire.write(head.as_bytes()).await?;
    let seed = resource.seed(version, asked.first("x-flavour").unwrap_or_default());
    let mut at = first;
    while at <= last {
        let piece = bytes_of(&seed, at, PIECE_BYTES.min(last + 1 - at));
        at += piece.len() as u64;
        match is_chunked {
            true => {
                wire.write(&[format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat()).await?
            }
            false => wire.write(&piece).await?,
        }
        if at <= last {
            tokio::time::sleep(PAUSE).await;
        }
    }
    if is_chunked {
        wire.write(b"0\r\n\r\n").await?;
    }
    Ok(())
}

/// First and last byte of `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`.
fn part(range: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end = length.checked_sub(1)?;
    let (first, last) = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => (first, last.min(end)),
        (Ok(first), Err(_)) => (first, end),
        (Err(_), Ok(count)) => (length.saturating_sub(count), end),
        (Err(_), Err(_)) => return None,
    };
    (first <= last).then_some((first, last))
}
