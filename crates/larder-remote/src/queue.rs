//! What waits to be written to one server.
//!
//! In: values and deletions of all workers. Out: the same, in the order in which they were put here, which is one order for each key.
//! Nobody waits for room. A value that finds none is not written, and that is counted. Values may fill three quarters of the queue;
//! deletions may fill all of it, because a purge stands behind each of them. A deletion stays until the server has confirmed it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use crate::error::RemoteError;
use crate::key::RemoteKey;

/// The most bytes of a queue.
pub(crate) const BYTES_MAX: usize = 16 << 20;
/// With so many bytes in the queue, it takes no more notes about records in use.
const TOUCHES_MAX: usize = 256 << 10;
/// The most bytes for which a value still finds room.
const VALUES_MAX: usize = BYTES_MAX / 4 * 3;
/// The most deletions.
const DELETIONS_MAX: usize = 65_536;
/// What an entry takes beside its key and its value.
const ENTRY: usize = 128;

/// A value that was made when its turn had come.
#[derive(Debug)]
pub struct MadeValue {
    /// What it is called there.
    pub name: Bytes,
    /// Its bytes.
    pub value: Bytes,
    /// How long it stays.
    pub lifetime: Duration,
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is in the queue.
    Queued,
    /// The queue had no room.
    Full,
    /// Its server fails at the moment.
    Failing,
    /// It is larger than a value may be.
    TooLarge,
    /// It would live for less than a second.
    TooShort,
}

/// A deletion that is queued.
#[derive(Debug)]
pub struct Deletion(oneshot::Receiver<()>);

impl Deletion {
    /// Waits until the server has confirmed, however long it fails meanwhile; who waits has a time limit of its own.
    ///
    /// # Errors
    /// [`RemoteError::Unconfirmed`]: the client was closed before.
    ///
    /// # Cancel safety
    /// Dropping it leaves the deletion in the queue.
    pub async fn confirmed(self) -> Result<(), RemoteError> {
        self.0.await.map_err(|_| RemoteError::Unconfirmed)
    }
}

/// What is called once when the server has confirmed. Dropped instead, it never will.
pub(crate) struct Confirm(Box<dyn FnOnce() + Send>);

impl Confirm {
    pub(crate) fn new(then: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(then))
    }

    pub(crate) fn confirm(self) {
        (self.0)();
    }
}

impl fmt::Debug for Confirm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirm")
    }
}

/// Makes entries when their turn has come: values of the server that it was queued for, and no deletion.
pub(crate) struct Make(Box<dyn FnOnce() -> Vec<Job> + Send>);

impl Make {
    pub(crate) fn new(make: impl FnOnce() -> Vec<Job> + Send + 'static) -> Self {
        Self(Box::new(make))
    }

    pub(crate) fn make(self) -> Vec<Job> {
        (self.0)()
    }
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Make")
    }
}

/// An entry of the queue.
#[derive(Debug)]
pub(crate) enum Job {
    /// Values of about so many bytes, which take the processor some time.
    Made {
        bytes: usize,
        make: Make,
    },
    Set {
        key: RemoteKey,
        expires: u64,
        value: Bytes,
    },
    Delete {
        key: RemoteKey,
        confirm: Confirm,
        /// For a node of a cluster that is about to get the key: the number of the one that still has it, and says so.
        asked_by: Option<usize>,
        /// How often a node has sent it on.
        hops: u8,
    },
    Touch {
        key: RemoteKey,
    },
}

impl Job {
    /// The bytes that it counts for.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Self::Made { bytes, .. } => ENTRY + bytes,
            Self::Set { key, value, .. } => ENTRY + key.as_bytes().len() + value.len(),
            Self::Delete { key, .. } | Self::Touch { key } => ENTRY + key.as_bytes().len(),
        }
    }

    /// The key that it deletes, if it does.
    pub(crate) fn deleted_key(&self) -> Option<&[u8]> {
        match self {
            Self::Delete { key, .. } => Some(key.as_bytes()),
            Self::Made { .. } | Self::Set { .. } | Self::Touch { .. } => None,
        }
    }

    fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }
}

/// See the head of the file. The lock guards the entries and their sums; it is held for a push or for one batch.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: Mutex<Entries>,
    changed: Notify,
    emptied: Condvar,
    /// What was taken last could not be carried out, and what is here waits for that.
    is_held_up: AtomicBool,
}

#[derive(Debug, Default)]
struct Entries {
    jobs: VecDeque<Job>,
    /// Of all entries, those that are being written included.
    bytes: usize,
    deletions: usize,
    is_closed: bool,
}

