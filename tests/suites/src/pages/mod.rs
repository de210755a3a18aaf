//! Pages put together from templates, by the servers that speak the language and by larder: the same bytes.
//!
//! In: the templates and fragments of tests/pages, the peers' configurations there, Debian's nginx (ssi), Apache (mod_include) and Varnish
//! (ESI), and larder of the dev profile. Out: where a page differs, beside tests/pages/differences.list, which has a reason for each.
//! Any other difference fails, and so does an entry that is none any more. larder is asked for each page again and again. It has to be the
//! same while its parts arrive, from memory, and kept as a whole.
//! Deliberately absent: fields of the response, what a page costs, and what no peer offers; scenarios and measurements have these.

mod cases;
mod client;
mod difference;
mod origin;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use harness::install::{self, From, Tool};
use harness::received::Received;

use crate::differences::{Differences, List};
use crate::peers::{self, Running};
use cases::{Case, PEERS, Peer};
use client::ask;
use difference::difference;
use origin::Origin;

/// Below the checkout.
const PAGES: &str = "tests/pages";

/// How the list of differences begins.
const HEAD: &str = "# Where larder's pages differ from those of the peers, template by template, and why. `make pages` compares a run with this\n\
                    # file, and `make pages WRITE=1` writes it anew and keeps the reasons. README.md has the form.\n";

/// How often larder is asked for each page: a page is kept after 16 hits.
const ROUNDS: usize = 20;

const TOOLS: &[Tool] = &[
    Tool { program: "varnishd", from: From::Apt("varnish"), targets: &["pages"] },
    Tool { program: "nginx", from: From::Apt("nginx-light"), targets: &["pages"] },
    Tool { program: "apache2", from: From::Apt("apache2-bin"), targets: &["pages"] },
];

/// Runs the suite, and compares or, with `write`, rewrites the list; reasons in it stay.
///
/// # Errors
/// A server does not start or breaks off, larder answers one page in two ways, or the list is not exact.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    if let Err(error) = install::ensure_for(root, "pages", TOOLS) {
        // Root can have them; anyone else may have no way to.
        ensure!(!rustix::process::geteuid().is_root(), error);
        println!("pages: skipped: {error:#}");
        return Ok(());
    }
    let folder = root.join(PAGES);
    let cases = cases::read(&folder)?;
    let origin = Origin::start(&folder)?;
    let mut larder = peers::larder(root, &larder_config(&origin)).context("larder")?;
    let by_larder = cases
        .iter()
        .map(|case| always(&larder, case).with_context(|| format!("larder, {}", case.name)))
        .collect::<Result<Vec<Received>>>()?;
    larder.still_runs()?;
    let mut found = Differences::new();
    for peer in PEERS {
        let mut running = start(*peer, &folder, &origin).with_context(|| peer.name())?;
        for (case, by_larder) in cases.iter().zip(&by_larder).filter(|(case, _)| case.speaks(*peer)) {
            let by_peer = ask(running.address, &case.target);
            let by_peer = by_peer.with_context(|| format!("{}, {}", peer.name(), case.name))?;
            let lines = difference(peer.name(), &by_peer, by_larder);
            if !lines.is_empty() {
                found.insert(format!("{}: {}", case.name, peer.name()), lines);
            }
        }
        running.still_runs()?;
    }
    let list = List { suite: "pages", head: HEAD, folder: &folder };
    let compared =
        cases.iter().map(|case| PEERS.iter().filter(|peer| case.speaks(**peer)).count()).sum::<usize>();
    list.judge(&found, &format!("{} templates, {compared} comparisons", cases.len()), write)
}

/// larder's page, which is the same each time.
fn always(larder: &Running, case: &Case) -> Result<Received> {
    let first = ask(larder.address, &case.target)?;
    for round in 2..=ROUNDS {
        let again = ask(larder.address, &case.target)?;
        let differs = difference("at first", &first, &again).join("\n");
        ensure!(differs.is_empty(), "another page, request {round}:\n{differs}");
    }
    Ok(first)
}

fn start(peer: Peer, folder: &Path, origin: &Origin) -> Result<Running> {
    let configs = folder.join("peers");
    match peer {
        Peer::Nginx => peers::nginx(&configs.join("nginx.conf"), origin.address, &[]),
        Peer::Varnish => peers::varnish(&configs.join("varnish.vcl"), origin.address),
        Peer::Apache => {
            let files = cases::for_all_to_read(folder)?;
            let pages = files.path().display().to_string();
            let running =
                peers::apache(&configs.join("apache.conf"), origin.address, &[("pages", pages.as_str())])?;
            Ok(running.with_files(files))
        }
    }
}

/// One site, whose folders say the language.
fn larder_config(origin: &Origin) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\n[[site]]\norigin = \"app\"\nassemble = \"ssi\"\n\n\
         [[site.rule]]\npath = [\"/esi/*\", \"/parts/esi/*\"]\nassemble = \"esi\"\n",
        origin.address
    )
}
