//! Of figures over time: time and readings are given.
#![allow(clippy::unwrap_used)]

use http::{Method, StatusCode};
use larder_http::fields::cache_status::RequestResult;
use proptest::prelude::*;

use larder_http::time::WallTime;

use super::kept::FIGURE_BYTES;
use super::resolution::Resolution;
use super::series::Series;
use super::*;
use crate::label::{Served, Vocabulary};
use crate::metrics::Metrics;

const DAY: Duration = Duration::from_secs(86_400);
const MIB: usize = 1024 * 1024;

/// A history and its time.
struct World {
    history: History,
    now: Now,
}

impl World {
    fn new() -> Self {
        Self::with(DAY, 16 * MIB)
    }

    /// Begun, at second 100 000 of the monotonic clock.
    fn with(history: Duration, bytes_max: usize) -> Self {
        let now = Now { wall: WallTime(1_700_000_000_000), monotonic: Duration::from_secs(100_000) };
        let mut history = History::new(history, bytes_max);
        assert_eq!(history.tick(now, |_| ()), None, "the first time is no second");
        Self { history, now }
    }

    fn after(&mut self, time: Duration, read: impl FnOnce(&mut Reading<'_>)) -> Option<Second> {
        self.now = self.now.later(time);
        self.history.tick(self.now, read)
    }

    /// So many seconds, each with so many requests.
    fn seconds(&mut self, count: u64, requests: f64) {
        for _ in 0..count {
            self.after(Duration::from_secs(1), |reading| {
                reading.more(&SeriesName::of_all("requests"), requests);
            });
        }
    }

    fn series(&self, name: &str, from: u64, to: u64, step: Option<u64>) -> Vec<Option<f64>> {
        let answer = self.history.series(&[name], Span { from, to, step }).unwrap();
        answer.values.into_iter().next().unwrap().1
    }
}

#[test]
fn a_second_has_what_came_in_it_and_one_look_a_second_is_taken() {
    let mut world = World::new();
    let requests = SeriesName::of_all("requests");
    let second = world
        .after(Duration::from_millis(1000), |reading| {
            assert_eq!(reading.total(&requests, 7), 7);
            reading.more(&requests, 3.0);
            reading.level(&SeriesName::of_all("memory"), 5.0);
            reading.level(&SeriesName::of_all("connections"), 0.0);
            reading.sparse(&SeriesName::of(&["latency", "all"], "p50"), None);
        })
        .unwrap();
    assert_eq!(second.values, [("memory".into(), 5.0), ("requests".into(), 10.0)]);
    assert_eq!(second.at, WallTime(1_700_000_001_000));
    assert_eq!(world.after(Duration::from_millis(900), |_| panic!("too early")), None);
    let second = world.after(Duration::from_millis(600), |reading| {
        assert_eq!(reading.total(&requests, 10), 3);
    });
    assert_eq!(second.unwrap().values, [("requests".into(), 3.0)]);
    let second = world.after(Duration::from_secs(1), |reading| {
        assert_eq!(reading.total(&requests, 4), 4, "it has begun anew");
    });
    assert_eq!(second.unwrap().values, [("requests".into(), 4.0)]);
}

#[test]
fn the_first_reading_only_tells_from_where_on_is_counted() {
    let mut world = World { history: History::new(DAY, MIB), now: Now { wall: WallTime(0), monotonic: DAY } };
    let name = SeriesName::of_all("requests");
    let first = world.after(Duration::ZERO, |reading| {
        assert_eq!(reading.total(&name, 1000), 0);
        reading.more(&name, 50.0);
    });
    assert_eq!(first, None);
    let second = world.after(Duration::from_secs(1), |reading| {
        assert_eq!(reading.total(&name, 1001), 1);
    });
    assert_eq!(second.unwrap().values, [("requests".into(), 1.0)]);
    assert_eq!(world.series("requests", 5, 0, None), [None, None, None, None, Some(1.0)]);
}

#[test]
fn each_resolution_has_the_mean_of_its_slots() {
    let mut world = World::new();
    for k in 0..1200 {
        world.seconds(1, f64::from(k));
    }
    let last = world.series("requests", 3, 0, None);
    assert_eq!(last, [Some(1197.0), Some(1198.0), Some(1199.0)]);
    // 1200 s end at second 101 200, which begins a slot of 10 s and has 40 s of one of 60 s.
    let by_ten = world.series("requests", 30, 0, Some(10));
    assert_eq!(by_ten, [Some(1183.5), Some(1193.5), Some(1199.0)], "the last one is not over");
    assert_eq!(
        world.series("requests", 1000, 970, None).len(),
        3,
        "the finest that reaches back so far has 10 s"
    );
    assert_eq!(
        world.series("requests", 700, 0, Some(1))[..100],
        [None; 100],
        "what is too long ago is unknown"
    );
    assert!(world.series("requests", 599, 0, Some(1)).iter().all(Option::is_some));
    let by_thirty = world.series("requests", 60, 0, Some(30));
    assert_eq!(by_thirty.len(), 2);
    assert_eq!(world.series("other", 2, 0, None), [Some(0.0); 2], "what never happened was zero");
    assert_eq!(world.series("requests", 1500, 1250, None), [None; 25], "before the start nothing is known");
    assert_eq!(world.history.means(60), [("requests", 1169.5)]);
    let (_, mean) = world.history.means(3600)[0];
    assert!((mean - 599.5).abs() < 1.0, "{mean}");
}

#[test]
fn a_short_pause_keeps_the_sum_and_a_long_one_is_a_gap() {
    let mut world = World::new();
    world.seconds(2, 1.0);
    let told = |reading: &mut Reading<'_>| reading.more(&SeriesName::of_all("requests"), 20.0);
    world.after(Duration::from_secs(4), told);
    assert_eq!(world.series("requests", 6, 0, None), [1.0, 1.0, 5.0, 5.0, 5.0, 5.0].map(Some));
    world.after(Duration::from_secs(20), told);
    let after = world.series("requests", 21, 0, None);
    assert_eq!((after[0], after[20]), (Some(5.0), Some(1.0)));
    assert_eq!(after[1..20], [None; 19]);
    // The wall clock goes back by an hour: nothing that is shown knows of it but the times of the points.
    world.now.wall = WallTime(world.now.wall.0 - 3_600_000);
    world.seconds(1, 3.0);
    let answer = world.history.series(&["requests"], Span { from: 1, to: 0, step: None }).unwrap();
    assert_eq!((answer.at, answer.values[0].1.clone()), (world.now.wall, vec![Some(3.0)]));
}

#[test]
fn a_figure_that_is_not_there_in_each_second_is_unknown_between() {
    let mut world = World::new();
    let name = SeriesName::of(&["latency", "hit"], "p50");
    for second in 0..100_u32 {
        let value = second.is_multiple_of(5).then(|| f64::from(second + 1));
        world.after(Duration::from_secs(1), |reading| reading.sparse(&name, value));
    }
    // The second 100 001 has the value 1, and so on.
    assert_eq!(world.series("latency:hit:p50", 6, 0, None), [None, Some(96.0), None, None, None, None]);
    assert_eq!(world.series("latency:hit:p50", 20, 10, Some(10)), [Some(93.5)], "(91 + 96) / 2");
}

#[test]
fn what_finds_no_room_is_counted_and_has_its_figure_of_the_moment() {
    let of_one = Series::bytes(&Resolution::all(86_400), false);
    let mut world = World::with(DAY, 3 * of_one + of_one / 2);
    for round in 0..3 {
        let second = world.after(Duration::from_secs(1), |reading| {
            for number in 0..10 {
                let word = number.to_string();
                reading.more(&SeriesName::of_all("reason").word(&word), 1.0);
            }
        });
        assert_eq!(second.unwrap().values.len(), 10, "{round}");
    }
    let remembered = world.history.remembered();
    assert_eq!((remembered.series, remembered.folded), (3, 7));
    assert!(remembered.bytes <= remembered.bytes_max + 10 * (FIGURE_BYTES + 16), "{remembered:?}");
    let kept = world.history.series(&["reason.*"], Span::default()).unwrap();
    assert_eq!(kept.values.len(), 3);
    world.history.limit(Duration::ZERO, MIB);
    let second = world.after(Duration::from_secs(1), |reading| {
        reading.more(&SeriesName::of_all("requests"), 1.0);
    });
    assert_eq!(second.unwrap().values, [("requests".into(), 1.0)]);
    assert_eq!(world.history.remembered().series, 0, "nothing is remembered where nothing is to be");
    assert_eq!(world.series("requests", 5, 0, None), [None; 5]);
}

#[test]
fn spans_beyond_the_bounds_are_refused() {
    let world = World::new();
    let refused = |from, to, step| world.history.series(&["a"], Span { from, to, step }).unwrap_err();
    assert_eq!(refused(5, 6, None), NotASpan::Reversed);
    assert_eq!(refused(86_401, 0, None), NotASpan::TooLongAgo);
    assert_eq!((refused(10, 0, Some(0)), refused(10, 0, Some(u64::MAX))), (NotASpan::Step, NotASpan::Step));
    assert_eq!(refused(86_400, 0, Some(10)), NotASpan::TooManyPoints);
    let many: Vec<String> = (0..=SERIES_MAX).map(|k| k.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(world.history.series(&many, Span::default()), Err(NotASpan::TooManyNames));
    assert!(world.history.latency("hit", Span { from: 1, to: 0, step: Some(86_400) }).is_ok());
}

#[test]
fn counters_of_workers_become_figures_that_add_up() {
    let metrics = Metrics::new(2, Vocabulary::default(), WallTime(0), "1");
    let (route, cache, origin) = (metrics.route("shop"), metrics.cache("default"), metrics.origin("app"));
    let (rule, other) = (metrics.rule("shop", "/a/*", cache), metrics.rule("shop", "(site)", cache));
    let mut counted = CountedSince::default();
    let mut world = World::new();
    world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading));
    let worker = metrics.worker(0);
    for _ in 0..4 {
        worker.request((route, rule), &Method::GET, StatusCode::OK, RequestResult::Memory);
        worker.delivered((route, rule), Served::Hit, Duration::from_millis(2), 100, true);
    }
    worker.request((route, other), &Method::GET, StatusCode::NOT_FOUND, RequestResult::Asked);
    worker.origin_answered(origin, other, Duration::from_millis(500));
    worker.delivered((route, other), Served::Forwarded, Duration::from_millis(520), 50, true);
    let second = world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading)).unwrap();
    let value = |name: &str| second.values.iter().find(|(n, _)| **n == *name).map(|(_, value)| *value);
    for (name, expected) in [
        ("requests", 5.0),
        ("status.2xx", 4.0),
        ("status.4xx", 1.0),
        ("result.memory", 4.0),
        ("result.asked", 1.0),
        ("bytes_out", 450.0),
        ("bytes_store", 400.0),
        ("bytes_origin", 50.0),
        ("origin_seconds", 0.5),
        ("rule:shop:/a/*:result.memory", 4.0),
        ("rule:shop:(site):result.asked", 1.0),
        ("rule:shop:(site):origin_seconds", 0.5),
        ("origin:app:requests", 1.0),
    ] {
        assert_eq!(value(name), Some(expected), "{name}: {:?}", second.values);
    }
    assert!(value("latency:hit:p50").is_some_and(|p50| (0.002..0.0026).contains(&p50)));
    assert!(value("memory").is_some_and(|bytes| bytes > 100_000.0));
    let heat = world.history.latency("latency:all", Span { from: 1, to: 0, step: None }).unwrap();
    assert_eq!(heat.counts[0].unwrap().iter().sum::<f64>(), 5.0);
    assert_eq!(
        world
            .history
            .latency("origin:app", Span::default())
            .unwrap()
            .counts
            .last()
            .unwrap()
            .unwrap()
            .iter()
            .sum::<f64>(),
        1.0
    );
}

