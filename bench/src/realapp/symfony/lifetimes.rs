//! How long the page and the list in it live, in larder and in Symfony's HttpCache, by the moments that the shop writes into them.
//!
//! In: a client of each. Out: a row for each page and cache. A list has to be made anew every ten seconds, and its page must not be.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::fetch::Client;
use super::shop::{PAGES, VISITORS, values};

/// What the shop says, in seconds. Ages are whole seconds, and so one may be missing; who asks late finds a list late.
const LIST_SECONDS: std::ops::RangeInclusive<f64> = 9.0..=12.0;
/// Two lists live so long at most.
const WATCH_MAX: Duration = Duration::from_secs(40);
/// Lists of each page that are watched: between the first and the last are two whole lifetimes.
const LISTS: usize = 3;

struct Watched<'a> {
    cache: &'static str,
    client: &'a Client,
    page: &'static str,
    pages: Vec<f64>,
    lists: Vec<f64>,
}

/// Watches every page in both caches at once.
///
/// # Errors
/// A lifetime is another than the shop says.
pub(super) fn check(through: &Client, by_symfony: &Client) -> Result<()> {
    let caches = [("larder", through), ("HttpCache", by_symfony)];
    let mut watched: Vec<Watched<'_>> = caches
        .into_iter()
        .flat_map(|(cache, client)| {
            PAGES.map(|page| Watched { cache, client, page, pages: Vec::new(), lists: Vec::new() })
        })
        .collect();
    let deadline = Instant::now() + WATCH_MAX;
    while watched.iter().any(|one| one.lists.len() < LISTS) {
        ensure!(Instant::now() < deadline, "a list lives on");
        for one in &mut watched {
            one.look()?;
        }
        harness::children::pause();
    }
    println!("\n| cache | page | pages made | lists made | between them |");
    println!("|---|---|---|---|---|");
    for one in &watched {
        one.judge()?;
    }
    println!();
    Ok(())
}

impl Watched<'_> {
    fn look(&mut self) -> Result<()> {
        let text = VISITORS[0].ask(self.client, self.page)?.text();
        for (start, made) in [("data-page=\"", &mut self.pages), ("data-list=\"", &mut self.lists)] {
            let value = values(&text, start).next().with_context(|| format!("no {start} in {text}"))?;
            let moment: f64 = value.parse().with_context(|| value.to_owned())?;
            if made.last() != Some(&moment) {
                made.push(moment);
            }
        }
        Ok(())
    }

    fn judge(&self) -> Result<()> {
        let gaps: Vec<f64> = self.lists.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let told: Vec<String> = gaps.iter().map(|gap| format!("{gap:.1} s")).collect();
        let Self { cache, page, pages, lists, .. } = self;
        println!("| {cache} | {page} | {} | {} | {} |", pages.len(), lists.len(), told.join(", "));
        ensure!(pages.len() == 1, "{cache}: {page} was made {} times", pages.len());
        for gap in gaps {
            ensure!(LIST_SECONDS.contains(&gap), "{cache}: a list of {page} lived for {gap:.1} s");
        }
        Ok(())
    }
}
