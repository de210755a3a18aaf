//! The published experiment on the placement of caches: two slow disks, and clients that ask for what is never asked for again.
//!
//! In: objects of 1 MB with random names, asked for by ten connections for 30 s, faster than the disks can take them; two
//! disks that are held to 40 MB/s each. Out: what the clients got, beside what they get without a cache, and what
//! reached the disks, for one disk and for both in each way of using two. nginx stands beside it as far as it goes by
//! itself: one cache, and two of them with `split_clients`. Mirror and stripe were volumes below nginx in the published
//! experiment; their figures are quoted.
//! Deliberately absent: hits. What reading from disks costs is another question.

mod clients;
mod kept;
mod origin;
mod report;
pub(super) mod throttle;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::contender::{Contender, Kit, Setup, larder, nginx};
use super::disks::{self, Disk, Size};
use super::machine::Moment;
use super::validity::STEAL_PERCENT_MAX;
use super::watch::{self, Sample};
use origin::{OBJECT_BYTES, PacedOrigin};
use throttle::Throttle;

/// What each disk takes.
const DISK_BYTES_PER_S: u64 = 40_000_000;
const SECONDS: u64 = 30;
/// The rate is looked at once more over so many seconds at the run's end.
const LAST: Duration = Duration::from_secs(10);
const LENGTH: Duration = Duration::from_secs(SECONDS);
/// How often a row is measured until the hypervisor leaves it alone.
const TRIES_MAX: usize = 3;
/// Room for everything that is asked for, on either disk alone: nothing has to be removed, and no cache is ever full.
const DISK: Size = Size { bytes: 10 << 30, bytes_per_inode: 65_536, is_taken: false };
/// What each cache may take of its disk.
const LARDER_SIZE: &str = "9GiB";
const NGINX_SIZE: &str = "9g";
/// What both images hold at most: all that is asked for.
const SCRATCH_BYTES: u64 = 7 << 30;

const LARDER_NONE: &str = "larder, no cache";
const NGINX_NONE: &str = "nginx, no cache";
const LARDER_SINGLE: &str = "larder, single";
const LARDER_MIRROR: &str = "larder, mirror";
const LARDER_STRIPE: &str = "larder, stripe";
const LARDER_HASH: &str = "larder, hash";
const NGINX_SINGLE: &str = "nginx, one cache";
const NGINX_SPLIT: &str = "nginx, split_clients";

/// Where objects go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    LarderNone,
    Larder(&'static str),
    NginxNone,
    NginxSingle,
    NginxSplit,
}

/// A row of the table, before it is measured.
struct Kind {
    name: &'static str,
    way: Way,
    /// How often each byte is written.
    copies: u64,
    /// On how many disks; the published column of the same way, if there is one.
    disks: usize,
    published: Option<Published>,
}

/// MB/s of cache writes as published: on two magnetic volumes (EC2), and on two local disks (bare metal).
#[derive(Clone, Copy)]
struct Published(f64, f64);

const SINGLE: Published = Published(39.8, 95.0);
const MIRROR: Published = Published(31.5, 81.0);
const STRIPE: Published = Published(51.1, 192.5);
const HASH: Published = Published(56.0, 215.3);

const KINDS: &[Kind] = &[
    Kind::new(LARDER_NONE, Way::LarderNone, 0, None),
    Kind::new(LARDER_SINGLE, Way::Larder("single"), 1, Some(SINGLE)),
    Kind { copies: 2, ..Kind::new(LARDER_MIRROR, Way::Larder("mirror"), 2, Some(MIRROR)) },
    Kind::new(LARDER_STRIPE, Way::Larder("stripe"), 2, Some(STRIPE)),
    Kind::new(LARDER_HASH, Way::Larder("hash"), 2, Some(HASH)),
    Kind::new(NGINX_NONE, Way::NginxNone, 0, None),
    Kind::new(NGINX_SINGLE, Way::NginxSingle, 1, Some(SINGLE)),
    Kind::new(NGINX_SPLIT, Way::NginxSplit, 2, Some(HASH)),
];

impl Kind {
    const fn new(name: &'static str, way: Way, disks: usize, published: Option<Published>) -> Self {
        Self { name, way, copies: 1, disks, published }
    }

    /// The same server without a cache.
    fn beside(&self) -> &'static str {
        match self.way {
            Way::LarderNone | Way::Larder(_) => LARDER_NONE,
            Way::NginxNone | Way::NginxSingle | Way::NginxSplit => NGINX_NONE,
        }
    }
}

