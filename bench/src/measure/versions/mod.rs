//! Hits whose version an application keeps in Redis, beside the setup that people build for it by hand: nginx with Lua, which asks Redis for
//! the version and then for the body.
//!
//! In: one body of 8357 bytes, the version of its URL in a hash, and the body under a key with that version. Out: CPU time per request,
//! requests per second and waits: of larder with the response in memory, with and without versions; of larder with the application's
//! body; of nginx with both look-ups. Each has a Redis of its own, once on a Unix socket and once by TCP; its CPU time counts as theirs. Then
//! the commands that these Redis get.
//! Deliberately absent: the cost of a change, which the proofs count in commands.

mod commands;
mod setups;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::contender::{Contender, Kit, Setup};
use super::drive::Load;
use super::page::Page;
use super::redis::{By, Redis};
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::origin::body;

const PLAIN: &str = "larder, no versions";
const KNOWN: &str = "larder, versions";
const BODIES: &str = "larder, versions and bodies in Redis";
const NGINX: &str = "nginx, Lua and Redis";
const SERVERS: [&str; 4] = [PLAIN, KNOWN, BODIES, NGINX];
const SCENARIOS: [(&str, By); 2] = [("Unix socket", By::UnixSocket), ("TCP", By::Tcp)];
const BYTES: usize = 8357;
const TARGET: &str = "/page/8357";
const CONNECTIONS: usize = 100;
/// The machine's slow moments are longer than a round, so there are more of them than usual.
const PACE: Pace = Pace { rounds: 5, run: Duration::from_secs(3), warm: Duration::from_secs(1) };

/// CPU per request with a version over without.
const OF_PLAIN: f64 = 1.05;
/// The same over nginx's.
const OF_NGINX: f64 = 0.2;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios: Vec<Scenario<'_>> =
        SCENARIOS.iter().map(|scenario| scenario_of(&kit, *scenario)).collect();
    let outcome = measure(&kit, &scenarios, PACE)?;
    let mut asked = Vec::new();
    for (scenario, by) in SCENARIOS {
        for name in [KNOWN, BODIES, NGINX] {
            let start = |redis: Redis, setup: &Setup<'_>| start(&kit, setup, redis, name);
            asked.push(commands::count(&kit, (scenario, name), setups::filled(&kit, by)?, start)?);
        }
    }
    let mut judged = Vec::new();
    for (scenario, _) in SCENARIOS {
        judged.push(outcome.cpu_at_most(scenario, KNOWN, OF_PLAIN, PLAIN)?);
        for name in [KNOWN, BODIES] {
            judged.push(outcome.cpu_at_most(scenario, name, OF_NGINX, NGINX)?);
            judged.push(commands::judge(&asked, scenario, name)?);
        }
    }
    Page {
        name: "versions",
        title: "Versions in Redis",
        how: format!(
            "Bodies of {BYTES} bytes, {CONNECTIONS} connections. One worker each, pinned to one core; `wrk -t1 -c{CONNECTIONS}` with keep-alive on \
             another; {rounds} interleaved rounds of 3 s, medians. Every answer was the same 200, and the origin was not asked. Each server has a Redis, \
             on the same core as the server, reached by a Unix socket or by TCP. CPU time and memory are those of the server and its Redis together. In \
             Redis lie the version of the URL (a field of a hash) and the body (a string). nginx runs Lua with the client of Debian's \
             `lua-nginx-redis`, which keeps its connections, and asks for both each time. \"no versions\": larder with the response in memory; its Redis has \
             nothing to do. \"versions\": the same, under a version that is known. \"bodies in Redis\": the response is a copy of the application's body.",
            rounds = PACE.rounds
        ),
        programs: &[
            ("uname", "-sr"),
            ("rustc", "--version"),
            ("nginx", "-v"),
            ("redis-server", "--version"),
            ("wrk", "-v"),
        ],
    }
    .write_with(root, &outcome, commands::told(&asked)?, &judged)
}

fn scenario_of<'a>(kit: &'a Kit, (name, by): (&'static str, By)) -> Scenario<'a> {
    let row = |server: &'static str| {
        Row::new(server, move |setup| start(kit, setup, setups::filled(kit, by)?, server))
    };
    let mut scenario = Scenario::hit(name, TARGET, body(BYTES), SERVERS.into_iter().map(row).collect());
    scenario.load = Load::Wrk { connections: CONNECTIONS, script: None };
    scenario
}

/// Starts the server of this name before a Redis.
fn start(kit: &Kit, setup: &Setup<'_>, redis: Redis, name: &str) -> Result<Contender> {
    let (store, site) = match name {
        NGINX => return setups::with_nginx(redis, setup, name),
        PLAIN => ("", ""),
        KNOWN => ("", "versions = { redis = \"REDIS\", hash = \"resource_versions\", field = \"{target}\" }"),
        _ => (
            "redis = { url = \"REDIS\", key = \"{target}:version={version}\", default_type = \"text/plain\" }",
            "versions = { hash = \"resource_versions\", field = \"{target}\" }",
        ),
    };
    setups::with_larder(redis, kit, setup, (name, store, site))
}
