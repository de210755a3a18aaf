//! What hits pay while something else is purged all the time.
//!
//! In: one hot key, and ten thousand, of objects with twenty tags; larder, Varnish with xkey and nginx, each alone and with
//! [`RATE`] purges a second beside the load, none of which takes anything that is stored. Out: the figures of the runner, and how long
//! those purges waited. With one key, few hits are the first after a purge; with ten thousand nearly all are.

use std::sync::Arc;

use anyhow::{Result, ensure};
use parking_lot::Mutex;

use super::ask::{Purge, Steady};
use super::{LARDER, LARDER_PURGED, NGINX, NGINX_PURGED, VARNISH, VARNISH_PURGED};
use crate::measure::contender::larder::{self, AccessLog};
use crate::measure::contender::{Contender, Kit, Setup, floor, nginx, varnish};
use crate::measure::drive::Load;
use crate::measure::load::quantile;
use crate::measure::outcome::Outcome;
use crate::measure::runner::{Behind, Pace, Row, Scenario, run as measure};

/// Purges per second.
pub(super) const RATE: u32 = 1000;
/// Of those that are due in the rounds, larder has to have answered so many. A peer that cannot keep the rate stands with what it answered.
const ANSWERED_MIN: f64 = 0.9;
const TAGS: usize = 20;
const BODY: [u8; 134] = [b'x'; 134];
const KEYS: usize = 10_000;
pub(super) const ONE_KEY: &str = "134 B, one key";
pub(super) const MANY_KEYS: &str = "134 B, 10 000 keys";

/// The purges beside a load.
pub(super) struct Beside {
    pub(super) scenario: &'static str,
    pub(super) server: &'static str,
    pub(super) purges: usize,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

type AllBeside = Arc<Mutex<Vec<Beside>>>;

/// Measures both scenarios.
pub(super) fn run(kit: &Kit) -> Result<(Outcome, Vec<Beside>)> {
    let beside = AllBeside::default();
    let scenario = |name: &'static str, target: &str| Scenario {
        behind: Behind::Fixed(answer()),
        ..Scenario::hit(name, target, BODY.to_vec(), rows(kit, name, &beside))
    };
    let many = Scenario {
        prime: Some(format!("/key/[0-{}]/134", KEYS - 1)),
        load: Load::Wrk { connections: 64, script: Some("zipf.lua") },
        ..scenario(MANY_KEYS, "/key/0/134")
    };
    let outcome = measure(kit, &[scenario(ONE_KEY, "/page/134"), many], Pace::USUAL)?;
    let beside = std::mem::take(&mut *beside.lock());
    Ok((outcome, beside))
}

/// What the origin answers, with its tags.
pub(super) fn answer() -> Vec<u8> {
    let tags: Vec<String> = (0..TAGS).map(|number| format!("product-{number:06}")).collect();
    let fields = [
        "Content-Type: text/html".to_owned(),
        "Cache-Control: public, max-age=100000000".to_owned(),
        format!("xkey: {}", tags.join(" ")),
    ];
    floor::answer("200 OK", &fields, &BODY)
}

fn rows<'a>(kit: &'a Kit, scenario: &'static str, all: &AllBeside) -> Vec<Row<'a>> {
    let larder = move |setup: &Setup<'_>| larder::full(kit, setup, LARDER, AccessLog::Off);
    let varnish = |setup: &Setup<'_>| varnish::purging(setup, VARNISH);
    let nginx = |setup: &Setup<'_>| nginx::purging(setup, NGINX);
    let other_tag = |number| Purge::hard(format!("other-{number}"));
    let other_url = |number| Purge::Url(format!("/other/{number}"));
    vec![
        Row::new(LARDER, larder),
        purged(LARDER_PURGED, scenario, all, other_tag, larder),
        Row::new(VARNISH, varnish),
        purged(VARNISH_PURGED, scenario, all, other_tag, varnish),
        Row::new(NGINX, nginx),
        purged(NGINX_PURGED, scenario, all, other_url, nginx),
    ]
}

/// A row with purges beside its load.
fn purged<'a>(
    name: &'static str,
    scenario: &'static str,
    all: &AllBeside,
    purge: fn(u64) -> Purge,
    start: impl Fn(&Setup<'_>) -> Result<Contender> + 'a,
) -> Row<'a> {
    let all = Arc::clone(all);
    Row::new(name, move |setup| {
        let contender = start(setup)?;
        let steady = Steady::start(contender.address, RATE, purge)?;
        let (seen, all) = (Arc::clone(&steady.seen), Arc::clone(&all));
        let contender = contender.with_beside(steady).with_last_check(move |_| {
            let waits = seen.waits()?;
            let due = f64::from(RATE) * Pace::USUAL.run.as_secs_f64() * Pace::USUAL.rounds as f64;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let share = waits.len() as f64 / due;
            let is_peer = name != LARDER_PURGED;
            ensure!(is_peer || share >= ANSWERED_MIN, "only {} purges in the rounds", waits.len());
            let us = |share| quantile(&waits, share).as_secs_f64() * 1e6;
            all.lock().push(Beside {
                scenario,
                server: name,
                purges: waits.len(),
                p50_us: us(0.5),
                p99_us: us(0.99),
            });
            Ok(())
        });
        Ok(contender)
    })
}
