//! Opening a disk: who it is, what its journal says, and the index anew from tables and segments.
//!
//! In: a folder. Out: everything that runs afterwards, and what was found that was not as it should be. Of several
//! records of one identity the one in the latest place counts, dead or alive; so segments can be read in any order, by two
//! threads. A segment without a good table is walked through, every checksum of it, and gets a table afterwards. Where the
//! journal itself was damaged, what it may have taken out is not believed: a cache may forget, and must not remember wrongly.

pub(super) mod folder;
mod replay;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use larder_http::time::Clock;

use super::address::Seed;
use super::error::DiskError;
use super::files::{segment_path, toc_path};
use super::finding::Finding;
use super::format::Whose;
use super::format::record::RECORD_BYTES_MAX;
use super::format::segment::{SEGMENT_HEAD_BYTES, SegmentHead};
use super::format::superblock::{SUPERBLOCK_BYTES, Superblock};
use super::format::toc::{Toc, TocEntry};
use super::handles::Handles;
use super::health::Health;
use super::in_flight::InFlight;
use super::index::{Index, RecoveredRecord as Record};
use super::pool::Pool;
use super::queue::WriteQueue;
use super::replaced::Replaced;
use super::segment::{Segment, Segments, read_toc};
use super::settings::{DISK_BYTES_MIN, DiskSettings, segment_bytes};
use super::space::{self, Space, blocks};
use super::state::DiskState;
use super::state::Neighbours;
use super::sys::{self, Existing};
use super::usage::DiskCounts;
use super::walk;
use folder::Folder;
use larder_tier::Note;
use larder_tier::rank::{Rank, RankedMutex};
use replay::Replay;

/// Threads that read tables.
const THREADS: usize = 2;

/// What becomes of what a disk holds when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Kept,
    /// It cannot be believed: the disk gets another identity, of which nothing in its folder is, and begins empty.
    GivenUp,
}

/// What opening gives.
pub(super) struct RecoveredDisk {
    pub(super) shared: DiskState,
    pub(super) findings: Vec<Finding>,
    pub(super) notes: Vec<Note>,
}

/// Opens a disk.
pub(super) fn open(settings: DiskSettings, clock: Clock, held: Contents) -> Result<RecoveredDisk, DiskError> {
    let path = settings.path.clone();
    sys::make_folder(&path).map_err(DiskError::io("cannot make", &path))?;
    let handle = sys::open_folder(&path).map_err(DiskError::io("cannot open", &path))?;
    let mut findings = Vec::new();
    let (lock, bytes) = open_superblock(&path)?;
    let mut folder = Folder::list(&path, &mut findings).map_err(DiskError::io("cannot list", &path))?;
    let cap = space::cap(settings.size, &handle, folder.own_bytes)
        .map_err(DiskError::io("cannot ask for the room of", &path))?;
    let too_small = || DiskError::TooSmall { path: path.clone(), bytes: cap, needed: DISK_BYTES_MIN };
    let segment_bytes = segment_bytes(cap).ok_or_else(too_small)?;
    let (superblock, is_new) = identify(&path, &lock, &bytes, (segment_bytes, held))?;
    if is_new && held == Contents::Kept && !folder.is_empty() {
        findings.push(Finding::NewIdentity);
    }
    let space = Space::new(settings.size, handle, cap);
    let mut replay = Replay::read(&path, superblock.disk, &folder, &space, is_new, &mut findings)
        .map_err(DiskError::io("cannot read the journal in", &path))?;
    if replay.forget_all {
        folder.remove_segments(&path);
    }
    folder.fit(&path, &space);
    let index = Index::new(cap);
    let segments = Segments::default();
    let handles = Handles::new(path.clone(), settings.files.clone());
    let loader = Loader {
        folder: &path,
        disk: superblock.disk,
        space: &space,
        index: &index,
        replay: &replay,
        segments: &segments,
        handles: &handles,
        highest: AtomicU64::new(0),
        findings: RankedMutex::new(Rank::Leaf, findings),
        unfinished: RankedMutex::default(),
    };
    loader.load(&folder);
    let (highest, unfinished) = (loader.highest.load(Ordering::Relaxed), loader.unfinished.into_inner());
    let mut findings = loader.findings.into_inner();
    findings.sort_by_key(|finding| format!("{finding:?}"));
    for (segment, live) in index.finish_recovery(|place| replay.removes(place)) {
        segments.count_in(segment, live);
    }
    replay.removed.iter().for_each(|place| segments.note_death(place.segment()));
    let last_segment = folder.last_segment.max(replay.last_segment);
    let read_mode = sys::read_mode(&lock);
    let notes = std::mem::take(&mut replay.notes);
    let shared = DiskState {
        superblock,
        _lock: lock,
        segment_bytes,
        record_bytes_max: RECORD_BYTES_MAX.min(segment_bytes / 2),
        read_mode,
        index,
        replaced: Replaced::default(),
        in_flight: InFlight::default(),
        segments,
        handles,
        space,
        queue: WriteQueue::default(),
        journal: replay.journal,
        neighbours: Neighbours::default(),
        pool: Pool::default(),
        health: Health::default(),
        counts: DiskCounts::default(),
        opened: clock.now(),
        clock,
        is_zeroing: AtomicBool::new(false),
        last_segment: AtomicU32::new(last_segment),
        last_pending: AtomicU64::new(0),
        highest: AtomicU64::new(highest.max(replay.highest)),
        stock: Default::default(),
        settings,
    };
    for (segment, entries, end) in unfinished {
        if entries.is_empty() {
            shared.segments.take_out(segment.id);
            let _ = super::files::remove_files(&path, segment.id);
            continue;
        }
        // Without a table the segment is walked through at the next start as well; nothing is lost by that.
        let _ = shared.finish_segment(&segment, entries, end);
    }
    Ok(RecoveredDisk { shared, findings, notes })
}

