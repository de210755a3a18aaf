//! Pages whose bodies and versions an application keeps in Redis: nginx with Lua serves them as people build it by hand, and larder beside it.
//!
//! In: the stage. Out: a table of what 1000 random steps did, for a Redis on a Unix socket and one by TCP. Both proxies are asked for the same
//! page, one after the other. The run fails where they answer otherwise than each other, or with a page from before the last committed change.
//! See tests/realapp/versioned-pages/README.md, which names the differences that are allowed.

mod steps;
mod system;

use anyhow::{Context, Result};

use super::random::Random;
use super::stage::Stage;
use crate::packages;
use steps::Walk;
use system::{By, Rule, System};

pub(super) const PACKAGES: &[&str] = &[
    "python3",
    "python3-redis",
    "redis-server",
    "redis-tools",
    "nginx-light",
    "libnginx-mod-http-lua",
    "lua-nginx-redis",
];

/// Those whose versions are told.
const TOLD: &[&str] = &["libnginx-mod-http-lua", "lua-nginx-redis", "redis-server", "python3-redis"];

const STEPS: usize = 1000;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    for (by, name) in [(By::UnixSocket, "a Unix socket"), (By::Tcp, "TCP")] {
        let mut walk = Walk::new(System::start(stage, (by, Rule::AsGuided))?, &mut random);
        for number in 1..=STEPS {
            walk.step().with_context(|| format!("Redis by {name}, step {number}"))?;
        }
        walk.without_redis().with_context(|| format!("Redis by {name}, without it"))?;
        let counts = walk.end()?;
        println!("\nRedis by {name}, {STEPS} steps\n\n{counts}");
    }
    let mut walk = Walk::new(System::start(stage, (By::Tcp, Rule::Careless))?, &mut random);
    let found = (0..STEPS).find_map(|_| walk.step().err());
    let found = found.context("without versions nothing was found")?;
    println!("without versions an older page is found, as it has to be: {found:#}");
    let of = |package: &&str| {
        let version = packages::version(package).with_context(|| format!("{package} is not installed"))?;
        Ok(format!("{package} {version}"))
    };
    let told: Result<Vec<String>> = TOLD.iter().map(of).collect();
    Ok(told?.join(", "))
}
