//! Thousands of requests of three visitors in random turns, several at once, over connections that they share.
//!
//! In: a client, and how many requests. Out: counts. The first greeting of another visitor is an error, and so is one that the shop
//! was not asked for.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::super::fetch::Client;
use super::super::random::Random;
use super::super::stage::Larder;
use super::shop::{GREETING, LIST, PAGES, Shop, VISITORS, has_greeting};

/// Requests that one curl makes.
const BATCH: usize = 250;
const AT_ONCE: usize = 4;

/// What became of them.
#[derive(Default)]
pub(super) struct Crowd {
    requests: usize,
    greetings: usize,
    /// By what `Cache-Status` says, numbers aside.
    kinds: BTreeMap<String, usize>,
}

/// Sends all of them.
///
/// # Errors
/// A page is not whole, or greets another visitor.
pub(super) fn run(client: &Client, requests: usize, random: &mut Random) -> Result<Crowd> {
    let all: Vec<(usize, usize)> =
        (0..requests).map(|_| (random.below(PAGES.len()), random.below(VISITORS.len()))).collect();
    let mut crowd = Crowd::default();
    for batches in all.chunks(BATCH * AT_ONCE) {
        let parts: Vec<Result<Crowd>> = std::thread::scope(|scope| {
            let parts: Vec<_> =
                batches.chunks(BATCH).map(|batch| scope.spawn(move || Crowd::of(client, batch))).collect();
            let joined = parts.into_iter().map(|one| one.join());
            joined.map(|part| part.unwrap_or_else(|_| bail!("a client panicked"))).collect()
        });
        for part in parts {
            crowd.add(part?);
        }
    }
    Ok(crowd)
}

impl Crowd {
    fn of(client: &Client, batch: &[(usize, usize)]) -> Result<Self> {
        let fields: Vec<Option<String>> = batch.iter().map(|(_, who)| VISITORS[*who].field()).collect();
        let requests: Vec<(&str, Option<&str>)> =
            batch.iter().zip(&fields).map(|((page, _), field)| (PAGES[*page], field.as_deref())).collect();
        let mut crowd = Self::default();
        for ((page, who), answer) in batch.iter().zip(client.in_turn(&requests)?) {
            let page = PAGES[*page];
            VISITORS[*who].is_greeted(page, &answer)?;
            crowd.requests += 1;
            crowd.greetings += usize::from(has_greeting(page));
            let parts = answer.cache_status.split("; ").filter(|part| !part.starts_with("ttl="));
            *crowd.kinds.entry(format!("{page}: {}", parts.collect::<Vec<_>>().join("; "))).or_default() += 1;
        }
        Ok(crowd)
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.greetings += other.greetings;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }
}

/// The same through `larder`, with what the shop was asked meanwhile: one greeting for each page that has one, and a list every ten
/// seconds at most.
pub(super) fn count(shop: &Shop, larder: &Larder, requests: usize, random: &mut Random) -> Result<()> {
    let asked = || -> Result<[usize; 4]> {
        let all = larder.settled(&|| shop.asked(""))?;
        Ok([all, shop.asked(GREETING)?, shop.asked(LIST)?, pages_asked(shop)?])
    };
    let (before, begun) = (asked()?, Instant::now());
    let crowd = run(&larder.client(), requests, random)?;
    let (after, took) = (asked()?, begun.elapsed().as_secs());
    let [all, greetings, lists, pages] = [0, 1, 2, 3].map(|kind| after[kind] - before[kind]);
    println!(
        "{} requests in {took} s: {} pages with a greeting, each the right one. The shop was asked {all} times: for {greetings} \
         greetings, {lists} lists, {pages} pages",
        crowd.requests, crowd.greetings
    );
    for (kind, count) in &crowd.kinds {
        println!("    {count} x {kind}");
    }
    ensure!(
        greetings == crowd.greetings,
        "{} pages were answered with {greetings} greetings",
        crowd.greetings
    );
    ensure!(all == greetings + lists + pages, "the shop was asked for something else");
    // Two lists, each every ten seconds; a page every ten minutes.
    let most = 2 * (usize::try_from(took)? / 9 + 2);
    ensure!(lists <= most, "{lists} lists in {took} s, more than {most}");
    ensure!(pages <= PAGES.len(), "pages were made {pages} times");
    let failures = larder.sum("larder_fragment_failures_total")?;
    ensure!(failures == 0, "{failures} includes failed");
    Ok(())
}

fn pages_asked(shop: &Shop) -> Result<usize> {
    PAGES.iter().try_fold(0, |sum, page| Ok(sum + shop.asked(page)?))
}