/// The file that says who the disk is, locked, and what is in it.
fn open_superblock(folder: &Path) -> Result<(File, Vec<u8>), DiskError> {
    let path = folder.join("larder");
    let failed = |error| DiskError::io("cannot open", &path)(error);
    let file = sys::make(&path, Existing::Kept).map_err(failed)?;
    if !sys::lock(&file).map_err(failed)? {
        return Err(DiskError::InUse(folder.to_owned()));
    }
    let bytes = sys::read_up_to(&file, 2 * SUPERBLOCK_BYTES, 0).map_err(failed)?;
    Ok((file, bytes))
}

/// Who the disk is; a new identity where it has none that can be read.
fn identify(
    folder: &Path,
    file: &File,
    bytes: &[u8],
    (segment_bytes, held): (u64, Contents),
) -> Result<(Superblock, bool), DiskError> {
    if let Some(superblock) = Superblock::read(bytes).filter(|_| held == Contents::Kept) {
        return Ok((superblock, false));
    }
    if !Superblock::was_ours(bytes) {
        return Err(DiskError::NotOurs(folder.join("larder")));
    }
    let failed = |error| DiskError::io("cannot write", &folder.join("larder"))(error);
    let [disk, one, other] = sys::random().map_err(failed)?;
    let superblock = Superblock { disk, seed: Seed([one, other]), segment_bytes };
    sys::set_length(file, 0).and_then(|()| sys::write_at(file, &superblock.write(), 0)).map_err(failed)?;
    sys::sync_all(file).map_err(failed)?;
    Ok((superblock, true))
}

type Unfinished = (Arc<Segment>, Vec<TocEntry>, u64);

/// Reads all segments' tables into the index.
struct Loader<'a> {
    folder: &'a Path,
    disk: u64,
    space: &'a Space,
    index: &'a Index,
    replay: &'a Replay,
    segments: &'a Segments,
    handles: &'a Arc<Handles>,
    highest: AtomicU64,
    findings: RankedMutex<Vec<Finding>>,
    /// Segments without a table.
    unfinished: RankedMutex<Vec<Unfinished>>,
}

