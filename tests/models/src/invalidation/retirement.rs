//! Walks after which predicates retire, beside purges, hits and fetches: no purge is lost by one.
//!
//! In: one response, which lies in an index or is being fetched, and a walk that takes it out or clears it. Out: once a purge that
//! names it has returned, no look-up finds it good, whatever was forgotten meanwhile. The index is a lock with one place, as a shard is for
//! one key.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::counter::Invalidations;
use super::judged::Judged;
use super::{Response, purge, tag};
use crate::every_order;
use larder_cache::Verdict;
use larder_cache::purge::{Mode, Predicate, What};

const UNPOISONED: &str = "a thread that panics ends the model";

/// A response as an index has it: what it remembers, and its number.
type Placed = Arc<(Judged, u64)>;

/// What there is.
#[derive(Default)]
struct World {
    invalidations: Invalidations,
    /// The place of the response in the index.
    index: Mutex<Option<Placed>>,
    /// The number of the fetch under way.
    flight: Mutex<Option<u64>>,
    /// The number of the purge, once it has returned.
    acknowledged: AtomicU64,
}

impl World {
    fn with(number: Option<u64>) -> Arc<Self> {
        let world = Self::default();
        *world.index.lock().expect(UNPOISONED) = number.map(|number| Arc::new((Judged::default(), number)));
        Arc::new(world)
    }

    fn purge(&self, predicate: &Predicate) {
        let number = self.invalidations.enter(predicate, None);
        self.acknowledged.store(number, Ordering::Release);
    }

    fn found(&self) -> Option<Placed> {
        self.index.lock().expect(UNPOISONED).clone()
    }

    /// As a look-up does; what a purge names that has returned is not found to be good.
    fn look(&self, response: &Response) {
        let purged = self.acknowledged.load(Ordering::Acquire);
        let since = self.invalidations.forgotten();
        let Some(placed) = self.found() else { return };
        let (judged, number) = &*placed;
        let verdict = response.verdict_since(&self.invalidations, judged, (*number, since));
        assert!(*number >= purged || verdict != Verdict::Good, "{number} {purged}");
    }

    /// As the sweeper does: through all that there is, and what is gone is taken out.
    fn walk(&self, response: &Response) {
        let oldest = || *self.flight.lock().expect(UNPOISONED);
        let mut walk = self.invalidations.begin_walk(oldest);
        if let Some(placed) = self.found() {
            let (judged, number) = &*placed;
            let verdict = match judged.is_cleared_at(walk.state) {
                true => Verdict::Good,
                false => response.verdict(&self.invalidations, judged, *number),
            };
            match verdict {
                Verdict::Good => {}
                Verdict::Gone => *self.index.lock().expect(UNPOISONED) = None,
                stale => {
                    let subject = (&response.key, &response.head, *number);
                    self.invalidations.note_needed(&mut walk, subject, stale);
                }
            }
        }
        self.invalidations.end_walk(walk);
    }

    /// As a fetch does: it takes its number under the lock of its flight, is judged when it lands, and is a flight until it is stored.
    fn fetch(&self, response: &Response) {
        let number = {
            let mut flight = self.flight.lock().expect(UNPOISONED);
            *flight.insert(self.invalidations.current())
        };
        let judged = Judged::default();
        if response.verdict(&self.invalidations, &judged, number) == Verdict::Good {
            *self.index.lock().expect(UNPOISONED) = Some(Arc::new((judged, number)));
        }
        *self.flight.lock().expect(UNPOISONED) = None;
    }
}

/// A purge, a walk and a hit of what lies there. Afterwards another walk, and it is gone or known to be stale still.
fn is_lost_by_no_walk(mine: fn() -> Predicate, response: Arc<Response>) {
    every_order(move || {
        let world = World::with(Some(0));
        let purging = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.purge(&mine()))
        };
        let walking = {
            let (world, response) = (Arc::clone(&world), Arc::clone(&response));
            thread::spawn(move || world.walk(&response))
        };
        world.look(&response);
        world.look(&response);
        purging.join().expect("it has purged");
        walking.join().expect("it has walked");
        world.look(&response);
        world.walk(&response);
        world.look(&response);
    });
}

/// By a tag of the response.
pub fn a_purge_of_a_tag_is_lost_by_no_walk() {
    is_lost_by_no_walk(|| tag("mine"), Response::new());
}

/// By a tag that a response with too many of them may have: it is known by the name that stands for any.
pub fn a_purge_of_any_tag_is_lost_by_no_walk() {
    is_lost_by_no_walk(|| tag("other"), Response::with_every_tag());
}

/// A soft purge leaves the response where it is, so its predicate stays as well.
pub fn a_soft_purge_is_lost_by_no_walk() {
    is_lost_by_no_walk(|| purge(What::Tag(b"mine".as_slice().into()), Mode::Soft), Response::new());
}

/// What a fetch brings that began before the purge is not good, whether it lands before, within or after the walk.
pub fn a_purge_is_not_lost_for_a_fetch_from_before_it() {
    let response = Response::new();
    every_order(move || {
        let world = World::with(None);
        let purging = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.purge(&tag("mine")))
        };
        let walking = {
            let (world, response) = (Arc::clone(&world), Arc::clone(&response));
            thread::spawn(move || world.walk(&response))
        };
        world.fetch(&response);
        world.look(&response);
        purging.join().expect("it has purged");
        walking.join().expect("it has walked");
        world.look(&response);
    });
}
