//! What was purged stays purged over a restart, however much was purged after it: through real stores and their journals.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use larder_cache::Verdict;
use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_disk::engine::{DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesSettings};
use larder_http::message::Scheme;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Metrics};
use larder_store::{CacheKey, MemoryStoreSettings, Store};

use crate::invalidation::{StoreWalk, durable, note_of};
use crate::proxy::Proxy;
use crate::testing::stored_head;

/// Names that are kept.
const EXACT_MAX: usize = 262_144;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Disk,
    Files,
}

/// A larder with one store.
struct Run {
    proxy: Arc<Proxy>,
    store: Arc<Store>,
}

impl Run {
    fn start(kind: Kind, folder: &Path) -> Self {
        let clock = Clock::default();
        let settings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 };
        let store = match kind {
            Kind::Disk => {
                let disk = DiskSettings {
                    path: folder.join("disk"),
                    size: DiskSize::Bytes(1 << 30),
                    idle: None,
                    files: Default::default(),
                };
                let disks = Disks::unopened(Layout::Single, vec![disk], 1 << 20, &clock);
                Store::new(&settings, Some(disks))
            }
            Kind::Files => {
                let settings_of_files = FilesSettings::new(folder.join("files"), 1 << 20);
                Store::new(&settings, Some(FileStore::open(&settings_of_files).unwrap()))
            }
        };
        let metrics = Metrics::new(1, crate::vocabulary(), clock.now().wall, "0");
        let diagnostics = Diagnostics::to(clock.clone(), std::io::sink()).unwrap();
        let proxy = Proxy::new(clock, Arc::new(metrics), diagnostics);
        proxy.recover(&[Arc::clone(&store)], &|_| Default::default());
        Self { proxy, store }
    }

    fn purge(&self, what: What) -> u64 {
        let predicate = Predicate { what, scope: Arc::new(Scope::any()), mode: Mode::Hard };
        let now = self.proxy.clock.now();
        let number = self.proxy.invalidations.enter(&predicate, Some(now.monotonic));
        self.store.note(&note_of(&predicate, number, now.wall));
        number
    }

    /// What is left of a response that was fetched before everything.
    fn of_group(&self, name: &str, number: u64) -> Verdict {
        let head = stored_head("/", &[("cache-groups", &format!("\"{name}\""))]);
        self.proxy.invalidations.verdict_of(&CacheKey::new("a.org", "/"), &head, number)
    }

    fn of_tag(&self, tag: &str, number: u64) -> Verdict {
        let head = stored_head("/", &[("surrogate-key", tag)]);
        self.proxy.invalidations.verdict_of(&CacheKey::new("a.org", "/"), &head, number)
    }

    /// Ends as a process does that is killed: what is synced is all that is left.
    fn killed(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.store.sync()).unwrap();
        self.store.close();
    }

    fn walk(&self) -> StoreWalk {
        self.proxy.invalidations.begin_walk(|| None)
    }
}

fn group(name: &str) -> What {
    let authority = crate::testing::request("/").authority.as_str().into();
    What::Group { scheme: Scheme::Http, authority, name: name.into() }
}

fn tag(name: &str) -> What {
    What::Tag(name.as_bytes().into())
}

#[test]
fn one_purge_is_not_forgotten_behind_many_of_a_few_names() {
    for kind in [Kind::Disk, Kind::Files] {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::start(kind, folder.path());
        let first = run.purge(group("a"));
        for k in 0..150_000 {
            run.purge(group(["b", "c", "d"][k % 3]));
        }
        run.killed();
        let run = Run::start(kind, folder.path());
        assert_eq!(run.of_group("a", first - 1), Verdict::Gone, "{kind:?}");
        assert_eq!(run.of_group("a", first), Verdict::Good, "{kind:?}");
        // No floor was raised for that.
        assert_eq!(run.of_group("other", 0), Verdict::Good, "{kind:?}");
        run.killed();
    }
}

#[test]
fn what_is_below_the_floor_is_unproven_after_a_restart_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(Kind::Disk, folder.path());
    let first = run.purge(group("a"));
    for k in 0..=EXACT_MAX {
        run.purge(group(&k.to_string()));
    }
    let is_safe = |run: &Run| {
        assert!(matches!(run.of_group("a", first - 1), Verdict::Unproven | Verdict::Gone));
        // Who was not purged is no better off: nobody knows it any more.
        assert_eq!(run.of_group("other", first - 1), Verdict::Unproven);
        assert_eq!(run.proxy.invalidations.predicate_counts().names, EXACT_MAX as u64);
    };
    is_safe(&run);
    run.killed();
    let run = Run::start(Kind::Disk, folder.path());
    is_safe(&run);
    run.killed();
}

