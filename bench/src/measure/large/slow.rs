//! Bodies that come faster than two disks can write them: what their clients get, and how much each further request finds.
//!
//! In: disks that the kernel holds to a pace, as `stripe` and as `mirror`. Out: what clients get of new bodies, in turns with what they get
//! without a cache, and one body that is asked for until all of it is there. Clients are held to the pace of the experiment on placement,
//! six times what one disk takes: so it shows whether anybody waits for a disk. Clients without a limit stand beside them: what they
//! get is what is left of the one core when larder has copied what the queues take. Single requests differ by a factor
//! of two on a machine that others use as well, so it takes several of each.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;

use super::client;
use super::origin::{Content, LargeOrigin};
use super::{DISK, LARDER, Who, drained, larder, mb, mb_per_s, start};
use crate::measure::contender::Kit;
use crate::measure::disks::{Disk, Size};
use crate::measure::placement::throttle::{self, Throttle};

const BYTES_PER_S: u64 = 40_000_000;
const CLIENT_BYTES_PER_S: u64 = 250_000_000;
pub(super) const SIZE_MB: u64 = 512;
/// New bodies, and as many without a cache.
const ROUNDS: usize = 5;
/// Requests for one body, at most.
const REQUESTS: usize = 8;

/// Two slow disks.
pub(super) struct Slow {
    /// How they are used.
    pub(super) name: &'static str,
    /// Clients at a pace, and clients without a limit.
    pub(super) held: Rates,
    pub(super) free: Rates,
    /// MB of one body that the origin did not send, for each request.
    pub(super) found_mb: Vec<f64>,
}

/// MB/s of the first request for each of several bodies.
#[derive(Default)]
pub(super) struct Rates {
    pub(super) with: Vec<f64>,
    /// The same without a cache.
    pub(super) without: Vec<f64>,
}

/// Measures; `None` where disks cannot be held to a pace.
pub(super) fn measure(kit: &Kit, content: &Arc<Content>) -> Result<Option<Vec<Slow>>> {
    if let Some(reason) = throttle::hindrance()? {
        println!("large: no slow disks: {reason}");
        return Ok(None);
    }
    ["stripe", "mirror"].into_iter().map(|layout| of(kit, content, layout)).collect::<Result<_>>().map(Some)
}

fn of(kit: &Kit, content: &Arc<Content>, layout: &'static str) -> Result<Slow> {
    let bytes = SIZE_MB * 1_000_000;
    let origin = LargeOrigin::start(content)?;
    let size = Size { bytes: 2 << 30, ..DISK };
    let disks = [Disk::make(kit.scratch(), "one", size)?, Disk::make(kit.scratch(), "two", size)?];
    let _throttle = Throttle::hold(&disks, BYTES_PER_S)?;
    let folders: Vec<PathBuf> = disks.iter().map(|disk| disk.folder().join("cache")).collect();
    for folder in &folders {
        fs::create_dir(folder)?;
    }
    let who = Who::Larder { name: LARDER, program: kit.larder.clone() };
    let with = start(kit, &origin, &who, &folders, layout)?;
    let without = larder::site(&kit.larder, &kit.setup(origin.address), "no cache", "cache = \"off\"")?;
    let mut slow =
        Slow { name: layout, held: Rates::default(), free: Rates::default(), found_mb: Vec::new() };
    for (name, pace, rates) in
        [("held", Some(CLIENT_BYTES_PER_S), &mut slow.held), ("free", None, &mut slow.free)]
    {
        for round in 0..ROUNDS {
            let target = format!("/{name}-{round}/{bytes}");
            for (contender, rates) in [(&without, &mut rates.without), (&with, &mut rates.with)] {
                let took = client::download(contender.address, (&target, bytes), pace, content)?;
                rates.push(mb_per_s(bytes, took));
                drained(contender)?;
            }
        }
    }
    let target = format!("/again/{bytes}");
    for _ in 0..REQUESTS {
        let before = origin.sent();
        client::download(with.address, (&target, bytes), None, content)?;
        // What is fetched behind it has only begun.
        let sent = origin.sent() - before;
        slow.found_mb.push(mb(bytes.saturating_sub(sent)));
        drained(&with)?;
        if sent == 0 {
            break;
        }
    }
    println!(
        "two slow disks, {layout}: held {:.0?} MB/s, without a cache {:.0?}; free {:.0?}, {:.0?}; {:.0?} MB found",
        slow.held.with, slow.held.without, slow.free.with, slow.free.without, slow.found_mb
    );
    Ok(slow)
}