#[test]
fn rules_beyond_the_busiest_share_one_name_and_nothing_is_lost() {
    let metrics = Metrics::new(1, Vocabulary::default(), WallTime(0), "1");
    let (route, cache) = (metrics.route("shop"), metrics.cache("default"));
    let mut counted = CountedSince::default();
    let mut world = World::new();
    world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading));
    for number in 0..100 {
        let rule = metrics.rule("shop", &number.to_string(), cache);
        metrics.worker(0).request((route, rule), &Method::GET, StatusCode::OK, RequestResult::Memory);
    }
    let second = world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading)).unwrap();
    let rules: Vec<_> = second
        .values
        .iter()
        .filter(|(name, _)| name.starts_with("rule:") && name.ends_with("result.memory"))
        .collect();
    assert_eq!(rules.len(), busiest::KEPT_MAX + 1);
    assert_eq!(rules.iter().map(|(_, value)| value).sum::<f32>(), 100.0);
    assert!(rules.iter().any(|(name, value)| &**name == "rule:other:other:result.memory" && *value == 36.0));
}

proptest! {
    /// Whatever the pauses between looks are, sums over a resolution are those of what came, as far as no gap is in it.
    #[test]
    fn no_resolution_loses_anything(pauses in proptest::collection::vec((100_u64..4000, 0_u32..50), 1..200)) {
        let mut world = World::new();
        let (mut total, mut seconds) = (0.0, 0);
        let begin = world.now;
        for (pause, count) in pauses {
            let mut is_told = false;
            world.after(Duration::from_millis(pause), |reading| {
                reading.more(&SeriesName::of_all("requests"), f64::from(count));
                is_told = true;
            });
            if is_told {
                total += f64::from(count);
                seconds = world.now.monotonic.as_secs() - begin.monotonic.as_secs();
            }
        }
        if seconds > 0 && seconds < 590 {
            let sum: f64 = world.series("requests", seconds, 0, Some(1)).into_iter().map(|v| v.unwrap()).sum();
            prop_assert!((sum - total).abs() <= total * 1e-5);
            let by_ten = world.history.means(600).first().map_or(0.0, |(_, mean)| *mean) * seconds as f64;
            prop_assert!((by_ten - sum).abs() < sum * 1e-3 + 1e-3, "{} {}", by_ten, sum);
        }
    }
}

