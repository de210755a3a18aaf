#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt;
use proptest::prelude::*;

use larder_http::body::BodyError;

use super::*;
use crate::memory::MemoryStoreSettings;

fn store(memory: u64) -> Arc<Store> {
    Store::in_memory(&MemoryStoreSettings { memory, max_object: memory })
}

fn key() -> CacheKey {
    CacheKey::new("example.com", "/")
}

async fn rest(reader: Reader) -> Result<Vec<u8>, BodyError> {
    tokio::time::timeout(Duration::from_secs(10), reader.collect())
        .await
        .expect("a reader ends")
        .map(|body| body.to_bytes().to_vec())
}

#[tokio::test]
async fn readers_that_come_early_late_and_after_the_end_get_the_same_bytes() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let early = tokio::spawn(rest(streaming.reader(None).unwrap()));
    streaming.push(Bytes::from_static(b"one ")).await.unwrap();
    let late = tokio::spawn(rest(streaming.reader(None).unwrap()));
    streaming.push(Bytes::from_static(b"two")).await.unwrap();
    let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
    assert_eq!(body.length(), 7);
    let after = rest(streaming.reader(None).unwrap()).await;
    for read in [early.await.unwrap(), late.await.unwrap(), after] {
        assert_eq!(read.unwrap(), b"one two");
    }
    assert_eq!(rest(streaming.reader(Some(2..5)).unwrap()).await.unwrap(), b"e t");
    drop((body, streaming));
    assert_eq!(store.usage().bytes, 0);
}

#[tokio::test]
async fn the_index_is_told_of_a_body_before_its_readers_and_not_under_its_lock() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), Some(7)).unwrap();
    let mut reader = streaming.reader(None).unwrap();
    streaming.push(Bytes::from_static(b"one ")).await.unwrap();
    assert_eq!(reader.frame().await.unwrap().unwrap().into_data().unwrap(), "one ");
    let mut told = 0;
    let last = Some(Bytes::from_static(b"two"));
    let finished = streaming.finish(last, |body| {
        told = body.length();
        // Whoever tells the index may ask the system.
        crate::rank::forbid_under_lock();
        assert!(streaming.is_keeping());
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut reader).poll_frame(cx).is_pending(), "the last bytes were there before");
    });
    finished.await.unwrap().unwrap();
    assert_eq!(told, 7);
    assert_eq!(rest(reader).await.unwrap(), b"two");
}

#[tokio::test]
async fn a_broken_body_cuts_its_readers_and_keeps_nothing() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), Some(10)).unwrap();
    let reader = streaming.reader(None).unwrap();
    streaming.push(Bytes::from_static(b"half")).await.unwrap();
    streaming.abort(BodyError::Cut);
    assert_eq!(rest(reader).await.unwrap_err(), BodyError::Cut);
    assert!(streaming.reader(None).is_none());
    drop(streaming);
    assert_eq!(store.usage().bytes, 0);
}

#[tokio::test]
async fn a_body_that_outgrows_its_room_passes_at_the_pace_of_its_slowest_reader() {
    let store = store(64 * 1024);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let mut slow = streaming.reader(None).unwrap();
    let fast = tokio::spawn(rest(streaming.reader(None).unwrap()));
    let piece = Bytes::from(vec![b'x'; 10_000]);
    let producer = tokio::spawn({
        let streaming = Arc::clone(&streaming);
        async move {
            for _ in 0..100 {
                streaming.push(piece.clone()).await.unwrap();
            }
            streaming.finish(None, |_| ()).await.unwrap()
        }
    });
    let mut read = 0;
    while let Some(frame) = slow.frame().await {
        assert!(store.usage().bytes <= 64 * 1024);
        read += frame.unwrap().into_data().unwrap().len();
        if read == 10_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!producer.is_finished(), "the slowest reader sets the pace");
        }
    }
    assert_eq!(read, 1_000_000);
    assert!(streaming.reader(None).is_none(), "nobody new joins");
    assert_eq!(fast.await.unwrap().unwrap().len(), 1_000_000);
    assert!(producer.await.unwrap().is_none(), "nothing is kept");
    drop((slow, streaming));
    assert_eq!(store.usage().bytes, 0);
}

#[tokio::test]
async fn a_passing_body_stops_when_its_last_reader_leaves() {
    let store = store(4096);
    let streaming = StreamingBody::pass(&store, &key(), None, &Arc::default());
    let reader = streaming.reader(None).unwrap();
    streaming.push(Bytes::from_static(b"x")).await.unwrap();
    drop(reader);
    assert_eq!(streaming.push(Bytes::from_static(b"y")).await, Err(PushError::NoReaders));
}

#[tokio::test]
async fn a_waiting_producer_hears_of_the_last_readers_leaving() {
    let store = store(4096);
    let streaming = StreamingBody::pass(&store, &key(), None, &Arc::default());
    let reader = streaming.reader(None).unwrap();
    let producer = tokio::spawn({
        let streaming = Arc::clone(&streaming);
        async move {
            loop {
                if streaming.push(Bytes::from(vec![0; 3000])).await.is_err() {
                    return;
                }
            }
        }
    });
    tokio::task::yield_now().await;
    drop(reader);
    tokio::time::timeout(Duration::from_secs(10), producer).await.expect("it stops").unwrap();
}

#[tokio::test]
async fn many_tiny_pieces_are_put_together() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    for byte in 0..=255u8 {
        streaming.push(Bytes::copy_from_slice(&[byte; 10])).await.unwrap();
    }
    let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
    assert_eq!((larder_http::body::Pieces::pieces(&*body).len(), body.length()), (1, 2560));
    assert_eq!(store.usage().bytes, 2560 + PIECE_OVERHEAD_BYTES);
}

