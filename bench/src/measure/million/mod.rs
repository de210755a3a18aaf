//! A million records in a Redis: what do they take there, and how soon is a larder there in front of them, also behind a full log of purges?
//!
//! In: a million pages of 1 KiB, which one larder has fetched and put into a Redis. Out: the memory of Redis for each; and the time from the start of
//! a larder to the moment when it listens, its lease, and its first hit, which comes from Redis. Then the same with as many purges in the fleet's log
//! as it keeps.
//! Deliberately absent: a server that evicts.

mod start;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::asker::{OBJECT_BYTES, ask_all, object};
use super::contender::{Kit, LOAD_CORE, floor};
use super::purges::ask::TOKEN;
use super::receipts;
use super::redis::{By, Place, Redis};
use super::report::{Report, median, round};
use super::sharing::{self, Larder, Wanted, until};
use start::Started;

const RECORDS: u64 = 1_000_000;
/// So many are fetched before what they bring is waited for: they fit into the queue.
const AT_ONCE: u64 = 5000;
/// Keys that are no records: the log and what goes with it.
const OTHER_KEYS: u64 = 8;
/// Of so many records the length is looked at.
const SAMPLES: usize = 200;
/// Entries that the log keeps, and a rate that one sender may have, for long enough.
const LOG_ENTRIES: u64 = 65_536;
const PURGES: (u32, Duration) = (1800, Duration::from_secs(38));
const STARTS: u64 = 5;
/// For each start.
const PAGES: u64 = 100;
const MEMORY: &str = "64MiB";
/// Longer than the larder is held up that fetches all of them, and shorter than that takes.
const LEASE: &str = "20s";
/// Of all pages, so many lie there.
const SHARED_MIN: f64 = 0.99;

/// What they take of Redis.
struct Taken {
    records: u64,
    /// For each record, with its key.
    bytes: f64,
    /// A record: front, key, head, body.
    record_bytes: f64,
    filled_in: Duration,
}

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object())?;
    let redis = Redis::start(kit.scratch(), By::UnixSocket, LOAD_CORE)?;
    let site = format!("purge = {{ token = \"{TOKEN}\" }}");
    let all = Wanted { memory: MEMORY, lease: LEASE, site: &site, ..Wanted::new("web-1", Some(&redis)) };
    let first = sharing::start(&kit, origin.address, all)?;
    let taken = fill(&redis.place, &first)?;
    let starts = |begin: &str, page: fn(u64) -> String| -> Result<Vec<Started>> {
        let one = |number: u64| {
            let name = format!("{begin}-{number}");
            let launch = sharing::configured(&kit, origin.address, Wanted { name: &name, ..all })?;
            // A page that was not used is in memory the next time.
            let pages = number * PAGES..(number + 1) * PAGES;
            start::start(launch, first.address, pages.map(page)).context(name)
        };
        (0..STARTS).map(one).collect()
    };
    let with_few = starts("few", target)?;
    receipts::send(std::slice::from_ref(&first), PURGES)?;
    let entries = integer(&redis.place.ask(&[b"XLEN", b"larder:1:{fleet}:log"])?)?;
    ensure!(entries >= LOG_ENTRIES, "the log has {entries} entries only");
    // A record from before the oldest entry is not used any more.
    ask_all(first.address, 32, STARTS * PAGES, late)?;
    first.until_written()?;
    let with_many = starts("many", late)?;
    report(root, &taken, [(0, &with_few), (entries, &with_many)])
}

