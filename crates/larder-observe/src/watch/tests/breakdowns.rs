//! What remembered samples have in common: every dimension, rates over the right time, limits.

use super::*;

fn by(dimensions: &[Dimension]) -> BreakdownQuestion {
    BreakdownQuestion { by: dimensions.to_vec(), from: Duration::from_secs(600), filter: None, limit: 100 }
}

fn keys(breakdown: &Breakdown) -> Vec<Vec<&str>> {
    breakdown
        .rows
        .iter()
        .map(|row| row.key.iter().map(|part| part.as_deref().unwrap_or("-")).collect())
        .collect()
}

#[test]
fn every_dimension_has_the_value_of_the_sample() {
    let mut world = World::new();
    let rule = world.metrics.rule("shop", "assets", world.metrics.cache("pages"));
    world.drain_after(Duration::from_secs(2));
    let time = WallTime(world.now.wall.0 - 2000);
    world.put(SampleHead { time, ..full(rule) }, &full_texts());
    world.drain_after(Duration::ZERO);
    for (dimension, expected) in Dimension::ALL.iter().zip([
        ("result", "asked"),
        ("reason", "uri-miss"),
        ("before", "evicted"),
        ("not_stored", "no-room"),
        ("detail", "set-cookie"),
        ("status", "404"),
        ("site", "shop"),
        ("rule", "assets"),
        ("store", "pages"),
        ("origin", "app"),
        ("server", "10.0.0.7:8080"),
        ("method", "GET"),
        ("host", "shop.example:8080"),
        ("path", "/Blog/a%20b.html"),
        ("type", "text/html"),
        ("folder", "/Blog/*"),
        ("url", "shop.example:8080/Blog/a%20b.html?x=1&token=***"),
    ]) {
        let told = world.watch.breakdown(&by(&[*dimension]), world.now);
        assert_eq!((dimension.token(), keys(&told)), (expected.0, vec![vec![expected.1]]));
    }
    let mut world = World::new();
    world.put(bare(), &SampleTexts::default());
    world.drain_after(Duration::ZERO);
    for dimension in Dimension::ALL {
        let told = world.watch.breakdown(&by(&[*dimension]), world.now);
        let expected = match dimension {
            Dimension::Result => "own",
            Dimension::Status => "200",
            _ => "-",
        };
        assert_eq!(keys(&told), [[expected]], "{dimension:?}");
    }
}

#[test]
fn a_folder_is_the_first_segment_of_the_path() {
    for (target, folder) in [
        ("/", "/"),
        ("/a.html", "/"),
        ("/a.html?b/c", "/"),
        ("/a/", "/a/*"),
        ("/a/b/c", "/a/*"),
        ("//a/b", "//*"),
        ("*", "*"),
    ] {
        let mut world = World::new();
        world.put_many(target, 1);
        world.drain_after(Duration::ZERO);
        assert_eq!(
            keys(&world.watch.breakdown(&by(&[Dimension::Folder]), world.now)),
            [[folder]],
            "{target}"
        );
    }
}

#[test]
fn rows_have_rates_shares_of_bytes_and_the_time_of_origins() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    world.drain_after(Duration::from_secs(100));
    let time = world.now.wall;
    let fetched = full(RuleId::default()).fetched;
    let of = |result, body_bytes| SampleHead {
        time,
        body_bytes,
        fetched: fetched.clone(),
        ..SampleHead::of(result, Weight::ONE)
    };
    let of_site = SampleTexts { host: b"a", target: b"/x", ..SampleTexts::default() };
    let other = SampleTexts { host: b"b", ..of_site };
    (0..5).for_each(|_| world.put(of(RequestResult::Asked, 1000), &of_site));
    (0..3).for_each(|_| world.put(of(RequestResult::Joined, 10), &of_site));
    (0..2).for_each(|_| world.put(of(RequestResult::Asked, 0), &other));
    world.drain_after(Duration::ZERO);
    let question = by(&[Dimension::Host, Dimension::Result]);
    let told = world.watch.breakdown(&question, world.now);
    assert_eq!(keys(&told), [["a", "asked"], ["a", "joined"], ["b", "asked"]]);
    let figures: Vec<_> =
        told.rows.iter().map(|row| (row.rate, row.bytes.unwrap(), row.origin_seconds.unwrap())).collect();
    assert_eq!(figures[0], (0.05, 50.0, 5.0 * 1.7 / 100.0));
    assert_eq!(figures[1], (0.03, 0.3, 0.0), "it waited for another's fetch");
    assert_eq!(figures[2], (0.02, 0.0, 2.0 * 1.7 / 100.0));
    assert_eq!((told.total, told.other, told.samples), (0.1, 0.0, Some(10)));
    assert_eq!((told.from, told.to), (WallTime(0), WallTime(100_000)));

    let limited = world.watch.breakdown(&BreakdownQuestion { limit: 1, ..question.clone() }, world.now);
    assert_eq!((limited.rows.len(), limited.total, limited.other), (1, 0.1, 0.05));
    let none = world.watch.breakdown(&BreakdownQuestion { limit: 0, ..question.clone() }, world.now);
    assert_eq!((none.rows.len(), none.other), (0, 0.1));
    let filtered = BreakdownQuestion { filter: Some(filter("result=joined")), ..question };
    let filtered = world.watch.breakdown(&filtered, world.now);
    assert_eq!((keys(&filtered), filtered.total), (vec![vec!["a", "joined"]], 0.03));
}

