//! The most frequent keys, from the tap to the answer: which table a sample is in, its rate, decay, and the end of what is old.

use super::*;

/// The keys of a table, by their parts.
type Rows<'a> = &'a [&'a [&'a str]];

fn question(of: TableKind) -> TopQuestion {
    TopQuestion { of, window: TableWindow::TenMinutes, glob: None, limit: 100 }
}

fn keys(top: &Top) -> Vec<Vec<&str>> {
    top.rows.iter().map(|row| row.key.iter().map(|part| part.as_deref().unwrap_or("-")).collect()).collect()
}

impl World {
    fn top(&self, of: TableKind) -> Top {
        self.watch.top(&question(of), self.now)
    }

    /// Hands over so many samples of this moment, and drains.
    fn ask(&mut self, target: &str, count: usize) {
        let texts = SampleTexts { target: target.as_bytes(), ..SampleTexts::default() };
        (0..count).for_each(|_| self.put(SampleHead { time: self.now.wall, ..bare() }, &texts));
        self.drain_after(Duration::ZERO);
    }

    fn tops(&self) -> [Vec<Vec<String>>; 7] {
        TableKind::ALL.map(|of| {
            let top = self.top(of);
            keys(&top).into_iter().map(|key| key.into_iter().map(str::to_owned).collect()).collect()
        })
    }
}

#[test]
fn a_sample_is_in_every_table_that_it_belongs_to() {
    let url = "https://shop.example:8080/Blog/a%20b.html?x=1&token=***";
    let no_answer = Fetched { server: None, status: None, ..fetched() };
    let answered = Fetched { error: None, ..fetched() };
    let own = |detail: &'static str, status: u16| SampleHead {
        detail: Some(detail),
        status: StatusCode::from_u16(status).unwrap(),
        scheme: Scheme::Https,
        ..bare()
    };
    let whole = || SampleHead { time: WallTime(0), ..full(RuleId::default()) };
    let urls: Rows<'_> = &[&[url]];
    let misses: Rows<'_> = &[&["uri-miss", url]];
    let before: Rows<'_> = &[&["evicted", url]];
    let names: Rows<'_> = &[&["token"], &["x"]];
    let none: Rows<'_> = &[];
    let cases: [(&str, SampleHead, [Rows<'_>; 7]); 8] = [
        ("everything", whole(), [urls, urls, misses, before, &[&["reset", "10.0.0.7:8080"]], none, names]),
        (
            "no server was reached",
            SampleHead { fetched: Some(Arc::new(no_answer)), ..whole() },
            [urls, urls, misses, before, &[&["reset", "app"]], none, names],
        ),
        (
            "a 404 of the origin",
            SampleHead { fetched: Some(Arc::new(answered)), ..whole() },
            [urls, urls, misses, before, none, none, names],
        ),
        (
            "a stored 404",
            SampleHead { result: RequestResult::Memory, body_bytes: 0, ..own("by-hand", 404) },
            [urls, none, none, none, none, none, none],
        ),
        (
            "an error of larder's own",
            own("only-if-cached", 504),
            [urls, none, none, none, &[&["only-if-cached", "-"]], none, none],
        ),
        ("a purge", own("purge", 200), [urls, none, none, none, none, none, none]),
        (
            "an unknown host",
            own("unknown-host", 421),
            [urls, none, none, none, &[&["unknown-host", "-"]], &[&["shop.example:8080"]], none],
        ),
        (
            "another's fetch",
            SampleHead {
                forward: Some(Forward::Stale),
                result: RequestResult::Joined,
                scheme: Scheme::Https,
                ..bare()
            },
            [urls, none, &[&["stale", url]], none, none, none, names],
        ),
    ];
    for (name, head, expected) in cases {
        let mut world = World::new();
        world.put(head, &full_texts());
        world.drain_after(Duration::ZERO);
        for (kind, (found, expected)) in TableKind::ALL.iter().zip(world.tops().iter().zip(expected)) {
            assert_eq!(found, expected, "{name}: {kind:?}");
        }
    }
    let mut world = World::new();
    world.put(whole(), &SampleTexts::default());
    world.drain_after(Duration::ZERO);
    let error = vec![vec!["reset".to_owned(), "10.0.0.7:8080".to_owned()]];
    assert_eq!(
        world.tops(),
        [vec![], vec![], vec![], vec![], error, vec![], vec![]],
        "nothing was asked for"
    );
}

fn fetched() -> Fetched {
    full(RuleId::default()).fetched.map(|fetched| (*fetched).clone()).unwrap()
}

#[test]
fn of_a_query_the_names_of_32_parameters_are_counted() {
    let mut world = World::new();
    let query: String = (0..40).map(|number| format!("&{number}=")).collect();
    for target in [format!("/?{query}"), "/?a=b=c&d&&=e&a".to_owned()] {
        let head = SampleHead { forward: Some(Forward::UriMiss), ..bare() };
        world.put(head, &SampleTexts { target: target.as_bytes(), ..SampleTexts::default() });
    }
    world.drain_after(Duration::ZERO);
    let top = world.top(TableKind::Parameters);
    let keys = keys(&top);
    assert_eq!(keys.len(), 34, "{keys:?}");
    assert_eq!(keys[0], ["a"]);
    for (name, is_there) in [("d", true), ("31", true), ("32", false), ("e", false), ("", false)] {
        assert_eq!(keys.contains(&vec![name]), is_there, "{name}");
    }
}

#[test]
fn long_keys_are_cut_between_characters() {
    let mut world = World::new();
    let target = format!("/{}", "\u{e9}".repeat(255));
    let texts = SampleTexts { host: &[b'h'; 255], target: target.as_bytes(), ..SampleTexts::default() };
    world.put(SampleHead { forward: Some(Forward::UriMiss), ..bare() }, &texts);
    // Each byte becomes three.
    let [host, target] = [vec![0xff; 255], [b"/?", &[0xff; 400][..]].concat()];
    let texts = SampleTexts { host: &host, target: &target, ..SampleTexts::default() };
    world.put(SampleHead { forward: Some(Forward::UriMiss), detail: Some("unknown-host"), ..bare() }, &texts);
    world.drain_after(Duration::ZERO);
    for (of, part, bytes) in [(TableKind::Urls, 0, 599), (TableKind::Misses, 1, 600 - "uri-miss ".len())] {
        let top = world.top(of);
        assert!(keys(&top).iter().any(|key| key[part].len() == bytes), "{of:?}");
    }
    for of in [TableKind::Hosts, TableKind::Parameters] {
        let top = world.top(of);
        assert_eq!(keys(&top)[0][0].len(), 600, "{of:?}");
    }
}

#[test]
fn a_rate_is_right_at_once_and_stays_so() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    for step in 1..=1000 {
        world.drain_after(Duration::from_secs(5));
        world.ask("/a", 20);
        world.drain_after(Duration::from_secs(5));
        for window in TableWindow::ALL {
            let top = world.watch.top(&TopQuestion { window, ..question(TableKind::Urls) }, world.now);
            let TopRow { rate, error, last, .. } = top.rows[0];
            assert!((rate - 2.0).abs() < 0.01, "{rate} after {step} steps of {window:?}");
            assert_eq!((error, world.now.wall.since(last)), (0.0, Duration::from_secs(5)));
        }
    }
}

