//! A million small objects on a disk: what storing and reading one costs, what it takes, and how soon all are back after a kill.
//!
//! In: objects of 1 KB with random names, each fetched once and then read once in another random order. Then the
//! server is killed and started again on the same files, once with what the kernel has cached of them and once
//! without. Out: objects per second and CPU time for each, bytes on the disk and in the index for each, and the time
//! from the start of the program to the first hit. nginx stands beside it, whose cache has a file for each object.
//! The disk is ext4 in memory and not held back: what is asked is the cost, and no disk's pace.
//! Deliberately absent: eviction. There is room for all of them.

mod report;
mod restart;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::asker::{ask_all, object};
use super::contender::{Kit, Launch, Setup, floor, larder, nginx};
use super::disks::{self, Disk, Size};
use super::load::allow_descriptors;
use super::metric;
use harness::children::Server;

const OBJECTS: u64 = 1_000_000;
const CONNECTIONS: usize = 64;
/// An inode for each block, so that there is one for each of nginx's files.
const DISK: Size = Size { bytes: 8 << 30, bytes_per_inode: 4096, is_taken: false };
/// A file takes a block of 4 KiB, and there is a million of them, with their folders.
const SCRATCH_BYTES: u64 = 5 << 30;
const LARDER_SIZE: &str = "6GiB";
/// nginx's documentation has 8000 keys in each megabyte.
const NGINX_ZONE: &str = "levels=1:2 keys_zone=objects:160m max_size=6g inactive=1d use_temp_path=off";
/// What the others say in `Cache-Status`: so that a hit is one for whoever asks.
const NGINX_TELLS: &str =
    "map $upstream_cache_status $told { HIT \"nginx; hit\"; default \"nginx; fwd=miss\"; }";
/// Fixed, so that everybody has the same objects in the same order.
const SEED: u64 = 20_231;

const LARDER: &str = "larder";
const BEFORE: &str = "larder, before";
const NGINX: &str = "nginx proxy_cache";
/// Who takes part, in the order of the table.
const SERVERS: &[&str] = &[LARDER, NGINX];

/// What all objects took of something.
#[derive(Clone, Copy)]
struct Pass {
    took: Duration,
    cpu: Duration,
    hits: u64,
}

/// A row of the table.
struct Row {
    name: &'static str,
    stored: Pass,
    read: Pass,
    /// Beyond what an empty file system has given away.
    used_bytes: u64,
    /// What the device had to write for it.
    written_bytes: u64,
    /// As the server tells it; `None` where it does not.
    index_bytes: Option<u64>,
    resident_bytes: u64,
    warm: restart::Back,
    cold: restart::Back,
}

/// Measures, prints the table and writes it to bench/results. Where disks cannot be made, it says so and does nothing.
pub(super) fn run(root: &Path) -> Result<()> {
    if let Some(reason) = disks::hindrance(SCRATCH_BYTES)? {
        return skip(&reason);
    }
    allow_descriptors()?;
    let kit = Kit::new(root)?;
    if let Some(reason) = disks::tried(kit.scratch())? {
        return skip(&reason);
    }
    let mut rows = Vec::with_capacity(SERVERS.len() + 1);
    for name in SERVERS.iter().chain(kit.before.as_ref().map(|_| &BEFORE)) {
        rows.push(measure(&kit, name).context(*name)?);
    }
    report::report(root, &rows)
}

fn skip(reason: &str) -> Result<()> {
    println!("objects: skipped: {reason}");
    Ok(())
}

