//! Of samples: which are taken, for how many they stand, and that handing them over costs no room and no time.
#![allow(clippy::unwrap_used)]

use larder_http::fields::cache_status::RequestResult;
use proptest::prelude::*;

use super::record::{RECORDS_DUE, RECORDS_MAX, TEXT_BYTES_DUE, TEXT_BYTES_MAX};
use super::*;

const TENTH: Duration = Duration::from_millis(100);

/// What an exchange does at its end.
fn exchange(tap: &Tap, result: RequestResult, target: &[u8]) {
    if let Some(weight) = tap.weigh(0, result.is_hit()) {
        tap.put(0, SampleHead::of(result, weight), &SampleTexts { target, ..SampleTexts::default() });
    }
}

fn put(tap: &Tap, texts: &SampleTexts<'_>) {
    tap.put(0, SampleHead::of(RequestResult::Asked, Weight::ONE), texts);
}

fn drained(tap: &Tap, now: Duration) -> Vec<SampleHead> {
    let mut heads = Vec::new();
    tap.drain(now, |head, _| heads.push(head.clone()));
    heads
}

fn dropped(tap: &Tap) -> [u64; 2] {
    DropReason::ALL.map(|reason| tap.dropped(reason))
}

/// Sums of one kind: exchanges, weights, and how far apart these may be, as a variance.
#[derive(Debug, Default)]
struct Sums {
    exchanges: u64,
    weights: u64,
    variance: u64,
}