/// A row of the table.
struct Row {
    kind: &'static Kind,
    bytes_by_second: Vec<u64>,
    objects: u64,
    /// How many of them are stored.
    stored: u64,
    /// Device bytes per second over the whole run, and over its end.
    reached_per_s: f64,
    reached_per_s_at_last: f64,
    /// What reached the disks only after the run.
    left_bytes: u64,
    dirty_peak_bytes: u64,
    cpu: Duration,
    /// What the hypervisor took of either core meanwhile.
    steal_percent: f64,
    p99: Duration,
    longest: Duration,
}

/// Measures, prints the table and writes it to bench/results. Where disks cannot be made or held back, it says so and does
/// nothing.
pub(super) fn run(root: &Path) -> Result<()> {
    if let Some(reason) = first_of(throttle::hindrance, || disks::hindrance(SCRATCH_BYTES))? {
        return skip(&reason);
    }
    let kit = Kit::new(root)?;
    if let Some(reason) = tried(&kit)? {
        return skip(&reason);
    }
    let mut rows = Vec::with_capacity(KINDS.len());
    for (seed, kind) in (1..).zip(KINDS) {
        rows.push(quiet(&kit, kind, seed).context(kind.name)?);
    }
    report::report(root, &rows)
}

/// The first hindrance, if there is one.
fn first_of(
    one: impl FnOnce() -> Result<Option<String>>,
    other: impl FnOnce() -> Result<Option<String>>,
) -> Result<Option<String>> {
    match one()? {
        None => other(),
        found => Ok(found),
    }
}

fn skip(reason: &str) -> Result<()> {
    println!("placement: skipped: {reason}");
    Ok(())
}

/// Why the kernel does not do here what the disks need; `None` where it does.
fn tried(kit: &Kit) -> Result<Option<String>> {
    let scratch = kit.scratch();
    if let Some(reason) = disks::tried(scratch)? {
        return Ok(Some(reason));
    }
    throttle::tried(&Disk::make(scratch, "paced", DISK)?, DISK_BYTES_PER_S)
}

/// A run that the hypervisor left alone, of a few.
fn quiet(kit: &Kit, kind: &'static Kind, seed: u64) -> Result<Row> {
    let mut steal_percent = 0.0;
    for _ in 0..TRIES_MAX {
        let row = measure(kit, kind, seed)?;
        steal_percent = row.steal_percent;
        if steal_percent <= STEAL_PERCENT_MAX {
            return Ok(row);
        }
        println!("{}: the hypervisor took {steal_percent:.1} %, once more", kind.name);
    }
    bail!("the hypervisor took {steal_percent:.1} % of a core, and too much in {TRIES_MAX} runs")
}

fn measure(kit: &Kit, kind: &'static Kind, seed: u64) -> Result<Row> {
    let origin = PacedOrigin::start()?;
    // Both for everybody: who uses one of them, or none, leaves the other in peace.
    let disks = ["one", "two"].map(|name| Disk::make(kit.scratch(), name, DISK));
    let [one, two] = disks;
    let disks = [one?, two?];
    let throttle = Throttle::hold(&disks, DISK_BYTES_PER_S)?;
    let folders: Vec<PathBuf> =
        disks.iter().take(kind.disks).map(|disk| disk.folder().join("cache")).collect();
    for folder in &folders {
        fs::create_dir(folder)?;
    }
    let mut contender = start(kit, &kit.setup(origin.address), kind, &folders)?;
    // What others have left to write is none of this run's.
    rustix::fs::sync();
    let (idle, cpu, moment) = (watch::dirty_bytes()?, contender.server.cpu_time(), Moment::now()?);
    let work = || clients::ask_for(contender.address, seed, SECONDS);
    let (traffic, samples) = watch::while_watched(&disks, work)?;
    let (cpu, passed) = (contender.server.cpu_time().saturating_sub(cpu), moment.passed()?);
    contender.server.still_runs()?;
    let objects = traffic.names.len() as u64;
    ensure!(origin.asked() == objects, "the origin was asked {} times for {objects} objects", origin.asked());
    // From here on the disks may be as fast as they are: only how much was left is asked.
    drop(throttle);
    for disk in &disks {
        disk.flush()?;
    }
    let stored = match kind.way {
        Way::LarderNone | Way::NginxNone => 0,
        Way::Larder(_) => kept::by_larder(contender.address, &traffic.names)?,
        Way::NginxSingle | Way::NginxSplit => kept::by_nginx(&folders)?,
    };
    let row = Row {
        kind,
        objects,
        stored,
        reached_per_s: watch::reached_per_s(&samples, Duration::ZERO, LENGTH).context("no samples")?,
        reached_per_s_at_last: watch::reached_per_s(&samples, LENGTH.saturating_sub(LAST), LENGTH)
            .context("no samples at last")?,
        left_bytes: left_bytes(&disks, &samples)?,
        dirty_peak_bytes: watch::dirty_peak(&samples, idle),
        cpu,
        steal_percent: passed.steal_percent,
        p99: super::load::quantile(&traffic.waits, 0.99),
        longest: traffic.waits.last().copied().unwrap_or_default(),
        bytes_by_second: traffic.bytes_by_second,
    };
    println!(
        "{}: clients {:.0} MB/s, disks {:.1} MB/s, {stored} of {objects} stored",
        kind.name,
        row.client_mb_per_s(),
        row.reached_per_s / 1e6
    );
    Ok(row)
}

