//! Subscriptions: what they get, what is left out, and when they end.

use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};

use super::super::subscription::{SAMPLES_PER_SECOND, WAITING_BYTES_MAX};
use super::*;

const TENTH: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// What has come, as short words.
fn read(subscription: &mut Subscription) -> Vec<String> {
    let mut words = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        words.push(match subscription.poll_next(&mut context) {
            Poll::Pending => return words,
            Poll::Ready(None) => {
                words.push("end".into());
                return words;
            }
            Poll::Ready(Some(Live::Sample(sample))) => sample.head().result.token().into(),
            Poll::Ready(Some(Live::Tick(tick))) => format!("tick {}", tick.at.0),
            Poll::Ready(Some(Live::Event(event))) => event.kind.into(),
            Poll::Ready(Some(Live::Skipped(count))) => format!("skipped {count}"),
            Poll::Ready(Some(Live::TooSlow)) => "too slow".into(),
        });
    }
}

fn event(kind: &'static str) -> Event {
    Event { at: WallTime(0), kind, subject: String::new(), text: String::new() }
}

#[test]
fn a_subscription_gets_what_its_filter_takes_from_now_on() {
    let mut world = World::new();
    world.put_many("/before", 1);
    world.watch.tell(event("before"));
    world.drain_after(TENTH);
    let mut all = world.watch.subscribe(Interest::default()).unwrap();
    let mut own =
        world.watch.subscribe(Interest { filter: Some(filter("path=/a")), ..Interest::default() }).unwrap();
    assert_eq!(read(&mut all), [""; 0]);
    world.put_many("/a", 1);
    world.put_many("/b", 1);
    world.drain_after(TENTH);
    world.watch.tell(event("reload"));
    assert_eq!(read(&mut all), ["own", "own", "reload"]);
    assert_eq!(read(&mut own), ["own", "reload"]);
    world.put_many("/b", 1);
    world.drain_after(TENTH);
    assert_eq!(read(&mut all), ["own"]);
    assert_eq!(read(&mut own), [""; 0]);
}

#[test]
fn a_hundred_samples_come_in_a_second_and_the_rest_is_counted() {
    let mut world = World::new();
    let mut some =
        world.watch.subscribe(Interest { filter: Some(filter("path=/a")), ..Interest::default() }).unwrap();
    let mut all = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    world.drain_after(SECOND);
    for _ in 0..9 {
        world.put_many("/a", 20);
        world.put_many("/b", 20);
        world.drain_after(TENTH);
    }
    assert_eq!(read(&mut some).len(), SAMPLES_PER_SECOND as usize);
    assert_eq!(world.exposes("larder_live_skipped_total"), 80);
    world.put_many("/a", 1);
    world.drain_after(TENTH);
    assert_eq!(read(&mut some), ["skipped 80", "own"]);
    world.drain_after(SECOND);
    assert_eq!(read(&mut some), [""; 0]);
    assert_eq!(read(&mut all).len(), 9 * 40 + 1);
    assert_eq!(world.exposes("larder_live_waiting_bytes"), 0);
}

#[test]
fn all_exchanges_are_sampled_as_long_as_a_subscription_asks_for_them() {
    let mut world = World::new();
    let one = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    let mut other = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    drop(one);
    assert!(world.tap.takes_all());
    world.put_many("/", 1);
    world.drain_after(TENTH);
    (0..10).for_each(|_| world.drain_after(SECOND));
    assert!(!world.tap.takes_all(), "a reader that is too slow asks for nothing");
    assert_eq!(read(&mut other), ["too slow", "end"]);
}

#[test]
fn there_are_32_subscriptions_at_most() {
    let world = World::new();
    let mut all: Vec<_> =
        (0..SUBSCRIBERS_MAX).map(|_| world.watch.subscribe(Interest::default()).unwrap()).collect();
    let refused = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap_err();
    assert_eq!(refused.to_string(), "there are 32 subscriptions already");
    assert!(!world.tap.takes_all());
    assert_eq!(world.exposes("larder_live_turned_away_total{why=\"full\"}"), 1);
    assert_eq!(world.exposes("larder_live_subscribers"), 32);
    all.pop();
    assert_eq!(world.exposes("larder_live_subscribers"), 31);
    all.push(world.watch.subscribe(Interest::default()).unwrap());
    assert!(world.watch.subscribe(Interest::default()).is_err());
}

