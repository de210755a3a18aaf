//! What the origin makes for one client reaches no other, unless the response says in its own words that it is for all.
//!
//! Random sequences of clients with and without cookies and credentials, of codings, ranges, conditions and HEADs, one by
//! one and many at once, while the clock moves and larder is started anew on what it has kept. Each request has a tag of
//! its own, which the origin puts into all that it makes for it: cookies, other fields, the body. So each answer shows for
//! whom each part of it was made, and [`mod@origin`] says, from the origin's words alone, what may be seen by whom.
//! `LARDER_SEED` repeats a run, `LARDER_SEEDS` says how many there are from there on.

mod origin;
mod run;

use std::time::{Duration, Instant, SystemTime};

use run::Run;

/// Runs without `LARDER_SEEDS`: the most, as far as [`TIME_MAX`] allows, and the fewest, however busy the machine is.
const SEEDS: u64 = 12;
const SEEDS_MIN: u64 = 4;
const TIME_MAX: Duration = Duration::from_secs(4);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// How often what is to be proved was put to the test.
#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    hits: u64,
    collapsed: u64,
    confirmed: u64,
    stale: u64,
    /// Answers with something that was made for somebody else.
    shared: u64,
    /// Answers with a cookie of their own.
    own_cookies: u64,
    /// Answers in a coding.
    coded: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_made_for_one_client_reaches_no_other_unless_its_response_says_so() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let first = number("LARDER_SEED").unwrap_or_else(now);
    let (seeds, began) = (number("LARDER_SEEDS"), Instant::now());
    println!("LARDER_SEED={first}, {} from there on", seeds.unwrap_or(SEEDS));
    let mut all = Seen::default();
    for seed in first..first + seeds.unwrap_or(SEEDS) {
        if began.elapsed() > TIME_MAX && seeds.is_none() && seed >= first + SEEDS_MIN {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        let seen = Run::new(seed, folder.path()).await.run().await;
        all = Seen {
            answers: all.answers + seen.answers,
            hits: all.hits + seen.hits,
            collapsed: all.collapsed + seen.collapsed,
            confirmed: all.confirmed + seen.confirmed,
            stale: all.stale + seen.stale,
            shared: all.shared + seen.shared,
            own_cookies: all.own_cookies + seen.own_cookies,
            coded: all.coded + seen.coded,
        };
    }
    println!("{all:?}");
    let least = [all.hits, all.collapsed, all.confirmed, all.stale, all.shared, all.own_cookies, all.coded];
    let is_enough = least.iter().all(|count| *count > 0);
    assert!(is_enough, "LARDER_SEED={first}: {all:?} proves little");
}
