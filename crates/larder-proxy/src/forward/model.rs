//! Random histories of requests, fetches that overlap them, 304s, parts, refreshes behind, purges of all kinds, unsafe requests,
//! restarts and crashes, against a plain map.
//!
//! Whatever happens between the moment at which a fetch begins and that at which its answer comes, nothing that was purged is used or
//! validated, and nothing goes that no purge names. Look-ups, flights, fetches and purges are the real ones; answers of the origin
//! are made here, so no socket is needed and every order of events can be had. The seed is printed; `LARDER_SEED` repeats it,
//! `LARDER_SEEDS` says how many there are.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

mod map;
mod origin;
mod templates;
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt as _;
use http::header::RANGE;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::ExchangeTimes;
use larder_http::message::RequestHead;
use larder_store::{CacheKey, StoredResponse};

use super::{CONDITIONS, Candidates, FetchTask, Taken, receive, request, take};
use crate::collapse::{FlightGuard, FlightOutcome, FlightRequest, Follower, Role, SharedResponse};
use crate::fetch;
use crate::invalidation::Judge;
use crate::key;
use crate::lookup::{Lookup, LookupResult, Miss};
use map::{Found, HOSTS, Map, NAMES, Names, PREFIXES, Purge, TARGETS, TYPES, Url, Way, What};
use origin::{WORD_BYTES, WORDS};
use world::{Behind, World};

const STEPS: u64 = 250;
/// For all seeds of a kind of store together.
const TIME_MAX: Duration = Duration::from_secs(4);
/// The same until each of the things that are to be seen was seen once.
const PROOF_TIME_MAX: Duration = Duration::from_secs(30);
/// Fetches at once.
const FLYING_MAX: usize = 5;
/// Random numbers that a seed brings back.
struct Dice(u64);

