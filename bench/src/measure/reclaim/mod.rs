//! What making room costs those who only want what is there: hits while a full disk gives up segments, beside the same
//! hits while there is room.
//!
//! In: two larders with a disk each, one with room, one that is full from the start. Both get the same requests, in
//! turns: hits of what is in memory and of what lies on the disk, while other objects are stored at a steady rate. In
//! the full one each of those takes the place of an old one, and what is asked for again lies among them: it is
//! written anew all the time.
//! Out: p50, p99 and p99.9 of the hits of both, what was given up and rescued meanwhile, and the peak of dirty pages.
//! The disks are ext4 in memory and not held back: what is asked is what reclaiming takes from the worker, whose core the
//! disk's threads share here, and no disk's pace (`placement` has that).
//! Deliberately absent: peers. Other caches remove files; what that costs their hits is another question.

mod clients;
mod report;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::asker::object_of;
use super::contender::{Contender, Kit, floor, larder};
use super::disks::{self, Disk, Size};
use super::machine::Moment;
use super::metric;
use super::turns::TakesTurns;
use super::validity::STEAL_PERCENT_MAX;
use super::watch;
use clients::{Rates, Waits};

const OBJECT_BYTES: usize = 32 * 1024;
/// Hits of either kind per second; and 13 MB of new objects.
const RATES: Rates = Rates { hits_per_s: 1000, misses_per_s: 400 };
const ROUNDS: usize = 5;
const PHASE: Duration = Duration::from_secs(7);
/// Before each, uncounted: connections, and what became due while the server stood still.
const WARM: Duration = Duration::from_secs(1);
/// Phases that may be measured again because the hypervisor took part.
const AGAIN_MAX: usize = 3;

/// A few, asked for as often as all others that are to be hits.
const IN_MEMORY: u64 = 64;
/// Four times what memory has room for, and a quarter of the full disk.
const USED: u64 = 8192;
/// Objects between two of those in a full disk.
const ONCE_PER_USED: u64 = 3;
/// Segments are of 16 MiB in both: they follow the size.
const FULL_SIZE: &str = "1GiB";
const ROOM_SIZE: &str = "2000MiB";
/// More than a full one takes, so that it has given up some before it is measured.
const FILLED: u64 = 40_000;
/// How often all that is asked for again is asked for, until it is there.
const PASSES_MAX: usize = 10;
const DISK: Size = Size { bytes: 5 << 29, bytes_per_inode: 65_536, is_taken: false };
const SCRATCH_BYTES: u64 = 3 << 30;

const ROOM: &str = "with room";
const FULL: &str = "reclaiming";

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// One of a few.
    InMemory(u64),
    /// Asked for now and then.
    Used(u64),
    /// Never asked for again.
    Once(u64),
}

impl Target {
    fn path(self) -> String {
        match self {
            Self::InMemory(number) => format!("/memory/{number}"),
            Self::Used(number) => format!("/used/{number}"),
            Self::Once(number) => format!("/once/{number}"),
        }
    }

    /// The `number`-th that a connection asks for: of either kind in turn, and of each kind any.
    fn hit(connection: u64, number: u64) -> Self {
        let any = mixed(connection << 32 | number);
        match number % 2 {
            0 => Self::InMemory(any % IN_MEMORY),
            _ => Self::Used(any % USED),
        }
    }
}

/// SplitMix64: numbers in no order, always the same.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What larder counted.
#[derive(Clone, Copy, Default)]
struct Counted {
    reclaimed_segments: u64,
    rescued_objects: u64,
    written_bytes: u64,
}

/// One phase of one of them.
struct Phase {
    waits: Waits,
    counted: Counted,
    dirty_peak_bytes: u64,
    cpu: Duration,
    steal_percent: f64,
}

/// A row of the table.
struct Row {
    name: &'static str,
    phases: Vec<Phase>,
}

/// One of the two larders.
struct Side {
    name: &'static str,
    server: TakesTurns,
    /// The number of the next object that nobody has asked for.
    next: Arc<AtomicU64>,
    // After the server, so that it is unmounted when nobody has it open.
    disk: Disk,
}

/// Measures, prints the table and writes it to bench/results. Where disks cannot be made, it says so and does nothing.
pub(super) fn run(root: &Path) -> Result<()> {
    if let Some(reason) = disks::hindrance(SCRATCH_BYTES)? {
        return skip(&reason);
    }
    let kit = Kit::new(root)?;
    if let Some(reason) = disks::tried(kit.scratch())? {
        return skip(&reason);
    }
    let origin = floor::origin(&kit, &object_of(OBJECT_BYTES))?;
    let sides = [(ROOM, ROOM_SIZE, 0), (FULL, FULL_SIZE, FILLED)];
    let mut sides = sides
        .into_iter()
        .map(|(name, size, filled)| Side::prepared(&kit, &origin, name, size, filled).context(name))
        .collect::<Result<Vec<Side>>>()?;
    let mut rows: Vec<Row> = sides.iter().map(|side| Row { name: side.name, phases: Vec::new() }).collect();
    let mut again = AGAIN_MAX;
    for round in 0..ROUNDS {
        for turn in 0..sides.len() {
            // Another one first each time.
            let place = (round + turn) % sides.len();
            let (Some(side), Some(row)) = (sides.get_mut(place), rows.get_mut(place)) else { continue };
            row.phases.push(side.quiet(&mut again).with_context(|| side.name)?);
        }
    }
    for row in &rows {
        row.check()?;
    }
    report::report(root, &rows)
}

fn skip(reason: &str) -> Result<()> {
    println!("reclaim: skipped: {reason}");
    Ok(())
}

