//! What is known of the directory, in memory: what each file takes, which were used, and the open ones that are kept.
//!
//! In: files that were stored, found by a request or by a walk. Out: who is evicted next, and for a look-up the file that was
//! open already. The file system is the truth and this only a memory of it: an entry that is missing or wrong costs an
//! open, or a walk later. Eviction takes files in the order in which they were stored or found; one that was used since is
//! passed over once (CLOCK, which comes near to the longest unused). Files of people are never taken: that is looked at
//! again when it is a file's turn.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::SystemTime;

use larder_tier::rank::{Rank, RankedMutex, RankedRwLock};

use super::hit::FileHit;
use super::meta::META_BYTES_MAX;
use super::name::Name;
use super::room::Claim;

const SHARDS: usize = 16;

/// Outdated places in the queue that nobody minds.
const QUEUE_SLACK: usize = 1024;

/// Moves of the queue before use protects no longer.
const PATIENT_MOVES: usize = 4096;

/// One file.
#[derive(Debug)]
struct Entry {
    name: Arc<Name>,
    claim: Arc<Claim>,
    inode: u64,
    used: AtomicBool,
    /// The walk that saw it last, or that was under way when it was stored.
    walk: u32,
    /// Its place in the queue; what else the queue has under its name is outdated.
    ticket: Option<u64>,
    kept: Option<Arc<FileHit>>,
}

/// What was found out about a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedFile {
    pub(super) inode: u64,
    /// What it takes, in bytes.
    pub(super) bytes: u64,
    /// Known to be a person's: nobody needs to look whether it can be evicted.
    pub(super) is_by_hand: bool,
    pub(super) is_use: bool,
}

#[derive(Debug, Default)]
struct Kept {
    queue: VecDeque<Arc<Name>>,
    bytes: u64,
}

/// Candidates for eviction, the next first.
#[derive(Debug, Default)]
struct Queue {
    names: VecDeque<(Arc<Name>, u64)>,
    last_ticket: u64,
}

/// What each directory takes, and the walk that saw it last.
type Directories = HashMap<Box<[u8]>, (Claim, u32)>;

type Shard = RankedRwLock<HashMap<Arc<Name>, Entry>>;

/// Entries by name. Locks are taken in the order shard, then one of the others; never two shards.
#[derive(Debug)]
pub(super) struct Index {
    shards: [Shard; SHARDS],
    hasher: foldhash::quality::RandomState,
    /// The walk under way, or the last one.
    walk: AtomicU32,
    queue: RankedMutex<Queue>,
    directories: RankedMutex<Directories>,
    kept: RankedMutex<Kept>,
    files_kept_max: AtomicUsize,
    bytes_kept_max: u64,
    /// For what is larder's own in the directory.
    _own: Claim,
}

impl Index {
    /// An empty one, which keeps at most so many files open and so many bytes of them.
    pub(super) fn new(files_kept_max: usize, bytes_kept_max: u64, own: Claim) -> Self {
        Self {
            shards: std::array::from_fn(|_| RankedRwLock::new(Rank::FilesIndex, HashMap::default())),
            hasher: foldhash::quality::RandomState::default(),
            walk: AtomicU32::new(0),
            queue: RankedMutex::default(),
            directories: RankedMutex::default(),
            kept: RankedMutex::default(),
            files_kept_max: AtomicUsize::new(files_kept_max),
            bytes_kept_max,
            _own: own,
        }
    }

    fn shard(&self, name: &Name) -> &Shard {
        // The remainder is below the length of the array.
        &self.shards[self.hasher.hash_one(name) as usize % SHARDS]
    }

    /// The open file of a name, if one is kept. A use.
    pub(super) fn kept(&self, name: &Name) -> Option<Arc<FileHit>> {
        let shard = self.shard(name).read();
        let entry = shard.get(name)?;
        // Written only where it changes: many workers read this line.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        entry.kept.clone()
    }

