//! Remembered samples and events: how many, in which order, and their figures.

use super::super::events::EVENTS_BYTES_MAX;
use super::*;

fn targets(samples: &[Arc<Sample>]) -> Vec<String> {
    let path = |sample: &Arc<Sample>| {
        let mut out = Vec::new();
        sample.json(&mut out);
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()["path"].as_str().unwrap().to_owned()
    };
    samples.iter().map(path).collect()
}

#[test]
fn requests_are_the_newest_that_a_filter_takes() {
    let mut world = World::new();
    for number in 0..5 {
        world.put_many(&format!("/{number}"), 1);
        if number % 2 == 0 {
            world.drain_after(Duration::ZERO);
        }
    }
    let requests = |filter: Option<&Filter>, limit| targets(&world.watch.requests(filter, limit));
    assert_eq!(requests(None, 10), ["/4", "/3", "/2", "/1", "/0"]);
    assert_eq!(requests(None, 2), ["/4", "/3"]);
    assert_eq!(requests(None, 0), [""; 0]);
    assert_eq!(requests(Some(&filter("path=/1,/3")), 10), ["/3", "/1"]);
    assert_eq!(requests(Some(&filter("path=/1,/3")), 1), ["/3"]);
    assert_eq!(requests(Some(&filter("path=/9")), 10), [""; 0]);
}

#[test]
fn the_newest_4096_are_remembered_and_1000_of_them_told_at_once() {
    let mut world = World::new();
    for round in 0..50 {
        world.put_many(&format!("/{round}"), 100);
        world.drain_after(Duration::ZERO);
    }
    let all = |path: &str| world.watch.requests(Some(&filter(path)), usize::MAX).len();
    assert_eq!(all("path=/49"), 100);
    assert_eq!(all("path=*"), REQUESTS_MAX);
    let remembered = (0..50).map(|round| all(&format!("path=/{round}"))).sum::<usize>();
    assert_eq!(remembered, SAMPLES_MAX);
    assert_eq!((all("path=/8"), all("path=/9")), (0, 96));
    assert_eq!(world.exposes("larder_live_samples_total"), 5000);
}

#[test]
fn the_oldest_go_where_samples_are_large() {
    let mut world = World::new();
    let [host, target, ua, referer] = [255, 512, 256, 256].map(|bytes| vec![b'x'; bytes]);
    let texts = SampleTexts {
        host: &host,
        target: &target,
        user_agent: &ua,
        referer: &referer,
        ..SampleTexts::default()
    };
    let bytes = world.sample(bare(), &texts).bytes();
    assert!((1279..1800).contains(&bytes), "{bytes}");
    let mut before = 0;
    for round in 1..100 {
        (0..40).for_each(|_| world.put(bare(), &texts));
        world.drain_after(Duration::ZERO);
        let taken = world.exposes("larder_live_bytes");
        assert_eq!(taken as usize, (1 + 40 * round).min(SAMPLES_BYTES_MAX / bytes) * bytes);
        assert!(taken >= before);
        before = taken;
    }
    assert_eq!(world.exposes("larder_live_dropped_total{why=\"full\"}"), 0);
}

#[test]
fn of_events_the_newest_are_remembered_and_their_texts_are_cut() {
    let world = World::new();
    for number in 0..300_u64 {
        let event = Event {
            at: WallTime(number),
            kind: "reload",
            subject: "\u{e9}".repeat(1000),
            text: format!("{number}\u{e9}").repeat(10_000),
        };
        world.watch.tell(event);
    }
    let events = world.watch.events();
    assert_eq!(events.len(), 128);
    assert_eq!((events[0].at, events[127].at), (WallTime(299), WallTime(172)));
    assert_eq!(events[0].subject, "\u{e9}".repeat(128));
    assert!(events.iter().all(|event| (1020..=1024).contains(&event.text.len())));
    let taken = world.exposes("larder_live_bytes") as usize;
    assert!(taken > 128 * 1280 && taken <= EVENTS_BYTES_MAX, "{taken}");
}

#[test]
fn an_event_is_an_object() {
    let mut out = Vec::new();
    let event = Event { at: WallTime(1500), kind: "purge", subject: String::new(), text: "a \"b\"\n".into() };
    event.json(&mut out);
    assert_eq!(str::from_utf8(&out), Ok(r#"{"at":1.500000,"kind":"purge","text":"a \"b\"\u000a"}"#));
}

#[test]
fn every_bound_is_told() {
    let mut world = World::new();
    world.put_many("/", 1);
    world.drain_after(Duration::ZERO);
    let _one = world.watch.subscribe(Interest::default()).unwrap();
    world.put_many("/", 400);
    world.drain_after(Duration::ZERO);
    let sample = world.watch.requests(None, 1)[0].bytes();
    let expected = format!(
        "larder_live_samples_total 353\n\
         larder_live_dropped_total{{why=\"full\"}} 48\n\
         larder_live_dropped_total{{why=\"held\"}} 0\n\
         larder_live_skipped_total 252\n\
         larder_live_subscribers 1\n\
         larder_live_turned_away_total{{why=\"full\"}} 0\n\
         larder_live_turned_away_total{{why=\"slow\"}} 0\n\
         larder_live_bytes {}\n\
         larder_live_series 0\n\
         larder_live_series_folded 0\n\
         larder_live_history_bytes 0\n\
         larder_live_waiting_bytes {}\n",
        353 * sample,
        100 * sample,
    );
    let exposed = world.exposed();
    let of_others = |line: &&str| !line.starts_with("larder_live_table_");
    let exposed: String = exposed.lines().filter(of_others).map(|line| format!("{line}\n")).collect();
    assert_eq!(exposed, expected);
}

#[test]
fn the_thread_drains_until_it_is_stopped() {
    let World { tap, watch, .. } = World::new();
    let watch = Arc::new(watch);
    let thread = WatchThread::start(Arc::clone(&watch), Clock::default(), Arc::new(NoFigures)).unwrap();
    tap.put(0, bare(), &SampleTexts::default());
    drop(thread);
    assert_eq!(watch.requests(None, 10).len(), 1);
    assert_eq!(Arc::strong_count(&watch), 1, "the thread is still there");
}

#[test]
fn drains_come_more_often_while_all_is_asked_for() {
    let world = World::new();
    assert_eq!(world.watch.pause(), Duration::from_millis(100));
    let all = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    assert_eq!(world.watch.pause(), Duration::from_millis(25));
    drop(all);
    assert_eq!(world.watch.pause(), Duration::from_millis(100));
}
