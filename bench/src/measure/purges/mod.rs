//! What a purge costs, whoever asks: the one who purges, the hits beside it and after it, and the memory.
//!
//! In: larder, Varnish with xkey and with bans, nginx with the module that purges URLs; each as Debian has it. Out: the time of one purge
//! with a thousand, a hundred thousand and a million objects stored. The CPU time and the waits of hits during a thousand purges a
//! second. The CPU time of the first hit after ten and after a thousand purges. The memory of a tag. A restart with as many purges as
//! are remembered. `larder warm`, which fills a cache after a purge, beside h2load.
//! Deliberately absent: purges by many clients at once, and several larders.

pub(super) mod ask;
mod cost;
mod hits;
mod memory;
mod origin;
mod passes;
mod report;
mod restart;
mod warm;

use std::path::Path;

use anyhow::Result;

use super::contender::Kit;
use super::disks;
use super::load::allow_descriptors;

const LARDER: &str = "larder";
const LARDER_PURGED: &str = "larder, 1000 purges/s";
const LARDER_DISK: &str = "larder, a disk";
const VARNISH: &str = "Varnish";
const VARNISH_PURGED: &str = "Varnish, 1000 xkey purges/s";
const NGINX: &str = "nginx";
const NGINX_PURGED: &str = "nginx, 1000 purges/s";

/// The disk's image, and what else lies in memory.
const SCRATCH_BYTES: u64 = 6 << 30;

/// Everything that was measured.
struct Measured {
    costs: Vec<cost::Cost>,
    hits: super::outcome::Outcome,
    beside: Vec<hits::Beside>,
    passes: Vec<passes::Passes>,
    memory: Vec<memory::Memory>,
    warm: warm::Warm,
}

/// Measures, prints the tables and writes them to bench/results. Where disks cannot be made, it says so and leaves them out.
pub(super) fn run(root: &Path) -> Result<()> {
    allow_descriptors()?;
    let kit = Kit::new(root)?;
    let hindrance = match disks::hindrance(SCRATCH_BYTES)? {
        None => disks::tried(kit.scratch())?,
        reason => reason,
    };
    if let Some(reason) = &hindrance {
        println!("purges: without a disk: {reason}");
    }
    let (hits, beside) = hits::run(&kit)?;
    let measured = Measured {
        warm: warm::run(&kit)?,
        passes: passes::run(&kit)?,
        memory: memory::run(&kit)?,
        costs: cost::run(&kit, hindrance.is_none())?,
        hits,
        beside,
    };
    report::report(root, &measured)
}
