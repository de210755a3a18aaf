//! What a scripted origin received, exactly, and how much of it at once.
//!
//! In: heads and body pieces as they arrive, connections that open and end. Out: the record, counts, gauges and
//! peaks, and waits for them to change. A request counts from the moment its head is complete. The bytes of
//! connections are kept as they came as well, up to 1 MiB of them all together.

use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::wire::{Fields, latin1};

/// The most that is kept of the bytes of all connections.
pub(super) const RECEIVED_BYTES_MAX: usize = 1024 * 1024;

/// One request as received.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The head, byte for byte.
    pub head: Bytes,
    /// Its method.
    pub method: String,
    /// Its target.
    pub target: String,
    /// `HTTP/1.1` or what stood there.
    pub version: String,
    /// Its fields in order.
    pub fields: Fields,
    /// The content so far, without its framing.
    pub body: Bytes,
    /// Whether the content came to its proper end.
    pub body_complete: bool,
    /// What came behind the content.
    pub trailers: Fields,
    /// The connection that it came on, counted from 1.
    pub connection: u64,
    /// When its head was complete.
    pub at: Instant,
    /// What HTTP does not allow in it.
    pub malformed: Option<String>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "connection {}, body of {} bytes{}",
            self.connection,
            self.body.len(),
            if self.body_complete { "" } else { " (not complete)" }
        )?;
        for line in latin1(&self.head).lines().filter(|line| !line.is_empty()) {
            writeln!(f, "      {}", line.escape_debug())?;
        }
        match &self.malformed {
            Some(why) => writeln!(f, "      MALFORMED: {why}"),
            None => Ok(()),
        }
    }
}

