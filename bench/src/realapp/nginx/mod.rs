//! nginx from Debian with a static site: compressed for proxies, and without Vary.
//!
//! In: the stage. Out: tables of what was a hit, and how often nginx's own cache sent a client a coding that it does
//! not take; larder must never. The run fails, too, where a byte of a file or of a range of it is another, where a file that was
//! replaced is not seen, and where a stored file dies with nginx. See tests/realapp/nginx/README.md.

mod site;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::codings::Taker;
use super::fetch::Client;
use super::random::Random;
use super::stage::{Larder, Stage};
use super::tally::Tally;
use crate::packages;
use site::{BIG, HUGE, PAGES, Site};

pub(super) const PACKAGES: &[&str] = &["nginx-light"];

const READERS: usize = 800;
const RANGES: usize = 150;
const REPLACED_MAX: Duration = Duration::from_secs(20);

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let site = Site::start(stage)?;
    let config = stage.example("static-site.toml", "http://127.0.0.1:8084", site.address)?;
    let mut larder = stage.larder(&config)?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());

    fields(&site, &larder)?;
    let wrong = readers(&site, &site.peer(), &mut random, "nginx's own cache")?;
    ensure!(wrong > 0, "nginx's cache sent no wrong coding: this check would not have found one");
    let wrong = readers(&site, &larder.client(), &mut random, "larder")?;
    ensure!(wrong == 0, "larder sent {wrong} clients a coding that they do not take");
    ranges(&larder.client(), &mut random)?;
    conditions(&larder.client())?;
    replaced(&site, &larder.client())?;
    larder.still_runs()?;
    drop(site);
    for target in ["/", "/assets/style.css", BIG] {
        let answer = larder.client().get(target)?;
        println!("nginx stopped: {target}: {} {}", answer.status, answer.cache_status);
        ensure!(answer.status == 200, "{target}: {}", answer.status);
    }
    larder.still_runs()?;
    Ok(format!("nginx-light {}", packages::version("nginx-light").unwrap_or_default()))
}

/// What nginx says of each kind of file.
fn fields(site: &Site, larder: &Larder) -> Result<()> {
    println!(
        "\n| asked | Accept-Encoding | Content-Encoding | Cache-Control | ETag | Vary | Cache-Status, the second time |"
    );
    println!("|---|---|---|---|---|---|---|");
    for target in ["/", "/assets/style.css", "/short/page.html"] {
        for coding in ["gzip", "identity"] {
            let field = format!("Accept-Encoding: {coding}");
            let own = site.client().ask_with(target, &field)?;
            larder.client().ask_with(target, &field)?;
            let again = larder.client().ask_with(target, &field)?;
            let said = |name| own.field(name).unwrap_or("–").to_owned();
            println!(
                "| {target} | {coding} | {} | {} | {} | {} | {} |",
                own.content_encoding,
                said("cache-control"),
                said("etag"),
                said("vary"),
                again.cache_status
            );
        }
    }
    Ok(())
}

/// Readers of every kind; returns how many were sent a coding that they do not take.
fn readers(site: &Site, client: &Client, random: &mut Random, name: &str) -> Result<usize> {
    let (mut tally, mut wrong) = (Tally::default(), 0);
    for _ in 0..READERS {
        let target = PAGES.get(random.below(PAGES.len())).context("a page")?;
        let reload = ["-H", "Cache-Control: no-cache"];
        let arguments: &[&str] = if random.below(8) == 0 { &reload } else { &[] };
        let taker = Taker::any(random);
        let answer = taker.ask(client, target, arguments)?;
        ensure!(answer.status == 200, "{target}: {}", answer.status);
        if taker.takes(&answer) {
            ensure!(
                answer.body == site.content(target)?,
                "{target}: the {} was sent other bytes",
                taker.name
            );
        } else {
            wrong += 1;
        }
        tally.count(target, &answer);
    }
    println!("\n{name}: {READERS} requests, {wrong} answered with a coding that the client does not take");
    if name == "larder" {
        tally.print();
        let shared = tally.of("/assets/style.css");
        ensure!(shared.hits * 4 > shared.requests * 3, "too few hits of a style sheet");
    }
    Ok(wrong)
}

/// Ranges of large files, before and after their whole was asked for.
fn ranges(client: &Client, random: &mut Random) -> Result<()> {
    let mut tally = Tally::default();
    for (target, length) in [(BIG, site::BIG_BYTES), (HUGE, site::HUGE_BYTES)] {
        for round in ["a cold file", "a file that was fetched whole"] {
            for _ in 0..RANGES {
                let first = random.below(length - 1);
                let last = length.min(first + 1 + random.below(200_000)) - 1;
                let answer = client.curl(target, &["-r", &format!("{first}-{last}")])?;
                ensure!(answer.status == 206, "{target} {first}-{last}: {}", answer.status);
                let said = answer.field("content-range").unwrap_or_default().to_owned();
                ensure!(said == format!("bytes {first}-{last}/{length}"), "{target}: {said}");
                ensure!(answer.body == site::bytes(first, last + 1), "{target} {said}: other bytes");
                tally.count(&format!("ranges of {target}, {round}"), &answer);
            }
            let whole = client.get(target)?;
            ensure!(whole.status == 200 && whole.body == site::bytes(0, length), "{target}: other bytes");
            tally.count(&format!("{target}, whole"), &whole);
        }
    }
    let several = client.curl("/assets/style.css", &["-r", "0-9,1000-1009"])?;
    ensure!(several.status == 206, "two ranges: {}", several.status);
    ensure!(several.content_type.starts_with("multipart/byteranges"), "{}", several.content_type);
    tally.print();
    let stored = tally.of(&format!("ranges of {BIG}, a file that was fetched whole"));
    ensure!(stored.hits == stored.requests, "ranges of a stored file were no hits");
    Ok(())
}

/// Conditions of clients are answered from what is stored.
fn conditions(client: &Client) -> Result<()> {
    for coding in ["gzip", "identity"] {
        let coding = format!("Accept-Encoding: {coding}");
        let first = client.ask_with("/assets/app.js", &coding)?;
        let tag = format!("If-None-Match: {}", first.field("etag").context("no ETag")?);
        let again = client.curl("/assets/app.js", &["-H", &coding, "-H", &tag])?;
        println!("{coding}, {tag}: {} {}", again.status, again.cache_status);
        ensure!(again.status == 304 && again.is_hit(), "{tag}: {}", again.status);
    }
    Ok(())
}

/// A file that is replaced is seen when the lifetime is over, whichever coding was stored.
fn replaced(site: &Site, client: &Client) -> Result<()> {
    let text = "<p>Another page.</p>".repeat(200);
    site.replace("short/page.html", &text)?;
    for coding in ["gzip", "identity"] {
        let deadline = Instant::now() + REPLACED_MAX;
        loop {
            let answer = client
                .curl("/short/page.html", &["--compressed", "-H", &format!("Accept-Encoding: {coding}")])?;
            if answer.text() == text {
                println!("{coding}: the replaced file is seen: {}", answer.cache_status);
                break;
            }
            if Instant::now() > deadline {
                bail!("the replaced file is not seen: {}", answer.cache_status);
            }
            harness::children::pause();
        }
    }
    Ok(())
}
