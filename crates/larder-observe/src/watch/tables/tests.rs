//! Of the tables: compared with exact sums, in floods, with given times. How long a sample takes is measured by hand.
#![allow(clippy::unwrap_used)]

use larder_http::fields::cache_status::{Forward, RequestResult};
use proptest::prelude::*;
use std::collections::HashMap;

use super::kind::ALL_BYTES_MAX;
use super::*;
use crate::tap::{SampleHead, SampleTexts, Weight};
use crate::watch::sample::{Making, Place, WatchSettings};

fn hash(key: &str) -> u64 {
    // Few enough that keys with equal hashes occur.
    key.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 1024
}

fn counted(table: &SpaceSaving) -> HashMap<String, Counted> {
    table.all().map(|counted| (counted.key.to_string(), counted)).collect()
}

/// What is not lost in sums of floating-point numbers.
fn nearly(number: f64) -> f64 {
    number * 1e-9 + 1e-9
}

proptest! {
    #[test]
    fn a_count_is_never_too_low_and_its_error_says_how_much_too_high_it_may_be(
        stream in prop::collection::vec((0_u32..2000, 1_u32..50, 0_u32..40, 0_usize..80), 1..1500),
        skew in 1_u32..5,
        count_max in 4_u16..64,
        // Below some 5 KiB the bytes are used up before the counters are.
        bytes_max in 6_000_usize..20_000,
    ) {
        let mut table = SpaceSaving::new(count_max, bytes_max);
        let mut exact = HashMap::<String, f64>::new();
        let (mut total, mut passed, mut most) = (0.0, 0.0_f64, 0);
        let mut is_by_count = true;
        for (number, weight, ticks, padding) in stream {
            passed += f64::from(ticks) / 20.0;
            if passed > 8.0 {
                let factor = (-passed).exp2();
                table.scale(factor);
                exact.values_mut().for_each(|sum| *sum *= factor);
                total *= factor;
                passed = 0.0;
            }
            let key = format!("{}{}", number / skew.pow(number % 7), "x".repeat(padding));
            let increment = f64::from(weight) * passed.exp2();
            let before = (table.folded(), table.all().count());
            table.add(hash(&key), &key, increment, WallTime(number.into()));
            *exact.entry(key).or_default() += increment;
            total += increment;
            is_by_count &= before.0 == table.folded() || before.1 == usize::from(count_max);
            most = most.max(table.all().count());
        }
        table.check();
        let counted = counted(&table);
        for (key, Counted { count, error, .. }) in &counted {
            let sum = exact[key];
            prop_assert!(sum <= count + nearly(*count), "{}: {} > {}", key, sum, count);
            prop_assert!(count - error <= sum + nearly(*count), "{}: {} - {} > {}", key, count, error, sum);
        }
        for (key, sum) in exact.iter().filter(|(key, _)| !counted.contains_key(*key)) {
            prop_assert!(*sum <= table.floor() + nearly(*sum), "{}: {} > {}", key, sum, table.floor());
            if is_by_count {
                prop_assert!(*sum <= total / f64::from(count_max) + nearly(total), "{} is not there", key);
            }
        }
        prop_assert!(table.folded() == 0 || !counted.is_empty());
        prop_assert!(most <= usize::from(count_max));
    }

    #[test]
    fn rows_are_by_falling_rate_and_equal_ones_by_key(
        counts in prop::collection::vec((0_u32..50, 0_u32..4), 0..100),
        limit in 0_usize..120,
    ) {
        let rates: Vec<_> = counts
            .iter()
            .map(|(key, count)| Counted {
                key: format!("{key}").into(),
                count: f64::from(*count),
                error: 0.0,
                last: WallTime(0),
            })
            .collect();
        let question =
            TopQuestion { of: TableKind::Urls, window: TableWindow::Day, glob: Some("*1*".into()), limit };
        let rows = question.top(TableRates { rates, folded: 0 }).rows;
        let there = counts.iter().filter(|(key, _)| format!("{key}").contains('1')).count();
        prop_assert_eq!(rows.len(), there.min(limit));
        prop_assert!(rows.windows(2).all(|two| (two[1].rate, &two[0].key) <= (two[0].rate, &two[1].key)
            || two[0].rate > two[1].rate));
    }
}

#[test]
fn a_new_key_takes_the_place_of_the_least_and_its_count() {
    let mut table = SpaceSaving::new(2, 10_000);
    for (key, increment, at) in [("a", 5.0, 1), ("b", 2.0, 2), ("a", 1.0, 3), ("c", 1.0, 4), ("c", 1.0, 2)] {
        table.add(hash(key), key, increment, WallTime(at));
    }
    let row = |key: &str, count, error, last| Counted { key: key.into(), count, error, last: WallTime(last) };
    let all = counted(&table);
    assert_eq!(all["a"], row("a", 6.0, 0.0, 3));
    assert_eq!(all["c"], row("c", 4.0, 2.0, 4));
    assert_eq!((all.len(), table.folded()), (2, 1));
    table.clear();
    assert_eq!((table.all().count(), table.floor(), table.folded(), table.bytes()), (0, 0.0, 1, 0));
}

