//! What one purge costs, whatever the number of objects that are stored, and of those that it takes.
//!
//! In: a server that is full of tagged objects. Out: how long its purges took, over HTTP and one at a time: soft and hard ones of
//! tags that one object in [`GROUPS`] carries, then one of each kind of the tag that all carry. nginx purges URLs.
//! With a disk, what the kernel takes for a `fdatasync` there stands beside it, and a restart follows: how soon is the server
//! back with its objects, and with as many purges as it remembers?

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::ask::{Purge, TOKEN, one_by_one};
use super::origin::{GROUPS, OBJECT_BYTES, TaggingOrigin, target};
use super::restart::{self, Back};
use super::{LARDER, LARDER_DISK, NGINX, VARNISH};
use crate::measure::asker::{Asker, Was, ask_all_for};
use crate::measure::contender::{Contender, Kit, larder, nginx, varnish};
use crate::measure::disks::{Disk, Size};
use crate::measure::load::on_load_core;
use crate::measure::turns::wait;

/// Objects that are stored.
pub(super) const FEW: u64 = 1000;
pub(super) const SOME: u64 = 100_000;
pub(super) const MANY: u64 = 1_000_000;
/// Purges of each kind.
pub(super) const PURGES: u64 = 100;
/// A group that is purged hard, and one that is not purged.
const HARD_GROUP: u64 = PURGES + 7;
pub(super) const KEPT_GROUP: u64 = 3 * PURGES + 7;
const CONNECTIONS: usize = 64;
const DISK: Size = Size { bytes: 4 << 30, bytes_per_inode: 65_536, is_taken: false };
const DISK_SIZE: &str = "3GiB";
/// Between two syncs that are measured, as between two purges.
const PAUSE: Duration = Duration::from_millis(10);
const SYNC_BYTES: usize = 512;

/// A server with so many objects.
pub(super) struct Cost {
    pub(super) server: &'static str,
    pub(super) objects: u64,
    /// In order of length. Of URLs, where it knows no tags.
    pub(super) hard: Vec<Duration>,
    pub(super) soft: Option<Vec<Duration>>,
    /// Soft, and hard, of what all objects carry.
    pub(super) all: Option<[Duration; 2]>,
    /// Of the same disk, without the server.
    pub(super) sync: Option<Vec<Duration>>,
    pub(super) back: Option<[Back; 2]>,
}

/// Measures all servers, those with few objects first.
pub(super) fn run(kit: &Kit, has_disks: bool) -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    for objects in [FEW, SOME, MANY] {
        costs.push(in_memory(kit, objects, LARDER)?);
        costs.push(in_memory(kit, objects, VARNISH)?);
    }
    // A file each: a million takes four times the time and memory, for a purge that looks at one of them.
    for objects in [FEW, SOME] {
        costs.push(in_memory(kit, objects, NGINX)?);
    }
    if has_disks {
        costs.push(on_disk(kit, MANY)?);
    }
    Ok(costs)
}

/// The config of a larder with this store, which can be purged.
fn config(origin: std::net::SocketAddr, store: &str) -> String {
    format!(
        "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{origin}\"\n\n[stores.default]\n{store}\n\
         [[site]]\norigin = \"app\"\npurge = {{ token = \"{TOKEN}\" }}\n"
    )
}

/// larder with 4 GiB of memory.
pub(super) fn of_memory(kit: &Kit, origin: &TaggingOrigin) -> Result<Contender> {
    let config = config(origin.address, "memory = \"4GiB\"\n");
    larder::configured(&kit.larder, &kit.setup(origin.address), LARDER, &config)?.contender()
}

/// Stores so many objects.
pub(super) fn fill(contender: &Contender, objects: u64) -> Result<()> {
    let hits = ask_all_for(contender.address, (CONNECTIONS, OBJECT_BYTES), objects, target)?;
    ensure!(hits == 0, "{hits} hits while nothing was stored");
    Ok(())
}

fn in_memory(kit: &Kit, objects: u64, server: &'static str) -> Result<Cost> {
    let origin = TaggingOrigin::start(0)?;
    let setup = kit.setup(origin.address);
    let mut contender = match server {
        LARDER => of_memory(kit, &origin)?,
        VARNISH => varnish::purging(&setup, server)?,
        _ => nginx::purging(&setup, server)?,
    };
    fill(&contender, objects)?;
    let mut cost =
        measure(&contender, objects, server).with_context(|| format!("{server}, {objects} objects"))?;
    if server != NGINX {
        let all = [Purge::soft("all"), Purge::hard("all")];
        let took = one_by_one(contender.address, all.to_vec())?;
        cost.all = took.try_into().ok();
        let is_there = is_hit(&contender, KEPT_GROUP)?;
        ensure!(!is_there, "{server}: an object is there after all were purged");
    }
    contender.server.still_runs()?;
    Ok(cost)
}

