//! What all threads read of a member of a fleet (`larder-remote`, `fleet`): its lease and its positions, beside the invalidations that the lease
//! rests on.
//!
//! In: the member's thread, which carries out what the log says and publishes the lease after it; requests; and the end of larder. What has to hold:
//! who finds that a lease counts, or a position, finds everything in force that it rests on. A lease that was ended for good counts never again.
//! Deliberately absent: the protocol (`larder-fleet` has a model of its own), and what a member knows of others.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    rustdoc::broken_intra_doc_links,
    reason = "of the sources of another crate only what is tried is used"
)]

#[path = "../../../../crates/larder-remote/src/fleet/carrier.rs"]
mod carrier;
#[path = "../../../../crates/larder-remote/src/fleet/lease.rs"]
mod lease;
#[path = "../../../../crates/larder-remote/src/fleet/positions.rs"]
mod positions;

use std::sync::Arc;
use std::time::Duration;

use larder_cache::Verdict;
use larder_fleet::{Effect, EntryId, Epoch, Position};
use loom::thread;

use crate::every_order;
use crate::invalidation::{Invalidations, Judged, Response, tag};
use crate::sync::{AtomicU64, Ordering};
use carrier::Purge;
use lease::Lease;
use positions::Positions;

/// The end of the lease before a call to the server, and after it.
const ENDS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];
/// A moment at which the first lease counts, and one at which only the renewed one does.
const NOW: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(6)];

fn at(sequence: u64) -> Position {
    Position { epoch: Epoch(7), sequence }
}

/// What there is.
struct World {
    invalidations: Invalidations,
    positions: Positions,
    lease: Lease,
}

impl World {
    /// A member that has a lease, and stands at the beginning of the log.
    fn new() -> Arc<Self> {
        let world = Self {
            invalidations: Invalidations::default(),
            positions: Positions::default(),
            lease: Lease::new(),
        };
        world.positions.note(&Effect::Reached { position: at(0), own: None }, 0);
        world.lease.publish(ENDS[0]);
        Arc::new(world)
    }

    /// As the thread of the member does: first what the answer brings, then the lease that it has renewed.
    fn carry_out(&self, effect: &Effect<Purge>) {
        match effect {
            Effect::Apply { .. } => {
                self.invalidations.enter(&tag("mine"), None);
            }
            Effect::Unproven { .. } => self.invalidations.raise_floor_to_now(),
            _ => {}
        }
        self.positions.note(effect, self.invalidations.current());
        self.positions.keep_up(self.invalidations.current());
        self.lease.publish(ENDS[1]);
    }

    /// As a request does. Whether it had a lease.
    fn heeds_lease(&self, now: Duration) -> bool {
        self.invalidations.heed(|| self.lease.may_use(now))
    }

    /// Whether a shared response that was fetched when its member stood there is good.
    fn is_shared_good(&self, response: &Response, position: Position) -> bool {
        let number = self.positions.applied().number_of(position);
        number.is_some_and(|number| {
            response.verdict(&self.invalidations, &Judged::default(), number) == Verdict::Good
        })
    }
}

/// What was stored or shared before an entry of the log is good for no request that comes once the lease counts which rests on the entry.
fn rests_on(entry: fn() -> Effect<Purge>) {
    let response = Response::new();
    every_order(move || {
        let world = World::new();
        let member = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.carry_out(&entry()))
        };
        let judged = Judged::default();
        // With the first lease it may be good still, and the response remembers that.
        if world.heeds_lease(NOW[0]) {
            response.verdict(&world.invalidations, &judged, 0);
        }
        // Either the lease is the renewed one, or there is none, and the request has doubted everything.
        let is_renewed = world.heeds_lease(NOW[1]);
        assert_ne!(response.verdict(&world.invalidations, &judged, 0), Verdict::Good, "{is_renewed}");
        assert!(!is_renewed || !world.is_shared_good(&response, at(0)));
        member.join().expect("it is carried out");
        assert!(world.heeds_lease(NOW[1]));
        // What was doubted without a lease is good again where it rests on the entry.
        assert!(!world.is_shared_good(&response, at(0)));
        assert!(world.is_shared_good(&response, at(1)));
    });
}

/// A purge of another member.
pub fn a_lease_counts_once_the_purges_are_in_force_that_it_rests_on() {
    rests_on(|| Effect::Apply { position: at(1), what: Purge::from([]) });
}

