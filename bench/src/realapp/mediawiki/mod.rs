//! MediaWiki from Debian's packages, with Apache and PHP.
//!
//! In: the stage. Out: a table that says what was the same, what was a hit and what the wiki was asked, and a
//! picture of a page as a browser drew it. Any page that differs from the wiki's own fails the run, and so do a second
//! origin request for one cold page, an edit that does not show, and a stored page that dies with the wiki.
//! What is started here ends here; see tests/realapp/mediawiki/README.md.

mod fleet;
mod purges;
mod wiki;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use super::fetch::{Answer, Client, MadeAnew};
use super::recorder::Recorder;
use super::stage::{Larder, Stage};
use crate::browser::dashboard;
use crate::browser::driver::Browser;
use crate::{browser, packages};
use harness::children::free_port;
use wiki::Wiki;

pub(super) use wiki::PACKAGES;

/// In the script at the head of each page.
const MADE_ANEW: &MadeAnew = &[(b"\"wgRequestId\":\"", b'"'), (b"\"wgBackendResponseTime\":", b',')];
const TARGETS_MIN: usize = 40;
const CROWD: usize = 50;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let public = free_port()?;
    let sent = Recorder::start(public)?;
    let mut wiki = Wiki::start(&stage.data, stage.work, (public, sent.address))?;
    let config = stage.example("mediawiki.toml", "http://127.0.0.1:8082", wiki.address)?;
    let larder = stage.larder_at(public, &config)?;
    let direct = Client { address: wiki.address, host: public, compressed: false };
    let through = larder.client();

    // The wiki makes some things at the first view: asked twice, it has made them all.
    let start_page = direct.get("/index.php/Main_Page")?;
    let mut targets = wiki.targets(&start_page);
    // One page stays cold, for the crowd.
    let cold = format!("/index.php/{}", wiki.pages.first().context("no pages")?);
    targets.retain(|target| *target != cold);
    ensure!(targets.len() >= TARGETS_MIN, "only {} targets", targets.len());
    for target in &targets {
        direct.get(target)?;
    }
    let mut rounds = Vec::new();
    for (compressed, names) in
        [(false, ["first", "second"]), (true, ["first, compressed", "second, compressed"])]
    {
        let own = fetch_all(&Client { compressed, ..direct }, &targets)?;
        for name in names {
            rounds.push(Round::run(name, &wiki, &larder, &Client { compressed, ..through }, &targets, &own)?);
        }
    }
    report(&targets, &rounds);
    ensure!(rounds.iter().all(|round| round.differing.is_empty()), "pages differ from the wiki's own");
    for round in rounds.iter().filter(|round| round.name.starts_with("second")) {
        ensure!(round.hits() * 2 > targets.len(), "most of the round `{}` should have been hits", round.name);
    }

    let crowd = crowd(&wiki, &larder, &through, &cold)?;
    println!("{CROWD} clients at once on one cold page: {crowd} origin request");
    ensure!(crowd == 1, "the crowd caused {crowd} origin requests");
    cookies(&through, &cold)?;
    edit(&wiki, &through)?;
    purges::run(&wiki, &larder, &sent, direct)?;
    let visitor = Browser::start(stage.work, "dashboard")?;
    dashboard::draw(&visitor, larder.admin, "", &stage.data.join("dashboard.png"))?;
    println!("Chromium drew larder's own page about all of it: tests/realapp/mediawiki/dashboard.png");
    drop((visitor, larder));
    fleet::run(stage, &wiki, &config, direct)?;
    let mut larder = stage.larder_at(public, &config)?;

    let picture = stage.data.join("screenshot.png");
    let before = lookups(&larder)?;
    browser::draw(&format!("http://{public}/index.php/Main_Page"), &picture, stage.work)?;
    let after = lookups(&larder)?;
    let count = |status: &str| after.get(status).unwrap_or(&0) - before.get(status).unwrap_or(&0);
    let all: u64 = after.keys().map(|status| count(status)).sum();
    println!(
        "Chromium drew the start page: {all} requests, {} hits; tests/realapp/mediawiki/screenshot.png",
        count("hit")
    );

    wiki.still_runs()?;
    larder.still_runs()?;
    drop(wiki);
    without_origin(&through)?;
    drop(larder);
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!("mediawiki {}, chromium {}", version("mediawiki"), version("chromium")))
}

fn fetch_all(client: &Client, targets: &[String]) -> Result<Vec<Answer>> {
    targets.iter().map(|target| client.get(target)).collect()
}

/// Every target once, through larder.
struct Round {
    name: &'static str,
    answers: Vec<Answer>,
    differing: Vec<String>,
    origin_requests: usize,
}

impl Round {
    fn run(
        name: &'static str,
        wiki: &Wiki,
        larder: &Larder,
        client: &Client,
        targets: &[String],
        own: &[Answer],
    ) -> Result<Self> {
        let before = settled(wiki, larder)?;
        let answers = fetch_all(client, targets)?;
        let compared = targets.iter().zip(own.iter().zip(&answers));
        let differing = compared.filter_map(|(target, (own, answer))| {
            Some(format!("{target}: {}", own.difference(answer, MADE_ANEW)?))
        });
        Ok(Self {
            name,
            differing: differing.collect(),
            origin_requests: settled(wiki, larder)? - before,
            answers,
        })
    }