#[test]
fn a_reader_that_takes_nothing_for_ten_seconds_is_dropped_and_told() {
    let mut world = World::new();
    let mut slow = world.watch.subscribe(Interest::default()).unwrap();
    let mut idle = world
        .watch
        .subscribe(Interest { filter: Some(filter("path=/never")), ..Interest::default() })
        .unwrap();
    let mut good = world.watch.subscribe(Interest::default()).unwrap();
    world.put_many("/", 2);
    world.drain_after(TENTH);
    for second in 0..9 {
        world.drain_after(SECOND);
        let taken = good.poll_next(&mut Context::from_waker(Waker::noop()));
        assert!(taken.is_ready() == (second < 2));
    }
    assert_eq!(world.exposes("larder_live_turned_away_total{why=\"slow\"}"), 0);
    world.drain_after(SECOND);
    assert_eq!(world.exposes("larder_live_turned_away_total{why=\"slow\"}"), 1);
    assert_eq!(world.exposes("larder_live_subscribers"), 2);
    assert_eq!(world.exposes("larder_live_waiting_bytes"), 0);
    world.put_many("/", 1);
    world.drain_after(SECOND);
    world.watch.tell(event("reload"));
    assert_eq!(read(&mut slow), ["too slow", "end"]);
    assert_eq!(read(&mut slow), ["end"]);
    assert_eq!(read(&mut good), ["own", "reload"]);
    assert_eq!(read(&mut idle), ["reload"]);
}

