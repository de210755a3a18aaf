//! The writer: the one thread that changes what lies on a disk.
//!
//! In: jobs from the queue. Out: records at the end of the log, and places in the index. Between batches it does what keeps
//! the disk going, a little at a time: making room before it is needed ([`reclaim`]), compacting the journal
//! ([`compaction`]), dropping what is idle. After every few megabytes it waits until those before them are on the disk
//! ([`syncing`]): so dirty pages stay few, and a disk that does not keep up fills the queue instead of the machine's memory.
//!
//! It ends when the disk is closed. Whatever fails here costs what was to be stored, and a pause.

mod append;
mod batch;
mod compaction;
mod giving_up;
mod moves;
mod outcome;
mod reclaim;
mod syncing;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::error::Refused;
use super::queue::{Next, RecordJob, WriteJob};
use super::segment::Graves;
use super::state::DiskState;
use batch::{Batch, Open};
use giving_up::Reclaim;
use syncing::Syncing;

/// How long closing waits for what is still to be written.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);
/// Taken from the queue at once.
const BATCH_BYTES: u64 = 1 << 20;
/// The writer looks round at least this often.
const TICK: Duration = Duration::from_secs(1);
/// Segments given up in one look round because the cap went down.
const EXCESS_SEGMENTS_AT_ONCE: usize = 4;

/// The writer's own state; lives on its thread.
pub(super) struct Writer {
    shared: Arc<DiskState>,
    open: Option<Open>,
    batch: Batch,
    syncing: Syncing,
    reclaim: Option<Reclaim>,
    graves: Graves,
    /// Batches that failed; whoever writes several things that belong together looks at it.
    failures: u64,
    ticked: Instant,
    /// Journal compaction went wrong; not again before then.
    compaction_after: Instant,
    swept: Swept,
}

/// How far dropping what is idle has come.
#[derive(Default)]
struct Swept {
    shard: usize,
    /// Seconds since the disk was opened when the last shard was looked at.
    at: u64,
}

/// Starts the thread.
pub(super) fn start(shared: &Arc<DiskState>) -> io::Result<thread::JoinHandle<()>> {
    let writer = Writer::new(shared)?;
    thread::Builder::new().name("larder-write".to_owned()).spawn(move || writer.run())
}

impl DiskState {
    /// Gives up a record that will not be written.
    pub(super) fn lose(&self, job: &RecordJob, why: Refused) {
        self.counts.refuse(why);
        // First, while whoever takes the object out as well still finds it: afterwards he would think that all is said.
        self.let_go(job);
        if job.again.is_none() {
            self.index.remove(job.base, job.pending);
        }
    }

    /// Lets go of a record that nobody wants any more. What it took the place of must not come back.
    fn let_go(&self, job: &RecordJob) {
        if job.replaces {
            self.remove_for_good(job.pending);
        }
        self.queue.release(job.cost);
    }

    pub(super) fn lose_job(&self, job: &WriteJob, why: Refused) {
        match job {
            WriteJob::Record(record) => self.lose(record, why),
            WriteJob::Piece { piece, cost, .. } => {
                self.counts.refuse(why);
                self.queue.release(*cost);
                piece.settle(None);
            }
        }
    }
}

impl Writer {
    pub(super) fn new(shared: &Arc<DiskState>) -> io::Result<Self> {
        Ok(Self {
            shared: Arc::clone(shared),
            open: None,
            batch: Batch::default(),
            syncing: Syncing::start()?,
            reclaim: None,
            graves: Graves::default(),
            failures: 0,
            ticked: Instant::now(),
            compaction_after: Instant::now(),
            swept: Swept::default(),
        })
    }

    /// Puts what is queued into the batch, as far as it fits there, and leaves it at that.
    #[cfg(test)]
    pub(super) fn stage_queued(&mut self) {
        if let Next::Write(jobs) = self.shared.queue.take(BATCH_BYTES, Duration::ZERO) {
            jobs.into_iter().for_each(|job| self.stage_job(job));
        }
    }