#[test]
fn long_keys_push_short_ones_out_and_room_that_is_left_begins_at_the_floor() {
    let mut table = SpaceSaving::new(100, 10_000);
    for number in 0..100 {
        let key = format!("{number}");
        table.add(hash(&key), &key, f64::from(number + 1), WallTime(0));
    }
    assert_eq!(table.folded(), 0);
    let long = "x".repeat(3000);
    let before = table.bytes();
    assert!(before < 10_000 && before + 3000 > 10_000, "{before}");
    table.add(hash(&long), &long, 1.0, WallTime(0));
    table.check();
    let (folded, floor) = (table.folded(), table.floor());
    assert!(folded > 10 && floor == folded as f64, "{folded} went, the largest with {floor}");
    assert_eq!(counted(&table)[&long].count, floor + 1.0);
    table.add(hash("0"), "0", 1.0, WallTime(0));
    let (zero, floor) = (&counted(&table)["0"], table.floor());
    assert_eq!((zero.count, zero.error), (floor + 1.0, floor), "it had 1 before it went");
    let longest = "y".repeat(20_000);
    table.add(hash(&longest), &longest, 1.0, WallTime(0));
    assert_eq!((table.all().count(), counted(&table).get(&longest)), (0, None), "no room is enough");
    table.check();
}

/// A sample of a URL that was missed, with everything that tables count.
fn missed(making: &mut Making, number: u64, target: &str) -> Arc<Sample> {
    let host = format!("{number:x}.example");
    let head = SampleHead {
        forward: Some(Forward::UriMiss),
        before: Some("new"),
        detail: Some("unknown-host"),
        body_bytes: 1000,
        status: http::StatusCode::MISDIRECTED_REQUEST,
        ..SampleHead::of(RequestResult::Own, Weight::ONE)
    };
    let texts = SampleTexts { host: host.as_bytes(), target: target.as_bytes(), ..SampleTexts::default() };
    making.sample(&head, &texts, Place::default(), &WatchSettings::default())
}

#[test]
fn a_flood_of_long_urls_stays_within_the_bound() {
    let mut tables = Tables::default();
    let mut making = Making::default();
    let now = Now { wall: WallTime(0), monotonic: Duration::from_secs(5) };
    let mut bytes = 0;
    for round in 0..30_u64 {
        let batch: Vec<_> = (0..300)
            .map(|number| {
                let number = round * 300 + number;
                missed(&mut making, number, &format!("/{number:0>400x}?{number}{}", "p&".repeat(50)))
            })
            .collect();
        tables.feed(now.later(Duration::from_secs(round)), &batch);
        let tables = || tables.windows.iter().flat_map(|window| &window.tables);
        bytes = tables().map(SpaceSaving::bytes).sum();
        assert!(bytes <= ALL_BYTES_MAX, "{bytes}");
    }
    for window in &tables.windows {
        for (kind, table) in TableKind::ALL.iter().zip(&window.tables) {
            table.check();
            assert_eq!(table.folded() > 0, *kind != TableKind::Errors, "{kind:?}");
            assert_eq!(table.bytes() > kind.bytes_max() / 10 * 9, kind.bytes_max() > 500_000, "{kind:?}");
        }
    }
    assert!(bytes > ALL_BYTES_MAX / 10 * 8, "{bytes}: the flood was none");
    let shares: usize = TableKind::ALL.iter().map(|kind| kind.bytes_max()).sum();
    assert_eq!(shares * TableWindow::ALL.len(), ALL_BYTES_MAX);
    tables.clear();
    assert_eq!(
        tables.windows.iter().flat_map(|window| &window.tables).map(SpaceSaving::bytes).sum::<usize>(),
        0
    );
}

/// Of this thread: others may use the same processors.
fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// `cargo test --release -p larder-observe --lib watch::tables::tests::cost -- --ignored --nocapture`
#[test]
#[ignore = "figures mean something in release only"]
#[allow(clippy::disallowed_macros, reason = "its figures are to be seen")]
fn cost_of_a_sample() {
    let mut making = Making::default();
    let hit = SampleHead::of(RequestResult::Memory, Weight::ONE);
    let mut hit = |number: u64| {
        let target = format!("/blog/2024/an-article-with-a-title-{number}.html?page={number}");
        let texts =
            SampleTexts { host: b"shop.example", target: target.as_bytes(), ..SampleTexts::default() };
        let head = SampleHead { body_bytes: 1000, ..hit.clone() };
        making.sample(&head, &texts, Place::default(), &WatchSettings::default())
    };
    let hits: Vec<_> = (0..100_000_u64).map(|n| hit(n.wrapping_mul(0x9e37_79b9) % 1500)).collect();
    let mut making = Making::default();
    let mut miss = |number: u64, padding: usize| {
        missed(&mut making, number, &format!("/blog/{number:0>padding$}?page={number}&sort=a&x=1"))
    };
    let known: Vec<_> = (0..100_000_u64).map(|n| miss(n.wrapping_mul(0x9e37_79b9) % 1500, 30)).collect();
    let flood: Vec<_> = (0..100_000_u64).map(|n| miss(n, 480)).collect();
    for (name, samples) in
        [("hits, known", hits), ("misses, known", known), ("misses, 512 bytes, all new", flood)]
    {
        let mut tables = Tables::default();
        let now = Now { wall: WallTime(0), monotonic: Duration::from_secs(5) };
        tables.feed(now, samples.get(..5000).unwrap());
        let began = processor_time();
        samples.chunks(100).for_each(|batch| tables.feed(now, batch));
        let took = processor_time() - began;
        println!("{name}: {:.0} ns a sample", took.as_nanos() as f64 / samples.len() as f64);
    }
}