#[test]
fn a_breakdown_of_what_is_counted_needs_no_samples_and_adds_up() {
    use crate::watch::breakdown::{BreakdownQuestion, Dimension};

    let metrics = Metrics::new(1, Vocabulary::default(), WallTime(0), "1");
    let (route, cache) = (metrics.route("shop"), metrics.cache("default"));
    let mut counted = CountedSince::default();
    let mut world = World::new();
    world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading));
    for (rule, result, count) in [
        ("/a:b/*", RequestResult::Memory, 6),
        ("/a:b/*", RequestResult::Asked, 2),
        ("(site)", RequestResult::Asked, 1),
    ] {
        let rule = metrics.rule("shop", rule, cache);
        for _ in 0..count {
            metrics.worker(0).request((route, rule), &Method::GET, StatusCode::OK, result);
        }
    }
    world.after(Duration::from_secs(1), |reading| {
        counted.read(&metrics, reading);
        // One that the parser refused.
        reading.more(&SeriesName::of_all("requests"), 1.0);
        reading.more(&SeriesName::of_all("result").word("refused"), 1.0);
        reading.more(&SeriesName::of_all("reason").word("uri-miss"), 3.0);
    });
    let ask = |by: &[Dimension], limit| {
        let question =
            BreakdownQuestion { by: by.to_vec(), from: Duration::from_secs(1), filter: None, limit };
        world.history.breakdown(&question)
    };
    let rows = |by: &[Dimension]| -> Vec<(String, f64)> {
        let told = ask(by, 10).unwrap();
        assert!((told.total - 10.0).abs() < 1e-3 && told.samples.is_none(), "{told:?}");
        let rows = told.rows.into_iter().map(|row| {
            let key: Vec<_> = row.key.into_iter().map(Option::unwrap_or_default).collect();
            (key.join(" "), (row.rate * 100.0).round() / 100.0)
        });
        rows.collect()
    };
    let expected = |all: &[(&str, f64)]| -> Vec<_> {
        all.iter().map(|(key, rate)| ((*key).to_owned(), *rate)).collect()
    };
    assert_eq!(rows(&[Dimension::Result]), expected(&[("memory", 6.0), ("asked", 3.0), ("refused", 1.0)]));
    assert_eq!(rows(&[Dimension::Reason]), expected(&[("", 7.0), ("uri-miss", 3.0)]));
    assert_eq!(rows(&[Dimension::Rule]), expected(&[("/a:b/*", 8.0), ("", 1.0), ("(site)", 1.0)]));
    assert_eq!(
        rows(&[Dimension::Result, Dimension::Site]),
        expected(&[("memory shop", 6.0), ("asked shop", 3.0), (" ", 1.0)])
    );
    let told = ask(&[Dimension::Result], 1).unwrap();
    assert!((told.other - 4.0).abs() < 1e-3 && told.rows.len() == 1, "{told:?}");
    assert_eq!(ask(&[Dimension::Path], 10), None);
    assert_eq!(ask(&[Dimension::Result, Dimension::Reason], 10), None);
    assert_eq!(ask(&[Dimension::Result, Dimension::Result], 10), None);
}

fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// What a second of the largest larder costs the thread that reads it.
/// `cargo test --release -p larder-observe --lib cost_of_a_tick -- --ignored --nocapture`
#[test]
#[ignore = "figures mean something in release only"]
#[allow(clippy::disallowed_macros, reason = "its figures are to be seen")]
fn cost_of_a_tick() {
    const WORKERS: usize = 64;
    const RULES: usize = 1000;
    let metrics = Metrics::new(WORKERS, Vocabulary::default(), WallTime(0), "1");
    let (route, cache) = (metrics.route("shop"), metrics.cache("default"));
    let rules: Vec<_> = (0..RULES).map(|rule| metrics.rule("shop", &rule.to_string(), cache)).collect();
    let count = || {
        for worker in 0..WORKERS {
            let worker = metrics.worker(worker);
            for rule in &rules {
                worker.request((route, *rule), &Method::GET, StatusCode::OK, RequestResult::Memory);
                worker.delivered((route, *rule), Served::Hit, Duration::from_millis(2), 100, true);
            }
        }
    };
    let mut counted = CountedSince::default();
    let mut world = World::new();
    let ticks = 60;
    let mut all = Vec::new();
    for _ in 0..ticks {
        count();
        let begin = processor_time();
        let second = world.after(Duration::from_secs(1), |reading| counted.read(&metrics, reading)).unwrap();
        let tick = crate::watch::Tick::new(&second);
        all.push(processor_time() - begin);
        assert!(tick.json().len() > 1000);
    }
    all.sort_unstable();
    println!("median {:?}, longest {:?}; {:?}", all[ticks / 2], all[ticks - 1], world.history.remembered());
}