/// What has reached the disks by now, and had not at the end of the run.
fn left_bytes(disks: &[Disk], samples: &[Sample]) -> Result<u64> {
    let at_end = samples.iter().rev().find(|sample| sample.at <= LENGTH).context("no sample in the run")?;
    let mut now = 0_u64;
    for disk in disks {
        now = now.saturating_add(disk.written_bytes()?);
    }
    Ok(now.saturating_sub(at_end.written_bytes))
}

fn start(kit: &Kit, setup: &Setup<'_>, kind: &Kind, folders: &[PathBuf]) -> Result<Contender> {
    match kind.way {
        Way::LarderNone => larder::site(&kit.larder, setup, kind.name, "cache = \"off\""),
        Way::Larder(layout) => {
            let config = larder::on_disks(setup.origin, folders, LARDER_SIZE, layout);
            larder::configured(&kit.larder, setup, kind.name, &config)?.contender()
        }
        Way::NginxNone => nginx::proxy(setup, kind.name),
        Way::NginxSingle | Way::NginxSplit => {
            let (http, location) = nginx_caches(folders);
            nginx::own_cache(setup, kind.name, &http, &location)?.contender()
        }
    }
}

/// A cache in each of these folders, as the published experiment had them, and the objects spread over them by their URLs.
fn nginx_caches(folders: &[PathBuf]) -> (String, String) {
    let mut http = String::new();
    for (number, folder) in folders.iter().enumerate() {
        http.push_str(&format!(
            "proxy_cache_path {} levels=1:2 keys_zone=disk{number}:16m max_size={NGINX_SIZE} inactive=1h \
             use_temp_path=off;\n",
            folder.display()
        ));
    }
    if folders.len() < 2 {
        return (http, "proxy_cache disk0;".to_owned());
    }
    http.push_str("split_clients $request_uri $disk { 50% disk0; * disk1; }\n");
    (http, "proxy_cache $disk;".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
impl Row {
    /// Of the whole run.
    fn client_mb_per_s(&self) -> f64 {
        self.bytes_by_second.iter().sum::<u64>() as f64 / 1e6 / LENGTH.as_secs_f64()
    }

    /// Of the run's end.
    fn client_mb_per_s_at_last(&self) -> f64 {
        let seconds = usize::try_from(LAST.as_secs()).unwrap_or(usize::MAX);
        let last = self.bytes_by_second.iter().rev().take(seconds);
        last.sum::<u64>() as f64 / 1e6 / LAST.as_secs_f64()
    }

    /// What was stored and has reached a disk within the run, each byte once: objects of which only a part got there,
    /// or that wait in memory for it, are not stored, nor are second copies, journals and tables.
    fn stored_mb_per_s(&self) -> f64 {
        let objects = self.stored as f64 * OBJECT_BYTES as f64 / LENGTH.as_secs_f64();
        objects.min(self.reached_per_s / self.kind.copies as f64) / 1e6
    }

    fn cpu_ms_per_mb(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / (self.objects as f64 * OBJECT_BYTES as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cache_is_named_and_two_are_split() {
        let (http, location) = nginx_caches(&[PathBuf::from("/a")]);
        assert!(http.starts_with("proxy_cache_path /a ") && !http.contains("split_clients"), "{http}");
        assert_eq!(location, "proxy_cache disk0;");
        let (http, location) = nginx_caches(&[PathBuf::from("/a"), PathBuf::from("/b")]);
        assert!(http.contains("proxy_cache_path /b ") && http.contains("split_clients"), "{http}");
        assert_eq!(location, "proxy_cache $disk;");
    }

    #[test]
    fn the_first_hindrance_is_told() {
        let told = |reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            move || Ok(reason)
        };
        assert_eq!(first_of(told(Some("a")), told(Some("b"))).ok().flatten().as_deref(), Some("a"));
        assert_eq!(first_of(told(None), told(Some("b"))).ok().flatten().as_deref(), Some("b"));
        assert_eq!(first_of(told(None), told(None)).ok().flatten(), None);
    }
}
