//! Measurements beside the peers, on one machine, in one run.
//!
//! In: the release binary and the peers as packaged. Out: a table on the terminal and bench/results/NAME.{json,md}.
//! Servers share one core in turns and the load has another, so that CPU time per request is comparable.
//! A run that went wrong (a wrong status, a torn body, an error) writes nothing: figures of errors mislead.

pub(crate) mod contender;
mod herd;
mod hit;
mod load;
mod microcache;
pub(crate) mod pauses;
pub(crate) mod report;
mod slow_app;
mod wordpress;

use std::path::Path;

use anyhow::{Context, Result};

/// Every measurement by name, in the order in which `all` runs them.
pub(crate) const NAMES: &[&str] = &["hit", "microcache", "herd", "wordpress"];

/// Runs the measurement of this name, or `all` of them.
pub(crate) fn run(root: &Path, name: &str) -> Result<()> {
    crate::tools::need(root, "bench")?;
    for name in NAMES.iter().copied().filter(|one| name == "all" || name == *one) {
        let measure = match name {
            "hit" => hit::run,
            "microcache" => microcache::run,
            "herd" => herd::run,
            _ => wordpress::run,
        };
        measure(root).with_context(|| format!("bench {name}"))?;
    }
    Ok(())
}
