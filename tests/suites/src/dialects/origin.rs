//! The origin behind both: it answers for what is to be stored, and counts what it is asked for each.
//!
//! In: HTTP/1.1 requests on a free loopback port. Out: 200 with a number that was not used before, cacheable for an hour. Where it is to
//! tell what is stale from what is gone, responses have an entity tag, and a request with a condition gets 304. Without, the difference
//! cannot be seen, which is as well for hard purges: for a moment after one, Varnish still has what it purged confirmed.
//! Anything else is 404 and may not be stored.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::stored::Stored;
use super::world::TagField;

const IDLE_MAX: Duration = Duration::from_secs(60);
const LINE_MAX: u64 = 65_536;
const LINES_MAX: usize = 256;

/// What was asked for one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// For all of it.
    pub(crate) whole: u64,
    /// For a confirmation.
    pub(crate) conditional: u64,
}

/// Counters of one response.
#[derive(Default)]
struct Counters {
    whole: AtomicU64,
    conditional: AtomicU64,
}

struct Content {
    /// By host and target.
    places: HashMap<String, usize>,
    fields: Vec<Vec<String>>,
    asked: Vec<Counters>,
    has_entity_tags: bool,
    last_number: AtomicU64,
    is_stopped: AtomicBool,
}

/// A running origin. Dropped, it accepts nobody any more.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    content: Arc<Content>,
    accepting: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts listening on a free port.
    pub(crate) fn start(stored: &[Stored], tags: &[TagField], has_entity_tags: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("origin")?;
        let address = listener.local_addr()?;
        let content = Arc::new(Content {
            places: stored.iter().enumerate().map(|(place, stored)| (stored.name(), place)).collect(),
            fields: stored.iter().map(|stored| stored.field_lines(tags)).collect(),
            asked: stored.iter().map(|_| Counters::default()).collect(),
            has_entity_tags,
            last_number: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        });
        let all = Arc::clone(&content);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.is_stopped.load(Ordering::Acquire) {
                    break;
                }
                let all = Arc::clone(&all);
                // An error ends this connection only; the cache in front sees it closed.
                thread::spawn(move || drop(answer(&stream, &all)));
            }
        });
        Ok(Self { address, content, accepting: Some(accepting) })
    }

    /// What was asked so far for the response at this place of the list.
    pub(crate) fn asked(&self, place: usize) -> Asked {
        self.content.asked.get(place).map_or_else(Asked::default, |counters| Asked {
            whole: counters.whole.load(Ordering::Acquire),
            conditional: counters.conditional.load(Ordering::Acquire),
        })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.content.is_stopped.store(true, Ordering::Release);
        // It waits for a connection, and looks then. Where none can be made, it is left waiting.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

fn answer(stream: &TcpStream, content: &Content) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some((place, is_conditional)) = read_request(&mut reader, content)? {
        let message = match place {
            None => {
                "HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            Some(place) => message(content, place, is_conditional),
        };
        let mut writer = stream;
        writer.write_all(message.as_bytes())?;
    }
    Ok(())
}

fn message(content: &Content, place: usize, is_conditional: bool) -> String {
    let counters = content.asked.get(place);
    let counted =
        counters.map(|counters| if is_conditional { &counters.conditional } else { &counters.whole });
    if let Some(counted) = counted {
        counted.fetch_add(1, Ordering::AcqRel);
    }
    let fields = content.fields.get(place).map(|lines| lines.join("\r\n")).unwrap_or_default();
    let tag = if content.has_entity_tags { format!("ETag: \"{place}\"\r\n") } else { String::new() };
    let common = format!("{fields}\r\nCache-Control: max-age=3600\r\n{tag}");
    if is_conditional {
        return format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n");
    }
    let body = content.last_number.fetch_add(1, Ordering::AcqRel).to_string();
    format!("HTTP/1.1 200 OK\r\n{common}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Which response is asked for, and whether only for a confirmation. `None` at the connection's end.
fn read_request(
    reader: &mut impl BufRead,
    content: &Content,
) -> std::io::Result<Option<(Option<usize>, bool)>> {
    let mut line = String::new();
    if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut host, mut is_conditional) = (String::new(), false);
    for _ in 0..LINES_MAX {
        let mut field = String::new();
        reader.by_ref().take(LINE_MAX).read_line(&mut field)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("host") {
            value.trim().clone_into(&mut host);
        }
        is_conditional |= name.eq_ignore_ascii_case("if-none-match");
    }
    Ok(Some((content.places.get(&format!("{host}{target}")).copied(), is_conditional)))
}