#[test]
fn what_has_retired_does_not_come_back_and_what_is_needed_does() {
    for kind in [Kind::Disk, Kind::Files] {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::start(kind, folder.path());
        for k in 0..5000 {
            run.purge(tag(&k.to_string()));
        }
        assert!(run.proxy.invalidations.end_walk(run.walk()), "stock is due");
        assert_eq!(run.proxy.invalidations.predicate_counts().names, 0);
        let last = run.purge(tag("last"));
        run.store.take_stock();
        run.killed();
        let run = Run::start(kind, folder.path());
        let counts = run.proxy.invalidations.predicate_counts();
        // The tag, and the name that stands for any.
        assert_eq!((counts.names, counts.floor), (2, 0), "{kind:?}");
        assert_eq!(run.of_tag("last", last - 1), Verdict::Gone);
        assert_eq!(run.of_tag("17", 0), Verdict::Good);
        run.killed();
    }
}

#[test]
fn nothing_retires_that_a_journal_brought_back_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(Kind::Disk, folder.path());
    let number = run.purge(tag("a"));
    let walk = run.walk();
    durable::readmit(&run.proxy.invalidations, number, Vec::new(), run.proxy.clock.now());
    assert!(!run.proxy.invalidations.end_walk(walk));
    assert_eq!(run.of_tag("a", number - 1), Verdict::Gone);
    run.proxy.invalidations.end_walk(run.walk());
    assert_eq!(run.of_tag("a", number - 1), Verdict::Good, "nothing was left");
    run.killed();
}

#[test]
fn a_predicate_stays_for_what_is_stale_by_it_and_for_fetches_from_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(Kind::Disk, folder.path());
    let invalidations = &run.proxy.invalidations;
    let [one, two] = [run.purge(tag("a")), run.purge(tag("b"))];
    // A fetch that began between the two.
    let mut walk = invalidations.begin_walk(|| Some(one));
    let (key, head) = (CacheKey::new("a.org", "/"), stored_head("/", &[("surrogate-key", "a")]));
    invalidations.note_needed(&mut walk, (&key, &head, 0), Verdict::Soft { since: None });
    invalidations.end_walk(walk);
    assert_eq!([run.of_tag("a", 0), run.of_tag("b", 0)], [Verdict::Gone; 2]);
    invalidations.end_walk(invalidations.begin_walk(|| Some(one)));
    assert_eq!([run.of_tag("a", 0), run.of_tag("b", 0)], [Verdict::Good, Verdict::Gone]);
    let mut walk = run.walk();
    walk.missed();
    invalidations.end_walk(walk);
    assert_eq!(run.of_tag("b", two - 1), Verdict::Gone, "something was not met");
    run.killed();
}

#[test]
fn notes_that_a_journal_has_lost_are_made_good_by_one_for_all() {
    let run = Run::start(Kind::Disk, tempfile::tempdir().unwrap().path());
    let invalidations = &run.proxy.invalidations;
    let (one, two) = (run.purge(tag("a")), run.purge(tag("b")));
    let lost = larder_store::Note { number: one, ..Default::default() };
    let kept = note_of(
        &Predicate { what: tag("b"), scope: Arc::new(Scope::any()), mode: Mode::Hard },
        two,
        run.proxy.clock.now().wall,
    );
    let needed =
        |lost_up_to| durable::needed(invalidations, (vec![lost.clone(), kept.clone()], lost_up_to), None);
    assert_eq!(needed(0), [lost.clone(), kept.clone()], "it may stand for notes that had no room");
    invalidations.restore_all(one);
    invalidations.end_walk(run.walk());
    assert_eq!(needed(0), [], "nothing is left from before it");
    assert_eq!(needed(one), std::slice::from_ref(&lost));
    assert_eq!(needed(0), std::slice::from_ref(&lost), "as long as this larder runs");
    run.killed();
}

#[test]
fn a_note_that_names_more_than_what_was_entered_is_kept() {
    let run = Run::start(Kind::Disk, tempfile::tempdir().unwrap().path());
    let hosts: Vec<String> = (0..800).map(|k| format!("{k}.a-tenant-with-a-long-name.example")).collect();
    let scope = Arc::new(Scope::of_sites(hosts.iter().map(|host| (host.as_str(), true)), false));
    let predicate = Predicate { what: tag("a"), scope, mode: Mode::Hard };
    let now = run.proxy.clock.now();
    let number = run.proxy.invalidations.enter(&predicate, Some(now.monotonic));
    let note = note_of(&predicate, number, now.wall);
    assert!(note.what.len() < 1024, "its hosts had no room");
    let needed = || durable::needed(&run.proxy.invalidations, (vec![note.clone()], 0), None);
    assert_eq!(needed(), std::slice::from_ref(&note));
    run.proxy.invalidations.end_walk(run.walk());
    assert_eq!(needed(), [], "nothing is left that it names");
    run.killed();
}