impl Dice {
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

/// A fetch whose answer has not come.
struct Flying {
    task: FetchTask,
    guard: FlightGuard,
    _leader: Option<Follower>,
    url: Url,
    begun: u64,
}

/// A request that waits for the fetch of another.
struct Waiting {
    follower: Follower,
    key: CacheKey,
    url: Url,
    arrived: u64,
    /// The last invalidation then.
    number: u64,
}

/// How often what is to be proved was put to the test.
#[derive(Debug, Default)]
struct Seen {
    used: u64,
    behind: u64,
    validated: u64,
    confirmed: u64,
    parts: u64,
    completed: u64,
    followed: u64,
    purged: u64,
    left: u64,
}

impl Seen {
    /// Whether each of them was put to the test. No store of plain files has parts.
    fn proves(&self, behind: Behind) -> bool {
        let Self { used, behind: refreshed, validated, confirmed, parts, completed, followed, purged, left } =
            *self;
        let has_parts = behind == Behind::Files || parts * completed > 0;
        has_parts && ![used, refreshed, validated, confirmed, followed, purged, left].contains(&0)
    }
}

struct Model {
    told: String,
    /// What has happened, for who has to understand it.
    happened: Vec<String>,
    dice: Dice,
    world: World,
    map: Map,
    flying: Vec<Flying>,
    waiting: Vec<Waiting>,
    seen: Seen,
}

impl Model {
    fn new(behind: Behind, seed: u64) -> Self {
        Self {
            told: format!("{behind:?}, LARDER_SEED={seed}"),
            happened: Vec::new(),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            world: World::new(behind),
            map: Map::default(),
            flying: Vec::new(),
            waiting: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn url(&mut self) -> Url {
        Url { host: self.dice.of(&HOSTS), target: self.dice.of(&TARGETS) }
    }

    async fn step(&mut self) {
        match self.dice.below(1000) {
            0..480 => {
                let url = self.url();
                self.ask(url).await;
            }
            480..780 => self.land().await,
            780..880 => self.purge().await,
            880..900 => {
                let url = self.url();
                self.world.post(url).await;
                self.map.posted(url);
                self.happened.push(format!("{}: POST {url:?}", self.map.now()));
            }
            900..970 => {
                let seconds = self.dice.below(12);
                self.world.clock.advance(Duration::from_secs(seconds));
                self.happened.push(format!("{}: {seconds} s pass", self.map.now()));
            }
            970..990 => self.world.sweep(),
            _ => {
                self.flying.clear();
                self.waiting.clear();
                let is_crash = self.dice.percent(50);
                self.happened.push(format!("{}: a restart, by a crash: {is_crash}", self.map.now()));
                match is_crash {
                    true => {
                        self.world.crash();
                        self.map.crashed();
                    }
                    false => self.world.restart(),
                }
            }
        }
    }

    /// A request looks, and uses what it finds, or goes to the origin.
    async fn ask(&mut self, url: Url) {
        let arrived = self.map.now();
        let mut head = self.world.request(url);
        if self.dice.percent(25) {
            let first = self.dice.below(WORDS / 4) * 4;
            let last = first + self.dice.below((WORDS - first) / 4 + 1) * 4;
            let range = format!("bytes={}-{}", first * WORD_BYTES, last.max(first + 4) * WORD_BYTES - 1);
            head.fields.insert(RANGE, HeaderValue::try_from(range).unwrap());
        }
        let key = key::key(&head, &self.world.settings.key, None, b"");
        let is_hot = self.dice.percent(50);
        match self.look(&head, &key, is_hot).await {
            LookupResult::Fresh { stored, .. } => {
                self.seen.used += 1;
                self.seen.parts += u64::from(stored.head.part.is_some());
                self.uses(url, &stored, Way::AsItIs, arrived).await;
            }
            LookupResult::Refresh { stored, .. } => {
                self.seen.behind += 1;
                self.uses(url, &stored, Way::BehindARefresh, arrived).await;
                let mut again = fetch::for_refresh(&head, stored.head.part.as_ref());
                stored.head.vary.ask_for_codings(&mut again.fields);
                let candidates = Candidates { selected: Some(Arc::clone(&stored)), ..Candidates::default() };
                self.board((url, arrived), (Arc::new(again), key), None, candidates);
            }
            LookupResult::Miss(miss) => {
                for stored in miss.selected.iter().chain(miss.part.iter().map(|(part, _)| part)) {
                    self.seen.validated += 1;
                    self.uses(url, stored, Way::ToValidate, arrived).await;
                }
                let others = miss.others_offered(&head.fields);
                let candidates = Candidates { selected: miss.selected.clone(), others, since: miss.since };
                let sent = Arc::new(fetch::for_flight(&head, miss.marked, false));
                self.board((url, arrived), (sent, key), Some(&miss), candidates);
            }
        }
    }

    async fn look(&self, head: &RequestHead, key: &CacheKey, is_hot: bool) -> LookupResult {
        let now = self.world.clock.now();
        let judge = Judge::new(&self.world.worker.proxy.invalidations, None);
        let hot = is_hot.then_some(&self.world.worker.hot);
        let lookup = Lookup { rule: &self.world.settings, hot, key, request: head, judge };
        match lookup.look_up(now) {
            LookupResult::Miss(miss) if miss.may_recall => {
                lookup.recall(now).await.unwrap_or(LookupResult::Miss(miss))
            }
            found => found,
        }
    }

    fn board(
        &mut self,
        (url, arrived): (Url, u64),
        (sent, key): (Arc<RequestHead>, CacheKey),
        miss: Option<&Miss>,
        offered: Candidates,
    ) {
        let proxy = &self.world.worker.proxy;
        let number = proxy.invalidations.current();
        let flight_request = FlightRequest {
            key: &key,
            rule: self.world.settings.number,
            request: &sent,
            expected: miss.and_then(Miss::expected),
            wants_content: true,
            number: &|| number,
            arrived: number,
            begun: self.world.clock.now(),
        };
        let judge = Judge::new(&proxy.invalidations, Some(number));
        let usable = |shared: &SharedResponse| judge.is_good(&key, &shared.head, shared.number);
        let role = match miss.is_some_and(|miss| miss.alone) {
            true => Role::Lead(proxy.flights.alone(flight_request)),
            false => proxy.flights.board(flight_request, usable, || true),
        };
        self.happened.push(format!(
            "{arrived}: {url:?} boards {:?}, {:?}",
            role.boarding(),
            sent.fields.get(RANGE)
        ));
        match role {
            Role::Lead(guard) => {
                let completing = miss.and_then(|miss| miss.part.clone());
                let task = FetchTask { completing, ..self.world.task(offered) };
                let leader = miss.is_some().then(|| guard.lead());
                self.flying.push(Flying { task, guard, _leader: leader, url, begun: arrived });
            }
            Role::Follow(follower) => {
                self.waiting.push(Waiting { follower, key, url, arrived, number });
            }
            Role::After(_) | Role::LookAgain | Role::Full => {}
        }
    }

    /// The answer to one of the fetches comes.
    async fn land(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let index = self.dice.below(self.flying.len() as u64) as usize;
        let Flying { task, guard, _leader, url, mut begun } = self.flying.swap_remove(index);
        let (stood, key) = (task.offered.selected.clone(), guard.key().clone());
        let mut under_way = Some((task, guard));
        for _ in 0..4 {
            let Some((task, guard)) = &mut under_way else { break };
            let sent = request(task, guard).fields;
            let conditional = CONDITIONS.iter().any(|name| sent.contains_key(name));
            self.seen.completed += u64::from(task.completing.is_some());
            let offered =
                task.offered.selected.as_ref().and_then(|stored| stored.head.validators.etag.clone());
            let answer = origin::answer(&mut self.dice, begun, &sent, offered);
            self.seen.confirmed += u64::from(answer.status == StatusCode::NOT_MODIFIED);
            let now = self.world.clock.now();
            let times = ExchangeTimes { request: now, response: now };
            let landed = self.map.now();
            self.happened
                .push(format!("{landed}: {url:?} of {begun} lands, {} {:?}", answer.status, answer.fields));
            let answer = (Box::new(answer), times);
            match take((&mut *task, &mut *guard), stood.as_ref(), conditional, answer) {
                Taken::Again => {}
                Taken::Over => under_way = None,
                Taken::Whole(answer) => {
                    receive(task, guard, answer, times).await;
                    under_way = None;
                }
                Taken::Completing(completing) => {
                    if let Some((task, guard)) = under_way.take() {
                        completing.land(task, guard, times).await;
                    }
                }
            }
            begun = self.map.now();
        }
        self.note_stored(url, &key).await;
        self.hear().await;
    }

    async fn note_stored(&mut self, url: Url, key: &CacheKey) {
        // Of plain files memory has nothing, and what is on its way to them is not found yet.
        self.world.settle();
        let filed = match self.look(&self.world.request(url), key, false).await {
            LookupResult::Fresh { stored, .. } | LookupResult::Refresh { stored, .. } => {
                Some(Arc::clone(&stored))
            }
            LookupResult::Miss(miss) => miss.selected,
        };
        for stored in self.world.stored(key).into_iter().chain(filed) {
            let body = (version(&stored), oldest(&stored).await);
            let confirmed = number_in(&stored.head.all_fields(), "x-asked");
            self.map.stored(url, body, confirmed, Names::of(&stored.head));
        }
    }

    /// Those who waited for others hear what has come, and use what is new enough for them.
    async fn hear(&mut self) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            let Some(outcome) = waiting.follower.outcome(drop).now_or_never() else {
                self.waiting.push(waiting);
                continue;
            };
            let proxy = Arc::clone(&self.world.worker.proxy);
            let judge = Judge::new(&proxy.invalidations, Some(waiting.number));
            let Waiting { url, arrived, key, .. } = waiting;
            match outcome {
                FlightOutcome::Shared { response, .. }
                    if judge.is_good(&key, &response.head, response.number) =>
                {
                    // Its body is not asked for here: it is as old as its head, or older.
                    let head = &response.head;
                    let asked = number_in(&head.all_fields(), "x-asked");
                    let found = Found {
                        version: number_in(&head.all_fields(), "etag"),
                        oldest: asked,
                        confirmed: asked,
                        names: Names::of(head),
                        has_window: false,
                    };
                    self.seen.followed += 1;
                    self.is_allowed(url, &found, Way::AsItIs, arrived);
                }
                FlightOutcome::Confirmed { stored, .. }
                    if judge.is_good(&key, &stored.head, stored.number) =>
                {
                    self.seen.followed += 1;
                    self.uses(url, &stored, Way::AsItIs, arrived).await;
                }
                _ => {}
            }
        }
    }