    fn hits(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_hit()).count()
    }

    fn stored(&self) -> usize {
        self.answers.iter().filter(|answer| answer.cache_status.contains("; stored")).count()
    }

    fn row(&self) {
        let (name, all) = (self.name, self.answers.len());
        println!(
            "| {name} | {all} | {} | {} | {} | {} | {} |",
            all - self.differing.len(),
            self.hits(),
            self.stored(),
            all - self.hits() - self.stored(),
            self.origin_requests
        );
    }
}

fn report(targets: &[String], rounds: &[Round]) {
    println!("\n| round | URLs | identical | hits | misses, stored | not stored | origin requests |");
    println!("|---|---|---|---|---|---|---|");
    rounds.iter().for_each(Round::row);
    for difference in rounds.iter().flat_map(|round| &round.differing) {
        println!("differs: {difference}");
    }
    // One of each kind of answer, without the seconds that are left.
    let kind = |answer: &Answer| answer.cache_status.split("; ttl=").next().unwrap_or_default().to_owned();
    let mut samples = BTreeMap::new();
    for round in rounds {
        for (target, answer) in targets.iter().zip(&round.answers) {
            let sample = (target, round.name, &answer.cache_status);
            samples.entry((answer.status, kind(answer))).or_insert(sample);
        }
    }
    println!();
    for ((status, _), (target, round, said)) in samples {
        println!("{status} {target} ({round})\n    Cache-Status: {said}");
    }
    println!();
}

/// Requests from larder in Apache's log, once it has all that larder has sent.
fn settled(wiki: &Wiki, larder: &Larder) -> Result<usize> {
    larder.settled(&|| wiki.asked(None))
}

/// Many clients at once on one target; returns how often the wiki was asked.
fn crowd(wiki: &Wiki, larder: &Larder, client: &Client, target: &str) -> Result<usize> {
    settled(wiki, larder)?;
    let answers: Vec<Result<Answer>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CROWD).map(|_| scope.spawn(|| client.get(target))).collect();
        let joined = clients.into_iter().map(|one| one.join());
        joined.map(|one| one.unwrap_or_else(|_| bail!("a client panicked"))).collect()
    });
    let answers: Vec<Answer> = answers.into_iter().collect::<Result<_>>()?;
    let same = |answer: &Answer| {
        answer.status == 200 && answers.first().is_some_and(|first| first.body == answer.body)
    };
    ensure!(answers.iter().all(same), "{target}: the crowd saw different pages");
    settled(wiki, larder)?;
    wiki.asked(Some(target))
}

/// A cookie that means nothing shares the page of all; one that means a session does not.
fn cookies(client: &Client, target: &str) -> Result<()> {
    let other = client.ask_with(target, "Cookie: _analytics=17")?;
    ensure!(other.is_hit(), "with another cookie: {}", other.cache_status);
    let session = client.ask_with(target, "Cookie: wiki_session=0123456789abcdef0123456789abcdef")?;
    println!("with a cookie of somebody's analytics: {}", other.cache_status);
    println!("with a session cookie: {}", session.cache_status);
    ensure!(!session.is_hit(), "a session was answered from what is stored for others");
    Ok(())
}

/// An edit through larder shows at once.
fn edit(wiki: &Wiki, client: &Client) -> Result<()> {
    let page = wiki.pages.last().context("no pages")?;
    let target = format!("/index.php/{page}");
    let before = client.get(&target)?;
    let text = "Edited through larder.";
    let saved = wiki.edit(client, page, text)?;
    ensure!(saved.status == 302, "the edit was answered {}", saved.status);
    let after = client.get(&target)?;
    println!("{target} before an edit: {}", before.cache_status);
    println!("{target} after it: {}", after.cache_status);
    ensure!(before.is_hit(), "the page was not stored before the edit");
    ensure!(contains(&after.body, text), "the edit does not show");
    Ok(())
}

/// The wiki is gone: what is fresh goes on, what is not says so.
fn without_origin(client: &Client) -> Result<()> {
    let fresh = client.get("/index.php/Main_Page")?;
    let missing = client.get("/index.php/Special:Version")?;
    println!("Apache stopped: a stored page: {} {}", fresh.status, fresh.cache_status);
    println!("Apache stopped: a page that is not: {} {}", missing.status, missing.cache_status);
    ensure!(fresh.status == 200 && fresh.is_hit() && missing.status == 502, "the wiki's end shows");
    Ok(())
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Look-ups by outcome.
fn lookups(larder: &Larder) -> Result<BTreeMap<String, u64>> {
    let text = larder.metrics()?;
    let samples = text.lines().filter(|line| line.starts_with("larder_cache_lookups_total{"));
    Ok(samples
        .filter_map(|line| {
            let (labels, value) = line.rsplit_once(' ')?;
            let (_, status) = labels.split_once("status=\"")?;
            Some((status.split('"').next()?.to_owned(), value.parse().ok()?))
        })
        .collect())
}