impl Queue {
    /// Queues a value, if there is room.
    pub(crate) fn offer(&self, job: Job) -> bool {
        let cost = job.cost();
        let mut entries = self.entries.lock();
        if entries.is_closed || entries.bytes.saturating_add(cost) > VALUES_MAX {
            return false;
        }
        entries.bytes += cost;
        entries.jobs.push_back(job);
        drop(entries);
        self.changed.notify_one();
        true
    }

    /// Queues that a value is in use. It has little room: values and deletions go before it.
    pub(crate) fn touch(&self, key: RemoteKey) -> bool {
        self.bytes() < TOUCHES_MAX && self.offer(Job::Touch { key })
    }

    /// Queues a deletion.
    pub(crate) fn delete(&self, key: RemoteKey) -> Result<Deletion, RemoteError> {
        let (confirm, confirmed) = oneshot::channel();
        self.delete_then(
            key,
            Confirm::new(move || {
                let _ = confirm.send(());
            }),
        )?;
        Ok(Deletion(confirmed))
    }

    /// The same, and calls `confirm` when it is confirmed.
    pub(crate) fn delete_then(&self, key: RemoteKey, confirm: Confirm) -> Result<(), RemoteError> {
        self.push_deletion(Job::Delete { key, confirm, asked_by: None, hops: 0 })
            .map_err(|_| RemoteError::QueueFull)
    }

    /// Queues a deletion whose key another server does not have any more. Gives it back where there is no room.
    pub(crate) fn redirect(&self, job: Job) -> Result<(), Job> {
        self.push_deletion(job)
    }

    /// Takes out all deletions, in their order. They count until they are [settled](Queue::settle) or put back.
    pub(crate) fn take_deletions(&self) -> Vec<Job> {
        let mut entries = self.entries.lock();
        let (deletions, others) =
            std::mem::take(&mut entries.jobs).into_iter().partition::<Vec<Job>, _>(Job::is_deletion);
        entries.jobs = others.into();
        deletions
    }