#[test]
fn one_read_each_ten_seconds_keeps_a_reader() {
    let mut world = World::new();
    let mut subscription = world.watch.subscribe(Interest::default()).unwrap();
    world.put_many("/", 5);
    world.drain_after(TENTH);
    for _ in 0..4 {
        world.drain_after(9 * SECOND);
        assert!(subscription.poll_next(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    world.drain_after(9 * SECOND);
    assert_eq!(read(&mut subscription), ["own"]);
}

#[test]
fn what_waits_is_bounded_for_one_reader_and_for_all() {
    let mut world = World::new();
    let mut all: Vec<_> = (0..12)
        .map(|_| world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap())
        .collect();
    let target = format!("/{}", "x".repeat(500));
    for _ in 0..30 {
        world.put_many(&target, 100);
        world.drain_after(Duration::from_millis(1));
    }
    let sample = world.watch.requests(None, 1)[0].bytes();
    let most = WAITING_BYTES_MAX / sample;
    assert!(most < 3000);
    let waiting = world.exposes("larder_live_waiting_bytes") as usize;
    assert!(waiting <= 8 * WAITING_BYTES_MAX && waiting > 8 * WAITING_BYTES_MAX - sample * 200, "{waiting}");
    let got: Vec<_> = all.iter_mut().map(|one| read(one).len()).collect();
    assert!(got.iter().all(|count| *count <= most), "{got:?}");
    let skipped = world.exposes("larder_live_skipped_total") as usize;
    assert_eq!(got.iter().sum::<usize>() + skipped, 12 * 3000);
    assert_eq!(world.exposes("larder_live_waiting_bytes"), 0);
    drop(all);

    // Alone, a reader has its own bound.
    let mut one = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    for _ in 0..30 {
        world.put_many(&target, 100);
        world.drain_after(Duration::from_millis(1));
    }
    assert_eq!(read(&mut one).len(), most);
    // Small ones are bounded by their number.
    for _ in 0..5000 {
        world.watch.tell(event("purge"));
    }
    assert_eq!(read(&mut one).len(), 4096);
    world.drain_after(SECOND);
    let left_out = (3000 - most) + (5000 - 4096);
    assert_eq!(read(&mut one), [format!("skipped {left_out}")]);
    assert_eq!(world.exposes("larder_live_skipped_total") as usize, skipped + left_out);
}

#[test]
fn what_a_reader_has_left_takes_no_room() {
    let mut world = World::new();
    let subscription = world.watch.subscribe(Interest::default()).unwrap();
    world.put_many("/", 5);
    world.drain_after(TENTH);
    assert!(world.exposes("larder_live_waiting_bytes") > 0);
    drop(subscription);
    assert_eq!(world.exposes("larder_live_waiting_bytes"), 0);
    world.put_many("/", 5);
    world.drain_after(TENTH);
    assert_eq!(world.exposes("larder_live_waiting_bytes"), 0);
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_that_waits_is_woken_by_what_it_gets_and_by_the_end() {
    let mut world = World::new();
    let mut subscription =
        world.watch.subscribe(Interest { filter: Some(filter("path=/a")), ..Interest::default() }).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let count = || woken.0.load(Ordering::Relaxed);
    assert!(subscription.poll_next(&mut context).is_pending());
    world.put_many("/b", 1);
    world.drain_after(TENTH);
    assert_eq!(count(), 0, "woken for nothing");
    world.put_many("/a", 2);
    world.drain_after(TENTH);
    assert_eq!(count(), 1);
    assert_eq!(read(&mut subscription).len(), 2);
    assert!(subscription.poll_next(&mut context).is_pending());
    world.watch.tell(event("reload"));
    assert_eq!(count(), 2);
    assert_eq!(read(&mut subscription), ["reload"]);
    assert!(subscription.poll_next(&mut context).is_pending());
    drop(world);
    assert_eq!(count(), 3);
    assert_eq!(read(&mut subscription), ["end"]);
}

#[test]
fn a_process_that_was_stopped_does_not_hold_it_against_its_readers() {
    let mut world = World::new();
    let mut subscription = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    world.drain_after(SECOND);
    // Nothing is read between: the reader is a part of the process.
    for _ in 0..9 {
        world.put_many("/", 1);
        world.drain_after(60 * SECOND);
    }
    assert_eq!(world.exposes("larder_live_turned_away_total{why=\"slow\"}"), 0);
    assert_eq!(read(&mut subscription).len(), 9);
    world.put_many("/", 1);
    (0..11).for_each(|_| world.drain_after(60 * SECOND));
    assert_eq!(read(&mut subscription), ["too slow", "end"]);
}

#[test]
fn a_reader_is_woken_for_samples_each_50_ms_at_most_unless_many_wait() {
    const DRAIN: Duration = Duration::from_millis(10);
    let mut world = World::new();
    let mut subscription = world.watch.subscribe(Interest { all: true, ..Interest::default() }).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let (mut counts, mut taken) = (Vec::new(), 0);
    for put in [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1] {
        let before = woken.0.load(Ordering::Relaxed);
        taken += read(&mut subscription).len();
        assert!(subscription.poll_next(&mut Context::from_waker(&waker)).is_pending());
        world.put_many("/", put);
        world.drain_after(DRAIN);
        counts.push(woken.0.load(Ordering::Relaxed) - before);
    }
    assert_eq!(counts, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(taken + read(&mut subscription).len(), 7);
    assert!(subscription.poll_next(&mut Context::from_waker(&waker)).is_pending());
    let before = woken.0.load(Ordering::Relaxed);
    let counts = [256, 255, 1].map(|put| {
        world.put_many("/", put);
        world.drain_after(DRAIN);
        woken.0.load(Ordering::Relaxed) - before
    });
    assert_eq!(counts, [0, 0, 1]);
    assert_eq!(read(&mut subscription).len(), 512);
}

#[test]
fn waiting_in_a_task_is_the_same() {
    let mut world = World::new();
    let mut subscription = world.watch.subscribe(Interest::default()).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut next = std::pin::pin!(subscription.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
    }
    world.put_many("/", 1);
    world.drain_after(TENTH);
    let mut next = std::pin::pin!(subscription.next());
    assert!(matches!(next.as_mut().poll(&mut context), Poll::Ready(Some(Live::Sample(_)))));
}

#[test]
fn ticks_go_to_those_who_want_them_and_begin_with_the_last() {
    let mut world = World::new();
    let tick = |world: &mut World| {
        world.now = world.now.later(Duration::from_secs(1));
        world.watch.tick(world.now, &NoFigures);
    };
    tick(&mut world);
    assert!(world.watch.newest().is_none(), "the first one is no second");
    tick(&mut world);
    let ticks = Interest { ticks: true, samples: false, ..Interest::default() };
    let mut figures = world.watch.subscribe(ticks.clone()).unwrap();
    let mut samples = world.watch.subscribe(Interest::default()).unwrap();
    assert_eq!(read(&mut figures), ["tick 2000"]);
    tick(&mut world);
    world.put_many("/a", 1);
    world.drain_after(Duration::ZERO);
    assert_eq!(read(&mut figures), ["tick 3000"]);
    assert_eq!(read(&mut samples), ["own"]);
    let all = world.watch.subscribe(Interest { all: true, ..ticks }).unwrap();
    assert!(!world.tap.takes_all(), "who wants no samples does not ask for all of them");
    drop(all);
}
