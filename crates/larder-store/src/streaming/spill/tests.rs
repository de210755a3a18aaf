//! Bodies that leave memory for a disk while they arrive: whatever happens to the disk and to the readers, nobody gets a
//! wrong byte, and memory stays bounded.

#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use http_body::Body as _;
use http_body_util::BodyExt;
use larder_http::body::BodyError;
use proptest::prelude::*;

use super::*;
use crate::memory::MemoryStoreSettings;
use crate::streaming::{PushError, Reader, StreamingBody, WINDOW_BYTES};
use larder_disk::engine::{Disk, DiskSettings, DiskSize};
use larder_disk::layouts::{Disks, Layout};

const MEMORY_BYTES: u64 = 4 << 20;
const DISK_BYTES: u64 = 64 << 20;
const PUSHED_BYTES: usize = 10_007;
const BODY_BYTES: usize = 5 * CHUNK_BYTES + 123;

/// A store with one disk, in a folder that goes with it.
struct Fixture {
    store: Arc<Store>,
    disk: Arc<Disk>,
    _folder: tempfile::TempDir,
}

fn fixture(disk_bytes: u64) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let settings = DiskSettings {
        path: folder.path().join("disk"),
        size: DiskSize::Bytes(disk_bytes),
        idle: None,
        files: Default::default(),
    };
    let disk = Disk::open(settings).unwrap();
    let disks = Disks::new(Layout::Single, vec![Arc::clone(&disk)], disk_bytes / 4);
    let memory = MemoryStoreSettings { memory: MEMORY_BYTES, max_object: MEMORY_BYTES / 4 };
    Fixture { store: Store::new(&memory, Some(disks)), disk, _folder: folder }
}

fn key() -> CacheKey {
    CacheKey::new("example.com", "/large")
}

/// Bytes of which no two stretches are alike.
fn content(length: usize) -> Bytes {
    let word = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes();
    (0..length.div_ceil(8) as u64).flat_map(word).take(length).collect()
}

/// In pieces as an origin might send them.
fn sent(content: &Bytes) -> Vec<Bytes> {
    (0..content.len())
        .step_by(PUSHED_BYTES)
        .map(|at| content.slice(at..content.len().min(at + PUSHED_BYTES)))
        .collect()
}

async fn rest(reader: Reader) -> Result<Bytes, BodyError> {
    let read = tokio::time::timeout(Duration::from_secs(20), reader.collect()).await;
    read.expect("a reader ends").map(http_body_util::Collected::to_bytes)
}

/// What is read of a stream until it ends or breaks.
async fn until_the_end(mut reader: Reader) -> (Vec<u8>, Option<BodyError>) {
    let mut read = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), reader.frame()).await;
        match next.expect("a reader ends") {
            Some(Ok(frame)) => read.extend_from_slice(&frame.into_data().unwrap()),
            Some(Err(error)) => return (read, Some(error)),
            None => return (read, None),
        }
    }
}

fn settled(disk: &Disk) {
    let until = Instant::now() + Duration::from_secs(20);
    while disk.usage().queued_bytes > 0 || disk.usage().queued_objects > 0 {
        assert!(Instant::now() < until, "{:?}", disk.usage());
        std::thread::yield_now();
    }
}

async fn push_all(streaming: &StreamingBody, pieces: &[Bytes]) {
    for piece in pieces {
        streaming.push(piece.clone()).await.unwrap();
    }
}

#[tokio::test]
async fn readers_that_start_late_read_everything_and_memory_stays_bounded() {
    for declared in [Some(BODY_BYTES as u64), None] {
        let fixture = fixture(DISK_BYTES);
        let content = content(BODY_BYTES);
        let streaming = StreamingBody::keep(&fixture.store, &key(), declared).unwrap();
        // It is there from the beginning and does not read.
        let slow = streaming.reader(None).unwrap();
        for piece in sent(&content) {
            streaming.push(piece).await.unwrap();
            let held = streaming.state.lock().held();
            assert!(held <= SPILL_ROOM_BYTES, "{held} bytes held");
            assert!(streaming.is_keeping());
        }
        let late = streaming.reader(Some(CHUNK_BYTES as u64 - 5..3 * CHUNK_BYTES as u64 + 9)).unwrap();
        let counted = fixture.store.usage().bytes;
        assert!(counted <= 2 * SPILL_ROOM_BYTES, "{counted} bytes counted");
        let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
        assert_eq!((body.length(), body.is_in_memory()), (BODY_BYTES as u64, false));
        settled(&fixture.disk);
        assert!(rest(slow).await.unwrap() == content);
        assert!(rest(late).await.unwrap() == content.slice(CHUNK_BYTES - 5..3 * CHUNK_BYTES + 9));
        let after = streaming.reader(None).unwrap();
        drop(streaming);
        assert!(rest(after).await.unwrap() == content);
        drop(body);
        assert_eq!(fixture.store.usage().bytes, 0);
    }
}

