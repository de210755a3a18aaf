//! What is known of versions (`larder-remote`, `versions`): nothing that is outdated, once its change was told.
//!
//! In: a server that has a version, the thread that reads it, changes that are told, and threads that look. What has to hold: once a change was
//! told, or the connection has ended by which it would have been told, no look finds what the version was before, whatever a read under
//! way brings.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::modulo_one,
    rustdoc::broken_intra_doc_links,
    reason = "of the sources of another crate only what is tried is used, within bounds of one"
)]

mod bounds;
#[path = "../../../../crates/larder-remote/src/versions/known.rs"]
mod known;
#[path = "../../../../crates/larder-remote/src/versions/name.rs"]
mod name;
#[path = "../../../../crates/larder-remote/src/versions/table.rs"]
mod table;
#[path = "../../../../crates/larder-remote/src/versions/version.rs"]
mod version;

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use crate::every_order;
use crate::sync::{AtomicU64, Mutex, Ordering};
use known::{Known, TRACKING};
use name::VersionName;
use table::Table;

const KEY: &[u8] = b"versions";
/// When the first connection gave its last sign of life, and the next one its first.
const ALIVE: [Duration; 2] = [Duration::ZERO, Duration::from_secs(10)];
/// A moment at which only a sign of life counts that the next connection gave.
const LATER: Duration = Duration::from_secs(11);

/// What there is.
struct World {
    known: Known,
    /// The version, as the server has it.
    server: Mutex<u64>,
    /// The version of which everybody was told.
    told: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        let world = Self { known: Known::new(), server: Mutex::new(1), told: AtomicU64::new(1) };
        world.known.alive(ALIVE[0]);
        Arc::new(world)
    }

    fn name() -> VersionName {
        VersionName::new(KEY, Some(b"/a")).expect("a name")
    }

    /// As the thread of versions does: the key is there before the server is asked, and what comes is entered.
    fn read(&self) {
        let (table, name) = (&self.known.table, Self::name());
        let key = table.key(&name);
        let seen = key.changes();
        let text = self.server.lock().to_string();
        table.enter(&name, (&key, seen), &text, (None, 0));
    }

    /// An application counts the version up, and the server tells of it.
    fn change(&self, tell: fn(&Table)) {
        let version = {
            let mut version = self.server.lock();
            *version += 1;
            *version
        };
        tell(&self.known.table);
        self.told.store(version, Ordering::Release);
    }

    /// As a request does at this moment. No older version is known than the one of which was told.
    fn look(&self, now: Duration) -> Option<u64> {
        let told = self.told.load(Ordering::Acquire);
        let version = |version: &version::Version| version.text.parse().expect("a number");
        let known: Option<u64> = self.known.get(&Self::name(), now, version);
        assert!(known.is_none_or(|known| known >= told), "{known:?} after {told}");
        known
    }
}

/// A read, a change, what else the table is asked to do, and a look.
fn is_never_outdated(is_read_before: bool, tell: fn(&Table), beside: fn(&Table)) {
    every_order(move || {
        let world = World::new();
        if is_read_before {
            world.read();
        }
        let reading = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.read();
                beside(&world.known.table);
            })
        };
        let changing = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.change(tell))
        };
        world.look(ALIVE[0]);
        world.look(ALIVE[0]);
        reading.join().expect("it has read");
        changing.join().expect("it has changed");
        world.look(ALIVE[0]);
        world.read();
        assert_eq!(world.look(ALIVE[0]), Some(2));
    });
}

/// The server tells of a change before, within or after a first read.
pub fn a_change_that_is_told_leaves_nothing_older_known() {
    is_never_outdated(false, |table| table.changed(Some(KEY)), |_| ());
}

/// The same of one that was known before, while keys are let go of that nothing is noted of.
pub fn a_key_that_is_in_use_is_not_let_go_of() {
    is_never_outdated(true, |table| table.changed(Some(KEY)), Table::tidy);
}

/// A key that nothing is noted of is let go of while it is read.
pub fn a_key_that_is_being_read_is_not_let_go_of() {
    every_order(|| {
        let world = World::new();
        let (reading, tidying) = {
            let (world, other) = (Arc::clone(&world), Arc::clone(&world));
            (thread::spawn(move || world.read()), thread::spawn(move || other.known.table.tidy()))
        };
        world.change(|table| table.changed(Some(KEY)));
        world.look(ALIVE[0]);
        reading.join().expect("it has read");
        tidying.join().expect("it has tidied up");
        world.look(ALIVE[0]);
    });
}

/// The server has lost everything.
pub fn what_was_lost_is_not_known() {
    is_never_outdated(true, Table::flushed, |_| ());
}

/// A connection ends, and the version changes before the next one is there: no one was told of that.
pub fn what_one_connection_has_read_is_not_known_by_the_next() {
    every_order(|| {
        let world = World::new();
        world.read();
        let ending = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.known.forget();
                world.change(|_| ());
                world.known.alive(ALIVE[1]);
                world.read();
            })
        };
        let later = world.look(LATER);
        assert!(later.is_none_or(|known| known == 2), "{later:?}");
        world.look(ALIVE[0]);
        ending.join().expect("the next one is there");
        assert_eq!(world.look(LATER), Some(2));
        assert_eq!(world.look(ALIVE[1] + TRACKING), None);
    });
}