/// Has the larder fetch all of them.
fn fill(place: &Place, larder: &Larder) -> Result<Taken> {
    let (before, begun) = (place.used_bytes()?, Instant::now());
    for first in (0..RECORDS).step_by(usize::try_from(AT_ONCE)?) {
        ask_all(larder.address, 32, AT_ONCE, move |number| target(first + number))?;
        larder.until_written()?;
    }
    let filled_in = begun.elapsed();
    let keys = || integer(&place.ask(&[b"DBSIZE"])?);
    // Who fetches a page is told there for a while.
    until("there are more keys than records", || Ok(keys()? <= RECORDS + OTHER_KEYS))?;
    let (used, records) = (place.used_bytes()?.saturating_sub(before), keys()?);
    let mut lengths = Vec::with_capacity(SAMPLES);
    while lengths.len() < SAMPLES {
        let reply = place.ask(&[b"RANDOMKEY"])?;
        let key = reply.lines().nth(1).context("no key")?;
        if key.contains(":r:") {
            lengths.push(integer(&place.ask(&[b"STRLEN", key.as_bytes()])?)?);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let mean = |sum: u64, count: u64| sum as f64 / count as f64;
    let record_bytes = mean(lengths.iter().sum(), lengths.len() as u64);
    ensure!(mean(records, RECORDS) >= SHARED_MIN, "{records} records only");
    Ok(Taken { records, bytes: mean(used, records), record_bytes, filled_in })
}

fn target(number: u64) -> String {
    format!("/object/{number:07}")
}

/// One that is fetched when the log is full.
fn late(number: u64) -> String {
    format!("/late/{number:07}")
}

/// `:7`, as Redis tells a number.
fn integer(reply: &str) -> Result<u64> {
    let number = reply.strip_prefix(':').and_then(|rest| rest.trim_end().parse().ok());
    number.with_context(|| format!("no number: {}", reply.trim_end()))
}

/// Prints the tables and writes page and figures.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn report(root: &Path, taken: &Taken, starts: [(u64, &Vec<Started>); 2]) -> Result<()> {
    let Taken { records, bytes, record_bytes, filled_in } = taken;
    let body = OBJECT_BYTES as f64;
    let mut table = format!(
        "| records | bytes of Redis for each | the record | of that its body | beside the record | put there in s |\n|---|---|---|---|---|---|\n\
         | {records} | {bytes:.0} | {record_bytes:.0} | {body:.0} | {:.0} | {:.0} |\n\n\
         From the start of a larder in front of them:\n\n\
         | entries in the log | listens ms | lease ms | first hit ms | first hits of all starts |\n|---|---|---|---|---|\n",
        bytes - record_bytes,
        filled_in.as_secs_f64(),
    );
    let mut rows: Vec<Value> = Vec::new();
    for (entries, starts) in starts {
        let ms = |of: fn(&Started) -> Duration| -> Vec<f64> {
            starts.iter().map(|started| of(started).as_secs_f64() * 1e3).collect()
        };
        let [listens, lease, hit] = [ms(|s| s.listens), ms(|s| s.lease), ms(|s| s.first_hit)].map(median);
        let all: Vec<String> = ms(|s| s.first_hit).iter().map(|ms| format!("{ms:.0}")).collect();
        let _ = writeln!(table, "| {entries} | {listens:.0} | {lease:.0} | {hit:.0} | {} |", all.join(", "));
        rows.push(json!({
            "entries": entries, "listens_ms": round(listens), "lease_ms": round(lease), "first_hit_ms": round(hit),
        }));
    }
    Report {
        name: "million",
        title: "A million records",
        table: &table,
        how: &format!(
            "Pages of {OBJECT_BYTES} bytes, fetched by one larder with {MEMORY} of memory. The bytes of Redis are the difference of its `used_memory`, \
             before the first record and after the last, by the number of keys. A record is a string: its front, the key, the head with its fields, \
             and the body; its length is the mean of {SAMPLES} of them. {STARTS} starts, each of a larder with a name of its own and nothing in memory; medians. \
             They count from the start of the program. A lease is there once the larder has read the whole log. It is asked for \
             nothing before that. With a full log it is asked for pages that were fetched since: a record from before the oldest entry is not used. Each larder leaves before the next one comes. One worker, pinned to one core; Redis, the clients and the origin on another."
        ),
        programs: &[("uname", "-sr"), ("rustc", "--version"), ("redis-server", "--version")],
        figures: json!({
            "records": records, "bytes_each": round(*bytes), "record_bytes": round(*record_bytes),
            "body_bytes": OBJECT_BYTES, "filled_s": round(filled_in.as_secs_f64()), "starts": rows,
        }),
    }
    .write(root)
}