#[tokio::test]
async fn the_last_bytes_may_come_with_the_end() {
    for length in [CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1] {
        for declared in [Some(length as u64), None] {
            let fixture = fixture(DISK_BYTES);
            let content = content(length);
            let streaming = StreamingBody::keep(&fixture.store, &key(), declared).unwrap();
            let reader = streaming.reader(None).unwrap();
            streaming.push(content.slice(..CHUNK_BYTES)).await.unwrap();
            let mut committed = None;
            let last = content.slice(CHUNK_BYTES..);
            streaming.finish(Some(last), |body| committed = Some(body.length())).await.unwrap();
            assert_eq!(committed, Some(length as u64), "{declared:?}");
            assert!(rest(reader).await.unwrap() == content);
        }
    }
}

#[tokio::test]
async fn where_the_queue_is_full_in_the_middle_the_body_passes_on_and_nobody_misses_a_byte() {
    for declared in [Some(BODY_BYTES as u64), None] {
        let fixture = fixture(DISK_BYTES);
        let content = content(BODY_BYTES);
        let pieces = sent(&content);
        let (before, after) = pieces.split_at(2 * CHUNK_BYTES / PUSHED_BYTES + 3);
        let streaming = StreamingBody::keep(&fixture.store, &key(), declared).unwrap();
        let early = tokio::spawn(rest(streaming.reader(None).unwrap()));
        let slow = streaming.reader(None).unwrap();
        push_all(&streaming, before).await;
        tokio::task::yield_now().await;
        settled(&fixture.disk);
        fixture.disk.crowd_queue(true);
        let producer = tokio::spawn({
            let (streaming, after) = (Arc::clone(&streaming), after.to_vec());
            async move {
                for piece in after {
                    streaming.push(piece).await.unwrap();
                    assert!(streaming.state.lock().held() <= WINDOW_BYTES + SPILL_ROOM_BYTES);
                }
                streaming.finish(None, |_| panic!("nothing whole is kept")).await.unwrap()
            }
        });
        assert!(rest(slow).await.unwrap() == content, "{declared:?}");
        assert!(early.await.unwrap().unwrap() == content);
        assert!(producer.await.unwrap().is_none());
        fixture.disk.crowd_queue(false);
        assert_eq!(fixture.disk.usage().objects, 0);
        drop(streaming);
        assert_eq!(fixture.store.usage().bytes, 0);
    }
}

#[tokio::test]
async fn a_body_that_passes_stops_when_its_last_reader_leaves() {
    let fixture = fixture(DISK_BYTES);
    let content = content(BODY_BYTES);
    let streaming = StreamingBody::keep(&fixture.store, &key(), Some(BODY_BYTES as u64)).unwrap();
    let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
    push_all(&streaming, &sent(&content)[..30]).await;
    fixture.disk.crowd_queue(true);
    push_all(&streaming, &sent(&content)[30..60]).await;
    assert!(!streaming.is_keeping());
    assert_eq!(streaming.loss(), Some(Loss::QueueFull));
    reader.abort();
    let _ = reader.await;
    assert_eq!(streaming.push(content.slice(..10)).await, Err(PushError::NoReaders));
}

#[tokio::test]
async fn one_that_breaks_in_the_middle_cuts_its_readers_after_what_had_come() {
    let fixture = fixture(DISK_BYTES);
    let content = content(BODY_BYTES);
    let streaming = StreamingBody::keep(&fixture.store, &key(), Some(BODY_BYTES as u64)).unwrap();
    let [slow, early] = [streaming.reader(None).unwrap(), streaming.reader(None).unwrap()];
    let early = tokio::spawn(until_the_end(early));
    let pieces = sent(&content);
    let came = 3 * CHUNK_BYTES / PUSHED_BYTES;
    push_all(&streaming, &pieces[..came]).await;
    streaming.abort(BodyError::Cut);
    assert!(streaming.reader(None).is_none());
    for (read, error) in [until_the_end(slow).await, early.await.unwrap()] {
        assert_eq!(error, Some(BodyError::Cut));
        assert!(read == content[..came * PUSHED_BYTES]);
    }
    drop(streaming);
    settled(&fixture.disk);
    assert_eq!((fixture.store.usage().bytes, fixture.disk.usage().objects), (0, 0));
}