fn on_disk(kit: &Kit, objects: u64) -> Result<Cost> {
    let origin = TaggingOrigin::start(0)?;
    let disk = Disk::make(kit.scratch(), "purges", DISK)?;
    let folder = disk.folder().join("cache");
    fs::create_dir(&folder)?;
    let store = format!(
        "memory = \"64MiB\"\ndisks = [{{ path = \"{}\", size = \"{DISK_SIZE}\" }}]\nlayout = \"single\"\n",
        folder.display()
    );
    let config = config(origin.address, &store);
    let mut launch = larder::configured(&kit.larder, &kit.setup(origin.address), LARDER_DISK, &config)?;
    let mut server = launch.start()?;
    server.wait_for(launch.address, restart::BACK_MAX)?;
    let hits = ask_all_for(launch.address, (CONNECTIONS, OBJECT_BYTES), objects, target)?;
    ensure!(hits == 0, "{hits} hits while nothing was stored");
    disk.flush()?;
    let (hard, soft) = purges_of_groups(launch.address)?;
    let sync = sync_times(disk.folder())?;
    println!("{LARDER_DISK}, {objects} objects: purged");
    let back = restart::run(&mut launch, server)?;
    Ok(Cost {
        server: LARDER_DISK,
        objects,
        hard,
        soft: Some(soft),
        all: None,
        sync: Some(sync),
        back: Some(back),
    })
}

fn measure(contender: &Contender, objects: u64, server: &'static str) -> Result<Cost> {
    ensure!(is_hit(contender, HARD_GROUP)?, "an object is not there before the purges");
    let (hard, soft) = if server == NGINX {
        let urls = (PURGES..2 * PURGES).map(|number| Purge::Url(target(number))).collect();
        (sorted(one_by_one(contender.address, urls)?), None)
    } else {
        let (hard, soft) = purges_of_groups(contender.address)?;
        (hard, Some(soft))
    };
    ensure!(!is_hit(contender, HARD_GROUP)?, "an object is there after it was purged");
    ensure!(is_hit(contender, KEPT_GROUP)?, "an object that was not purged is not there");
    println!("{server}, {objects} objects: purged");
    Ok(Cost { server, objects, hard, soft, all: None, sync: None, back: None })
}

/// Hard and soft ones, of a group each.
fn purges_of_groups(address: std::net::SocketAddr) -> Result<(Vec<Duration>, Vec<Duration>)> {
    const { assert!(KEPT_GROUP < GROUPS && HARD_GROUP < 2 * PURGES, "groups that are what they are called") };
    let group = |number| format!("group-{number}");
    let soft = one_by_one(address, (0..PURGES).map(|number| Purge::soft(group(number))).collect())?;
    let hard = one_by_one(address, (PURGES..2 * PURGES).map(|number| Purge::hard(group(number))).collect())?;
    Ok((sorted(hard), sorted(soft)))
}

fn sorted(mut waits: Vec<Duration>) -> Vec<Duration> {
    waits.sort_unstable();
    waits
}

/// Whether the object of this number comes from the cache.
fn is_hit(contender: &Contender, number: u64) -> Result<bool> {
    let address = contender.address;
    on_load_core(async move {
        let mut asker = Asker::connect_for(address, OBJECT_BYTES).await?;
        Ok(asker.ask(&target(number)).await? == Was::Hit)
    })?
}

/// What a note of a purge takes at least on this file system: so many bytes at a file's end, and a `fdatasync`.
fn sync_times(folder: &Path) -> Result<Vec<Duration>> {
    let path = folder.join("synced");
    let mut file = fs::File::create(&path)?;
    let mut took = Vec::new();
    for _ in 0..PURGES {
        let began = Instant::now();
        file.write_all(&[b'x'; SYNC_BYTES])?;
        file.sync_data()?;
        took.push(began.elapsed());
        wait(PAUSE);
    }
    fs::remove_file(&path)?;
    Ok(sorted(took))
}