#[test]
fn a_sample_counts_as_often_as_its_weight_says() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    world.drain_after(Duration::from_secs(10));
    let hit = || std::iter::repeat_with(|| world.tap.weigh(0, true)).flatten().next().unwrap();
    let weights = [hit(), hit()];
    assert_eq!(weights.map(Weight::count), [64, 64]);
    for weight in weights {
        let head = SampleHead { time: world.now.wall, ..SampleHead::of(RequestResult::Memory, weight) };
        world.put(head, &SampleTexts::default());
    }
    world.drain_after(Duration::ZERO);
    let told = world.watch.breakdown(&by(&[Dimension::Result]), world.now);
    assert_eq!((told.total, told.samples), (12.8, Some(2)));
}

#[test]
fn rates_are_over_the_time_that_the_samples_span() {
    let mut world = World::new();
    let span = |world: &World, from| {
        let question = BreakdownQuestion { from: Duration::from_secs(from), ..by(&[Dimension::Result]) };
        let told = world.watch.breakdown(&question, world.now);
        (told.to.since(told.from).as_secs_f64(), told.samples.unwrap_or_default(), told.total)
    };
    assert_eq!(span(&world, 600), (0.0, 0, 0.0), "the first drain is still to come, and time began now");
    world.drain_after(Duration::ZERO);
    assert_eq!(span(&world, 600).1, 0);
    // As long as everything is remembered, it spans all time since the start.
    world.drain_after(Duration::from_secs(50));
    let put = |world: &mut World, count: usize| {
        let head = SampleHead { time: world.now.wall, ..bare() };
        (0..count).for_each(|_| world.put(head.clone(), &SampleTexts::default()));
        world.drain_after(Duration::ZERO);
    };
    put(&mut world, 100);
    assert_eq!(span(&world, 600), (50.0, 100, 2.0));
    assert_eq!(span(&world, 25), (25.0, 100, 4.0));
    world.drain_after(Duration::from_secs(50));
    assert_eq!(span(&world, 600), (100.0, 100, 1.0));
    assert_eq!(span(&world, 25), (25.0, 0, 0.0));
    // Then the oldest go: 4096 samples are 41 seconds of 100 samples each.
    for _ in 0..60 {
        put(&mut world, 100);
        world.drain_after(Duration::from_secs(1));
    }
    let (seconds, samples, total) = span(&world, 600);
    assert_eq!((seconds, samples), (41.0, 4096));
    assert!((total - 100.0).abs() < 1.0, "{total}");
    assert_eq!(span(&world, 10), (10.0, 1000, 100.0));
    world.watch.configure(WatchSettings { clients: Clients::Off, ..WatchSettings::default() });
    world.drain_after(Duration::from_secs(1));
    put(&mut world, 100);
    world.drain_after(Duration::from_secs(10));
    assert_eq!(span(&world, 600), (10.0, 100, 10.0), "it begins anew");
}

#[test]
fn what_ended_before_the_clock_was_set_back_counts_no_more() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    world.drain_after(Duration::from_secs(1000));
    let later = WallTime(world.now.wall.0 + 3_600_000);
    let put = |world: &mut World, time| {
        world.put(SampleHead { time, ..bare() }, &SampleTexts::default());
        world.drain_after(Duration::ZERO);
    };
    (0..50).for_each(|_| put(&mut world, later));
    let now = world.now.wall;
    put(&mut world, now);
    let told = world.watch.breakdown(&by(&[Dimension::Result]), world.now);
    assert_eq!((told.samples, told.total), (Some(1), 1.0 / 600.0));
}

#[test]
fn a_request_counts_when_it_ends() {
    for (took, is_there) in [(890, true), (200, false), (301, true)] {
        let mut world = World::new();
        world.drain_after(Duration::from_secs(1000));
        world.drain_after(Duration::from_secs(1000));
        let began = WallTime(world.now.wall.0 - 900_000);
        let head = SampleHead { time: began, took: Duration::from_secs(took), ..bare() };
        world.put(head, &SampleTexts::default());
        world.drain_after(Duration::ZERO);
        let told = world.watch.breakdown(&by(&[Dimension::Result]), world.now);
        assert_eq!(told.samples.unwrap() > 0, is_there, "{took}");
    }
}
