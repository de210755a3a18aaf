//! Three larders that are a fleet: how long a purge takes until none of them uses what it names, and what reaches the origin of a page that none has.
//!
//! In: three larders with one Redis. Out: receipts at a steady rate, and at ten times that rate, with the lag of the members meanwhile; then a
//! thousand clients of all three at once that ask for one page, with and without shared responses.
//! All servers share one core, and the clients and Redis have the other: a purge is applied three times on that core.
//! Deliberately absent: networks other than loopback, and a fleet that loses its Redis. The proofs have that.

mod cold;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::asker::object;
use super::contender::{Kit, LOAD_CORE, floor};
use super::load::allow_descriptors;
use super::purges::ask::TOKEN;
use super::receipts::{self, Receipts};
use super::redis::{By, Redis};
use super::sharing::{Larder, Wanted, start};
use cold::Cold;

const NAMES: [&str; 3] = ["web-1", "web-2", "web-3"];
/// Purges a second, and for how long.
const STEADY: (u32, Duration) = (100, Duration::from_secs(30));
const FAST: (u32, Duration) = (1000, Duration::from_secs(10));

/// What was measured.
struct Measured {
    receipts: [Receipts; 2],
    cold: [Cold; 2],
}

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    allow_descriptors()?;
    let kit = Kit::new(root)?;
    let receipts = {
        let origin = floor::origin(&kit, &object())?;
        let redis = Redis::start(kit.scratch(), By::UnixSocket, LOAD_CORE)?;
        let site = format!("purge = {{ token = \"{TOKEN}\" }}");
        let larder = |name| -> Result<Larder> {
            start(
                &kit,
                origin.address,
                Wanted { site: &site, lease: "10s", ..Wanted::new(name, Some(&redis)) },
            )
        };
        let larders = [larder(NAMES[0])?, larder(NAMES[1])?, larder(NAMES[2])?];
        [receipts::send(&larders, STEADY)?, receipts::send(&larders, FAST)?]
    };
    let cold = [cold::ask(&kit, true)?, cold::ask(&kit, false)?];
    report::report(root, &Measured { receipts, cold })
}