/// One connection.
#[derive(Debug, Default)]
struct Transcript {
    received: Vec<u8>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Record {
    seen: Vec<Seen>,
    unscripted: Vec<String>,
    in_flight: u64,
    in_flight_peak: u64,
    /// By number, the first one being 1.
    connections: Vec<Transcript>,
    received_bytes: usize,
    open: u64,
    aside: u64,
}

impl Record {
    fn connection(&mut self, number: u64) -> Option<&mut Transcript> {
        self.connections.get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

/// The record of an origin. Its lock is held for look-ups and copies only.
#[derive(Debug)]
pub struct Log {
    record: Mutex<Record>,
    changes: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { record: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

/// Counts down when what it stands for ends, however that happens.
pub(super) struct Guard<'a> {
    log: &'a Log,
    connection: u64,
    end: fn(&mut Record, u64),
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.log.change(|record| (self.end)(record, self.connection));
    }
}

impl Log {
    fn change<T>(&self, act: impl FnOnce(&mut Record) -> T) -> T {
        let result = act(&mut self.record.lock());
        self.changes.send_modify(|n| *n += 1);
        result
    }

    pub(super) fn connection_opened(&self) -> u64 {
        self.change(|record| {
            record.connections.push(Transcript::default());
            record.open += 1;
            record.connections.len() as u64
        })
    }

    /// Ends what [`Log::connection_opened`] began.
    pub(super) fn open_guard(&self, connection: u64) -> Guard<'_> {
        let end = |record: &mut Record, connection| {
            record.open -= 1;
            if let Some(transcript) = record.connection(connection) {
                transcript.is_over = true;
            }
        };
        Guard { log: self, connection, end }
    }

    /// Bytes that a connection has brought.
    pub(super) fn read(&self, connection: u64, bytes: &[u8]) {
        if self.record.lock().received_bytes == RECEIVED_BYTES_MAX {
            return;
        }
        self.change(|record| {
            let kept = bytes.len().min(RECEIVED_BYTES_MAX - record.received_bytes);
            record.received_bytes += kept;
            if let Some(transcript) = record.connection(connection) {
                transcript.received.extend_from_slice(bytes.get(..kept).unwrap_or_default());
            }
        });
    }

    /// Records a head; the number is its place in the record. In flight until the guard goes. What stands `aside` is
    /// only counted, and has no place.
    pub(super) fn request(&self, seen: Seen, aside: bool) -> (usize, Guard<'_>) {
        if aside {
            self.change(|record| record.aside += 1);
            return (usize::MAX, Guard { log: self, connection: 0, end: |_, _| {} });
        }
        let connection = seen.connection;
        let at = self.change(|record| {
            record.seen.push(seen);
            record.in_flight += 1;
            record.in_flight_peak = record.in_flight_peak.max(record.in_flight);
            record.seen.len() - 1
        });
        (at, Guard { log: self, connection, end: |record, _| record.in_flight -= 1 })
    }

    pub(super) fn trailers(&self, at: usize, trailers: Fields) {
        self.change(|record| {
            if let Some(seen) = record.seen.get_mut(at) {
                seen.trailers = trailers;
            }
        });
    }

    pub(super) fn body(&self, at: usize, body: Bytes, complete: bool) {
        self.change(|record| {
            if let Some(seen) = record.seen.get_mut(at) {
                seen.body = body;
                seen.body_complete = complete;
            }
        });
    }

    pub(super) fn malformed(&self, at: usize, why: String) {
        self.change(|record| {
            if let Some(seen) = record.seen.get_mut(at) {
                seen.malformed = Some(why);
            }
        });
    }

    pub(super) fn unscripted(&self, target: &str) {
        self.change(|record| record.unscripted.push(target.to_owned()));
    }

    /// A copy of everything that was asked.
    pub fn all(&self) -> Vec<Seen> {
        self.record.lock().seen.clone()
    }

    /// The last request.
    pub fn last(&self) -> Option<Seen> {
        self.record.lock().seen.last().cloned()
    }

    /// How many requests came.
    pub fn count(&self) -> u64 {
        self.record.lock().seen.len() as u64
    }

    /// How many requests came for `target`.
    pub fn count_of(&self, target: &str) -> u64 {
        self.record.lock().seen.iter().filter(|seen| seen.target == target).count() as u64
    }

    /// How many requests came that stand beside those of clients.
    pub fn count_aside(&self) -> u64 {
        self.record.lock().aside
    }

    /// How many requests were being answered at once, at most.
    pub fn in_flight_peak(&self) -> u64 {
        self.record.lock().in_flight_peak
    }

    /// How many requests are being answered now.
    pub fn in_flight(&self) -> u64 {
        self.record.lock().in_flight
    }

    /// How many connections were ever opened.
    pub fn connections(&self) -> u64 {
        self.record.lock().connections.len() as u64
    }

    /// Whether a connection, counted from 1, was opened and has ended.
    pub fn is_over(&self, connection: u64) -> bool {
        self.record.lock().connection(connection).is_some_and(|transcript| transcript.is_over)
    }

    /// What a connection, counted from 1, has brought so far, byte for byte. Nothing is kept beyond the first MiB that all
    /// connections have brought.
    pub fn received(&self, connection: u64) -> Vec<u8> {
        self.record.lock().connection(connection).map(|it| it.received.clone()).unwrap_or_default()
    }

    /// How many connections are open now.
    pub fn connections_open(&self) -> u64 {
        self.record.lock().open
    }

    /// What no test wants to see: requests that HTTP does not allow, or that the script says nothing about.
    pub fn complaints(&self) -> Vec<String> {
        let record = self.record.lock();
        let malformed = record.seen.iter().filter_map(|seen| seen.malformed.clone());
        malformed
            .chain(record.unscripted.iter().map(|target| format!("the script has no {target}")))
            .collect()
    }

    /// Waits until `holds` says so; asked again after each change. Bounded by who waits.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !holds(self) {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, seen) in self.all().iter().enumerate() {
            write!(f, "  {}: {seen}", n + 1)?;
        }
        Ok(())
    }
}
