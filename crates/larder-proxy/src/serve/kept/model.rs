//! Random histories of visitors, fetches, purges, expiry and reloads, with kept pages and without them.
//!
//! Each of two workers has a twin on the same stores and the same plan that never keeps a page. What the twin says at the same moment is
//! what look-ups alone give, and every answer from memory has to be exactly that: status, fields and content. Beside that it is noted
//! which answers of the application an acknowledged purge has named, and for whom each was made. No page has any of them that it may
//! not have, whoever gives it. Requests, look-ups, flights, purges and reloads are the real ones, and so is the socket of the
//! application. `LARDER_SEED` repeats a run, `LARDER_SEEDS` says how many histories there are.
//!
//! Age, `max-age` and `ttl` are told in whole seconds, and a page that is kept rounds what is left of one when it is made. So the clock
//! moves by whole seconds, and a history ends before a second has passed beside that.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

mod application;
mod visitors;
mod workers;

use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt as _;
use http::{HeaderValue, Method};
use larder_cache::purge::Selector;
use larder_http::message::RequestHead;

use crate::serve::Serving;
use application::{Application, NO_COOKIE, PAGES, resource, targets};
use visitors::{HOST, VISITORS, Visitor, Wish};
use workers::{Given, Workers, read};

thread_local! {
    /// Kept pages that were given on this thread. The counters of workers are sums, which cost more than the answers.
    pub(super) static GIVEN: Cell<u64> = const { Cell::new(0) };
    /// Parts of kept pages that needed no look-up.
    pub(super) static UNCHANGED: Cell<u64> = const { Cell::new(0) };
}

const STEPS: u64 = 80;
/// Requests for one page in a row.
const BURST_MAX: u64 = 30;
/// For all histories together.
const TIME_MAX: Duration = Duration::from_secs(4);
/// Histories, where those within that time prove too little.
const COUNT_MAX: u64 = 200;
/// For one of them, so that fractions of a second never make another one.
const HISTORY_MAX: Duration = Duration::from_millis(900);
const PATIENCE: Duration = Duration::from_secs(20);
const TARGETS: [&str; 5] = ["/part/plain", "/part/short", "/part/lang", "/part/own", "/part/ahead"];
/// Of a hundred answers, at least so many are kept pages; there are fewer where the machine is busy and histories are short.
const KEPT_PERCENT: u64 = 10;

/// Random numbers that a seed brings back.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How often what is to be proved was put to the test.
#[derive(Debug, Default)]
struct Counted {
    answers: u64,
    hits: u64,
    kept: u64,
    /// Kept pages with a condition, a range, or of a HEAD.
    in_part: u64,
    /// Pages whose look-ups began a refresh.
    ahead: u64,
    /// Pages with a part of their visitor's own.
    own: u64,
    purges: u64,
    reloads: u64,
}

impl Counted {
    fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.hits += other.hits;
        self.kept += other.kept;
        self.in_part += other.in_part;
        self.ahead += other.ahead;
        self.own += other.own;
        self.purges += other.purges;
        self.reloads += other.reloads;
    }
}

struct History {
    told: String,
    /// What has happened, for who has to understand it.
    happened: Vec<String>,
    began: Instant,
    dice: Dice,
    application: Application,
    workers: Workers,
    /// Below this number nothing of a target may be in any page.
    gone: HashMap<&'static str, u64>,
    /// The same of what has to be confirmed first.
    stale: HashMap<&'static str, u64>,
    /// The entity tag of each page, as somebody got it last.
    tags: HashMap<&'static str, HeaderValue>,
    plans: u64,
    counted: Counted,
}