    fn push_deletion(&self, job: Job) -> Result<(), Job> {
        let cost = job.cost();
        let mut entries = self.entries.lock();
        if entries.is_closed || entries.deletions >= DELETIONS_MAX || entries.bytes + cost > BYTES_MAX {
            return Err(job);
        }
        entries.bytes += cost;
        entries.deletions += 1;
        entries.jobs.push_back(job);
        drop(entries);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits until there is something. False when the queue is closed and empty.
    pub(crate) async fn wait(&self) -> bool {
        loop {
            {
                let entries = self.entries.lock();
                if !entries.jobs.is_empty() {
                    return true;
                }
                if entries.is_closed {
                    return false;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Takes the oldest entries: at least one where there is one, and no more than `count` or `bytes`. They count until they are
    /// [settled](Queue::settle) or put back.
    pub(crate) fn take(&self, count: usize, bytes: usize) -> Vec<Job> {
        let (mut entries, mut batch, mut sum) = (self.entries.lock(), Vec::new(), 0_usize);
        while batch.len() < count {
            let next = entries.jobs.front().map(Job::cost);
            let Some(cost) = next.filter(|cost| batch.is_empty() || sum.saturating_add(*cost) <= bytes)
            else {
                break;
            };
            sum += cost;
            batch.extend(entries.jobs.pop_front());
        }
        batch
    }

    /// These are no longer there.
    pub(crate) fn settle(&self, cost: usize, deletions: usize) {
        let mut entries = self.entries.lock();
        entries.bytes = entries.bytes.saturating_sub(cost);
        entries.deletions = entries.deletions.saturating_sub(deletions);
        if entries.bytes == 0 {
            self.emptied.notify_all();
        }
    }

    /// Waits until nothing is queued and nothing is being written, until `until` at the longest. For a thread that may.
    pub(crate) fn drained(&self, until: Instant) -> bool {
        let mut entries = self.entries.lock();
        while entries.bytes > 0 {
            let left = until.saturating_duration_since(Instant::now());
            // Values that are dropped wake nobody, so it looks again.
            if left.is_zero() {
                return false;
            }
            self.emptied.wait_for(&mut entries, left.min(Duration::from_millis(100)));
        }
        true
    }

    /// Puts entries that were taken in front of all others, in their order.
    pub(crate) fn put_back(&self, jobs: Vec<Job>) {
        let mut entries = self.entries.lock();
        for job in jobs.into_iter().rev() {
            entries.jobs.push_front(job);
        }
    }

    /// Drops all values, and returns how many there were. That something is in use is dropped as well.
    pub(crate) fn drop_values(&self) -> usize {
        let mut entries = self.entries.lock();
        let (mut cost, mut values) = (0, 0);
        entries.jobs.retain(|job| {
            cost += if job.is_deletion() { 0 } else { job.cost() };
            values += usize::from(matches!(job, Job::Made { .. } | Job::Set { .. }));
            job.is_deletion()
        });
        entries.bytes = entries.bytes.saturating_sub(cost);
        values
    }

    /// Notes whether what is here waits for something that the server has not confirmed.
    pub(crate) fn hold_up(&self, is_held_up: bool) {
        self.is_held_up.store(is_held_up, Ordering::Release);
    }

    pub(crate) fn is_held_up(&self) -> bool {
        self.is_held_up.load(Ordering::Acquire)
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        self.entries.lock().is_closed = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.entries.lock().is_closed
    }

    /// Bytes that count.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn key(name: &[u8]) -> RemoteKey {
        RemoteKey::of_memcached(name.to_vec())
    }

    fn set(name: &str, bytes: usize) -> Job {
        Job::Set { key: key(name.as_bytes()), expires: 1, value: vec![0; bytes].into() }
    }

    fn names(jobs: &[Job]) -> Vec<String> {
        let name = |job: &Job| match job {
            Job::Made { .. } => "made".to_owned(),
            Job::Set { key, .. } => format!("+{}", key.as_bytes().escape_ascii()),
            Job::Delete { key, .. } | Job::Touch { key } => format!("-{}", key.as_bytes().escape_ascii()),
        };
        jobs.iter().map(name).collect()
    }

    #[test]
    fn values_leave_a_quarter_for_deletions_and_nothing_goes_beyond_the_bound() {
        let queue = Queue::default();
        let queued = (0..50).take_while(|_| queue.offer(set("/value", 1 << 20))).count();
        assert_eq!(queued, 11, "of a mebibyte and what an entry takes");
        assert!(queue.bytes() <= VALUES_MAX);
        let mut deletions = Vec::new();
        let key = key(&[b'a'; 250]);
        deletions.extend((0..DELETIONS_MAX).map_while(|_| queue.delete(key.clone()).ok()));
        assert!(matches!(queue.delete(key), Err(RemoteError::QueueFull)));
        assert!(queue.bytes() <= BYTES_MAX && deletions.len() > 10_000);
    }

    #[test]
    fn deletions_are_bounded_by_their_number_too() {
        let queue = Queue::default();
        let deletions: Vec<_> = (0..).map_while(|_| queue.delete(key(b"/")).ok()).collect();
        assert_eq!(deletions.len(), DELETIONS_MAX);
    }

    #[tokio::test]
    async fn entries_leave_in_their_order_and_come_back_in_it() {
        let queue = Queue::default();
        assert!(queue.offer(set("a", 10)));
        let _deletion = queue.delete(key(b"a")).unwrap();
        assert!(queue.offer(set("b", 10)));
        assert!(queue.wait().await);
        let batch = queue.take(2, 1 << 20);
        assert_eq!(names(&batch), ["+a", "-a"]);
        let bytes = queue.bytes();
        queue.put_back(batch);
        assert_eq!(queue.bytes(), bytes, "what is being written counts");
        assert_eq!(names(&queue.take(9, 1 << 20)), ["+a", "-a", "+b"]);
        queue.settle(bytes, 1);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn a_batch_ends_before_its_bytes_and_has_one_entry_at_least() {
        let queue = Queue::default();
        (0..3).for_each(|_| assert!(queue.offer(set("/", 1000))));
        assert_eq!(queue.take(9, 1).len(), 1);
        assert_eq!(queue.take(9, 1200).len(), 1);
        assert_eq!(queue.take(9, 1200).len(), 1);
        assert_eq!(queue.take(9, 1200).len(), 0);
    }

    #[tokio::test]
    async fn values_are_dropped_and_deletions_stay() {
        let queue = Queue::default();
        assert!(queue.offer(set("a", 10)) && queue.offer(set("b", 10)));
        let deletion = queue.delete(key(b"c")).unwrap();
        assert_eq!(queue.drop_values(), 2);
        let mut rest = queue.take(9, 1 << 20);
        assert_eq!(names(&rest), ["-c"]);
        assert_eq!(queue.bytes(), rest[0].cost());
        let Some(Job::Delete { confirm, .. }) = rest.pop() else { panic!("a deletion") };
        confirm.confirm();
        assert!(deletion.confirmed().await.is_ok());
        assert!(!queue.drained(Instant::now()));
        queue.settle(queue.bytes(), 1);
        assert!(queue.drained(Instant::now()));
    }

    #[tokio::test]
    async fn a_closed_queue_takes_nothing_and_ends_when_it_is_empty() {
        let queue = Queue::default();
        let deletion = queue.delete(key(b"c")).unwrap();
        queue.close();
        assert!(!queue.offer(set("a", 10)) && queue.delete(key(b"c")).is_err());
        assert!(queue.wait().await);
        drop(queue.take(9, 1 << 20));
        assert!(!queue.wait().await);
        assert!(matches!(deletion.confirmed().await, Err(RemoteError::Unconfirmed)));
    }
}