    /// Notes a file that is there, and says who holds its room; `claim` makes that where it is not known yet.
    pub(super) fn note(&self, name: &Name, noted: &IndexedFile, claim: impl FnOnce() -> Claim) -> Arc<Claim> {
        let walk = self.walk.load(Ordering::Acquire);
        let mut gone = None;
        let mut shard = self.shard(name).write();
        // Found with what is borrowed first: nearly always it is there, and nothing is allocated.
        let known = shard.get_key_value(name).map(|(known, _)| Arc::clone(known));
        let known = known.unwrap_or_else(|| Arc::new(name.clone()));
        let entry = shard.entry(known).or_insert_with_key(|name| Entry {
            name: Arc::clone(name),
            claim: Arc::new(Claim::default()),
            inode: 0,
            used: AtomicBool::new(false),
            walk,
            ticket: None,
            kept: None,
        });
        // Meta in a file of its own is known to whoever wrote it, and not to whoever finds the file.
        let claimed = entry.claim.bytes();
        let is_claimed = (noted.bytes..=noted.bytes.saturating_add(META_BYTES_MAX as u64)).contains(&claimed);
        if entry.inode != noted.inode || !is_claimed {
            entry.claim = Arc::new(claim());
            entry.inode = noted.inode;
            gone = entry.kept.take();
        }
        entry.walk = walk;
        entry.used.fetch_or(noted.is_use, Ordering::Relaxed);
        if !noted.is_by_hand {
            self.enqueue(entry);
        }
        let claim = Arc::clone(&entry.claim);
        drop(shard);
        self.let_go(gone);
        claim
    }

    fn enqueue(&self, entry: &mut Entry) {
        if entry.ticket.is_none() {
            let mut queue = self.queue.lock();
            queue.last_ticket += 1;
            let ticket = queue.last_ticket;
            queue.names.push_back((Arc::clone(&entry.name), ticket));
            entry.ticket = Some(ticket);
        }
    }

    /// Forgets a file that is gone.
    pub(super) fn forget(&self, name: &Name) {
        let removed = self.shard(name).write().remove(name);
        self.let_go(removed.and_then(|entry| entry.kept));
    }

    /// The same, unless another file has its name by now.
    pub(super) fn forget_file(&self, name: &Name, inode: u64) {
        let removed = {
            let mut shard = self.shard(name).write();
            let is_it = shard.get(name).is_some_and(|entry| entry.inode == inode);
            is_it.then(|| shard.remove(name)).flatten()
        };
        self.let_go(removed.and_then(|entry| entry.kept));
    }

    /// Keeps an open file; where too many are kept, the one that has been for longest goes.
    pub(super) fn keep(&self, name: &Name, hit: &Arc<FileHit>, now: SystemTime) {
        if self.files_kept_max() == 0 || !hit.is_settled(now) {
            return;
        }
        let old = {
            let mut shard = self.shard(name).write();
            let Some(entry) = shard.get_mut(name).filter(|entry| entry.inode == hit.inode()) else { return };
            let old = entry.kept.replace(Arc::clone(hit));
            let mut kept = self.kept.lock();
            kept.bytes += kept_bytes(hit);
            if old.is_none() {
                kept.queue.push_back(Arc::clone(&entry.name));
            }
            old
        };
        self.let_go(old);
        self.let_go_of_surplus();
    }

    /// From now on no more than `files` are kept.
    pub(super) fn keep_at_most(&self, files: usize) {
        self.files_kept_max.store(files, Ordering::Relaxed);
        self.let_go_of_surplus();
    }

    fn files_kept_max(&self) -> usize {
        self.files_kept_max.load(Ordering::Relaxed)
    }

    /// Names of what is kept no more lie in the queue as well: it is never longer than what is allowed.
    fn let_go_of_surplus(&self) {
        while let Some(name) = self.surplus() {
            self.unkeep(&name);
        }
    }

    fn surplus(&self) -> Option<Arc<Name>> {
        let mut kept = self.kept.lock();
        let is_too_much = kept.queue.len() > self.files_kept_max() || kept.bytes > self.bytes_kept_max;
        is_too_much.then(|| kept.queue.pop_front()).flatten()
    }

    /// Stops keeping the file of a name.
    pub(super) fn unkeep(&self, name: &Name) {
        let kept = self.shard(name).write().get_mut(name).and_then(|entry| entry.kept.take());
        self.let_go(kept);
    }

    /// Not under a lock: the last handle of a large file goes to the queue of the thread that writes.
    fn let_go(&self, hit: Option<Arc<FileHit>>) {
        if let Some(hit) = hit {
            let mut kept = self.kept.lock();
            kept.bytes = kept.bytes.saturating_sub(kept_bytes(&hit));
        }
    }