#[tokio::test]
async fn a_body_is_committed_before_its_last_bytes_are_seen() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let reader = tokio::spawn(rest(streaming.reader(None).unwrap()));
    streaming.push(Bytes::from_static(b"first, ")).await.unwrap();
    let mut committed = false;
    let whole = streaming.finish(Some(Bytes::from_static(b"last")), |body| {
        assert_eq!(body.length(), 11);
        assert!(!reader.is_finished());
        committed = true;
    });
    assert!(whole.await.unwrap().is_some());
    assert!(committed);
    assert_eq!(reader.await.unwrap().unwrap(), b"first, last");
}

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Bell {
    fn rang(&self) -> bool {
        self.0.swap(0, std::sync::atomic::Ordering::Relaxed) > 0
    }
}

fn park(reader: &mut Reader, bell: &Arc<Bell>) {
    use http_body::Body as _;
    let waker = Waker::from(Arc::clone(bell));
    assert!(Pin::new(reader).poll_frame(&mut Context::from_waker(&waker)).is_pending());
}

#[tokio::test]
async fn a_piece_wakes_one_reader_of_a_worker_and_that_one_the_others() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let bells: Vec<Arc<Bell>> = (0..3).map(|_| Arc::default()).collect();
    let mut readers: Vec<Reader> = bells.iter().map(|_| streaming.reader(None).unwrap()).collect();
    readers.iter_mut().zip(&bells).for_each(|(reader, bell)| park(reader, bell));
    streaming.push(Bytes::from_static(b"x")).await.unwrap();
    let rang: Vec<bool> = bells.iter().map(|bell| bell.rang()).collect();
    let first = rang.iter().position(|rang| *rang).unwrap();
    assert_eq!(rang.iter().filter(|rang| **rang).count(), 1);
    // Whether it reads on or leaves, its neighbours are woken.
    drop(readers.remove(first));
    let rang: Vec<bool> = bells.iter().map(|bell| bell.rang()).collect();
    assert_eq!(rang.iter().filter(|rang| **rang).count(), 2);
}

/// A slot is used again by a reader of another worker: its predecessor must not stand for it in its old list.
#[tokio::test]
async fn a_place_that_is_used_again_wakes_nobody_in_its_stead() {
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let bells: [Arc<Bell>; 3] = Default::default();
    let mut first = streaming.reader(None).unwrap();
    let mut second = streaming.reader(None).unwrap();
    park(&mut first, &bells[0]);
    park(&mut second, &bells[1]);
    drop(second);
    let elsewhere = std::thread::spawn({
        let (streaming, bell) = (Arc::clone(&streaming), Arc::clone(&bells[2]));
        move || {
            let mut third = streaming.reader(None).unwrap();
            park(&mut third, &bell);
            third
        }
    });
    let _third = elsewhere.join().unwrap();
    streaming.finish(None, |_| ()).await.unwrap();
    assert!(bells[0].rang() && bells[2].rang());
}

#[tokio::test]
async fn a_reader_that_runs_wakes_its_neighbours() {
    use http_body::Body as _;
    let store = store(1 << 20);
    let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
    let bells: [Arc<Bell>; 2] = Default::default();
    let mut readers = [streaming.reader(None).unwrap(), streaming.reader(None).unwrap()];
    readers.iter_mut().zip(&bells).for_each(|(reader, bell)| park(reader, bell));
    streaming.push(Bytes::from_static(b"x")).await.unwrap();
    let first = bells.iter().position(|bell| bell.rang()).unwrap();
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut readers[first]).poll_frame(&mut nobody).is_ready());
    assert!(bells[1 - first].rang());
}

/// Readers on several workers, some of which leave while they are owed a wake: nobody waits for ever.
#[test]
fn no_reader_is_forgotten_when_neighbours_leave() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 0..50u64 {
        runtime.block_on(async {
            let store = store(1 << 20);
            let streaming = StreamingBody::keep(&store, &key(), None).unwrap();
            let readers: Vec<_> = (0..40)
                .map(|_| {
                    let reader = streaming.reader(None).unwrap();
                    tokio::spawn(rest(reader))
                })
                .collect();
            for n in 0..20u64 {
                streaming.push(Bytes::copy_from_slice(&n.to_le_bytes())).await.unwrap();
                if n % 3 == round % 3 {
                    readers[(n as usize * 7 + round as usize) % 40].abort();
                }
                tokio::task::yield_now().await;
            }
            streaming.finish(None, |_| ()).await.unwrap();
            for reader in readers {
                if let Ok(read) = reader.await {
                    assert_eq!(read.unwrap().len(), 160);
                }
            }
        });
    }
}

proptest! {
    /// Whatever the pieces and the range, a reader gets exactly the bytes of its range, while arriving and afterwards.
    #[test]
    fn a_range_of_pieces_is_the_range_of_the_whole(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        cut in (0..500usize, 0..500usize),
    ) {
        let whole: Vec<u8> = pieces.concat();
        let (a, b) = (cut.0.min(whole.len()), cut.1.min(whole.len()));
        let range = a.min(b)..a.max(b);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let streaming = StreamingBody::keep(&store(1 << 20), &key(), None).unwrap();
            let wanted = range.start as u64..range.end as u64;
            let during = tokio::spawn(rest(streaming.reader(Some(wanted.clone())).unwrap()));
            for piece in pieces {
                streaming.push(piece.into()).await.unwrap();
                tokio::task::yield_now().await;
            }
            streaming.finish(None, |_| ()).await.unwrap();
            let after = rest(streaming.reader(Some(wanted)).unwrap()).await.unwrap();
            assert_eq!(during.await.unwrap().unwrap(), &whole[range.clone()]);
            assert_eq!(after, &whole[range]);
        });
    }
}