/// Entries that were cut off before they were read.
pub fn a_lease_counts_once_the_floor_is_raised_that_it_rests_on() {
    rests_on(|| Effect::Unproven { position: at(1) });
}

/// A request that saw a lease ends the doubts of those before it. One that comes when that lease is over doubts everything still.
pub fn a_doubt_is_not_ended_by_a_lease_that_was_over_before() {
    let response = Response::new();
    every_order(move || {
        let (world, judged) = (World::new(), Judged::default());
        // A doubt from a time without a lease, which the request with one ends.
        assert!(!world.invalidations.heed(|| false));
        let is_over = Arc::new(AtomicU64::new(0));
        let other = {
            let (world, is_over) = (Arc::clone(&world), Arc::clone(&is_over));
            let now = move || NOW[is_over.load(Ordering::Acquire) as usize];
            thread::spawn(move || {
                world.invalidations.heed(|| world.lease.may_use(now()));
            })
        };
        is_over.store(1, Ordering::Release);
        assert!(!world.heeds_lease(NOW[1]));
        assert_eq!(response.verdict(&world.invalidations, &judged, 0), Verdict::Unproven);
        other.join().expect("it has asked");
        assert_eq!(response.verdict(&world.invalidations, &judged, 0), Verdict::Unproven);
        world.lease.publish(ENDS[1]);
        assert!(world.heeds_lease(NOW[1]));
        assert_eq!(response.verdict(&world.invalidations, &judged, 0), Verdict::Good);
    });
}

/// A fetch takes a number and then the position for it, while a purge of another member is applied. What it brings has the position from before
/// the purge, unless it began after it.
pub fn a_fetch_has_no_position_behind_a_purge_that_it_began_before() {
    let response = Response::new();
    every_order(move || {
        let world = World::new();
        let member = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.carry_out(&Effect::Apply { position: at(1), what: Purge::from([]) });
            })
        };
        let began = world.invalidations.current();
        let position = world.positions.applied().position_of(began);
        member.join().expect("it is carried out");
        let is_good = response.verdict(&world.invalidations, &Judged::default(), began) == Verdict::Good;
        let is_shared_good = position.is_some_and(|position| world.is_shared_good(&response, position));
        assert!(position.is_some() && (is_good || !is_shared_good), "{began} {position:?}");
    });
}

/// Before a purge of its own has a place in the log, every shared response is older than it.
pub fn a_purge_of_its_own_concerns_what_is_shared_until_it_has_a_place() {
    const OWN: EntryId = EntryId(3);
    let response = Response::new();
    every_order(move || {
        let (world, purged) = (World::new(), Arc::new(AtomicU64::new(0)));
        let purging = {
            let (world, purged) = (Arc::clone(&world), Arc::clone(&purged));
            thread::spawn(move || {
                let announced = world.positions.applied().announce(world.invalidations.current());
                world.invalidations.enter(&tag("mine"), None);
                world.positions.applied().name(announced, OWN, false);
                world.positions.applied().end(announced);
                purged.store(1, Ordering::Release);
            })
        };
        let member = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.positions.keep_up(world.invalidations.current()))
        };
        let was_purged = purged.load(Ordering::Acquire) > 0;
        assert!(!was_purged || !world.is_shared_good(&response, at(0)));
        purging.join().expect("it has purged");
        member.join().expect("it has kept up");
        assert!(!world.is_shared_good(&response, at(0)));
        world.carry_out(&Effect::Reached { position: at(1), own: Some(OWN) });
        assert!(!world.is_shared_good(&response, at(0)));
        assert!(world.is_shared_good(&response, at(1)));
    });
}

/// larder ends while its member publishes a lease.
pub fn a_lease_that_was_ended_for_good_counts_never_again() {
    every_order(|| {
        let (world, ended) = (World::new(), Arc::new(AtomicU64::new(0)));
        let member = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                for end in [ENDS[1], Duration::ZERO, ENDS[1]] {
                    world.lease.publish(end);
                }
            })
        };
        let leaving = {
            let (world, ended) = (Arc::clone(&world), Arc::clone(&ended));
            thread::spawn(move || {
                world.lease.leave();
                ended.store(1, Ordering::Release);
            })
        };
        for _ in 0..2 {
            let has_ended = ended.load(Ordering::Acquire) > 0;
            assert!(!has_ended || !world.lease.may_use(NOW[0]));
        }
        member.join().expect("it has published");
        leaving.join().expect("it has left");
        assert!(!world.lease.may_use(Duration::ZERO));
    });
}