impl Loader<'_> {
    fn load(&self, folder: &Folder) {
        self.index.reserve(folder.segments.values().map(|files| files.objects_likely).sum());
        let ids: Vec<(u32, u64)> =
            folder.segments.iter().rev().map(|(id, files)| (*id, files.own_bytes())).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((id, own_bytes)) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.load_segment(*id, *own_bytes);
            }
        };
        match ids.len() {
            0..THREADS => work(),
            _ => thread::scope(|scope| {
                for _ in 1..THREADS {
                    // Fewer threads take longer, and one there is.
                    let _ = thread::Builder::new().spawn_scoped(scope, work);
                }
                work();
            }),
        }
    }

    fn found(&self, finding: Finding) {
        self.findings.lock().push(finding);
    }

    fn load_segment(&self, id: u32, own_bytes: u64) {
        let path = segment_path(self.folder, id);
        if let Err(error) = self.try_segment(id, own_bytes, &path) {
            self.found(Finding::Unreadable { path, why: error.to_string() });
            if error.kind() != std::io::ErrorKind::NotFound {
                self.take_unread(id, own_bytes);
            }
        }
    }

    /// A segment that cannot be read takes room as every other, and goes in its turn. The index has nothing of it, so that nobody hears
    /// what dies in it from now on: it is not believed at a later start either.
    fn take_unread(&self, id: u32, own_bytes: u64) {
        let Some(room) = self.space.take_over(own_bytes) else { return };
        let segment = Segment::new(id, self.handles.closed(id), room, (own_bytes, 0));
        segment.is_sealed.store(true, Ordering::Relaxed);
        segment.has_toc.store(sys::exists(&toc_path(self.folder, id)), Ordering::Relaxed);
        segment.note_death();
        self.segments.insert(segment);
    }

    fn try_segment(&self, id: u32, own_bytes: u64, path: &Path) -> std::io::Result<()> {
        let file = self.handles.open_with(|| sys::open_to_change(path))?;
        let head = sys::read_up_to(&file, SEGMENT_HEAD_BYTES, 0)?;
        match SegmentHead::judge(&head, Some(self.disk), id) {
            Whose::Ours => {}
            Whose::Unwritten => return super::files::remove_files(self.folder, id),
            Whose::OtherDisk => {
                self.found(Finding::OtherDisk(path.to_owned()));
                return super::files::remove_files(self.folder, id);
            }
            Whose::Damaged => {
                self.found(Finding::DamagedSegment { path: path.to_owned(), places: 1 });
                return super::files::remove_files(self.folder, id);
            }
            Whose::Foreign => {
                self.found(Finding::Foreign(path.to_owned()));
                return Ok(());
            }
        }
        let toc = self.read_toc(id);
        let must_have = self.replay.needs_toc.contains(&id);
        let has_toc = toc.is_some();
        let (entries, end) = match toc {
            Some(toc) => (toc.entries, toc.end),
            None => {
                let walked = walk::walk(&file, self.disk, id, true)?;
                if !walked.damaged.is_empty() {
                    let places = walked.damaged.len();
                    self.found(Finding::DamagedSegment { path: path.to_owned(), places });
                }
                // What was dead by the table only is told from the living by nothing else.
                let entries =
                    walked.entries.into_iter().map(|entry| TocEntry { is_dead: must_have, ..entry });
                (entries.collect(), walked.end)
            }
        };
        let Some(room) = self.space.take_over(own_bytes) else { return Ok(()) };
        let segment = Segment::new(id, self.handles.adopt(id, file), room, (end, 0));
        segment.is_sealed.store(true, Ordering::Relaxed);
        segment.has_toc.store(has_toc, Ordering::Relaxed);
        segment.needs_toc.store(must_have, Ordering::Relaxed);
        self.index_entries(&segment, &entries);
        self.segments.insert(Arc::clone(&segment));
        if !has_toc {
            self.unfinished.lock().push((segment, entries, end));
        }
        Ok(())
    }

    fn read_toc(&self, id: u32) -> Option<Toc> {
        let toc = read_toc(self.folder, self.disk, id).ok()?;
        if toc.is_none() {
            self.found(Finding::DamagedTable(toc_path(self.folder, id)));
        }
        toc
    }

    fn index_entries(&self, segment: &Segment, entries: &[TocEntry]) {
        let (mut highest, mut records) = (0, Vec::with_capacity(entries.len()));
        for entry in entries {
            highest = highest.max(entry.number);
            if !entry.is_record() {
                segment.note_piece(entry.owner(self.disk).disk != self.disk);
                continue;
            }
            let is_killed = self.replay.kills(entry.base, entry.number);
            if is_killed {
                segment.note_death();
            }
            records.push(Record {
                base: entry.base,
                tag: entry.tag,
                place: entry.place(segment.id),
                is_dead: entry.is_dead || is_killed,
            });
        }
        self.index.recover(records);
        self.highest.fetch_max(highest, Ordering::Relaxed);
    }
}

/// The room that is kept for a segment and its table.
impl folder::SegmentFiles {
    fn own_bytes(&self) -> u64 {
        blocks(self.segment_bytes) + blocks(self.toc_bytes)
    }
}
