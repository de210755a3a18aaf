//! Reading along while a file is written.

use std::sync::atomic::AtomicBool;
use std::task::{Wake, Waker};
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::arriving::Arriving;
use larder_tier::Fill;

/// Everything that has come, read in pieces.
fn all(content: &Arriving, length: u64) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    while (read.len() as u64) < length {
        read.extend_from_slice(&content.read_at(read.len() as u64, PIECE_BYTES)?);
    }
    Ok(read)
}

/// Pieces of different lengths, and all of them together.
fn pieces() -> (Vec<Bytes>, Vec<u8>) {
    let piece = |number: u8| Bytes::from(vec![number; 1 + usize::from(number) * 9973]);
    let pieces: Vec<Bytes> = (0..20).map(piece).collect();
    let all = pieces.concat();
    (pieces, all)
}

#[test]
fn what_was_handed_over_can_be_read_before_and_while_and_after_it_is_written() {
    let fixture = Fixture::new(1 << 24);
    let release = hold_up(&fixture.store);
    let (pieces, expected) = pieces();
    let mut fill = fixture.store.begin(&uri("/a"), Some(expected.len() as u64)).unwrap();
    for (number, piece) in pieces.into_iter().enumerate() {
        if number == 10 {
            assert_eq!(all(fill.content(), fill.length()).unwrap(), expected[..fill.length() as usize]);
        }
        fill.write(piece).unwrap();
    }
    let content = Arc::clone(fill.content());
    assert!(content.read_at(expected.len() as u64, 1).is_err(), "so much has not come");
    let is_over = Arc::new(AtomicBool::new(false));
    let _over = Over(Arc::clone(&is_over));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) || rounds == 0 {
                assert!(all(&content, expected.len() as u64).unwrap() == expected);
                rounds += 1;
            }
        });
        drop(release);
        commit(fill).unwrap();
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(all(&content, expected.len() as u64).unwrap() == expected);
    std::fs::remove_file(fixture.path("h/a")).unwrap();
    assert!(all(&content, expected.len() as u64).unwrap() == expected, "its name is gone, not the file");
}

#[test]
fn what_was_given_up_can_be_read_to_its_end_and_counts_until_then() {
    let fixture = Fixture::new(1 << 24);
    let before = fixture.store.usage().bytes;
    let (pieces, expected) = pieces();
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    pieces.into_iter().for_each(|piece| fill.write(piece).unwrap());
    assert!(fixture.store.flush());
    let content = Arc::clone(fill.content());
    drop(fill);
    assert!(fixture.store.flush());
    assert_eq!(files(&fixture.path(".larder/tmp")).len(), 0);
    assert!(all(&content, expected.len() as u64).unwrap() == expected);
    assert!(fixture.store.usage().bytes >= before + expected.len() as u64);
    drop(content);
    assert!(fixture.store.flush());
    wait(|| fixture.store.usage().bytes == before);
}

#[test]
fn who_reads_along_is_cut_when_somebody_writes_into_the_file() {
    let fixture = Fixture::new(1 << 24);
    let (pieces, expected) = pieces();
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    pieces.into_iter().for_each(|piece| fill.write(piece).unwrap());
    let content = Arc::clone(fill.content());
    commit(fill).unwrap();
    assert!(all(&content, expected.len() as u64).unwrap() == expected);
    std::fs::write(fixture.path("h/a"), "edited").unwrap();
    assert!(content.read_at(0, 6).is_err());
}

#[test]
fn a_piece_that_does_not_fit_into_the_queue_is_not_there() {
    let fixture = Fixture::new(1 << 30);
    let release = hold_up(&fixture.store);
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    let piece = Bytes::from(vec![7; 1 << 20]);
    while fill.write(piece.clone()).is_ok() {}
    let taken = queue::QUEUE_BYTES_MAX as u64;
    assert_eq!(fill.length(), taken);
    assert!(fill.content().read_at(taken, 1).is_err());
    assert_eq!(fill.content().read_at(taken - 1, 9).unwrap(), &[7][..]);
    drop(release);
}

#[test]
fn a_piece_that_does_not_fit_may_be_offered_again_and_who_waits_is_woken() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let fixture = Fixture::new(1 << 30);
    let release = hold_up(&fixture.store);
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    let piece = Bytes::from(vec![7; 1 << 20]);
    while fill.try_write(&piece).unwrap() {}
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    fill.await_room(&Waker::from(Arc::clone(&woken)));
    assert!(!fill.try_write(&piece).unwrap() && !woken.0.load(Ordering::Acquire));
    drop(release);
    let until = Instant::now() + Duration::from_secs(20);
    while !woken.0.load(Ordering::Acquire) {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    while !fill.try_write(&piece).unwrap() {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    commit(fill).unwrap();
    let length = std::fs::metadata(fixture.path("h/a")).unwrap().len();
    assert_eq!(length, queue::QUEUE_BYTES_MAX as u64 + (1 << 20));
}

#[test]
fn what_does_not_become_a_file_is_counted_by_its_reason() {
    let fixture = Fixture::with(1 << 20, |settings| settings.max_object = 1000);
    assert_eq!(fixture.store.begin(&uri("/a"), Some(2000)).err(), Some(Refused::TooLarge));
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    assert_eq!(fill.write(Bytes::from(vec![0; 1001])), Err(Refused::TooLarge));
    drop(fill);
    drop(fixture.store.begin(&uri("/a"), None).unwrap());
    let fill = fixture.store.begin(&uri("/a"), Some(0)).unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(meta(), || false, Box::new(move |done| tell.send(done).unwrap()));
    assert_eq!(told.recv().unwrap(), Err(Refused::Invalidated));
    std::fs::create_dir(fixture.path("h")).unwrap();
    std::fs::write(fixture.path("h/a"), "theirs").unwrap();
    assert_eq!(put(&fixture.store, "/a", b"ours"), Err(Refused::InTheWay));
    fixture.store.note_not_a_file(NotAFile::Varies);
    fixture.store.note_not_a_file(NotAFile::LargeHead);
    let mut told = Vec::new();
    metrics::for_each(&fixture.store.usage(), &mut |name, _, labels, value| {
        if name == "larder_files_refused_total" && value > 0 {
            told.push((labels[0].1.to_owned(), value));
        }
    });
    let expected = [
        ("varies", 1),
        ("large-head", 1),
        ("too-large", 2),
        ("in-the-way", 1),
        ("invalidated", 1),
        ("incomplete", 1),
    ];
    assert_eq!(told, expected.map(|(reason, count)| (reason.to_owned(), count)));
}
