//! Requests for purges, sent to the caches that they were written for and to larder: the same answer, and the same gone afterwards.
//!
//! In: the requests of tests/dialects, what is stored before them and the peers' configurations (tests/dialects/peers), Debian's
//! Varnish and nginx, and larder of the dev profile. Out: where the two differ, beside tests/dialects/peers/differences.list, which has
//! a reason for each; any other difference fails, in both directions. Each request is sent twice: by one who may purge, and by one who
//! may not, from another address and with a wrong secret.
//! Deliberately absent: reason phrases and contents of answers, which clients only log, and what they are asked by other fields.

mod client;
mod difference;
mod observe;
mod origin;
mod requests;
mod servers;
mod stored;
mod world;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use harness::install::{self, From, Tool};
use parking_lot::Mutex;

use crate::differences::{Differences, List};
use crate::peers::Running;
use difference::difference;
use observe::{Outcome, observe};
use origin::Origin;
use requests::PurgeRequest;
use stored::Stored;
use world::{WORLDS, World};

/// Below the checkout.
const REQUESTS: &str = "tests/dialects";
const PEERS: &str = "tests/dialects/peers";

/// How the list of differences begins.
const HEAD: &str = "# Where larder differs from the peers, request by request, and why. `make dialects` compares a run with this file, and\n\
                    # `make dialects WRITE=1` writes it anew and keeps the reasons. README.md, one folder above, has the words.\n";

/// Varnish and the compiler of its configurations wait for a core; more at once than cores gain nothing.
const AT_ONCE: usize = 2;

#[cfg(target_arch = "aarch64")]
const XKEY: &str = "/usr/lib/aarch64-linux-gnu/varnish/vmods/libvmod_xkey.so";
#[cfg(not(target_arch = "aarch64"))]
const XKEY: &str = "/usr/lib/x86_64-linux-gnu/varnish/vmods/libvmod_xkey.so";

const TOOLS: &[Tool] = &[
    Tool { program: "varnishd", from: From::Apt("varnish"), targets: &["dialects"] },
    Tool { program: XKEY, from: From::Apt("varnish-modules"), targets: &["dialects"] },
    Tool { program: "nginx", from: From::Apt("nginx-light"), targets: &["dialects"] },
    Tool {
        program: servers::NGINX_MODULE,
        from: From::Apt("libnginx-mod-http-cache-purge"),
        targets: &["dialects"],
    },
];

/// Runs the suite, and compares or, with `write`, rewrites the list; reasons in it stay.
///
/// # Errors
/// A server does not start or breaks off, a peer does not store what it is to store, or the list is not exact.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    if let Err(error) = install::ensure_for(root, "dialects", TOOLS) {
        // Root can have them; anyone else may have no way to.
        ensure!(!rustix::process::geteuid().is_root(), error);
        println!("dialects: skipped: {error:#}");
        return Ok(());
    }
    let stored = stored::read(&root.join(PEERS))?;
    let waiting: Mutex<VecDeque<&World>> = Mutex::new(WORLDS.iter().collect());
    let found = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(world) = waiting.lock().pop_front() else { return };
                    let compared = compare(root, world, &stored);
                    found.lock().take(world, compared);
                }
            });
        }
    });
    let Found { differences, requests, failed } = found.into_inner();
    if let Some(error) = failed {
        return Err(error);
    }
    let list = List { suite: "dialects", head: HEAD, folder: &root.join(PEERS) };
    list.judge(&differences, &format!("{requests} requests"), write)
}

/// What the worlds have shown so far.
#[derive(Default)]
struct Found {
    differences: Differences,
    /// How many requests were sent to both.
    requests: usize,
    failed: Option<anyhow::Error>,
}

impl Found {
    fn take(&mut self, world: &World, compared: Result<(Differences, usize)>) {
        match compared {
            Ok((differences, requests)) => {
                self.differences.extend(differences);
                self.requests += requests;
            }
            Err(error) => {
                self.failed.get_or_insert(anyhow!("{}: {error:#}", world.requests));
            }
        }
    }
}

/// Sends a world's requests to its peer and to larder. Out: where they differ, and how many requests there were.
fn compare(root: &Path, world: &World, stored: &[Stored]) -> Result<(Differences, usize)> {
    let requests = requests::read(&root.join(REQUESTS).join(world.requests).with_extension("txt"))?;
    let (soft, hard): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| request.is_soft);
    let (mut differences, mut count) = (Differences::new(), 0);
    for requests in [&soft, &hard].into_iter().filter(|requests| !requests.is_empty()) {
        let by_peer = outcomes(servers::peer, (root, world, stored), requests)?;
        let by_larder = outcomes(servers::larder, (root, world, stored), requests).context("larder")?;
        let vacuous = by_larder.iter().find(|outcome| outcome.is_vacuous());
        ensure!(
            vacuous.is_none(),
            "{}: nothing stored that it names",
            vacuous.map_or("", |vacuous| &vacuous.title)
        );
        for (of_peer, of_larder) in by_peer.iter().zip(&by_larder) {
            let lines = difference(world.peer.name(), of_peer, of_larder, stored);
            if !lines.is_empty() {
                differences.insert(format!("{}: {}", world.requests, of_peer.title), lines);
            }
        }
        count += by_peer.len();
    }
    Ok((differences, count))
}

type Start = fn(&Path, &World, SocketAddr, &[Stored]) -> Result<Running>;

/// What requests of one kind do at a cache of their own.
fn outcomes(
    start: Start,
    (root, world, stored): (&Path, &World, &[Stored]),
    requests: &[PurgeRequest],
) -> Result<Vec<Outcome>> {
    let has_entity_tags = requests.iter().all(|request| request.is_soft);
    let origin = Origin::start(stored, world.tags, has_entity_tags)?;
    let mut cache = start(root, world, origin.address, stored)?;
    let outcomes = observe(cache.address, &origin, stored, requests)?;
    cache.still_runs()?;
    Ok(outcomes)
}