impl Side {
    /// A larder that has everything that is asked for again, among so many other objects.
    fn prepared(kit: &Kit, origin: &Contender, name: &'static str, size: &str, filled: u64) -> Result<Self> {
        let disk = Disk::make(kit.scratch(), &name.replace(' ', "-"), DISK)?;
        let folder = disk.folder().join("cache");
        fs::create_dir(&folder)?;
        let config = larder::on_disks(origin.address, std::slice::from_ref(&folder), size, "single");
        let server =
            larder::configured(&kit.larder, &kit.setup(origin.address), name, &config)?.contender()?;
        let once = (0..filled).map(Target::Once);
        clients::ask_once(server.address, interleaved(once)).context("filling it")?;
        let in_memory = || (0..IN_MEMORY).map(Target::InMemory);
        let wanted: Vec<Target> = in_memory().chain((0..USED).map(Target::Used)).chain(in_memory()).collect();
        // What was refused because the queue was full is stored by one of the next, and all of it has been used since it
        // was written.
        let (all, mut there) = (wanted.len() as u64, 0);
        for _ in 0..PASSES_MAX {
            disk.flush()?;
            there = clients::ask_once(server.address, wanted.clone())?;
            if there * 1000 >= all * 999 {
                break;
            }
        }
        ensure!(there * 100 >= all * 99, "{there} of {all} objects are there");
        disk.flush()?;
        println!("{name}: prepared");
        Ok(Self { name, server: TakesTurns::new(server)?, next: Arc::new(AtomicU64::new(filled)), disk })
    }

    /// A phase that the hypervisor left alone.
    fn quiet(&mut self, again: &mut usize) -> Result<Phase> {
        loop {
            let phase = self.phase()?;
            if phase.steal_percent <= STEAL_PERCENT_MAX {
                return Ok(phase);
            }
            println!("{}: the hypervisor took {:.1} %, once more", self.name, phase.steal_percent);
            match again.checked_sub(1) {
                Some(left) => *again = left,
                None => bail!("the hypervisor took too much in {AGAIN_MAX} phases"),
            }
        }
    }

    fn phase(&mut self) -> Result<Phase> {
        self.disk.flush()?;
        let idle = watch::dirty_bytes()?;
        let mut turn = self.server.turn()?;
        let (address, admin) = (turn.address, turn.admin.context("no admin address")?);
        clients::ask(address, RATES, WARM, &self.next)?;
        let (before, cpu, moment) = (Counted::now(admin)?, turn.server.cpu_time(), Moment::now()?);
        let work = || clients::ask(address, RATES, PHASE, &self.next);
        let (waits, samples) = watch::while_watched(std::slice::from_ref(&self.disk), work)?;
        let (cpu, passed) = (turn.server.cpu_time().saturating_sub(cpu), moment.passed()?);
        let counted = Counted::now(admin)?.since(before);
        turn.server.still_runs()?;
        Ok(Phase {
            waits,
            counted,
            dirty_peak_bytes: watch::dirty_peak(&samples, idle),
            cpu,
            steal_percent: passed.steal_percent,
        })
    }
}

/// What is never asked for again with what is between them, as evenly as the disk shall have it.
fn interleaved(once: impl Iterator<Item = Target>) -> Vec<Target> {
    let mut targets = Vec::new();
    for (number, target) in (0_u64..).zip(once) {
        // Begun anew where all have been: by then the first of them have been given up again.
        if number % ONCE_PER_USED == 0 {
            targets.push(Target::Used(number / ONCE_PER_USED % USED));
        }
        targets.push(target);
    }
    targets
}

impl Counted {
    fn now(admin: std::net::SocketAddr) -> Result<Self> {
        Ok(Self {
            reclaimed_segments: metric::told(admin, "larder_disk_reclaimed_segments_total")?,
            rescued_objects: metric::told(admin, "larder_disk_rescued_objects_total")?,
            written_bytes: metric::told(admin, "larder_disk_written_bytes_total")?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            reclaimed_segments: self.reclaimed_segments.saturating_sub(before.reclaimed_segments),
            rescued_objects: self.rescued_objects.saturating_sub(before.rescued_objects),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

impl Row {
    /// That it did what its name says.
    fn check(&self) -> Result<()> {
        for phase in &self.phases {
            let Counted { reclaimed_segments, rescued_objects, .. } = phase.counted;
            match self.name == FULL {
                true => ensure!(
                    reclaimed_segments > 0 && rescued_objects > 0,
                    "{reclaimed_segments} segments given up and {rescued_objects} objects rescued in a phase"
                ),
                false => ensure!(reclaimed_segments == 0, "segments were given up where there was room"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_is_used_lies_everywhere_among_the_others() {
        let targets = interleaved((0..FILLED).map(Target::Once));
        let used = |part: &[Target]| part.iter().filter(|target| matches!(target, Target::Used(_))).count();
        for part in targets.chunks(500) {
            let share = used(part) * 100 / part.len();
            assert!((20..30).contains(&share), "{share} %");
        }
    }

    #[test]
    fn both_kinds_of_hits_are_asked_for_alike_and_all_over() {
        let asked: Vec<Target> = (0..40_000).map(|number| Target::hit(3, number)).collect();
        let different: HashSet<String> = asked.iter().map(|target| target.path()).collect();
        // Of so many drawn from so many, this share is met.
        assert!(different.len() as u64 > (USED + IN_MEMORY) * 9 / 10, "{}", different.len());
        let in_memory = asked.iter().filter(|target| matches!(target, Target::InMemory(_))).count();
        assert_eq!(in_memory, 20_000);
    }
}
