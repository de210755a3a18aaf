//! What a hit pays for purges that were made since it was last asked for.
//!
//! In: twenty thousand stored objects with twenty tags; then 10 purges and 990 more, none of which takes any of them. Out: CPU time
//! per hit when each object is asked for once: before there was a purge, as the first hit after so many, and as the second. larder
//! gets tags, and patterns that it has to compare; Varnish gets bans of URLs by the same patterns, and xkey tags.
//! Deliberately absent: waits. Each key is asked for once in a pass, over a few connections that wait.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::ask::{Purge, at_once};
use super::hits::answer;
use super::{LARDER, VARNISH};
use crate::measure::asker::ask_all_for;
use crate::measure::contender::larder::{self, AccessLog};
use crate::measure::contender::{Contender, Kit, floor, varnish};

const KEYS: u64 = 20_000;
const CONNECTIONS: usize = 16;
const BODY_BYTES: usize = 134;
/// Purges in force when the second and the third pairs of passes are made.
pub(super) const FEW: u64 = 10;
pub(super) const MANY: u64 = 1000;
/// Passes of which the mean is taken, where nothing changes: a pass takes some tenths of a second, and the kernel counts in
/// hundredths.
const STEADY_PASSES: u32 = 4;

/// One server with one kind of purges.
pub(super) struct Passes {
    pub(super) server: &'static str,
    pub(super) kind: &'static str,
    /// CPU time per hit, in microseconds, without a purge.
    pub(super) before_us: f64,
    /// The first hit after [`FEW`], and after [`MANY`].
    pub(super) first_us: [f64; 2],
    /// Further hits.
    pub(super) later_us: [f64; 2],
}

/// Makes the purge of a number.
type Make = fn(u64) -> Purge;

/// Measures all of them.
pub(super) fn run(kit: &Kit) -> Result<Vec<Passes>> {
    let tag = |number| Purge::hard(format!("other-{number}"));
    let pattern = |number| Purge::Pattern(format!("^/other/[0-9]+/page-{number}$"));
    let all: [(&'static str, &'static str, Make); 4] = [
        (LARDER, "tags", tag),
        (LARDER, "patterns", pattern),
        (VARNISH, "xkey tags", tag),
        (VARNISH, "bans", pattern),
    ];
    all.into_iter()
        .map(|(server, kind, purge)| {
            measure(kit, server, kind, purge).with_context(|| format!("{server}, {kind}"))
        })
        .collect()
}

fn measure(kit: &Kit, server: &'static str, kind: &'static str, purge: Make) -> Result<Passes> {
    let origin = floor::origin(kit, &answer())?;
    let setup = kit.setup(origin.address);
    let mut contender = match server {
        LARDER => larder::full(kit, &setup, LARDER, AccessLog::Off)?,
        _ => varnish::purging(&setup, VARNISH)?,
    };
    let filled = ask_all_for(contender.address, (CONNECTIONS, BODY_BYTES), KEYS, target)?;
    ensure!(filled == 0, "{filled} hits while nothing was stored");
    passes(&contender, 1)?;
    let before_us = passes(&contender, STEADY_PASSES)?;
    let mut made = 0;
    let mut after = |purges: u64| -> Result<(f64, f64)> {
        at_once(contender.address, (made..purges).map(purge))?;
        made = purges;
        Ok((passes(&contender, 1)?, passes(&contender, STEADY_PASSES)?))
    };
    let (few, many) = (after(FEW)?, after(MANY)?);
    contender.server.still_runs()?;
    println!("{server}, {kind}: {before_us:.1} us, then {:.1} and {:.1}", few.0, many.0);
    Ok(Passes { server, kind, before_us, first_us: [few.0, many.0], later_us: [few.1, many.1] })
}

/// CPU time per hit, where each object is asked for so many times.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn passes(contender: &Contender, passes: u32) -> Result<f64> {
    let before = contender.server.cpu_time();
    for _ in 0..passes {
        let hits = ask_all_for(contender.address, (CONNECTIONS, BODY_BYTES), KEYS, target)?;
        ensure!(hits == KEYS, "{hits} hits of {KEYS}");
    }
    let took: Duration = contender.server.cpu_time().saturating_sub(before);
    Ok(took.as_secs_f64() * 1e6 / (KEYS as f64 * f64::from(passes)))
}

fn target(number: u64) -> String {
    format!("/key/{number}/134")
}
