//! Large bodies that are stored while they are sent: how much of each is on the disk when its client has it.
//!
//! In: bodies of 8 MB to 3 GB from an origin on the loopback that answers ranges. Some clients are held to 100 MB/s,
//! the others take what they get. Nothing holds the first disk back, and two more are held to 40 MB/s. Out: how many
//! of five bodies are whole after one request, and after three; and what clients get beside what they get without a
//! cache (slow.rs). nginx stands beside it. With the path of an older larder in `LARDER_BEFORE` it has its rows as
//! well, which takes as long again. Disks are files in memory (disks.rs), each a new one for each size.

mod client;
mod origin;
mod report;
mod slow;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::contender::{Contender, Kit, larder, nginx};
use super::disks::{self, Disk, Size};
use super::metric;
use origin::{Content, LargeOrigin};

/// In megabytes of 10^6 bytes.
const SIZES_MB: [u64; 4] = [8, 64, 512, 3000];
/// Bodies of each size.
const BODIES: usize = 5;
/// A peer's clients that are held take as long as larder's, and nginx fills the disk before it removes what is too much: of the
/// largest one tells enough.
const BODIES_OF_PEERS_AT_3_GB: usize = 1;
const HELD_BYTES_PER_S: u64 = 100_000_000;
/// Requests for a body without a limit.
const REQUESTS: usize = 3;
const DISK: Size = Size { bytes: 7 << 30, bytes_per_inode: 65_536, is_taken: true };
const LARDER_SIZE: &str = "6GiB";
const NGINX_SIZE: &str = "6g";
const MEMORY: &str = "256MiB";
/// What of a size is surely taken without waiting: 8 MiB, and a quarter of the memory.
const BACKLOG_MB: u64 = 75;
const SCRATCH_BYTES: u64 = 7 << 30;

/// Longest time for what waits to be written, and for what is fetched behind a client at the disk's pace.
const DRAIN_MAX: Duration = Duration::from_secs(180);

/// Whose row.
#[derive(Clone)]
enum Who {
    Larder { name: &'static str, program: PathBuf },
    Nginx,
}

impl Who {
    fn name(&self) -> &'static str {
        match self {
            Self::Larder { name, .. } => name,
            Self::Nginx => NGINX,
        }
    }
}

const LARDER: &str = "larder";
const BEFORE: &str = "larder, before";
const NGINX: &str = "nginx";

/// Bodies of one size, by one server.
struct Row {
    who: &'static str,
    size_mb: u64,
    is_held: bool,
    bodies: usize,
    /// Whole after so many requests: the first, the second ...
    whole_after: Vec<usize>,
    /// What clients got in the first request, in MB/s.
    first_mb_per_s: f64,
}

/// Measures, prints the tables and writes them to bench/results. Where disks cannot be made, it says so and does nothing.
pub(super) fn run(root: &Path) -> Result<()> {
    if let Some(reason) = disks::hindrance(SCRATCH_BYTES)? {
        return skip(&reason);
    }
    let kit = Kit::new(root)?;
    if let Some(reason) = disks::tried(kit.scratch())? {
        return skip(&reason);
    }
    let content = Content::new();
    let mut servers = vec![Who::Larder { name: LARDER, program: kit.larder.clone() }, Who::Nginx];
    if let Some(before) = &kit.before {
        servers.insert(1, Who::Larder { name: BEFORE, program: before.clone() });
    }
    let mut rows = Vec::new();
    for is_held in [true, false] {
        for size_mb in SIZES_MB {
            for who in &servers {
                let row = measure(&kit, &content, who, size_mb, is_held);
                rows.push(row.with_context(|| format!("{}, {size_mb} MB", who.name()))?);
            }
        }
    }
    let slow = slow::measure(&kit, &content)?;
    report::report(root, &rows, &slow)
}

fn skip(reason: &str) -> Result<()> {
    println!("large: skipped: {reason}");
    Ok(())
}