#[tokio::test]
async fn a_reader_may_leave_while_a_piece_is_being_read() {
    let fixture = fixture(DISK_BYTES);
    let content = content(BODY_BYTES);
    let streaming = StreamingBody::keep(&fixture.store, &key(), Some(BODY_BYTES as u64)).unwrap();
    let mut readers: Vec<Reader> = (0..50).map(|_| streaming.reader(None).unwrap()).collect();
    push_all(&streaming, &sent(&content)).await;
    settled(&fixture.disk);
    let mut nobody = Context::from_waker(Waker::noop());
    for reader in &mut readers {
        // It has its first piece, or waits for it.
        let _ = Pin::new(reader).poll_frame(&mut nobody);
    }
    let left = readers.split_off(49);
    drop(readers);
    streaming.finish(None, |_| ()).await.unwrap().unwrap();
    assert_eq!(streaming.audience().readers(), 1);
    drop(left);
    assert_eq!(streaming.audience().readers(), 0);
    assert!(rest(streaming.reader(None).unwrap()).await.unwrap() == content);
}

/// A disk whose segments are all given up while somebody still reads what lay in the first of them.
#[tokio::test]
async fn a_slow_reader_is_not_overtaken_by_the_end_of_the_log() {
    let fixture = fixture(16 << 20);
    let content = content(BODY_BYTES);
    let streaming = StreamingBody::keep(&fixture.store, &key(), Some(BODY_BYTES as u64)).unwrap();
    let slow = streaming.reader(None).unwrap();
    push_all(&streaming, &sent(&content)).await;
    streaming.finish(None, |_| ()).await.unwrap().unwrap();
    settled(&fixture.disk);
    let before = fixture.disk.usage().reclaimed_segments;
    while fixture.disk.usage().reclaimed_segments < before + 12 {
        let other = CacheKey::new("example.com", "/other");
        let filler = fixture.disk.put_piece(&other, Bytes::from(vec![7; CHUNK_BYTES]));
        settled(&fixture.disk);
        drop(filler);
    }
    let (read, error) = until_the_end(slow).await;
    assert_eq!((read.len(), error), (BODY_BYTES, None));
    assert!(read == content);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// However it arrives, wherever the disk stops taking it, whatever is asked for: each reader gets its own bytes.
    #[test]
    fn readers_get_the_bytes_of_their_range(
        length in CHUNK_BYTES / 2..4 * CHUNK_BYTES,
        pushed in 1_000usize..200_000,
        is_declared: bool,
        crowded_after in prop::option::of(0usize..20),
        cut in (0.0..1.0f64, 0.0..1.0f64),
        reads_early: bool,
    ) {
        let at = |part: f64| (part * length as f64) as usize;
        let range = at(cut.0.min(cut.1))..at(cut.0.max(cut.1));
        let wanted = range.start as u64..range.end as u64;
        let content = content(length);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = fixture(DISK_BYTES);
            let streaming = StreamingBody::keep(&fixture.store, &key(), is_declared.then_some(length as u64)).unwrap();
            let part = streaming.reader(Some(wanted)).unwrap();
            let whole = streaming.reader(None).unwrap();
            let producer = tokio::spawn({
                let (streaming, content, disk) =
                    (Arc::clone(&streaming), content.clone(), Arc::clone(&fixture.disk));
                async move {
                    for (number, at) in (0..content.len()).step_by(pushed).enumerate() {
                        if crowded_after == Some(number) {
                            disk.crowd_queue(true);
                        }
                        let piece = content.slice(at..content.len().min(at + pushed));
                        streaming.push(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    streaming.finish(None, |_| ()).await.unwrap()
                }
            });
            if !reads_early {
                // As far as it comes without readers that read.
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
            }
            let (part, whole) = tokio::join!(rest(part), rest(whole));
            assert!(part.unwrap() == content.slice(range));
            assert!(whole.unwrap() == content);
            if let Some(body) = producer.await.unwrap() {
                assert_eq!(body.length(), length as u64);
            } else {
                assert!(crowded_after.is_some());
            }
        });
    }
}