    /// The open segment, and from where on a crash of the machine may lose it.
    #[cfg(test)]
    pub(super) fn unsynced(&self) -> Option<(u32, u64)> {
        self.open.as_ref().map(|open| (open.segment.id, open.at - open.unsynced))
    }

    /// As where the open segment could not be synced.
    #[cfg(test)]
    pub(super) fn doubt_open(&mut self) {
        self.open.iter_mut().for_each(|open| open.is_in_doubt = true);
    }

    fn run(mut self) {
        let mut closing = None;
        loop {
            let shared = Arc::clone(&self.shared);
            match shared.queue.take(BATCH_BYTES, self.patience()) {
                Next::Stop => break,
                Next::Finish => {
                    self.finish();
                    break;
                }
                Next::Rest if closing.is_some_and(|until| Instant::now() > until) => {
                    shared.queue.end();
                    self.finish();
                    break;
                }
                Next::Rest => {}
                Next::Write(jobs) => {
                    let is_late = closing.is_some_and(|until| Instant::now() > until);
                    match is_late {
                        true => jobs.iter().for_each(|job| shared.lose_job(job, Refused::Closed)),
                        false => self.write(jobs),
                    }
                }
            }
            if shared.queue.is_closed() && closing.is_none() {
                closing = Some(Instant::now() + CLOSE_WITHIN);
            }
            self.look_round();
        }
    }

    /// How long to wait for jobs: no longer than the next thing to do.
    fn patience(&self) -> Duration {
        match self.reclaim {
            Some(_) => Duration::from_millis(1),
            None => TICK,
        }
    }

    fn write(&mut self, jobs: Vec<WriteJob>) {
        if self.shared.health.is_failing() && self.shared.health.pause().is_some() {
            jobs.iter().for_each(|job| self.shared.lose_job(job, Refused::Failing));
            return;
        }
        for job in jobs {
            self.stage_job(job);
        }
        self.flush();
    }

    /// What is due beside writing.
    fn look_round(&mut self) {
        self.shared.write_journal();
        if self.shared.health.pause().is_some() {
            return;
        }
        self.reclaim_a_little();
        if self.shared.journal.is_long() && Instant::now() >= self.compaction_after {
            self.compact();
        }
        if self.ticked.elapsed() < TICK {
            return;
        }
        self.ticked = Instant::now();
        self.graves.clear();
        self.sync_open();
        self.shared.space.look_again();
        if self.shared.health.is_without_room() {
            // Somebody may have made room meanwhile.
            let has_room = self.open.is_some() || self.open_segment().is_ok();
            self.shared.health.note_room(has_room);
        }
        self.shared.health.look_at_room(Instant::now());
        for _ in 0..EXCESS_SEGMENTS_AT_ONCE {
            if self.shared.space.excess() == 0 || !self.give_up_oldest() {
                break;
            }
            self.graves.clear();
        }
        self.sweep_idle();
        self.give_up_empty();
    }

    /// Drops what nobody asked for, one shard after the other, so that each is looked at once in the time of idleness.
    fn sweep_idle(&mut self) {
        let Some(idle) = self.shared.settings.idle else { return };
        let (now, idle) = (u64::from(self.shared.seconds()), idle.as_secs().max(1));
        let shards = self.shared.index.shards() as u64;
        let due = (now.saturating_sub(self.swept.at) * shards / idle).min(shards);
        let Some(oldest) = now.checked_sub(idle) else { return };
        for _ in 0..due {
            let gone = self.shared.index.sweep(self.swept.shard, oldest as u32);
            self.shared.counts.idle_objects.add(gone.len() as u64);
            for place in gone {
                self.shared.segments.count_out(place.segment(), true);
            }
            self.swept.shard = (self.swept.shard + 1) % shards as usize;
        }
        if due > 0 {
            self.swept.at = now;
        }
    }

    /// In good order: the last segment gets its table, and everything is on the disk.
    fn finish(&mut self) {
        self.flush();
        self.seal();
        if self.shared.journal.is_stock_due() {
            self.compact();
        }
        let _ = self.shared.journal.sync(&self.shared.space, &self.shared.health);
        let _ = self.shared.space.sync_folder();
    }
}