#[test]
fn what_is_no_more_asked_for_is_halved_in_each_half_life_and_not_told_after_ten() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    world.drain_after(Duration::from_secs(6000));
    world.ask("/a", 300);
    let rate = |world: &World| world.top(TableKind::Urls).rows.first().map(|row| row.rate);
    let at_first = rate(&world).unwrap();
    assert!((at_first - std::f64::consts::LN_2).abs() < 1e-4, "{at_first}");
    for half_lives in 1..10 {
        world.drain_after(Duration::from_secs(300));
        let expected = at_first / f64::from(1 << half_lives);
        let found = rate(&world).unwrap();
        assert!((found - expected).abs() < 1e-5, "{found} and not {expected} after {half_lives}");
    }
    world.drain_after(Duration::from_secs(300));
    assert_eq!(rate(&world), None);
    let day = TopQuestion { window: TableWindow::Day, ..question(TableKind::Urls) };
    assert_eq!(world.watch.top(&day, world.now).rows.len(), 1);
}

#[test]
fn rates_stay_right_for_years() {
    let mut world = World::new();
    world.drain_after(Duration::ZERO);
    for _ in 0..4000 {
        world.drain_after(Duration::from_secs(3 * 3600));
        world.ask("/a", 10);
        world.ask("/b", 20);
    }
    let day = TopQuestion { window: TableWindow::Day, ..question(TableKind::Urls) };
    let ratio = |top: Top| top.rows[0].rate / top.rows[1].rate;
    let [short, long] = [world.top(TableKind::Urls), world.watch.top(&day, world.now)];
    assert_eq!(
        (keys(&short), keys(&long)),
        (vec![vec!["http:///b"], vec!["http:///a"]], vec![vec!["http:///b"], vec!["http:///a"]])
    );
    let rate = long.rows[1].rate * 3.0 * 3600.0 / 10.0;
    assert!((rate - 1.09).abs() < 0.01, "{rate}: at the end of the three hours it is a little less");
    assert!((ratio(short) - 2.0).abs() < 1e-6 && (ratio(long) - 2.0).abs() < 1e-6);
    world.drain_after(Duration::from_secs(3000 * 86_400));
    world.ask("/c", 10);
    let top = world.watch.top(&day, world.now);
    assert_eq!(keys(&top), [["http:///c"]]);
}

#[test]
fn a_glob_is_of_the_whole_key_with_a_space_between_its_parts() {
    let mut world = World::new();
    for (before, target) in [("evicted", "/a/1"), ("evicted", "/b/1"), ("new", "/a/1"), ("new", "/A/1")] {
        let head = SampleHead { before: Some(before), ..bare() };
        world.put(head, &SampleTexts { host: b"h", target: target.as_bytes(), ..SampleTexts::default() });
    }
    world.drain_after(Duration::ZERO);
    for (glob, limit, count) in [
        ("*", 10, 4),
        ("*", 3, 3),
        ("*", 0, 0),
        ("evicted *", 10, 2),
        ("*/a/*", 10, 2),
        ("new http://h/A/1", 10, 1),
        ("http*", 10, 0),
        ("", 10, 0),
    ] {
        let asked = TopQuestion { glob: Some(glob.into()), limit, ..question(TableKind::Before) };
        assert_eq!(world.watch.top(&asked, world.now).rows.len(), count, "{glob}");
    }
}

#[test]
fn what_is_counted_goes_when_less_may_be_kept() {
    let mut world = World::with(WatchSettings {
        redact: Redact::new([]),
        clients: Clients::Full,
        ..WatchSettings::default()
    });
    world.put_many("/?token=secret", 2);
    world.drain_after(Duration::ZERO);
    assert_eq!(world.top(TableKind::Urls).rows.len(), 1);
    assert!(world.exposes("larder_live_table_bytes") > 0);
    world.watch.configure(WatchSettings::default());
    assert_eq!(world.top(TableKind::Urls), Top::default());
    assert_eq!(world.exposes("larder_live_table_bytes"), 0);
}