    /// The next to be evicted: taken from the queue, its entry stays until its file is gone.
    pub(super) fn victim(&self) -> Option<Arc<Name>> {
        for moves in 0.. {
            let (name, ticket) = self.queue.lock().names.pop_front()?;
            let mut shard = self.shard(&name).write();
            let Some(entry) = shard.get_mut(&*name).filter(|entry| entry.ticket == Some(ticket)) else {
                continue;
            };
            entry.ticket = None;
            if moves < PATIENT_MOVES && std::mem::take(entry.used.get_mut()) {
                self.enqueue(entry);
                continue;
            }
            return Some(name);
        }
        None
    }

    /// Takes out of the queue what is outdated, where that is most of it.
    pub(super) fn tidy(&self) {
        // One lock after the other: those of the shards come before the queue's.
        let queued = self.queue.lock().names.len();
        if queued <= self.files() * 2 + QUEUE_SLACK {
            return;
        }
        // What is added meanwhile is younger, and goes behind.
        let names = std::mem::take(&mut self.queue.lock().names);
        let is_current = |name: &Name, ticket| {
            self.shard(name).read().get(name).is_some_and(|entry| entry.ticket == Some(ticket))
        };
        let mut current: VecDeque<_> =
            names.into_iter().filter(|(name, ticket)| is_current(name, *ticket)).collect();
        let mut queue = self.queue.lock();
        current.append(&mut queue.names);
        queue.names = current;
    }

    /// Puts a candidate back behind all others: its file could not be removed now.
    pub(super) fn spare(&self, name: &Name) {
        if let Some(entry) = self.shard(name).write().get_mut(name) {
            self.enqueue(entry);
        }
    }

    /// The room of a name's file, where it is this one.
    pub(super) fn claim(&self, name: &Name, inode: u64) -> Option<Arc<Claim>> {
        let shard = self.shard(name).read();
        shard.get(name).filter(|entry| entry.inode == inode).map(|entry| Arc::clone(&entry.claim))
    }

    /// What a file takes.
    pub(super) fn bytes(&self, name: &Name) -> u64 {
        self.shard(name).read().get(name).map_or(0, |entry| entry.claim.bytes())
    }

    /// Whether a directory is known; if so it is noted as seen.
    pub(super) fn sees_directory(&self, path: &[u8]) -> bool {
        let walk = self.walk.load(Ordering::Acquire);
        let mut directories = self.directories.lock();
        let known = directories.get_mut(path);
        known.map(|(_, seen)| *seen = walk).is_some()
    }

    /// Notes a directory and what it takes.
    pub(super) fn note_directory(&self, path: &[u8], claim: Claim) {
        let walk = self.walk.load(Ordering::Acquire);
        self.directories.lock().insert(path.into(), (claim, walk));
    }

    pub(super) fn forget_directory(&self, path: &[u8]) {
        self.directories.lock().remove(path);
    }

    /// Begins a walk: what it does not see, and nobody stores meanwhile, is gone when it ends.
    pub(super) fn begin_walk(&self) {
        self.walk.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends a walk that has seen everything.
    pub(super) fn end_walk(&self) {
        let walk = self.walk.load(Ordering::Acquire);
        for shard in &self.shards {
            let mut gone = Vec::new();
            shard.write().retain(|_, entry| {
                let is_seen = entry.walk == walk;
                gone.extend(entry.kept.take_if(|_| !is_seen));
                is_seen
            });
            gone.into_iter().for_each(|hit| self.let_go(Some(hit)));
        }
        self.directories.lock().retain(|_, (_, seen)| *seen == walk);
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queue.lock().names.len()
    }

    /// Files that are known.
    pub(super) fn files(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// The names that are known, in no order.
    pub(super) fn names(&self) -> Vec<Arc<Name>> {
        self.shards.iter().flat_map(|shard| shard.read().keys().cloned().collect::<Vec<_>>()).collect()
    }
}

/// What keeping a file takes in memory: its bytes where they are here, and its fields, about.
fn kept_bytes(hit: &FileHit) -> u64 {
    const FIELDS_BYTES: u64 = 1024;
    hit.whole().map_or(0, |whole| whole.len() as u64) + FIELDS_BYTES
}
