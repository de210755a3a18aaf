//! The engine as a whole: on a folder of its own, with its threads.
//!
//! A fixture makes keys and contents from numbers, so that a test knows what must come back; waiting is for the
//! queue to be empty, never for time to pass.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]

mod basics;
mod damage;
mod faults;
mod killed;
mod model;
mod planted;
mod room;
mod speed;
mod stock;
mod unread;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use larder_http::time::WallTime;

const MIB: u64 = 1 << 20;

fn settings(path: &Path, bytes: u64) -> DiskSettings {
    DiskSettings {
        path: path.to_owned(),
        size: DiskSize::Bytes(bytes),
        idle: None,
        files: Default::default(),
    }
}

fn open(path: &Path, bytes: u64) -> Arc<Disk> {
    reopen(path, bytes).expect("a disk")
}

/// Opens a disk that was open before. A program that another test starts at the same moment has its lock too, until it has
/// begun to run.
fn reopen(path: &Path, bytes: u64) -> Result<Arc<Disk>, DiskError> {
    let mut opened = Disk::open(settings(path, bytes));
    wait(|| match opened {
        Err(DiskError::InUse(_)) => {
            opened = Disk::open(settings(path, bytes));
            false
        }
        _ => true,
    });
    opened
}

/// The same for a disk that is only looked at.
fn checked(path: &Path) -> Report {
    let mut report = fsck(path, |_, _| ());
    wait(|| match report {
        Err(DiskError::InUse(_)) => {
            report = fsck(path, |_, _| ());
            false
        }
        _ => true,
    });
    report.expect("a disk")
}

fn key(k: u64) -> CacheKey {
    let mut key = CacheKey::new("example.org", &format!("/{k}"));
    key.push_part(b"https");
    key
}

/// Bytes that no other number or length gives.
fn bytes_of(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ length as u64 | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

fn note(number: u64, what: &[u8]) -> Note {
    Note { number, moment: number * 1000, what: what.to_vec() }
}

fn object(k: u64, number: u64, content: RecordContent) -> Object {
    Object {
        number,
        stored_at: WallTime(1_700_000_000_000 + number),
        identity: 0,
        key: key(k),
        head: bytes_of(k ^ 0xffff, 100),
        content,
    }
}

fn inline(seed: u64, length: usize) -> RecordContent {
    RecordContent::Inline(vec![bytes_of(seed, length)])
}

/// Pieces of a content of this length.
fn pieces(disk: &Arc<Disk>, k: u64, seed: u64, length: usize) -> Result<Vec<Piece>, Refused> {
    let whole = bytes_of(seed, length);
    let parts = (0..length).step_by(PIECE_BYTES_MAX);
    parts
        .map(|at| {
            settled(disk);
            disk.put_piece(&key(k), whole.slice(at..length.min(at + PIECE_BYTES_MAX)))
        })
        .collect()
}

/// Waits until everything that was put in is written or lost.
fn settled(disk: &Disk) {
    wait(|| disk.shared.queue.bytes() == 0);
}

fn wait(mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !until() {
        assert!(Instant::now() < end, "waited for too long");
        std::thread::park_timeout(Duration::from_micros(200));
    }
}

/// Reads a record, at once or by the pool.
fn read(disk: &Arc<Disk>, place: Location) -> Result<FoundRecord, ReadError> {
    disk.read_now(place).unwrap_or_else(|| block_on(disk.read(place)))
}

fn read_piece(disk: &Arc<Disk>, piece: &Piece) -> Result<Bytes, ReadError> {
    disk.piece_now(piece).unwrap_or_else(|| block_on(disk.read_piece(piece)))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

/// What is stored under a key: number and content, of the newest that can be read.
fn look(disk: &Arc<Disk>, k: u64) -> Option<(u64, Bytes)> {
    let at = disk.address(&key(k));
    // A record that is written again just now is at another place than it was found at.
    for _ in 0..10 {
        let places = disk.find(&at);
        for place in &places {
            match read_whole(disk, k, *place) {
                Ok(Some(found)) => return Some(found),
                Ok(None) => {}
                Err(_) if disk.holds(&at, *place) => disk.remove(&at, *place),
                Err(_) => {}
            }
        }
        if places == disk.find(&at) {
            return None;
        }
    }
    None
}

/// Number and content at a place, if it is of this key.
fn read_whole(disk: &Arc<Disk>, k: u64, place: Location) -> Result<Option<(u64, Bytes)>, ReadError> {
    let found = read(disk, place)?;
    if !found.is_of(&key(k)) {
        return Ok(None);
    }
    assert_eq!(found.head, bytes_of(k ^ 0xffff, 100));
    let content = match &found.content {
        FoundContent::Inline(bytes) => bytes.clone(),
        FoundContent::Pieces(pieces) => {
            let read = pieces.iter().map(|piece| read_piece(disk, piece));
            read.collect::<Result<Vec<_>, _>>()?.concat().into()
        }
    };
    Ok(Some((found.number, content)))
}

/// Random numbers that a seed brings back.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }
}

/// What the files of a folder take, in bytes.
fn taken(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).unwrap();
    // A file may go while it is being looked at.
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

/// Copies a folder as a crash would leave it. The journal first, since it is ahead of everything else; then segments from the
/// last to the first, since the first is the one that goes: what covers an older record is not to be missed where that is not.
fn copy(from: &Path, to: &Path) {
    let names = |is_journal: bool| {
        let mut names: Vec<_> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.retain(|path| (path.extension() == Some("journal".as_ref())) == is_journal);
        names
    };
    // Whatever is gone by now a crash would not have left either.
    let copy = |path: &Path| drop(std::fs::copy(path, to.join(path.file_name().unwrap())));
    // One generation may take over from others meanwhile: a crash would have left these or that.
    loop {
        let journals = names(true);
        journals.iter().for_each(|path| copy(path));
        if journals == names(true) {
            break;
        }
    }
    names(false).iter().rev().for_each(|path| copy(path));
}