fn measure(kit: &Kit, content: &Arc<Content>, who: &Who, size_mb: u64, is_held: bool) -> Result<Row> {
    // Where memory is full of what the last row read and wrote, finding a free page is what is measured.
    disks::forget()?;
    let origin = LargeOrigin::start(content)?;
    let disk = Disk::make(kit.scratch(), "large", DISK)?;
    let folder = disk.folder().join("cache");
    fs::create_dir(&folder)?;
    let contender = start(kit, &origin, who, &[folder], "single")?;
    let bytes = size_mb * 1_000_000;
    let is_peer = who.name() != LARDER;
    let bodies = if is_peer && size_mb == 3000 { BODIES_OF_PEERS_AT_3_GB } else { BODIES };
    let requests = if is_held { 1 } else { REQUESTS };
    let mut whole_after = vec![0; requests];
    let mut first = Duration::ZERO;
    for number in 0..bodies {
        let target = format!("/{number}/{bytes}");
        for (request, whole) in whole_after.iter_mut().enumerate() {
            let rate = is_held.then_some(HELD_BYTES_PER_S);
            let took = client::download(contender.address, (&target, bytes), rate, content)?;
            if request == 0 {
                first += took;
            }
            drained(&contender)?;
            *whole += usize::from(is_whole(&contender, &origin, &target)?);
        }
        // Room for the next one, on a disk that holds two of the largest.
        if contender.admin.is_some() {
            disk.flush()?;
        }
    }
    let row = Row {
        who: who.name(),
        size_mb,
        is_held,
        bodies,
        whole_after,
        first_mb_per_s: mb_per_s(bytes * bodies as u64, first),
    };
    println!(
        "{}, {size_mb} MB, {}: {:?} of {bodies} whole, {:.0} MB/s",
        row.who,
        if is_held { "held" } else { "no limit" },
        row.whole_after,
        row.first_mb_per_s
    );
    Ok(row)
}

/// Waits until nothing is written any more, nor fetched. Between a client's fetch and the one behind it there is a moment in which
/// neither is seen, so that it has to be quiet twice.
#[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for other programs")]
fn drained(contender: &Contender) -> Result<()> {
    let Some(admin) = contender.admin else { return Ok(()) };
    let began = Instant::now();
    let mut quiet = 0;
    while quiet < 2 {
        ensure!(began.elapsed() < DRAIN_MAX, "the disk does not come to an end");
        std::thread::sleep(Duration::from_millis(20));
        // Without disks there is no such figure.
        let is_busy = |name: &str| metric::told(admin, name).unwrap_or(0) > 0;
        let is_quiet = !is_busy("larder_origin_in_flight") && !is_busy("larder_disk_queued_bytes");
        quiet = if is_quiet { quiet + 1 } else { 0 };
    }
    Ok(())
}

/// Whether a request for the whole would find all of it.
fn is_whole(contender: &Contender, origin: &LargeOrigin, target: &str) -> Result<bool> {
    if contender.admin.is_some() {
        return match client::status(contender.address, "HEAD", target, "Cache-Control: only-if-cached\r\n")? {
            200 => Ok(true),
            504 => Ok(false),
            other => bail!("status {other}"),
        };
    }
    let before = origin.sent();
    let status =
        client::status(contender.address, "GET", target, "Range: bytes=0-0\r\nConnection: close\r\n")?;
    ensure!(matches!(status, 200 | 206), "status {status}");
    Ok(origin.sent() == before)
}

fn start(kit: &Kit, origin: &LargeOrigin, who: &Who, folders: &[PathBuf], layout: &str) -> Result<Contender> {
    let setup = kit.setup(origin.address);
    match who {
        Who::Larder { name, program } => {
            let config = larder::on_disks(origin.address, folders, LARDER_SIZE, layout)
                .replace("memory = \"64MiB\"", &format!("memory = \"{MEMORY}\"\nmax_object = \"4GiB\""));
            let config = config.replace(LARDER_SIZE, if folders.len() > 1 { "1536MiB" } else { LARDER_SIZE });
            let config = match folders.len() {
                1 => config,
                _ => config.replace("max_object = \"4GiB\"", "max_object = \"1GiB\""),
            };
            larder::configured(program, &setup, name, &config)?.contender()
        }
        Who::Nginx => {
            let folder = folders.first().context("no folder")?;
            let http = format!(
                "proxy_cache_path {} levels=1:2 keys_zone=large:16m max_size={NGINX_SIZE} inactive=1h use_temp_path=off;\n",
                folder.display()
            );
            nginx::own_cache(&setup, NGINX, &http, "proxy_cache large; proxy_max_temp_file_size 0;")?
                .contender()
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn mb_per_s(bytes: u64, took: Duration) -> f64 {
    mb(bytes) / took.as_secs_f64()
}