#[test]
fn a_day_with_every_bound_reached_takes_what_is_said() {
    let bytes_max = MIB;
    let mut world = World::with(DAY, bytes_max);
    // 400 rules, a few of which are asked for in each second; a look each ten seconds.
    for look in 0..8640_u32 {
        world.after(Duration::from_secs(10), |reading| {
            for more in 0..5 {
                let rule = ((look * 5 + more) % 400).to_string();
                reading.more(&SeriesName::of(&["rule", "shop", &rule], "result").word("memory"), 10.0);
            }
            reading.more(&SeriesName::of_all("requests"), 50.0);
        });
    }
    let remembered = world.history.remembered();
    let names = 401 * (FIGURE_BYTES + 40);
    assert!(remembered.bytes <= bytes_max + names, "{remembered:?}");
    assert!(remembered.series > 50 && remembered.series + remembered.folded == 401, "{remembered:?}");
    let all = world.series("requests", 86_400, 0, None);
    assert!(all.len() == 1440 && all.iter().all(|rate| rate.is_some_and(|rate| (rate - 5.0).abs() < 0.01)));
    assert_eq!(
        world.history.means(3600).iter().find(|(name, _)| *name == "requests").map(|(_, mean)| mean.round()),
        Some(5.0)
    );
}

#[test]
fn names_beyond_the_most_are_counted_as_without_room() {
    let mut world = World::with(DAY, 64 * MIB);
    for _ in 0..2 {
        world.after(Duration::from_secs(1), |reading| {
            for number in 0..16_384 + 7 {
                let rule = number.to_string();
                reading.more(&SeriesName::of(&["rule", "shop", &rule], "result").word("memory"), 1.0);
            }
        });
    }
    world.after(Duration::from_secs(1), |_| {});
    let SeriesMemory { series, folded, .. } = world.history.remembered();
    assert_eq!(series + folded, 16_384 + 7);
    world.after(Duration::from_secs(1), |_| {});
    assert_eq!(world.history.remembered().folded, folded - 7, "of the last second alone");
}

