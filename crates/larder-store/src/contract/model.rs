//! Random operations, restarts and crashes against a plain map.
//!
//! The map knows for each page which versions may be found: the newest that was stored, until it is taken out. After a crash
//! that may also be one of those before it, of which it never was written down that they are gone; never one from before an
//! invalidation. The disks of a mirror may then have different ones of these, until the next is stored. Finding nothing is always right, since disks are small here and give up their oldest segments all the time;
//! so the finds are counted. The seed is printed; LARDER_SEED repeats it, LARDER_SEEDS says how many there are.

use std::time::{Duration, Instant, SystemTime};

use larder_disk::Layout;

use crate::contract::fixture::{Fixture, Kind, Page, Sizes, key};

const PATHS: u64 = 30;
const STEPS: u64 = 400;
/// For all seeds of a layout together.
const TIME_MAX: Duration = Duration::from_secs(5);
const FLAVOURS: [Option<&str>; 2] = [Some("plain"), Some("sweet")];
const SIZES: Sizes = Sizes { memory: 3 << 20, disk: 16 << 20, max_object: 4 << 20 };

/// Random numbers that a seed brings back.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }
}

/// What may be found of one page.
#[derive(Clone, Debug, Default)]
struct Allowed {
    /// By a look at this moment.
    now: Vec<Page>,
    /// After a crash at this moment.
    after_crash: Vec<Page>,
}

impl Allowed {
    fn stored(&mut self, page: Page) {
        self.now = vec![page.clone()];
        self.after_crash.push(page);
    }

    fn gone(&mut self) {
        *self = Self::default();
    }

    fn settled(&mut self) {
        self.after_crash.clone_from(&self.now);
    }

    fn crashed(&mut self) {
        self.now.clone_from(&self.after_crash);
    }

    /// It was found to be this one.
    fn found(&mut self, page: Page) {
        self.now = vec![page];
    }
}

struct Model {
    fixture: Fixture,
    dice: Dice,
    told: String,
    pages: Vec<[Allowed; 2]>,
    version: u64,
    number: u64,
    found: u64,
    looked: u64,
}

impl Model {
    fn new(layout: Layout, seed: u64) -> Self {
        let count = if layout == Layout::Single { 1 } else { 2 };
        Self {
            fixture: Fixture::new(Kind::Disks(layout, count), SIZES),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            told: format!("{layout:?}, LARDER_SEED={seed}"),
            pages: (0..PATHS).map(|_| <[Allowed; 2]>::default()).collect(),
            version: 0,
            number: 0,
            found: 0,
            looked: 0,
        }
    }

    fn all(&mut self, change: impl FnMut(&mut Allowed)) {
        self.pages.iter_mut().flatten().for_each(change);
    }

    async fn step(&mut self) {
        // A few of them more often.
        let among = self.dice.below(PATHS) + 1;
        let (path, flavour) = (self.dice.below(among) as usize, self.dice.below(2) as usize);
        match self.dice.below(1000) {
            0..400 => self.put(path, flavour).await,
            400..800 => {
                self.look(path, flavour).await;
            }
            800..860 => self.confirm(path, flavour).await,
            860..920 => self.invalidate(path),
            920..940 => self.remove(path, flavour).await,
            940..970 => self.fixture.empty_memory(),
            970..980 => {
                self.fixture.settle();
                self.all(Allowed::settled);
            }
            980..990 => {
                self.fixture.restart();
                self.all(Allowed::settled);
            }
            _ => {
                self.fixture.crash();
                self.all(Allowed::crashed);
            }
        }
    }

    async fn put(&mut self, path: usize, flavour: usize) {
        self.version += 1;
        let length = match self.dice.below(10) {
            0 => 262_100 + self.dice.below(90),
            1 | 2 => 300_000 + self.dice.below(1_500_000),
            _ => self.dice.below(40_000),
        };
        let page = Page {
            flavour: FLAVOURS[flavour],
            is_declared: self.dice.below(3) > 0,
            ..Page::new(&format!("/{path}"), self.version, length as usize)
        };
        if self.fixture.put(&page, self.number).await {
            self.pages[path][flavour].stored(page);
        }
    }

    /// What is found now is one of what may be, byte for byte.
    async fn look(&mut self, path: usize, flavour: usize) -> Option<crate::contract::fixture::Found> {
        let allowed = &mut self.pages[path][flavour];
        self.looked += 1;
        let found = self.fixture.find(&key(&format!("/{path}")), FLAVOURS[flavour]).await?;
        let (version, told) = (found.version, &self.told);
        let is_it = |page: &&Page| page.version.0 == version;
        let page = allowed.now.iter().find(is_it).cloned();
        let page = page.unwrap_or_else(|| {
            panic!("{told}: /{path} {flavour} has version {version}, not one of {:?}", allowed.now)
        });
        // What is found while its segment goes may be cut; a byte that comes is right.
        if let Some(body) = &found.body {
            assert!(*body == page.body(), "{told}: another body of {page:?}");
            self.found += 1;
        }
        allowed.found(page);
        Some(found)
    }

    async fn confirm(&mut self, path: usize, flavour: usize) {
        let Some(found) = self.look(path, flavour).await else { return };
        let is_it = |page: &&Page| page.version.0 == found.version;
        let Some(old) = self.pages[path][flavour].now.iter().find(is_it).cloned() else { return };
        self.version += 1;
        let page = Page { version: (self.version, old.version.1), ..old };
        if self.fixture.confirm(&found, &page, self.number) {
            self.pages[path][flavour].stored(page);
        }
    }

    fn invalidate(&mut self, path: usize) {
        self.number += 1;
        self.fixture.store.invalidate(&key(&format!("/{path}")), self.number);
        self.pages[path].iter_mut().for_each(Allowed::gone);
    }

    async fn remove(&mut self, path: usize, flavour: usize) {
        let Some(found) = self.look(path, flavour).await else { return };
        self.fixture.store.remove(&key(&format!("/{path}")), &found.stored);
        self.pages[path][flavour].gone();
    }

    async fn run(mut self) -> (u64, u64) {
        for _ in 0..STEPS {
            self.step().await;
            if self.dice.below(20) == 0 {
                self.fixture.check_caps();
            }
        }
        for path in 0..PATHS as usize {
            for flavour in 0..FLAVOURS.len() {
                self.look(path, flavour).await;
            }
        }
        (self.found, self.looked)
    }
}

fn check(layout: Layout) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first =
        number("LARDER_SEED").unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64);
    let (seeds, began) = (number("LARDER_SEEDS").unwrap_or(12), Instant::now());
    println!("{layout:?}: LARDER_SEED={first}, {seeds} from there on");
    let (mut found, mut looked) = (0, 0);
    for seed in first..first.saturating_add(seeds) {
        if began.elapsed() > TIME_MAX && number("LARDER_SEEDS").is_none() {
            break;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (one, of) = runtime.block_on(Model::new(layout, seed).run());
        (found, looked) = (found + one, looked + of);
    }
    println!("{layout:?}: {found} found of {looked} looked for");
    assert!(found * 4 > looked, "LARDER_SEED={first}: {found} found of {looked} prove little");
}

#[test]
fn a_single_disk_is_a_map_that_forgets() {
    check(Layout::Single);
}

#[test]
fn mirrored_disks_are_a_map_that_forgets() {
    check(Layout::Mirror);
}

#[test]
fn striped_disks_are_a_map_that_forgets() {
    check(Layout::Stripe);
}

#[test]
fn hashed_disks_are_a_map_that_forgets() {
    check(Layout::Hash);
}