    async fn uses(&mut self, url: Url, stored: &Arc<StoredResponse>, way: Way, arrived: u64) {
        let fields = stored.head.all_fields();
        let window = fields.get("cache-control").and_then(|value| value.to_str().ok());
        let found = Found {
            version: version(stored),
            oldest: oldest(stored).await,
            confirmed: number_in(&fields, "x-asked"),
            names: Names::of(&stored.head),
            has_window: window.is_some_and(|said| said.contains("stale-while-revalidate")),
        };
        self.is_allowed(url, &found, way, arrived);
    }

    fn is_allowed(&self, url: Url, found: &Found, way: Way, arrived: u64) {
        if let Some(why) = self.map.objection(url, found, way, arrived) {
            let happened = self.happened.join("\n");
            panic!("{happened}\n{}, {arrived}: {url:?} is used {way:?} after {why}: {found:?}", self.told);
        }
    }

    /// A purge of any kind. Nothing goes that it does not name.
    async fn purge(&mut self) {
        let what = match self.dice.below(10) {
            0..3 => What::Url(self.url()),
            3..5 => What::Tag(self.dice.below(NAMES)),
            5 => What::Group(self.dice.of(&HOSTS), self.dice.below(NAMES)),
            6 => What::Prefix(self.dice.of(&PREFIXES)),
            7 => What::Host(self.dice.of(&HOSTS)),
            8 => What::Pattern { below: self.dice.of(&PREFIXES), content_type: self.dice.of(&TYPES) },
            _ => What::All,
        };
        let only = match &what {
            What::Url(Url { host, .. }) | What::Group(host, _) | What::Host(host) => Some(*host),
            _ => self.dice.percent(30).then(|| self.dice.of(&HOSTS)),
        };
        let purge = Purge { at: self.map.now(), what, is_soft: self.dice.percent(35), only };
        let beside = self.url();
        self.world.settle();
        let before = self.state_of(beside).await;
        self.world.purge(&purge).await;
        if let Some((_, _, names)) = &before
            && !self.names_of(beside).iter().chain([names]).any(|names| purge.names(beside, names))
        {
            let happened = self.happened.join("\n");
            let after = self.state_of(beside).await;
            assert_eq!(after, before, "{happened}\n{}: {purge:?} took {beside:?}", self.told);
            self.seen.left += 1;
        }
        self.happened.push(format!("{purge:?}"));
        self.map.purged(purge);
        self.seen.purged += 1;
    }