#[test]
fn what_is_gone_makes_room_for_what_comes() {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let of_one = Series::bytes(&Resolution::all(600), false);
    let mut world = World::with(minutes(10), 2 * of_one + 4 * (FIGURE_BYTES + 64));
    let tell = |world: &mut World, address: u32, rounds: u32| {
        for _ in 0..rounds {
            let address = address.to_string();
            world.after(Duration::from_secs(5), |reading| {
                reading.more(&SeriesName::of(&["server", "app", &address], "requests"), 5.0);
            });
        }
    };
    (0..3).for_each(|address| tell(&mut world, address, 1));
    let remembered = world.history.remembered();
    assert_eq!((remembered.series, remembered.folded), (2, 1), "{remembered:?}");
    // Ten minutes later the first two give way, and their names go.
    tell(&mut world, 9, 130);
    let remembered = world.history.remembered();
    assert_eq!((remembered.series, remembered.folded), (1, 0), "{remembered:?}");
    assert!(remembered.bytes < of_one + FIGURE_BYTES + 64, "{remembered:?}");
    assert_eq!(world.series("server:app:9:requests", 3, 0, None), [Some(1.0); 3]);
    assert_eq!(world.series("server:app:0:requests", 3, 0, None), [Some(0.0); 3]);
}

#[test]
fn an_answer_has_no_more_values_than_it_may() {
    let mut world = World::new();
    world.after(Duration::from_secs(1), |reading| {
        (0..300).for_each(|rule| {
            reading.more(&SeriesName::of(&["rule", "shop", &rule.to_string()], "result").word("asked"), 1.0);
        });
    });
    let ask = |from, step| world.history.series(&["rule:*"], Span { from, to: 0, step: Some(step) });
    assert_eq!(ask(2000, 1), Err(NotASpan::TooManyValues));
    assert_eq!(ask(200, 1).map(|answer| answer.values.len()), Ok(300));
    // A point of a day reads what the ring has, and no more.
    assert_eq!(ask(600, 86_400).map(|answer| answer.values[0].1.len()), Ok(1));
}