fn measure(kit: &Kit, name: &'static str) -> Result<Row> {
    let origin = floor::origin(kit, &object())?;
    let disk = Disk::make(kit.scratch(), "disk", DISK)?;
    let folder = disk.folder().join("cache");
    fs::create_dir(&folder)?;
    let (used, written) = (disk.used_bytes()?, disk.written_bytes()?);
    let mut launch = launch(kit, &kit.setup(origin.address), name, &folder)?;
    let mut server = launch.start()?;
    server.wait_for(launch.address, restart::BACK_MAX)?;
    // Whoever cannot tell at all should not be filled first.
    launch.admin.map(index_bytes).transpose()?;

    let stored = pass(&launch, &server, &disk, target)?;
    println!("{name}: stored {OBJECTS} in {:.1} s", stored.took.as_secs_f64());
    ensure!(stored.hits == 0, "{} hits while nothing was stored", stored.hits);
    let (used_after, written_after) = (disk.used_bytes()?, disk.written_bytes()?);
    let index_bytes = launch.admin.map(index_bytes).transpose()?;
    let resident_bytes = server.resident_bytes();

    let order: Arc<[u32]> = shuffled(u32::try_from(OBJECTS)?).into();
    let read = pass(&launch, &server, &disk, move |number| {
        let place = usize::try_from(number).ok().and_then(|place| order.get(place));
        target(place.copied().map_or(number, u64::from))
    })?;
    println!("{name}: read in {:.1} s, {} hits", read.took.as_secs_f64(), read.hits);
    server.still_runs()?;

    server.kill();
    let (server, warm) = restart::back(&mut launch, &read)?;
    server.kill();
    disks::forget()?;
    let (server, cold) = restart::back(&mut launch, &read)?;
    drop(server);
    Ok(Row {
        name,
        stored,
        read,
        used_bytes: used_after.saturating_sub(used),
        written_bytes: written_after.saturating_sub(written),
        index_bytes,
        resident_bytes,
        warm,
        cold,
    })
}

fn launch(kit: &Kit, setup: &Setup<'_>, name: &str, folder: &Path) -> Result<Launch> {
    let program = match (name, &kit.before) {
        (LARDER, _) => Some(&kit.larder),
        (BEFORE, before) => before.as_ref(),
        _ => None,
    };
    if let Some(program) = program {
        let config = larder::on_disks(setup.origin, &[PathBuf::from(folder)], LARDER_SIZE, "single");
        return larder::configured(program, setup, name, &config);
    }
    let http = format!("proxy_cache_path {} {NGINX_ZONE};\n{NGINX_TELLS}\n", folder.display());
    nginx::own_cache(setup, name, &http, "proxy_cache objects; add_header Cache-Status $told;")
}

/// What larder's index has in memory.
fn index_bytes(admin: SocketAddr) -> Result<u64> {
    metric::told(admin, "larder_disk_index_bytes")
}

/// Asks for all objects; CPU time is counted until what was stored is on the disk.
fn pass(
    launch: &Launch,
    server: &Server,
    disk: &Disk,
    target: impl Fn(u64) -> String + Clone + Send + Sync + 'static,
) -> Result<Pass> {
    let (began, cpu) = (Instant::now(), server.cpu_time());
    let hits = ask_all(launch.address, CONNECTIONS, OBJECTS, target)?;
    let took = began.elapsed();
    disk.flush()?;
    Ok(Pass { took, cpu: server.cpu_time().saturating_sub(cpu), hits })
}

/// The target of an object: names that tell nothing of their order.
fn target(number: u64) -> String {
    format!("/key/{:016x}", mixed(SEED.wrapping_shl(32).wrapping_add(number)))
}

/// The numbers below `count` in a random order, always the same.
fn shuffled(count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for place in (1..order.len()).rev() {
        let other = mixed(place as u64) % (place as u64 + 1);
        order.swap(place, usize::try_from(other).unwrap_or(place));
    }
    order
}

/// SplitMix64: another number for each.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
impl Pass {
    fn per_s(&self) -> f64 {
        OBJECTS as f64 / self.took.as_secs_f64()
    }

    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / OBJECTS as f64
    }

    fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / OBJECTS as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_object_has_a_name_and_is_read_once() {
        let names: HashSet<String> = (0..10_000).map(target).collect();
        assert_eq!(names.len(), 10_000);
        let order = shuffled(10_000);
        assert_eq!(order.iter().collect::<HashSet<_>>().len(), 10_000);
        let in_place = (0..).zip(&order).filter(|(place, number)| place == *number).count();
        assert!(in_place < 20, "{in_place}");
    }
}
