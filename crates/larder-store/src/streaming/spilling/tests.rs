//! Disks that do not keep up: who waits for them, who does not, what is kept, and how it is filled up later. Whatever happens,
//! nobody gets a wrong byte.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use larder_http::body::{Body, BodyError};
use proptest::prelude::*;

use super::*;
use crate::memory::MemoryStoreSettings;
use crate::streaming::{Finished, Reader};
use larder_disk::engine::{Disk, DiskSettings, DiskSize, RefusalReason};
use larder_disk::layouts::{Disks, Layout};

const MEMORY_BYTES: u64 = 8 << 20;
const PUSHED_BYTES: usize = 100_003;
/// Seventeen pieces and a bit: more than what is kept whole or not at all.
const BODY_BYTES: usize = 17 * CHUNK_BYTES + 123;

struct Fixture {
    store: Arc<Store>,
    disks: Vec<Arc<Disk>>,
    _folder: tempfile::TempDir,
}

fn fixture(layout: Layout) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let count = if layout == Layout::Single { 1 } else { 2 };
    let open = |number: usize| {
        let path = folder.path().join(number.to_string());
        Disk::open(DiskSettings {
            path,
            size: DiskSize::Bytes(64 << 20),
            idle: None,
            files: Default::default(),
        })
        .unwrap()
    };
    let disks: Vec<_> = (0..count).map(open).collect();
    let memory = MemoryStoreSettings { memory: MEMORY_BYTES, max_object: MEMORY_BYTES / 4 };
    let store = Store::new(&memory, Some(Disks::new(layout, disks.clone(), 32 << 20)));
    Fixture { store, disks, _folder: folder }
}

impl Fixture {
    fn crowd(&self, is_full: bool) {
        self.disks.iter().for_each(|disk| disk.crowd_queue(is_full));
    }

