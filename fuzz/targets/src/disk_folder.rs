//! A disk's whole folder: whatever lies there, it is opened or refused, everything that is found can be asked for, and
//! the next start finds the same. What `fsck` calls sound is opened without a finding and read without damage. And a disk
//! that was opened stores: what is put in is there after the next start.
//!
//! An input is read from its front: a byte for the identity (the highest bit: store something as well), then files, each with
//! kind, number, flags and length, a byte each but for the length, which has two. By its flags a file keeps its checksums
//! as they are, where otherwise they are made right; gets a hole behind it; or has a byte of it turned (two bytes say which, one how).

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::allocated::at_most;
use crate::signed;
use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use larder_disk::engine::{
    Disk, DiskSettings, DiskSize, Finding, FoundContent, FoundRecord, Location, Object, Piece, ReadError,
    RecordContent, Report, fsck,
};
use larder_http::time::WallTime;
use larder_tier::CacheKey;

const DISK_BYTES: u64 = 16 << 20;
/// For opening three times and looking at every byte: a window for each segment, the tables of the index, buffers.
const ALLOCATED_MAX: usize = 256 << 20;
const FILES_MAX: usize = 12;
const DISK: u64 = 0x0123_4567_89ab_cdef;
/// Names that are no file's of larder.
const FOREIGN: &[&str] = &[
    "+0000001.seg",
    "0000000A.seg",
    "ffffffff.seg",
    "00000001",
    "lost+found",
    "00000001.toc.new",
    "larder.old",
    "00000001.journal.new",
];
/// Zeros that nobody wrote, behind a file, in bytes.
const HOLES: [u64; 4] = [0, 100, 64 << 10, 2 << 20];
const SETTLED_MAX: Duration = Duration::from_secs(5);

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let folder = Path::new("/dev/shm");
    let folder = if folder.is_dir() { tempfile::tempdir_in(folder) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder for a disk");
    // An input that is too short for what it says is a folder with fewer files.
    let stores = plant(folder.path(), &mut Unstructured::new(input)).expect("files");
    at_most(ALLOCATED_MAX, || holds(folder.path(), stores));
}

/// Makes the files; says whether something shall be stored.
fn plant(folder: &Path, input: &mut Unstructured<'_>) -> std::io::Result<bool> {
    let first = byte(input);
    let identity = match first & 0x0f {
        15 => Some(input.bytes(input.len().min(60)).unwrap_or_default().to_vec()),
        14 => None,
        _ => {
            let mut bytes = vec![0; signed::head_bytes(4)];
            signed::identity(&mut bytes, Some(DISK));
            Some(bytes)
        }
    };
    if let Some(bytes) = identity {
        fs::write(folder.join("larder"), bytes)?;
    }
    for _ in 0..FILES_MAX {
        let Ok((name, bytes, hole)) = file(input) else { break };
        let path = folder.join(name);
        fs::write(&path, &bytes)?;
        if hole > 0 {
            OpenOptions::new().write(true).open(&path)?.set_len(bytes.len() as u64 + hole)?;
        }
    }
    Ok(first & 0x80 != 0)
}

fn byte(input: &mut Unstructured<'_>) -> u8 {
    input.arbitrary().unwrap_or_default()
}

/// Name, bytes, and how many zeros follow; an error at the end of the input.
fn file(input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>, u64)> {
    let [kind, number, flags, low, high] = *input.bytes(5)? else { unreachable!("five were asked for") };
    let length = usize::from(u16::from_le_bytes([low, high])).min(input.len());
    let mut bytes = input.bytes(length)?.to_vec();
    let id = u32::from(number % 6) + 1;
    let is_signed = flags & 1 == 0;
    let name = match kind % 4 {
        0 => {
            is_signed.then(|| signed::segment(&mut bytes, DISK, id));
            format!("{id:08x}.seg")
        }
        1 => {
            is_signed.then(|| signed::table(&mut bytes, Some(DISK), Some(id.into())));
            format!("{id:08x}.toc")
        }
        2 => {
            is_signed.then(|| signed::journal(&mut bytes, DISK, id));
            format!("{id:08x}.journal")
        }
        _ => FOREIGN[usize::from(number) % FOREIGN.len()].to_owned(),
    };
    if flags & 8 != 0 {
        let at = usize::from(u16::from_le_bytes([byte(input), byte(input)]));
        let turn = byte(input);
        if let Some(turned) = at.checked_rem(bytes.len()).and_then(|at| bytes.get_mut(at)) {
            *turned ^= turn;
        }
    }
    Ok((name, bytes, HOLES[usize::from(flags >> 1 & 3)]))
}

fn open(folder: &Path) -> Option<Arc<Disk>> {
    let size = DiskSize::Bytes(DISK_BYTES);
    Disk::open(DiskSettings { path: folder.to_owned(), size, idle: None, files: Default::default() }).ok()
}

