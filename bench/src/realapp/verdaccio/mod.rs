//! Verdaccio as a registry for npm: packages are published and installed through larder.
//!
//! In: the stage. Out: what npm asked for and what was a hit, by larder's access log. Nothing beyond loopback is asked once
//! Verdaccio is installed. See tests/realapp/verdaccio/README.md. The run fails where
//!
//! - a second installation asks the registry for what the first one brought, or a new version does not show;
//! - a package of a team reaches a stranger, or a client is sent a coding or a form that it did not ask for;
//! - nothing installs without the registry.

mod registry;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::codings::Taker;
use super::fetch::{Answer, Client};
use super::node;
use super::random::Random;
use super::stage::{Larder, Stage};
use super::tally::Tally;
use registry::{Npm, Package, Registry};

pub(super) const PACKAGES: &[&str] = &[];

const REQUESTS: usize = 400;
const STALE_MAX: Duration = Duration::from_secs(60);
/// What npm asks with for the short form, as its client writes it.
const SHORT: &str = "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";
const WHOLE: &str = "Accept: application/json";

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let folder = node::application(stage, "verdaccio")?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    let registry = Registry::start(stage, &folder)?;
    let example = stage.example("npm.toml", "http://127.0.0.1:4873", registry.address)?;
    // A third of the minute, so that the lists are stale when the registry is gone.
    let config = example.replace("\"1m\"", "\"20s\"");
    ensure!(config != example, "examples/npm.toml has another lifetime");
    let log = stage.work.join("access.log");
    let mut larder = stage.larder(&format!("{config}\n[log]\naccess = \"{}\"\n", log.display()))?;
    let token = registry::member(&larder.client(), "victoria")?;
    let member = Npm::new(stage.work, "member", larder.public, Some(&token))?;

    let leaf = Package { name: "larder-leaf", version: "1.0.0", needs: None };
    let stem = Package { name: "larder-stem", version: "1.0.0", needs: Some("larder-leaf") };
    let hidden = Package { name: "@team/hidden", version: "1.0.0", needs: None };
    for package in [&leaf, &stem, &hidden] {
        member.publish(package)?;
    }

    let mut lines = Lines { log: &log, read: 0 };
    lines.since(&larder)?;
    for (round, wanted) in [("first", 0), ("second", 4)] {
        let installed = Npm::new(stage.work, round, larder.public, None)?.install("larder-stem")?;
        ensure!(installed.leaf == "1.0.0", "larder-leaf {}", installed.leaf);
        let asked = lines.since(&larder)?;
        println!("\nnpm install with an empty cache, the {round} time:");
        asked.iter().for_each(|line| println!("  {line}"));
        let hits = asked.iter().filter(|line| line.contains("larder; hit")).count();
        ensure!(asked.len() == 4 && hits == wanted, "{hits} hits of {}", asked.len());
    }

    let newer = Package { version: "1.1.0", ..leaf };
    member.publish(&newer)?;
    let installed = Npm::new(stage.work, "third", larder.public, None)?.install("larder-stem")?;
    println!("\nafter a new version was published through larder: larder-leaf {}", installed.leaf);
    lines.since(&larder)?.iter().for_each(|line| println!("  {line}"));
    ensure!(installed.leaf == "1.1.0", "the new version does not show: {}", installed.leaf);

    let direct = Client { address: registry.address, host: larder.public, compressed: false };
    forms(&direct, &larder.client(), &mut random)?;
    hidden_stays_hidden(&larder.client(), &token, &mut random)?;
    let theirs = member.install("@team/hidden")?;
    ensure!(theirs.root == "1.0.0", "@team/hidden {}", theirs.root);
    ensure!(
        Npm::new(stage.work, "stranger", larder.public, None)?.install("@team/hidden").is_err(),
        "a stranger installed @team/hidden"
    );

    drop(registry);
    outlived(&larder.client())?;
    lines.since(&larder)?;
    let installed = Npm::new(stage.work, "fourth", larder.public, None)?.install("larder-stem")?;
    println!("\nVerdaccio stopped: larder-leaf {} is installed all the same", installed.leaf);
    let asked = lines.since(&larder)?;
    asked.iter().for_each(|line| println!("  {line}"));
    ensure!(installed.leaf == "1.1.0", "larder-leaf {}", installed.leaf);
    ensure!(asked.iter().any(|line| line.contains("ttl=-")), "no list was stale");
    larder.still_runs()?;
    Ok(format!("verdaccio {}, npm {}", node::version(&folder, "verdaccio")?, registry::npm_version()?))
}