    /// All that waits is written; says how much has been written so far.
    fn settled(&self) -> u64 {
        let until = Instant::now() + Duration::from_secs(20);
        while self.disks.iter().any(|disk| disk.usage().queued_bytes > 0) {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
        self.disks.iter().map(|disk| disk.usage().written_bytes).sum()
    }

    fn streaming(&self, declared: Option<u64>) -> Arc<StreamingBody> {
        let may_be = (Some(0), true);
        StreamingBody::keep_for(&self.store, &key(), declared, may_be, &Arc::default()).unwrap()
    }
}

fn key() -> CacheKey {
    CacheKey::new("example.com", "/large")
}

/// Bytes of which no two stretches are alike.
fn content(length: usize) -> Bytes {
    let word = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes();
    (0..length.div_ceil(8) as u64).flat_map(word).take(length).collect()
}

fn sent(content: &Bytes) -> impl Iterator<Item = Bytes> {
    let length = content.len();
    (0..length).step_by(PUSHED_BYTES).map(move |at| content.slice(at..length.min(at + PUSHED_BYTES)))
}

async fn rest(reader: Reader) -> Result<Bytes, BodyError> {
    let read = tokio::time::timeout(Duration::from_secs(20), reader.collect()).await;
    read.expect("a reader ends").map(http_body_util::Collected::to_bytes)
}

async fn read(body: &Arc<StoredBody>) -> Bytes {
    match body.content(0..body.length()).unwrap() {
        Body::Stream { stream, .. } => stream.collect().await.unwrap().to_bytes(),
        _ => panic!("it lies on disks"),
    }
}

/// Whether it has not come to its end when it is polled.
fn has_to_wait<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// What of `content` these runs are, and the rest of it.
fn split(content: &Bytes, runs: &[Range<u64>]) -> (Vec<u8>, Vec<u8>) {
    let (mut kept, mut missing, mut at) = (Vec::new(), Vec::new(), 0);
    for run in runs {
        missing.extend_from_slice(&content[at..run.start as usize]);
        kept.extend_from_slice(&content[run.start as usize..run.end as usize]);
        at = run.end as usize;
    }
    missing.extend_from_slice(&content[at..]);
    (kept, missing)
}

#[tokio::test]
async fn a_full_queue_is_waited_for_as_long_as_every_reader_has_bytes() {
    for layout in [Layout::Single, Layout::Mirror, Layout::Stripe, Layout::Hash] {
        for declared in [Some(BODY_BYTES as u64), None] {
            let fixture = fixture(layout);
            let content = content(BODY_BYTES);
            let streaming = fixture.streaming(declared);
            let mut slow = streaming.reader(None).unwrap();
            streaming.push(content.slice(..CHUNK_BYTES + 1)).await.unwrap();
            fixture.settled();
            fixture.crowd(true);
            let mut pushed = Box::pin(streaming.push(content.slice(CHUNK_BYTES + 1..)));
            assert!(has_to_wait(pushed.as_mut()), "it waits for the disk");
            let first = slow.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(first.len() <= CHUNK_BYTES && has_to_wait(pushed.as_mut()));
            fixture.crowd(false);
            pushed.await.unwrap();
            assert!(streaming.is_keeping() && streaming.loss().is_none());
            let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
            assert!(rest(slow).await.unwrap() == content.slice(first.len()..), "{layout:?}");
            assert!(read(&body).await == content);
        }
    }
}

#[tokio::test]
async fn what_a_reader_would_wait_for_is_left_out_and_filled_up_later_without_writing_the_rest_again() {
    for layout in [Layout::Single, Layout::Mirror, Layout::Stripe, Layout::Hash] {
        for declared in [Some(BODY_BYTES as u64), None] {
            let fixture = fixture(layout);
            let content = content(BODY_BYTES);
            let streaming = fixture.streaming(declared);
            let fast = tokio::spawn(rest(streaming.reader(None).unwrap()));
            for (number, bytes) in sent(&content).enumerate() {
                match number {
                    8 | 25 => fixture.crowd(true),
                    15 | 32 => fixture.crowd(false),
                    _ => {}
                }
                streaming.push(bytes).await.unwrap();
                tokio::task::yield_now().await;
            }
            let finished = streaming.end(None, None, |_| ()).await.unwrap();
            let Finished::Part { body, runs, complete } = finished else { panic!("{finished:?}") };
            assert_eq!((complete, streaming.loss()), (BODY_BYTES as u64, Some(Loss::QueueFull)));
            assert!(fast.await.unwrap().unwrap() == content);
            assert!(streaming.reader(None).is_none(), "nobody joins what has gaps");
            let (kept, missing) = split(&content, &runs);
            assert!(runs.len() > 1 && !missing.is_empty(), "{runs:?}");
            assert!(read(&body).await == kept);
            let written = fixture.settled();

            let again = StreamingBody::complete(
                &fixture.store,
                &key(),
                &body,
                runs.iter().cloned(),
                complete,
                &Arc::default(),
            )
            .unwrap();
            drop((streaming, body));
            let reader = tokio::spawn(rest(again.reader(None).unwrap()));
            for bytes in sent(&missing.clone().into()) {
                again.push(bytes).await.unwrap();
            }
            let whole = again.finish(None, |_| ()).await.unwrap().unwrap();
            assert!(reader.await.unwrap().unwrap() == content, "{layout:?}");
            assert!(read(&whole).await == content);
            let copies = if layout == Layout::Mirror { 2 } else { 1 };
            let more = fixture.settled() - written;
            assert!(more < copies * (missing.len() as u64 + 100_000), "{more} for {}", missing.len());
            drop((again, whole));
            assert_eq!(fixture.store.usage().bytes, 0, "{layout:?}");
        }
    }
}

/// A body of which the disk has every third piece.
async fn part_of(fixture: &Fixture, content: &Bytes) -> (Arc<StoredBody>, Vec<Range<u64>>) {
    let streaming = fixture.streaming(Some(content.len() as u64));
    let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
    for (number, at) in (0..content.len()).step_by(CHUNK_BYTES).enumerate() {
        let is_full = number % 3 != 0;
        match is_full {
            true => fixture.crowd(true),
            false => assert!(fixture.settled() < u64::MAX),
        }
        streaming.push(content.slice(at..content.len().min(at + CHUNK_BYTES))).await.unwrap();
        if is_full {
            fixture.crowd(false);
        }
    }
    let Finished::Part { body, runs, .. } = streaming.end(None, None, |_| ()).await.unwrap() else {
        panic!("no part")
    };
    assert!(reader.await.unwrap().unwrap() == *content);
    (body, runs)
}

#[tokio::test]
async fn a_last_piece_that_comes_by_itself_is_sent_and_counted_once() {
    for layout in [Layout::Single, Layout::Mirror, Layout::Stripe, Layout::Hash] {
        let fixture = fixture(layout);
        let content = content(BODY_BYTES);
        let streaming = fixture.streaming(Some(BODY_BYTES as u64));
        let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
        let last = content.slice(BODY_BYTES / CHUNK_BYTES * CHUNK_BYTES..);
        for at in (0..content.len() - last.len()).step_by(CHUNK_BYTES) {
            fixture.crowd(at == 8 * CHUNK_BYTES);
            streaming.push(content.slice(at..at + CHUNK_BYTES)).await.unwrap();
            tokio::task::yield_now().await;
        }
        fixture.crowd(false);
        fixture.settled();
        let finished = streaming.end(Some(last), None, |_| ()).await.unwrap();
        let Finished::Part { body, runs, complete } = finished else { panic!("{finished:?}") };
        assert_eq!(complete, BODY_BYTES as u64);
        assert_eq!(runs.last().unwrap().end, complete, "{layout:?}");
        assert!(reader.await.unwrap().unwrap() == content, "{layout:?}");
        assert!(read(&body).await == split(&content, &runs).0);
    }
}

#[tokio::test]
async fn where_the_disk_fails_while_a_part_is_filled_up_everybody_gets_the_right_bytes_all_the_same() {
    for fails_after in [0, 1, 5, 20] {
        let fixture = fixture(Layout::Single);
        let content = content(BODY_BYTES);
        let (body, runs) = part_of(&fixture, &content).await;
        assert!(runs.len() > 3, "{runs:?}");
        let (_, missing) = split(&content, &runs);
        let again = StreamingBody::complete(
            &fixture.store,
            &key(),
            &body,
            runs.into_iter(),
            BODY_BYTES as u64,
            &Arc::default(),
        )
        .unwrap();
        let readers: Vec<_> = (0..2).map(|_| tokio::spawn(rest(again.reader(None).unwrap()))).collect();
        let producer = async {
            for (number, bytes) in sent(&missing.into()).enumerate() {
                if number == fails_after {
                    fixture.disks[0].close_queue();
                }
                again.push(bytes).await.unwrap();
                tokio::task::yield_now().await;
            }
            again.end(None, None, |_| panic!("nothing is kept")).await.unwrap()
        };
        let finished = producer.await;
        assert!(matches!(finished, Finished::Passed), "{finished:?}");
        assert_eq!(again.loss(), Some(Loss::Failing));
        for reader in readers {
            assert!(reader.await.unwrap().unwrap() == content, "{fails_after}");
        }
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_that_nothing_took_in_time_stays_in_memory_and_is_right() {
    let fixture = fixture(Layout::Single);
    let content = content(3 * CHUNK_BYTES);
    let streaming = fixture.streaming(None);
    let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
    for (number, bytes) in sent(&content).enumerate() {
        // It is beyond a piece while the disk is left alone.
        fixture.disks[0].leave_alone((2..5).contains(&number));
        streaming.push(bytes).await.unwrap();
    }
    let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
    assert!(body.is_in_memory());
    assert!(reader.await.unwrap().unwrap() == content);
}

#[tokio::test]
async fn a_small_body_and_one_that_cannot_be_completed_are_kept_whole_or_not_at_all() {
    for (length, may_have_gaps) in [(BODY_BYTES / 5, true), (BODY_BYTES, false)] {
        let fixture = fixture(Layout::Single);
        let content = content(length);
        let streaming = StreamingBody::keep_for(
            &fixture.store,
            &key(),
            Some(length as u64),
            (Some(0), may_have_gaps),
            &Arc::default(),
        )
        .unwrap();
        let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
        fixture.crowd(true);
        for bytes in sent(&content) {
            streaming.push(bytes).await.unwrap();
        }
        let finished = streaming.end(None, None, |_| ()).await.unwrap();
        assert!(matches!(finished, Finished::Passed), "{finished:?}");
        assert!(reader.await.unwrap().unwrap() == content);
        assert_eq!(streaming.loss(), Some(Loss::QueueFull));
        assert_eq!(fixture.disks[0].usage().refused.of(RefusalReason::QueueFull), 1);
    }
}

#[tokio::test]
async fn what_waits_is_borrowed_of_the_memory_and_no_more_than_a_quarter() {
    let fixture = fixture(Layout::Single);
    // As many as the queue has of its own; nothing of it is written.
    fixture.disks[0].hold_back(true);
    let content = content(BODY_BYTES * 4);
    let streaming = fixture.streaming(Some(content.len() as u64));
    // Somebody who has bytes to read all the time.
    let reader = streaming.reader(None).unwrap();
    let before = fixture.store.usage().bytes;
    let mut pushed = Box::pin(async {
        for bytes in sent(&content) {
            streaming.push(bytes).await.unwrap();
        }
    });
    assert!(has_to_wait(pushed.as_mut()));
    let queued = fixture.disks[0].usage().queued_bytes;
    let borrowed = fixture.store.usage().bytes - before;
    assert!(borrowed > 1 << 20 && borrowed <= MEMORY_BYTES / 4, "{borrowed} borrowed");
    assert_eq!(queued - (8 << 20), borrowed);
    fixture.disks[0].hold_back(false);
    pushed.await;
    assert!(streaming.finish(None, |_| ()).await.unwrap().is_some());
    drop((streaming, reader));
    fixture.settled();
    assert_eq!(fixture.store.usage().bytes, 0);
}

#[tokio::test]
async fn what_disks_have_of_a_body_that_broke_is_kept_and_filled_up_later() {
    for layout in [Layout::Single, Layout::Mirror, Layout::Stripe, Layout::Hash] {
        for is_crowded in [false, true] {
            let fixture = fixture(layout);
            let content = content(BODY_BYTES);
            let streaming = fixture.streaming(Some(BODY_BYTES as u64));
            let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
            for (number, bytes) in sent(&content.slice(..BODY_BYTES / 2)).enumerate() {
                if number == 8 && is_crowded {
                    fixture.crowd(true);
                }
                streaming.push(bytes).await.unwrap();
                tokio::task::yield_now().await;
            }
            let mut kept = None;
            streaming.give_up(BodyError::Cut, |finished| {
                if let Finished::Part { body, runs, complete } = finished {
                    kept = Some((Arc::clone(body), runs.clone(), *complete));
                }
            });
            assert_eq!(reader.await.unwrap(), Err(BodyError::Cut), "its readers are cut all the same");
            if is_crowded {
                fixture.crowd(false);
            }
            let (body, runs, complete) = kept.unwrap();
            assert_eq!((runs.len(), complete), (1, BODY_BYTES as u64), "{runs:?}");
            assert!(is_crowded || runs[0].end >= (BODY_BYTES / 2 - CHUNK_BYTES) as u64, "{runs:?}");
            let (whole, missing) = split(&content, &runs);
            assert!(read(&body).await == whole);
            let again = StreamingBody::complete(
                &fixture.store,
                &key(),
                &body,
                runs.into_iter(),
                complete,
                &Arc::default(),
            )
            .unwrap();
            again.push(missing.into()).await.unwrap();
            let whole = again.finish(None, |_| ()).await.unwrap().unwrap();
            assert!(read(&whole).await == content, "{layout:?}");
        }
    }
}

#[tokio::test]
async fn of_what_cannot_be_completed_nothing_is_kept_when_it_breaks() {
    for (declared, may_have_gaps) in [(None, true), (Some(BODY_BYTES), false), (Some(BODY_BYTES / 5), true)] {
        let fixture = fixture(Layout::Single);
        let declared = declared.map(|bytes| bytes as u64);
        let streaming = StreamingBody::keep_for(
            &fixture.store,
            &key(),
            declared,
            (Some(0), may_have_gaps),
            &Arc::default(),
        )
        .unwrap();
        streaming.push(content(3 * CHUNK_BYTES)).await.unwrap();
        streaming.give_up(BodyError::Cut, |finished| panic!("{finished:?}"));
        assert!(streaming.is_broken());
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_leaves_room_in_the_queue() {
    for layout in [Layout::Single, Layout::Mirror, Layout::Stripe, Layout::Hash] {
        let fixture = fixture(layout);
        fixture.disks.iter().for_each(|disk| disk.hold_back(true));
        let content = content(BODY_BYTES * 2);
        let streaming = fixture.streaming(Some(content.len() as u64));
        let mut pushed = Box::pin(streaming.push(content.clone()));
        assert!(has_to_wait(pushed.as_mut()));
        // Eight megabytes, and a quarter of the memory.
        let may_wait = (8 << 20) + MEMORY_BYTES / 4;
        for disk in &fixture.disks {
            let queued = disk.usage().queued_bytes;
            assert!(queued <= may_wait / 4 + 2 * CHUNK_BYTES as u64, "{layout:?}: {queued}");
        }
        fixture.disks.iter().for_each(|disk| disk.hold_back(false));
        pushed.await.unwrap();
        assert!(streaming.is_keeping(), "{layout:?}");
    }
}

#[test]
fn a_body_whose_disk_hangs_is_not_fetched_on_for_nobody() {
    let fixture = fixture(Layout::Single);
    let streaming = fixture.streaming(Some(BODY_BYTES as u64));
    assert!(streaming.may_keep_more());
    // As after ten seconds of waiting.
    streaming.spill.lock().as_mut().unwrap().stop();
    assert!(!streaming.may_keep_more() && streaming.is_keeping());
}

#[tokio::test]
async fn a_part_of_which_something_is_gone_is_not_gone_on_with() {
    let (fixture, other) = (fixture(Layout::Single), fixture(Layout::Single));
    let content = content(BODY_BYTES);
    let streaming = fixture.streaming(Some(BODY_BYTES as u64));
    streaming.push(content.clone()).await.unwrap();
    let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
    let runs = || std::iter::once(0..BODY_BYTES as u64);
    let complete = BODY_BYTES as u64;
    assert!(
        StreamingBody::complete(&other.store, &key(), &body, runs(), complete, &Arc::default()).is_none(),
        "of another store"
    );
    let odd = std::iter::once(5..BODY_BYTES as u64);
    assert!(
        StreamingBody::complete(&fixture.store, &key(), &body, odd, complete, &Arc::default()).is_none(),
        "no whole pieces"
    );
    let fewer = std::iter::once(0..CHUNK_BYTES as u64);
    assert!(
        StreamingBody::complete(&fixture.store, &key(), &body, fewer, complete, &Arc::default()).is_none(),
        "not what it has"
    );
    assert!(
        StreamingBody::complete(&fixture.store, &key(), &body, runs(), complete, &Arc::default()).is_some()
    );
}
proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Wherever the disk does not keep up, whoever reads as fast as they like: each reader gets its bytes, what is kept is what
    /// the runs say, and what is missing makes it whole.
    #[test]
    fn readers_and_runs_have_the_right_bytes(
        crowded in prop::collection::vec(any::<bool>(), 50),
        reads in prop::collection::vec(any::<bool>(), 3),
        is_declared: bool,
        pushed in 30_000usize..400_000,
    ) {
        let content = content(BODY_BYTES);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = fixture(Layout::Single);
            let streaming = fixture.streaming(is_declared.then_some(BODY_BYTES as u64));
            let readers: Vec<_> = reads.iter().map(|_| streaming.reader(None).unwrap()).collect();
            let producer = {
                let (streaming, content, disk) = (Arc::clone(&streaming), content.clone(), Arc::clone(&fixture.disks[0]));
                let crowded = crowded.clone();
                tokio::spawn(async move {
                    let mut was_full = false;
                    for (number, at) in (0..content.len()).step_by(pushed).enumerate() {
                        let is_full = crowded.get(number % crowded.len()).copied().unwrap_or_default();
                        if is_full != was_full {
                            disk.crowd_queue(is_full);
                            was_full = is_full;
                        }
                        streaming.push(content.slice(at..content.len().min(at + pushed))).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    if was_full {
                        disk.crowd_queue(false);
                    }
                    streaming.end(None, None, |_| ()).await.unwrap()
                })
            };
            let reading = readers.into_iter().zip(&reads).map(|(reader, is_lazy)| {
                let is_lazy = *is_lazy;
                tokio::spawn(async move {
                    for _ in 0..if is_lazy { 200 } else { 0 } {
                        tokio::task::yield_now().await;
                    }
                    rest(reader).await
                })
            });
            for read in reading.collect::<Vec<_>>() {
                assert!(read.await.unwrap().unwrap() == content);
            }
            match producer.await.unwrap() {
                Finished::Whole(body) => assert!(read(&body).await == content),
                Finished::Part { body, runs, complete } => {
                    let (kept, missing) = split(&content, &runs);
                    assert!(read(&body).await == kept);
                    let again = StreamingBody::complete(&fixture.store, &key(), &body, runs.into_iter(), complete, &Arc::default()).unwrap();
                    again.push(missing.into()).await.unwrap();
                    let whole = again.finish(None, |_| ()).await.unwrap().unwrap();
                    assert!(read(&whole).await == content);
                }
                // A piece is left out where the disk is crowded when it begins or when it ends; so may be all of them.
                Finished::Passed => {
                    assert_eq!(streaming.loss(), Some(Loss::QueueFull));
                    let refused = fixture.disks[0].usage().refused;
                    assert_eq!(refused.of(RefusalReason::QueueFull), BODY_BYTES.div_ceil(CHUNK_BYTES) as u64, "{refused:?}");
                }
            }
        });
    }
}