#[test]
fn a_note_is_read_only_where_its_predicate_may_have_been_forgotten() {
    let run = Run::start(Kind::Disk, tempfile::tempdir().unwrap().path());
    // No response has such a name. Whoever reads the note sees that it is of no use.
    let what = What::Group { scheme: Scheme::Http, authority: "no host".into(), name: "a".into() };
    let number = run.purge(what.clone());
    let predicate = Predicate { what, scope: Arc::new(Scope::any()), mode: Mode::Hard };
    let note = note_of(&predicate, number, run.proxy.clock.now().wall);
    let needed = || durable::needed(&run.proxy.invalidations, (vec![note.clone()], 0), None);
    assert_eq!(needed(), std::slice::from_ref(&note));
    run.purge(tag("a"));
    run.proxy.invalidations.end_walk(run.walk());
    assert_eq!(needed(), []);
    run.killed();
}

#[test]
fn a_floor_that_rose_during_a_walk_stays() {
    let run = Run::start(Kind::Disk, tempfile::tempdir().unwrap().path());
    let one = run.purge(tag("a"));
    let walk = run.walk();
    run.proxy.invalidations.restore_all(one);
    run.proxy.invalidations.end_walk(walk);
    assert_eq!(run.of_tag("other", one - 1), Verdict::Unproven);
    run.proxy.invalidations.end_walk(run.walk());
    assert_eq!(run.of_tag("other", one - 1), Verdict::Good, "a whole walk found nothing from before it");
    run.killed();
}

#[test]
fn a_disk_that_is_absent_was_not_walked_through() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("disk"), "no directory").unwrap();
    let run = Run::start(Kind::Disk, folder.path());
    let walked = run.store.walk_tier(0, None, run.proxy.clock.now(), &mut |_| false).unwrap();
    assert!(walked.unseen > 0 && walked.next.is_none(), "{walked:?}");
    run.store.close();
}

/// `cargo test --release -p larder-proxy --lib restarts::a_restart_with -- --ignored --nocapture`
#[test]
#[ignore = "takes a gigabyte and some time; figures mean something in release only"]
#[allow(clippy::disallowed_macros, reason = "its figures are for whoever runs it")]
fn a_restart_with_all_predicates_and_many_objects() {
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use larder_disk::engine::{Disk, Object, RecordContent};
    use larder_http::time::WallTime;

    const OBJECTS: u64 = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(Kind::Disk, folder.path());
    let number = run.proxy.invalidations.current();
    run.killed();
    let disk = Disk::open(DiskSettings {
        path: folder.path().join("disk"),
        size: DiskSize::Bytes(1 << 30),
        idle: None,
        files: Default::default(),
    });
    let disk = disk.unwrap();
    let (head, content) = (Bytes::from(vec![b'h'; 100]), Bytes::from(vec![b'c'; 100]));
    for k in 0..OBJECTS {
        let put = || Object {
            number,
            stored_at: WallTime(1),
            identity: 0,
            key: CacheKey::new("a.org", &format!("/{k}")),
            head: head.clone(),
            content: RecordContent::Inline(vec![content.clone()]),
        };
        while disk.put(put()).is_err() {
            std::thread::park_timeout(Duration::from_micros(100));
        }
    }
    disk.close();
    drop(disk);
    let run = Run::start(Kind::Disk, folder.path());
    let began = Instant::now();
    for k in 0..EXACT_MAX / 2 {
        run.purge(tag(&format!("product-{k}")));
        run.purge(group(&format!("group-{k}")));
    }
    println!("{EXACT_MAX} purges, without a sync for each: {:?}", began.elapsed());
    run.killed();
    for which in ["full", "the same again"] {
        let began = Instant::now();
        let run = Run::start(Kind::Disk, folder.path());
        let took = began.elapsed();
        let counts = run.proxy.invalidations.predicate_counts();
        let objects: u64 = run.store.figures().iter().map(|figures| figures.objects).sum();
        println!("{which}: started in {took:?} with {objects} objects and {counts:?}");
        run.killed();
    }
    let run = Run::start(Kind::Disk, folder.path());
    let began = Instant::now();
    let walk = run.walk();
    run.proxy.invalidations.end_walk(walk);
    println!("forgotten in {:?}", began.elapsed());
    run.store.take_stock();
    run.killed();
    let began = Instant::now();
    let run = Run::start(Kind::Disk, folder.path());
    println!("without them: started in {:?}", began.elapsed());
    run.killed();
}