impl History {
    fn new(seed: u64) -> Self {
        let application = Application::new(seed);
        let workers = Workers::new(application.addr());
        let into_second = workers.clock.now().wall.0 % 1000;
        workers.clock.advance(Duration::from_millis(1000 - into_second));
        Self {
            told: format!("LARDER_SEED={seed}"),
            happened: Vec::new(),
            began: Instant::now(),
            dice: Dice::new(seed),
            application,
            workers,
            gone: HashMap::new(),
            stale: HashMap::new(),
            tags: HashMap::new(),
            plans: 0,
            counted: Counted::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() > HISTORY_MAX
    }

    async fn run(mut self) -> Counted {
        for _ in 0..STEPS {
            if self.is_over() {
                break;
            }
            self.step().await;
        }
        assert!(
            self.application.complaints().is_empty(),
            "{}: {:?}",
            self.told,
            self.application.complaints()
        );
        self.counted
    }

    async fn step(&mut self) {
        match self.dice.below(100) {
            0..58 => self.burst().await,
            58..76 => {
                let seconds = if self.dice.percent(75) { self.dice.below(4) } else { self.dice.below(40) };
                self.workers.clock.advance(Duration::from_secs(seconds));
                self.happened.push(format!("{seconds} s pass"));
            }
            76..86 => self.purge().await,
            86..89 => self.post().await,
            89..92 => {
                let pair = self.dice.below(2) as usize;
                self.plans += 1;
                self.workers.reload(pair, self.plans);
                self.counted.reloads += 1;
                self.happened.push(format!("worker {pair} has plan {}", self.plans));
            }
            92..98 => self.settle().await,
            _ => self.workers.sweep(),
        }
    }

    /// Requests for one page in a row, most of them by one visitor.
    async fn burst(&mut self) {
        let (pair, target) = (self.dice.below(2) as usize, self.dice.of(&PAGES));
        let regular = self.dice.of(&VISITORS);
        for _ in 0..=self.dice.below(BURST_MAX) {
            let visitor = if self.dice.percent(88) { regular } else { self.dice.of(&VISITORS) };
            let wish = Wish::any(&mut self.dice);
            if self.is_over() {
                return;
            }
            self.ask(pair, target, visitor, wish).await;
        }
    }

    /// The worker that keeps pages is asked, and its twin, in any order and without anything between.
    async fn ask(&mut self, pair: usize, target: &'static str, visitor: Visitor, wish: Wish) {
        let none = HeaderValue::from_static("\"none\"");
        let head = visitor.asks(target, wish, self.tags.get(target).unwrap_or(&none));
        let (kept_before, flights_before) = (GIVEN.get(), self.workers.flights());
        let (pair_asked, ip) = (&self.workers.pairs[pair], visitor.ip());
        let first = self.dice.percent(50).then(|| pair_asked.looks(&head, ip));
        let flights_between = self.workers.flights();
        let kept = pair_asked.keeps(&head, ip);
        let began = self.workers.flights() - if first.is_some() { flights_between } else { flights_before };
        let looked = first.unwrap_or_else(|| pair_asked.looks(&head, ip));
        let is_kept = GIVEN.get() > kept_before;
        let asked = format!("{} {target} of worker {pair} by {visitor:?}, {wish:?}", head.method);
        // What is still open goes at once: it is nobody's.
        let looked = match looked {
            Serving::Answered(answer) => read(answer.unwrap().0).now_or_never(),
            Serving::Underway(_) => None,
        };
        let kept = match kept {
            Serving::Answered(answer) => {
                let kept = self.read(answer.unwrap().0).await;
                let has_hit = kept.is_hit() || looked.as_ref().is_some_and(Given::is_hit);
                if self.is_over() {
                    return;
                }
                if has_hit && looked.as_ref() != Some(&kept) {
                    self.fails(&format!("{asked}, kept: {is_kept}\n{kept:?}\nand look-ups give\n{looked:?}"));
                }
                kept
            }
            Serving::Underway(serving) => {
                if looked.as_ref().is_some_and(Given::is_hit) {
                    self.fails(&format!("{asked} waits, and look-ups give\n{looked:?}"));
                }
                self.application.answers_at_once(true);
                let (response, _) = tokio::time::timeout(PATIENCE, serving).await.unwrap();
                let given = self.read(response).await;
                self.application.answers_at_once(false);
                given
            }
        };
        self.counted.answers += 1;
        self.counted.hits += u64::from(kept.is_hit());
        self.counted.kept += u64::from(is_kept);
        self.counted.in_part += u64::from(is_kept && (kept.status != 200 || head.method == Method::HEAD));
        self.counted.ahead += u64::from(began > 0);
        self.judge(&asked, visitor, &kept);
        if let Some(tag) = Some(kept.field("etag")).filter(|tag| !tag.is_empty()) {
            self.tags.insert(target, HeaderValue::from_str(tag).unwrap());
        }
        let status = kept.field("cache-status");
        self.happened.push(format!("{asked}, kept: {is_kept}: {} {status}", kept.status));
    }

    /// Reads an answer, with whatever it waits for.
    async fn read(&self, response: larder_http::message::Response) -> Given {
        let mut reading = Box::pin(read(response));
        if let Some(given) = reading.as_mut().now_or_never() {
            return given;
        }
        self.application.answers_at_once(true);
        let given = tokio::time::timeout(PATIENCE, reading).await.unwrap();
        self.application.answers_at_once(false);
        given
    }

    /// Nothing is in an answer that a purge has named, or that was made for another.
    fn judge(&mut self, asked: &str, visitor: Visitor, given: &Given) {
        let cookie = visitor.cookie.unwrap_or(NO_COOKIE);
        for (target, number, made_for) in parts(&given.content) {
            let Some(resource) = resource(&target) else { continue };
            let since = |floors: &HashMap<&str, u64>| floors.get(resource.target).copied().unwrap_or(0);
            if number <= since(&self.gone) {
                self.fails(&format!("{asked}: {target} {number} was purged\n{given:?}"));
            }
            if given.is_fresh() && self.application.holds_since(number) <= since(&self.stale) {
                self.fails(&format!("{asked}: {target} {number} is used as fresh, and is not\n{given:?}"));
            }
            if resource.is_own && made_for != cookie {
                self.fails(&format!("{asked}: {target} was made for {made_for:?}\n{given:?}"));
            }
            self.counted.own += u64::from(resource.is_own);
        }
        for name in ["ada", "bob", "eve"] {
            if given.content.contains(&format!("Hello {name}")) && !cookie.contains(&format!("name={name}")) {
                self.fails(&format!("{asked}: it greets {name}\n{given:?}"));
            }
        }
    }

    fn fails(&self, what: &str) -> ! {
        panic!("{}\n{}: {what}", self.happened.join("\n"), self.told);
    }

    /// A purge of any kind.
    async fn purge(&mut self) {
        let (selector, named) = match self.dice.below(10) {
            0..5 => {
                let target =
                    if self.dice.percent(70) { self.dice.of(&TARGETS) } else { self.dice.of(&PAGES) };
                (Selector::Url(format!("http://{HOST}{target}").into()), vec![target])
            }
            5..8 => {
                let tag = self.dice.of(&["often", "parts", "pages"]);
                (Selector::Tag(tag.as_bytes().into()), targets(|resource| resource.tags.contains(&tag)))
            }
            8 => {
                let prefix = Selector::Prefix { host: None, path: "/part/".into() };
                (prefix, targets(|resource| resource.target.starts_with("/part/")))
            }
            _ => (Selector::All, targets(|_| true)),
        };
        let (is_soft, last) = (self.dice.percent(40), self.application.last());
        self.happened.push(format!("purge of {selector:?}, soft: {is_soft}, after {last}"));
        self.workers.purge(selector, is_soft).await;
        let floors = if is_soft { &mut self.stale } else { &mut self.gone };
        floors.extend(named.into_iter().map(|target| (target, last)));
        self.counted.purges += 1;
    }

    /// An unsafe request: what it names has to be confirmed.
    async fn post(&mut self) {
        let (pair, target) = (self.dice.below(2) as usize, self.dice.of(&TARGETS));
        let none = HeaderValue::from_static("\"none\"");
        let last = self.application.last();
        let head = RequestHead { method: Method::POST, ..VISITORS[0].asks(target, Wish::Nothing, &none) };
        let serving = self.workers.pairs[pair].keeps(&head, VISITORS[0].ip());
        self.application.answers_at_once(true);
        let (response, _) = tokio::time::timeout(PATIENCE, serving).await.unwrap();
        assert_eq!(self.read(response).await.content, "done", "{}", self.told);
        self.application.answers_at_once(false);
        self.stale.insert(target, last);
        self.happened.push(format!("POST {target}, after {last}"));
    }

    /// What goes on behind comes to its end, or somewhat nearer to it.
    async fn settle(&mut self) {
        let is_all = self.dice.percent(60);
        self.application.answers_at_once(is_all);
        let until = Instant::now() + PATIENCE;
        for turn in 0.. {
            if self.workers.flights() == 0 || (!is_all && turn > 200) {
                break;
            }
            assert!(Instant::now() < until, "{}: fetches do not end", self.told);
            tokio::task::yield_now().await;
        }
        self.application.answers_at_once(false);
        self.happened.push(format!("fetches end: {is_all}"));
    }
}

/// What an answer is made of: target, number, and the cookies that each was made for.
fn parts(text: &str) -> Vec<(String, u64, String)> {
    let part = |part: &str| {
        let mut words = part.split(']').next()?.split('|');
        let (target, number, cookie) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        // A range may end within it.
        part.contains(']').then(|| (target.to_owned(), number, cookie.to_owned()))
    };
    text.split('[').skip(1).filter_map(part).collect()
}

#[tokio::test]
async fn a_kept_page_is_always_what_look_ups_alone_give() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let (first, seeds, began) =
        (number("LARDER_SEED").unwrap_or_else(now), number("LARDER_SEEDS"), Instant::now());
    println!("LARDER_SEED={first}");
    let (mut all, mut count) = (Counted::default(), 0);
    // As many histories as it takes to prove something, however slow the machine is.
    let proves = |all: &Counted| {
        let least = [all.in_part, all.ahead, all.own, all.purges, all.reloads];
        least.iter().all(|count| *count > 0) && UNCHANGED.get() > 0
    };
    let goes_on = |all: &Counted, count| began.elapsed() < TIME_MAX || (count < COUNT_MAX && !proves(all));
    while seeds.map_or_else(|| goes_on(&all, count), |seeds| count < seeds) {
        all.add(&History::new(first + count).run().await);
        count += 1;
    }
    println!("{count} histories, {all:?}, {} parts needed no look-up", UNCHANGED.get());
    assert!(all.kept * 100 >= all.answers * KEPT_PERCENT, "{all:?}: few pages are kept");
    assert!(proves(&all), "{all:?} proves little");
}