    /// The names of all that memory has under a URL.
    fn names_of(&self, url: Url) -> Vec<Names> {
        let stored = self.world.stored(&self.world.key(url));
        stored.iter().map(|stored| Names::of(&stored.head)).collect()
    }

    /// What a look would come to, and the names of what it finds; `None` where nothing is there.
    async fn state_of(&self, url: Url) -> Option<(&'static str, u64, Names)> {
        let head = self.world.request(url);
        let (how, stored) = match self.look(&head, &self.world.key(url), false).await {
            LookupResult::Fresh { stored, .. } => ("fresh", Arc::clone(&stored)),
            LookupResult::Refresh { stored, .. } => ("refresh", Arc::clone(&stored)),
            LookupResult::Miss(miss) => ("validate", miss.selected?),
        };
        Some((how, version(&stored), Names::of(&stored.head)))
    }
}

fn number_in(fields: &HeaderMap, name: &str) -> u64 {
    let said = fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.trim_matches('"').parse().unwrap()
}

fn version(stored: &StoredResponse) -> u64 {
    number_in(&stored.head.all_fields(), "etag")
}

/// When the oldest of its pieces was asked for.
async fn oldest(stored: &Arc<StoredResponse>) -> u64 {
    let content = world::content(stored).await;
    let words = content.chunks_exact(WORD_BYTES as usize);
    words.map(|word| u64::from_le_bytes(word.try_into().unwrap())).min().unwrap()
}

async fn histories(behind: Behind) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let (first, seeds, began) =
        (number("LARDER_SEED").unwrap_or_else(now), number("LARDER_SEEDS"), Instant::now());
    println!("{behind:?}: LARDER_SEED={first}");
    let (mut all, mut count) = (Seen::default(), 0);
    let goes_on = |all: &Seen, count: u64| match seeds {
        Some(seeds) => count < seeds,
        // On a busy machine few histories fit into the time, and the rare things may be in none of them.
        None => began.elapsed() < if all.proves(behind) { TIME_MAX } else { PROOF_TIME_MAX },
    };
    while goes_on(&all, count) {
        let mut model = Model::new(behind, first + count);
        for _ in 0..STEPS {
            if model.flying.len() > FLYING_MAX {
                model.land().await;
            }
            model.step().await;
        }
        let Seen { used, behind, validated, confirmed, parts, completed, followed, purged, left } =
            model.seen;
        all = Seen {
            used: all.used + used,
            behind: all.behind + behind,
            validated: all.validated + validated,
            confirmed: all.confirmed + confirmed,
            parts: all.parts + parts,
            completed: all.completed + completed,
            followed: all.followed + followed,
            purged: all.purged + purged,
            left: all.left + left,
        };
        count += 1;
    }
    println!("{behind:?}: {count} histories, {all:?}");
    assert!(all.proves(behind), "{all:?} proves little");
}

#[tokio::test]
async fn nothing_purged_is_used_or_validated_whatever_overlaps_with_memory() {
    histories(Behind::Nothing).await;
}

#[tokio::test]
async fn nothing_purged_is_used_or_validated_whatever_overlaps_with_a_disk() {
    histories(Behind::Disk).await;
}

#[tokio::test]
async fn nothing_purged_is_used_or_validated_whatever_overlaps_with_plain_files() {
    histories(Behind::Files).await;
}