/// Waits until the lifetime of a list is over.
fn outlived(through: &Client) -> Result<()> {
    let deadline = Instant::now() + STALE_MAX;
    loop {
        let answer = through.ask_with("/larder-leaf", SHORT)?;
        ensure!(answer.status == 200, "/larder-leaf without the registry: {}", answer.status);
        if answer.cache_status.contains("ttl=-") {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "/larder-leaf is never stale: {}", answer.cache_status);
        harness::children::pause();
    }
}

/// What is new in the access log.
struct Lines<'a> {
    log: &'a Path,
    read: usize,
}

impl Lines<'_> {
    /// GET requests since the last time: the path and `Cache-Status`.
    fn since(&mut self, larder: &Larder) -> Result<Vec<String>> {
        // The line of a request is there when a later one's is.
        let mark = format!("/-/mark-{}", self.read);
        larder.client().get(&mark)?;
        let deadline = Instant::now() + registry::READY_MAX;
        loop {
            let text = fs::read_to_string(self.log)?;
            let lines: Vec<&str> = text.lines().skip(self.read).collect();
            if lines.iter().any(|line| line.contains(&mark)) {
                self.read += lines.len();
                let told = lines.iter().filter(|line| !line.contains("/-/mark-"));
                return told.filter_map(|line| told_of(line).transpose()).collect();
            }
            if Instant::now() > deadline {
                bail!("the access log has no line of {mark}");
            }
            harness::children::pause();
        }
    }
}

fn told_of(line: &str) -> Result<Option<String>> {
    let line: serde_json::Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
    let text = |name: &str| line.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let told = format!("{} {}", text("url.path"), text("larder.cache.status_field"));
    Ok((text("http.request.method") == "GET").then_some(told))
}

/// The two forms of a package's list of versions, and its tarball, for clients of every kind.
fn forms(direct: &Client, through: &Client, random: &mut Random) -> Result<()> {
    let targets =
        [("/larder-leaf", SHORT), ("/larder-leaf", WHOLE), ("/larder-leaf/-/larder-leaf-1.1.0.tgz", WHOLE)];
    let mut own: Vec<Answer> = Vec::new();
    for (target, accept) in targets {
        own.push(direct.ask_with(target, accept)?);
    }
    println!("\n| what Verdaccio says | type | Cache-Control | ETag | Vary |\n|---|---|---|---|---|");
    for ((target, _), own) in targets.iter().zip(&own) {
        let said = |name| own.field(name).unwrap_or("–").to_owned();
        println!(
            "| {target} | {} | {} | {} | {} |",
            own.content_type,
            said("cache-control"),
            said("etag"),
            said("vary")
        );
    }
    let mut tally = Tally::default();
    for _ in 0..REQUESTS {
        let chosen = random.below(targets.len());
        let (target, accept) = targets.get(chosen).context("a target")?;
        let own = own.get(chosen).context("its own")?;
        let answer = Taker::any(random).get(through, target, &["-H", accept])?;
        ensure!(answer.status == 200, "{target}: {}", answer.status);
        ensure!(
            answer.content_type == own.content_type && answer.body == own.body,
            "{target}: another form, {}: {}",
            answer.content_type,
            answer.cache_status
        );
        tally.count(&format!("{target}, {}", own.content_type), &answer);
    }
    tally.print();
    Ok(())
}

/// A package of a team, asked for by its member and by a stranger.
fn hidden_stays_hidden(through: &Client, token: &str, random: &mut Random) -> Result<()> {
    let bearer = format!("Authorization: Bearer {token}");
    let targets = ["/@team%2fhidden", "/@team/hidden/-/hidden-1.0.0.tgz"];
    let mut tally = Tally::default();
    for _ in 0..REQUESTS / 2 {
        let is_member = random.below(2) == 0;
        let target = targets.get(random.below(targets.len())).context("a target")?;
        let arguments: &[&str] = if is_member { &["-H", &bearer] } else { &[] };
        let answer = Taker::any(random).get(through, target, arguments)?;
        ensure!(
            (answer.status == 200) == is_member,
            "{target}, member: {is_member}: {} {}",
            answer.status,
            answer.cache_status
        );
        tally.count(&format!("{target}, by {}", if is_member { "a member" } else { "a stranger" }), &answer);
    }
    tally.print();
    Ok(())
}