fn holds(folder: &Path, stores: bool) {
    let report = fsck(folder, |_, _| ()).ok();
    let Some(disk) = open(folder) else { return };
    let first = all_of(&disk);
    if let Some(report) = report.as_ref().filter(|report| report.is_sound()) {
        sound_is_sound(report, &disk, &first);
    }
    disk.close();
    drop(disk);

    let disk = open(folder).expect("what was opened once is opened again");
    let second = all_of(&disk);
    assert_eq!(second, first, "the next start finds something else");
    let key = CacheKey::new("example.org", "/stored");
    let is_stored = stores && store(&disk, &key);
    disk.close();
    drop(disk);
    if is_stored {
        let disk = open(folder).expect("what was opened twice is opened again");
        assert_eq!(newest(&disk, &key), Some(CONTENT), "stored, and not there after a start");
        disk.close();
    }
}

/// A place, and a digest of what is read there.
type Listed = (Location, std::result::Result<u32, ReadError>);

fn all_of(disk: &Arc<Disk>) -> Vec<Listed> {
    let (mut places, mut next) = (Vec::new(), None);
    loop {
        let mut page = disk.list(next, 16);
        places.append(&mut page.places);
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(disk.usage().objects, places.len() as u64);
    places.sort();
    assert!(places.windows(2).all(|two| two[0] != two[1]), "one place twice");
    places
        .into_iter()
        .map(|place| (place, read(disk, place).map(|found| digest(disk, place, &found))))
        .collect()
}

fn read(disk: &Arc<Disk>, place: Location) -> std::result::Result<FoundRecord, ReadError> {
    disk.read_now(place).unwrap_or_else(|| block_on(disk.read(place)))
}

fn read_piece(disk: &Arc<Disk>, piece: &Piece) -> std::result::Result<Bytes, ReadError> {
    disk.piece_now(piece).unwrap_or_else(|| block_on(disk.read_piece(piece)))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn digest(disk: &Arc<Disk>, place: Location, found: &FoundRecord) -> u32 {
    let head = disk.read_head(place).expect("what can be read whole can be read without its content");
    assert_eq!((&head.base, &head.variant, &head.head), (&found.base, &found.variant, &found.head));
    assert_eq!((head.number, head.identity), (found.number, found.identity));
    assert_eq!(head.content_bytes, found.content_bytes());
    let mut sum = crc32fast::Hasher::new();
    [&found.base, &found.variant, &found.head].iter().for_each(|part| sum.update(part));
    match &found.content {
        FoundContent::Inline(content) => sum.update(content),
        FoundContent::Pieces(pieces) => {
            for piece in pieces {
                // Of another disk, or lost: that is the reader's to tell.
                let Ok(bytes) = read_piece(disk, piece) else { continue };
                assert_eq!(bytes.len(), piece.length());
                sum.update(&bytes);
            }
        }
    }
    sum.finalize()
}

fn sound_is_sound(report: &Report, disk: &Disk, listed: &[Listed]) {
    let is_foreign = |finding: &Finding| matches!(finding, Finding::Foreign(_));
    assert!(disk.findings().iter().all(is_foreign), "{report:?}, and then {:?}", disk.findings());
    for (place, read) in listed {
        // A piece may have lain in a segment that is gone: nothing that is there is damaged.
        assert!(matches!(read, Ok(_) | Err(ReadError::Gone)), "{report:?}, and then {place:?}: {read:?}");
    }
    assert!(listed.len() as u64 <= report.objects, "{report:?}, and then {listed:?}");
}

const CONTENT: Bytes = Bytes::from_static(b"stored");

/// Stores an object; says whether it came to lie on the disk.
fn store(disk: &Arc<Disk>, key: &CacheKey) -> bool {
    let object = Object {
        number: disk.last_number().saturating_add(1),
        stored_at: WallTime(0),
        identity: 7,
        key: key.clone(),
        head: Bytes::from_static(b"head"),
        content: RecordContent::Inline(vec![CONTENT]),
    };
    if disk.put(object).is_err() {
        return false;
    }
    let end = Instant::now() + SETTLED_MAX;
    while disk.usage().queued_objects > 0 || disk.usage().queued_bytes > 0 {
        assert!(Instant::now() < end, "never written, nor lost");
        std::thread::park_timeout(Duration::from_micros(50));
    }
    newest(disk, key) == Some(CONTENT)
}

fn newest(disk: &Arc<Disk>, key: &CacheKey) -> Option<Bytes> {
    disk.find(&disk.address(key)).into_iter().find_map(|place| {
        let found = read(disk, place).ok().filter(|found| found.is_of(key))?;
        match found.content {
            FoundContent::Inline(content) => Some(content),
            FoundContent::Pieces(_) => None,
        }
    })
}
