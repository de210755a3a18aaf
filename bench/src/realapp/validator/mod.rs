//! The W3C Markup Validator from Debian: files of Apache SSI, put together by larder, and by Apache's own mod_include for comparison.
//!
//! In: the stage, whose folder has Apache's configuration and the list of known differences. Out: a table of what was the same
//! in each round, and a picture of the start page. One Apache hands the files out as they are, and runs mod_include
//! on another port. Every page has to be the same byte for byte, with and without `?debug`, from the first request to those
//! after Apache's end. Exceptions are the entries of differences.toml, each with its reason; an entry that is not
//! needed fails the run, too. See tests/realapp/validator/README.md.

mod differences;
mod pages;

use anyhow::{Context, Result, ensure};

use super::apache::Apache;
use super::fetch::{Answer, Client};
use super::stage::{Larder, Stage};
use crate::{browser, packages};
use differences::Differences;
use harness::children::free_port;

/// The web server is a part of `apache2` that starts nothing by itself.
pub(super) const PACKAGES: &[&str] =
    &["apache2-bin", "media-types", "w3c-markup-validator", "chromium", "fonts-dejavu-core"];

const START_PAGE: &str = "/w3c-validator/";
/// The package has several dozen.
const PAGES_MIN: usize = 20;

/// What a client adds to every target.
const QUERIES: [&str; 2] = ["", "?debug"];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let included = free_port()?;
    let marks = [("@INCLUDED_PORT@", included.port().to_string())];
    let mut apache = Apache::start_with(&stage.data.join("apache.conf"), stage.work, &marks)?;
    let site = format!(
        "[origins.validator]\nservers = \"http://{}\"\n\n\
         [[site]]\norigin = \"validator\"\nassemble = \"ssi\"\nttl = \"1d\"\n",
        apache.address
    );
    let mut larder = stage.larder(&site)?;
    let pages = pages::with_directives()?;
    ensure!(pages.len() >= PAGES_MIN, "only {} pages with SSI", pages.len());

    // As browsers ask. Apache compresses its files then, and nobody can put compressed ones together.
    let through = Client { compressed: true, ..larder.client() };
    let file = Client { compressed: true, ..larder.client_of(apache.address) }.get(START_PAGE)?;
    ensure!(file.content_encoding == "gzip", "Apache does not compress its files");
    let by_apache = larder.client_of(included);
    let mut differences = Differences::read(&stage.data.join("differences.toml"))?;
    let mut rounds = Vec::new();
    for query in QUERIES {
        let targets: Vec<String> = pages.iter().map(|page| format!("{page}{query}")).collect();
        let own = fetch_all(&by_apache, &targets)?;
        are_put_together(&targets, &own)?;
        rounds.push(Pages { query, targets, own });
    }
    println!("| round | pages | equal | hits | requests to Apache |");
    println!("|---|---|---|---|---|");
    let mut failed = Vec::new();
    for name in ["first", "second"] {
        for pages in &rounds {
            let before = larder.settled(&|| apache.asked(None))?;
            let answers = fetch_all(&through, &pages.targets)?;
            let asked = larder.settled(&|| apache.asked(None))? - before;
            let round = Round::compare(name, pages, &answers, &mut differences);
            round.row(&asked.to_string());
            failed.extend(round.differing.iter().cloned());
            if name == "second" {
                ensure!(round.hits == answers.len(), "{} of {} pages were hits", round.hits, answers.len());
                ensure!(asked == 0, "stored pages caused {asked} requests");
            }
        }
    }
    let picture = stage.data.join("screenshot.png");
    browser::draw(&format!("http://{}{START_PAGE}", larder.public), &picture, stage.work)?;

    apache.still_runs()?;
    larder.still_runs()?;
    drop(apache);
    let mut equal = Vec::new();
    let mut stopped = 0;
    for pages in &rounds {
        let answers = fetch_all(&through, &pages.targets)?;
        let round = Round::compare("Apache stopped", pages, &answers, &mut differences);
        round.row("-");
        failed.extend(round.differing.iter().cloned());
        equal.push(round.equal());
        stopped += round.equal();
    }
    differences.print();
    for difference in &failed {
        println!("differs: {difference}");
    }
    ensure!(failed.is_empty(), "{} answers differ from mod_include's", failed.len());
    differences.are_all_needed()?;
    tells(&larder)?;
    larder.still_runs()?;
    let (plain, debug) = (equal.first().context("no round")?, equal.last().context("no round")?);
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!(
        "{plain} pages equal, {debug} of them also with ?debug, {stopped} of {} with Apache stopped; \
         apache2 {}, w3c-markup-validator {}",
        plain + debug,
        version("apache2-bin"),
        version("w3c-markup-validator")
    ))
}

fn fetch_all(client: &Client, targets: &[String]) -> Result<Vec<Answer>> {
    let requests: Vec<_> = targets.iter().map(|target| (target.as_str(), None)).collect();
    client.in_turn(&requests)
}

/// mod_include has to be at work, or nothing would be compared.
fn are_put_together(targets: &[String], own: &[Answer]) -> Result<()> {
    for (target, own) in targets.iter().zip(own) {
        ensure!(own.status == 200, "{target}: Apache answers {}", own.status);
        ensure!(!own.text().contains("<!--#"), "{target}: mod_include left a directive");
    }
    Ok(())
}

/// larder has made pages of templates, and no include has failed.
fn tells(larder: &Larder) -> Result<()> {
    let pages = larder.sum("larder_pages_total")?;
    let failures = larder.sum("larder_fragment_failures_total")?;
    let problems = larder.sum("larder_template_problems_total")?;
    println!(
        "larder put {pages} pages together; {failures} includes failed, {problems} problems in templates"
    );
    ensure!(pages > 0, "larder counts no page");
    ensure!(failures == 0, "{failures} includes failed");
    Ok(())
}

/// Targets, and what mod_include makes of them.
struct Pages {
    query: &'static str,
    targets: Vec<String>,
    own: Vec<Answer>,
}

/// Every target once, through larder.
struct Round {
    name: String,
    pages: usize,
    hits: usize,
    differing: Vec<String>,
}

impl Round {
    fn compare(name: &str, pages: &Pages, answers: &[Answer], differences: &mut Differences) -> Self {
        let name = format!("{name}{}{}", if pages.query.is_empty() { "" } else { ", " }, pages.query);
        let mut differing = Vec::new();
        for (target, (own, answer)) in pages.targets.iter().zip(pages.own.iter().zip(answers)) {
            let expected = differences.applied(target, own);
            if let Some(difference) = expected.difference(answer, differences::MADE_ANEW) {
                differing.push(format!("{name}: {target} ({}): {difference}", answer.cache_status));
            }
        }
        let hits = answers.iter().filter(|answer| answer.is_hit()).count();
        Self { name, pages: answers.len(), hits, differing }
    }

    fn equal(&self) -> usize {
        self.pages - self.differing.len()
    }

    fn row(&self, asked: &str) {
        println!("| {} | {} | {} | {} | {asked} |", self.name, self.pages, self.equal(), self.hits);
    }
}
