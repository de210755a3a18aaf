//! Symfony from Debian: pages with `render_esi` and `render_ssi`, put together by larder, and by Symfony's own HttpCache for comparison.
//!
//! In: the stage, whose folder has a small shop. Out: what each of the two caches makes of the same pages, for three visitors in
//! turns, and how long page and list live in each. Then a crowd of requests comes, in which no visitor may see another's greeting.
//! larder's configuration names the origin and nothing else. The run fails where a page differs, where a list or page
//! lives longer or shorter than the shop says, and where a greeting is anybody else's. Settings that give greetings away
//! have to be found by the same check. See tests/realapp/symfony/README.md.

mod crowd;
mod lifetimes;
mod shop;

use anyhow::{Context, Result, ensure};

use super::fetch::{Answer, Client};
use super::random::Random;
use super::stage::{CARELESS, Larder, Stage};
use crate::{browser, packages};
use shop::{MADE_ANEW, PAGES, Shop, VISITORS};

pub(super) const PACKAGES: &[&str] = &[
    "libapache2-mod-php",
    "php-symfony-framework-bundle",
    "php-symfony-twig-bundle",
    "media-types",
    "chromium",
    "fonts-dejavu-core",
];

/// Rounds of all visitors over all pages.
const TURNS: usize = 3;
const REQUESTS: usize = 10_000;
/// Settings that give greetings away are found in far fewer.
const CARELESS_REQUESTS: usize = 300;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    let mut shop = Shop::start(stage)?;
    let mut larder = stage.larder(&shop.config())?;
    let (through, by_symfony) = (larder.client(), larder.client_of(shop.cached));

    announced(&shop, &larder)?;
    let compared = in_turns(&through, &by_symfony)?;
    said(&through, &by_symfony)?;
    lifetimes::check(&through, &by_symfony)?;
    crowd::count(&shop, &larder, REQUESTS, &mut random)?;
    larder.still_runs()?;

    let careless = stage.larder(&format!("{}{CARELESS}", shop.config()))?;
    let found = crowd::run(&careless.client(), CARELESS_REQUESTS, &mut random).err();
    let found = found.context("with settings that give greetings away nothing was found")?;
    println!("with settings that give greetings away, as it has to be: {found:#}");
    drop(careless);

    let picture = stage.data.join("screenshot.png");
    browser::draw(&format!("http://{}/esi", larder.public), &picture, stage.work)?;
    shop.still_runs()?;
    drop(shop);
    without_shop(&through)?;
    larder.still_runs()?;
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!(
        "{compared} answers as HttpCache's, {REQUESTS} requests by {} visitors without another's greeting; \
         php-symfony-framework-bundle {}, libapache2-mod-php {}",
        VISITORS.len(),
        version("php-symfony-framework-bundle"),
        version("libapache2-mod-php")
    ))
}

/// What Symfony writes for a proxy that announces itself, and what it does without.
fn announced(shop: &Shop, larder: &Larder) -> Result<()> {
    let own = larder.client_of(shop.address());
    for (page, directive) in [("/esi", "<esi:include "), ("/ssi", "<!--#include ")] {
        let alone = own.get(page)?.text();
        ensure!(!alone.contains(directive) && alone.contains("data-visitor"), "{page}: {alone}");
        let asked = own.ask_with(page, "Surrogate-Capability: any=\"ESI/1.0 SSI/1.0\"")?;
        let text = asked.text();
        let said = asked.field("surrogate-control").unwrap_or("nothing").to_owned();
        println!("{page}: Surrogate-Control: {said}; Cache-Control: {}", field(&asked, "cache-control"));
        for line in text.lines().filter(|line| line.contains(directive)) {
            println!("    {line}");
        }
        ensure!(text.contains(directive) && text.contains("_hash="), "{page}: no signed address: {text}");
    }
    Ok(())
}

/// Every visitor asks for every page, of both caches, in turns. Returns how many answers were compared.
fn in_turns(through: &Client, by_symfony: &Client) -> Result<usize> {
    let mut compared = 0;
    for _ in 0..TURNS {
        for page in PAGES {
            for visitor in VISITORS {
                let by_symfony = visitor.ask(by_symfony, page)?;
                let through = visitor.ask(through, page)?;
                visitor.is_greeted(page, &by_symfony).context("by HttpCache")?;
                visitor.is_greeted(page, &through)?;
                if let Some(difference) = by_symfony.difference(&through, MADE_ANEW) {
                    anyhow::bail!("{page} for {}: {difference}", visitor.name());
                }
                compared += 1;
            }
        }
    }
    println!("\n{compared} pages are the same from larder and from HttpCache, times aside");
    Ok(compared)
}

/// What each says to caches behind it. A page with a greeting is nobody else's.
fn said(through: &Client, by_symfony: &Client) -> Result<()> {
    println!(
        "\n| page | Cache-Control of larder | Age | of HttpCache | Age | Cache-Status | X-Symfony-Cache |"
    );
    println!("|---|---|---|---|---|---|---|");
    for page in PAGES {
        let own = VISITORS[0].ask(by_symfony, page)?;
        let answer = VISITORS[0].ask(through, page)?;
        println!(
            "| {page} | {} | {} | {} | {} | {} | {} |",
            field(&answer, "cache-control"),
            field(&answer, "age"),
            field(&own, "cache-control"),
            field(&own, "age"),
            answer.cache_status,
            field(&own, "x-symfony-cache")
        );
        let said = field(&answer, "cache-control");
        ensure!(answer.field("surrogate-control").is_none(), "{page}: Surrogate-Control goes on");
        ensure!(answer.field("last-modified").is_none(), "{page}: the template's Last-Modified goes on");
        if shop::has_greeting(page) {
            ensure!(said.contains("private"), "{page} may be stored for others: {said}");
        } else {
            // The list ends first.
            ensure!(said.contains("s-maxage=10") && !said.contains("private"), "{page}: {said}");
        }
    }
    Ok(())
}

/// The shop is gone. Page and list go on; the greeting is missing in the way of each language.
fn without_shop(through: &Client) -> Result<()> {
    for page in PAGES {
        let answer = VISITORS[0].ask(through, page)?;
        let text = answer.text();
        println!("Apache stopped: {page}: {} {}", answer.status, answer.cache_status);
        ensure!(answer.status == 200, "{page}: {}", answer.status);
        ensure!(text.contains("data-list") && text.contains("</html>"), "{page}: the list is gone: {text}");
        ensure!(!text.contains("data-visitor"), "{page}: a greeting was kept: {text}");
        let told = text.contains("an error occurred while processing the directive");
        ensure!(told == (page == "/ssi"), "{page}: {text}");
    }
    Ok(())
}

fn field(answer: &Answer, name: &str) -> String {
    answer.field(name).unwrap_or("–").to_owned()
}