impl Sums {
    fn is_unbiased(&self) -> bool {
        // A sample of weight w has the probability 1/w, so each of its exchanges adds w - 1.
        let error = 3.0 * (self.variance as f64).sqrt();
        (self.weights as f64 - self.exchanges as f64).abs() <= error
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Each second has 1 or 20 000 requests, the next starting where the last ended, with its own share of hits.
    #[test]
    fn weights_add_up_to_the_exchanges(
        seconds in prop::collection::vec((any::<bool>(), 0..=100_u64), 1..12),
        all in prop::bool::weighted(0.3),
    ) {
        let tap = Arc::new(Tap::new(1));
        let _all = all.then(|| tap.take_all());
        // What is drawn together is summed together.
        let (mut hits, mut others) = (Sums::default(), Sums::default());
        let is_of_hits = |result: RequestResult| result.is_hit() && !all;
        let mut now = Duration::ZERO;
        drained(&tap, now);
        let (mut number, mut was_busy) = (0_u64, false);
        for (is_busy, share) in seconds {
            // The one that follows a busy second is drawn by the weight of that second, 32 at most. It tells of none where it is not drawn.
            others.variance += 31 * u64::from(was_busy && !is_busy);
            was_busy = is_busy;
            for tenth in 0..10 {
                for _ in 0..(if is_busy { 2000 } else { u64::from(tenth == 5) }) {
                    number += 1;
                    let is_hit = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < share * 655;
                    let result = if is_hit { RequestResult::Disk } else { RequestResult::Asked };
                    let sums = if is_of_hits(result) { &mut hits } else { &mut others };
                    sums.exchanges += 1;
                    exchange(&tap, result, b"/");
                }
                now += TENTH;
                for head in drained(&tap, now) {
                    let sums = if is_of_hits(head.result) { &mut hits } else { &mut others };
                    let weight = head.weight.count();
                    sums.weights += weight;
                    sums.variance += weight * (weight - 1);
                }
            }
        }
        prop_assert_eq!(dropped(&tap), [0, 0]);
        // Of few hits none may be drawn yet; each adds 63 to the variance all the same.
        hits.variance = hits.variance.max(63 * hits.exchanges);
        for sums in [hits, others] {
            prop_assert!(sums.is_unbiased(), "{:?}", sums);
        }
    }
}

#[test]
fn what_is_no_hit_is_taken_whole_up_to_its_rate_and_thinned_out_beyond() {
    for (per_tenth, per_second_max, weight) in
        [(1, 10, 1), (100, 1000, 1), (101, 1000, 2), (400, 1000, 4), (2000, 1000, 32), (100_000, 1000, 1024)]
    {
        let tap = Tap::new(1);
        let (mut now, mut last) = (TENTH, Vec::new());
        drained(&tap, Duration::ZERO);
        for tenth in 0..40 {
            if tenth == 30 {
                last.clear();
            }
            (0..per_tenth).for_each(|_| exchange(&tap, RequestResult::Asked, b"/"));
            last.extend(drained(&tap, now));
            now += TENTH;
        }
        assert!(last.len() <= per_second_max + 10, "{per_tenth}: {}", last.len());
        assert!(last.iter().all(|head| head.weight.count() == weight), "{per_tenth}: {:?}", last.last());
        assert_eq!(dropped(&tap), [0, 0], "{per_tenth}");
    }
}

#[test]
fn a_rate_that_falls_is_taken_whole_a_second_later() {
    let tap = Tap::new(1);
    let mut now = Duration::ZERO;
    for tenth in 0..60 {
        let count = if tenth < 30 { 10_000 } else { 1 };
        (0..count).for_each(|_| exchange(&tap, RequestResult::Asked, b"/"));
        let heads = drained(&tap, now);
        if tenth >= 41 {
            assert_eq!(heads.iter().map(|head| head.weight.count()).collect::<Vec<_>>(), [1], "{tenth}");
        }
        now += TENTH;
    }
}

#[test]
fn one_hit_in_64_is_taken_whatever_the_order_of_requests_is() {
    let tap = Tap::new(1);
    let mut seen = [0_u64; 64];
    let mut now = Duration::ZERO;
    for _ in 0..1000 {
        for image in 0..64_u8 {
            exchange(&tap, RequestResult::Memory, &[image]);
        }
        tap.drain(now, |head, texts| {
            assert_eq!(head.weight.count(), 64);
            seen[usize::from(texts.target[0])] += 64;
        });
        now += TENTH;
    }
    assert_eq!(seen.iter().sum::<u64>(), 64_000);
    // Each came 1000 times; that is known as well as from 16 samples.
    assert!(seen.iter().all(|count| (64..=2200).contains(count)), "{seen:?}");
}

#[test]
fn all_are_taken_while_they_are_asked_for() {
    let tap = Arc::new(Tap::new(1));
    let hits = |count| (0..count).for_each(|_| exchange(&tap, RequestResult::Memory, b"/"));
    let weights = |now| drained(&tap, now).iter().map(|head| head.weight.count()).collect::<Vec<_>>();
    drained(&tap, Duration::ZERO);
    let (one, other) = (tap.take_all(), tap.take_all());
    drop(one);
    assert!(tap.takes_all());
    // 20 000 per second, each drain a while after it has become due.
    for drain in 1..300 {
        hits(200);
        assert_eq!(weights(Duration::from_millis(10 * drain)), [1; 200], "{drain}");
    }
    drop(other);
    assert!(!tap.takes_all());
    hits(64);
    assert_eq!(weights(Duration::from_secs(4)), [64]);
}

/// The thread that drains counts how often it is woken.
#[test]
fn a_worker_wakes_the_drain_once_when_its_buffer_fills_while_all_is_asked_for() {
    let tap = Arc::new(Tap::new(1));
    let (woken, wakes) = std::sync::mpsc::channel();
    let here = Arc::clone(&tap);
    let drain = std::thread::spawn(move || {
        here.drained_here();
        let mut now = Duration::ZERO;
        while woken.send(drained(&here, now).len()).is_ok() {
            std::thread::park();
            now += TENTH;
        }
    });
    let next = || wakes.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(next(), 0);
    let long = [b'x'; 512];
    let long = SampleTexts { target: &long, ..SampleTexts::default() };
    (0..RECORDS_DUE).for_each(|_| put(&tap, &SampleTexts::default()));
    assert!(wakes.try_recv().is_err(), "nobody asks for all");
    assert_eq!(drained(&tap, Duration::ZERO).len(), RECORDS_DUE);
    let all = tap.take_all();
    for (texts, due) in [(SampleTexts::default(), RECORDS_DUE), (long, TEXT_BYTES_DUE.div_ceil(512))] {
        (1..due).for_each(|_| put(&tap, &texts));
        assert!(wakes.try_recv().is_err());
        put(&tap, &texts);
        assert_eq!(next(), due);
        // The buffer was taken whole, so the next one counts from its start.
        (1..due).for_each(|_| put(&tap, &texts));
        assert!(wakes.try_recv().is_err());
        assert_eq!(drained(&tap, Duration::ZERO).len(), due - 1);
    }
    drop((all, wakes));
    drain.thread().unpark();
    drain.join().unwrap();
}

#[test]
fn what_is_off_samples_nothing_and_stays_off() {
    let tap = Arc::new(Tap::off());
    let _all = [tap.take_all(), tap.take_all()];
    assert!(!tap.takes_all());
    assert_eq!(tap.weigh(0, false), None);
    put(&tap, &SampleTexts::default());
    assert!(drained(&tap, Duration::ZERO).is_empty());
    let tap = Tap::new(1);
    assert_eq!(tap.weigh(1, false), None, "a worker that is not known");
    put(&tap, &SampleTexts::default());
    assert_eq!(drained(&tap, Duration::ZERO).len(), 1);
}

#[test]
fn what_has_no_room_is_dropped_and_counted_and_no_room_is_added() {
    let long = [b'x'; 10_000];
    let texts = SampleTexts {
        method: &long,
        host: &long,
        target: &long,
        user_agent: &long,
        referer: &long,
        content_type: &long,
    };
    let bytes = 32 + 255 + 512 + 256 + 256 + 128;
    for (texts, room) in [(SampleTexts::default(), RECORDS_MAX), (texts, TEXT_BYTES_MAX / bytes)] {
        let tap = Tap::new(1);
        let rooms = || {
            let shard = &tap.shards[0];
            [shard.filling.lock().room(), shard.draining.lock().buffer.room()]
        };
        let before = rooms();
        assert_eq!(before, [[RECORDS_MAX, TEXT_BYTES_MAX]; 2]);
        for round in 1..=3 {
            (0..room + 7).for_each(|_| put(&tap, &texts));
            assert_eq!(dropped(&tap), [7 * round, 0]);
            assert_eq!(drained(&tap, Duration::ZERO).len(), room);
            assert_eq!(rooms(), before);
        }
    }
}

#[test]
fn a_buffer_that_is_being_taken_drops_and_counts_and_never_waits() {
    let tap = Tap::new(2);
    let held = tap.shards[0].filling.lock();
    put(&tap, &SampleTexts::default());
    assert_eq!(dropped(&tap), [0, 1]);
    tap.put(1, SampleHead::of(RequestResult::Asked, Weight::ONE), &SampleTexts::default());
    assert_eq!(dropped(&tap), [0, 1], "another worker has a lock of its own");
    drop(held);
    // While samples are looked at, the worker has the other buffer.
    let mut seen = 0;
    put(&tap, &SampleTexts::default());
    tap.drain(Duration::ZERO, |_, _| {
        seen += 1;
        put(&tap, &SampleTexts::default());
    });
    assert_eq!((seen, dropped(&tap)), (2, [0, 1]));
    assert_eq!(drained(&tap, Duration::ZERO).len(), 2);
}

#[test]
fn workers_and_a_drain_at_once_lose_nothing_uncounted() {
    const EACH: u64 = 20_000;
    let tap = Arc::new(Tap::new(2));
    let work = |worker| {
        let tap = Arc::clone(&tap);
        move || {
            for number in 0..EACH {
                let head =
                    SampleHead { body_bytes: number, ..SampleHead::of(RequestResult::Asked, Weight::ONE) };
                tap.put(worker, head, &SampleTexts { host: &[worker as u8], ..SampleTexts::default() });
            }
        }
    };
    let workers = [0, 1].map(|worker| std::thread::spawn(work(worker)));
    let (mut taken, mut last) = (0, [None; 2]);
    let mut drain = || {
        tap.drain(Duration::ZERO, |head, texts| {
            taken += 1;
            let worker = usize::from(texts.host[0]);
            assert!(last[worker] < Some(head.body_bytes), "another order");
            last[worker] = Some(head.body_bytes);
        });
    };
    while !workers.iter().all(std::thread::JoinHandle::is_finished) {
        drain();
    }
    drain();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert_eq!(taken + dropped(&tap).iter().sum::<u64>(), 2 * EACH);
}

proptest! {
    #[test]
    fn texts_come_out_as_they_went_in_but_for_their_cut(
        samples in prop::collection::vec(prop::array::uniform6(prop::collection::vec(any::<u8>(), 0..600)), 1..20),
    ) {
        let tap = Tap::new(1);
        for [method, host, target, user_agent, referer, content_type] in &samples {
            put(&tap, &SampleTexts { method, host, target, user_agent, referer, content_type });
        }
        let mut out = Vec::new();
        tap.drain(Duration::ZERO, |_, t| {
            let texts = [t.method, t.host, t.target, t.user_agent, t.referer, t.content_type];
            out.push(texts.map(<[u8]>::to_vec));
        });
        for (mut put, got) in samples.into_iter().zip(out) {
            let limits = [32, 255, 512, 256, 256, 128];
            put.iter_mut().zip(limits).for_each(|(text, limit)| text.truncate(limit));
            prop_assert_eq!(put, got);
        }
    }
}
