//! What a running larder holds, read a few times a second while something else goes on.
//!
//! In: the process and its admin address. Out: a [`Sample`] each time: resident memory as the kernel counts it, and
//! what the store itself says that it holds. A sample that cannot be taken fails the measurement.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use crate::measure::contender::{Contender, LOAD_CORE};

const EVERY: Duration = Duration::from_millis(250);
const STATS_MAX: Duration = Duration::from_secs(10);

/// One moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Sample {
    /// Seconds since the watch began.
    pub(super) at: f64,
    /// Of the process, as the kernel counts it.
    pub(super) resident: u64,
    pub(super) held: Held,
}

/// What the store says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) max_bytes: u64,
    /// The most it has ever held, noted by the store at every change.
    pub(super) high_water_bytes: u64,
    pub(super) objects: u64,
    pub(super) evicted: u64,
}

/// Does `work` and takes samples meanwhile.
pub(super) fn while_watched<T>(
    larder: &Contender,
    admin: SocketAddr,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<Sample>)> {
    let (stop, stopped) = channel::<()>();
    let watch = move || -> Result<Vec<Sample>> {
        let mut core = CpuSet::new();
        core.set(LOAD_CORE);
        sched_setaffinity(None, &core).context("pinning the watch")?;
        let (start, mut samples) = (Instant::now(), Vec::new());
        loop {
            let held = held(admin).context("reading /stats")?;
            let resident = larder.server.resident_bytes();
            samples.push(Sample { at: start.elapsed().as_secs_f64(), resident, held });
            if !matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
                return Ok(samples);
            }
        }
    };
    std::thread::scope(|scope| {
        let watching = scope.spawn(watch);
        let worked = work();
        drop(stop);
        let samples = watching.join().map_err(|_| anyhow!("the watch panicked"))?;
        Ok((worked?, samples?))
    })
}

fn held(admin: SocketAddr) -> Result<Held> {
    let mut stream = TcpStream::connect_timeout(&admin, STATS_MAX)?;
    stream.set_read_timeout(Some(STATS_MAX))?;
    write!(stream, "GET /stats HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    read_held(&answer)
}

/// The memory of the store that takes what is not told another one.
fn read_held(answer: &str) -> Result<Held> {
    let (_, json) = answer.split_once("\r\n\r\n").context("no end of the head")?;
    let stats: Value = serde_json::from_str(json)?;
    let stores = stats.pointer("/stores").and_then(Value::as_array).context("no stores")?;
    let mut stores = stores.iter();
    let store = stores.find(|store| store.pointer("/name").and_then(Value::as_str) == Some("default"));
    let store = store.context("no store named default")?;
    let figure = |pointer: &str| {
        store.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("no {pointer}"))
    };
    Ok(Held {
        bytes: figure("/tiers/0/bytes")?,
        max_bytes: figure("/tiers/0/max_bytes")?,
        high_water_bytes: figure("/tiers/0/high_water_bytes")?,
        objects: figure("/tiers/0/objects")?,
        evicted: figure("/evictions/room")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_the_store_says_is_read() {
        let store = |name: &str, bytes: u64| {
            format!(
                "{{\"name\":\"{name}\",\"evictions\":{{\"room\":7}},\"tiers\":[{{\"tier\":\"memory\",\"bytes\":{bytes},\
                 \"objects\":2,\"max_bytes\":9,\"high_water_bytes\":8}}]}}"
            )
        };
        let answer =
            |stores: &[String]| format!("HTTP/1.1 200 OK\r\n\r\n{{\"stores\":[{}]}}", stores.join(","));
        let held = Held { bytes: 5, max_bytes: 9, high_water_bytes: 8, objects: 2, evicted: 7 };
        assert_eq!(read_held(&answer(&[store("default", 5), store("media", 6)])).unwrap(), held);
        assert_eq!(read_held(&answer(&[store("media", 6), store("default", 5)])).unwrap(), held);
        assert!(read_held(&answer(&[store("media", 6)])).is_err());
        assert!(read_held(&answer(&[])).is_err());
        assert!(read_held("").is_err());
    }
}
