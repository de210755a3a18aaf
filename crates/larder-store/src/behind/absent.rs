//! Disks that are absent when a store is opened, and come back.
//!
//! A disk goes by a file in the place of the folder that it lies in, which holds for root as well, and comes back by the
//! folder itself. Attempts are made by hand, so that no test waits for a pause to end, but for the one that is about it.

use std::path::Path;

use super::*;
use larder_disk::engine::DiskError;

pub(super) const LAYOUTS: [(Layout, usize); 4] =
    [(Layout::Single, 1), (Layout::Mirror, 2), (Layout::Stripe, 2), (Layout::Hash, 2)];
pub(super) const NEWER: usize = 1234;

/// Disks of which the first lies in a folder that can be taken away.
pub(super) struct Shelf {
    folders: Folders,
    layout: Layout,
    count: usize,
}

impl Shelf {
    pub(super) fn new(layout: Layout, count: usize) -> Self {
        let folders = Folders::new();
        std::fs::create_dir(folders.0.join("mounted")).unwrap();
        Self { folders, layout, count }
    }

    fn paths(&self) -> Vec<PathBuf> {
        let name = |number: usize| match number {
            0 => "mounted/disk".to_owned(),
            _ => number.to_string(),
        };
        (0..self.count).map(|number| self.folders.0.join(name(number))).collect()
    }

    /// A program that another test starts at the same moment has the lock of a disk too, until it has begun to run.
    pub(super) fn open(&self) -> Arc<Disks> {
        let settings = |path| DiskSettings {
            path,
            size: DiskSize::Bytes(16 << 20),
            idle: None,
            files: Default::default(),
        };
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let settings = self.paths().into_iter().map(settings).collect();
            let disks = Disks::open(self.layout, settings, 1 << 30, &Clock::default());
            match disks.is_any_in_use_elsewhere() && Instant::now() < until {
                true => std::thread::yield_now(),
                false => return disks,
            }
        }
    }

    pub(super) fn take_away(&self) {
        let mounted = self.folders.0.join("mounted");
        std::fs::rename(&mounted, self.folders.0.join("away")).unwrap();
        std::fs::write(mounted, "in the way").unwrap();
    }

    pub(super) fn bring_back(&self) {
        let mounted = self.folders.0.join("mounted");
        std::fs::remove_file(&mounted).unwrap();
        std::fs::rename(self.folders.0.join("away"), mounted).unwrap();
    }

    /// What was kept before the disk went: ten bodies in records, ten in pieces.
    fn fill(&self) {
        let disks = self.open();
        let store = store(&disks);
        for number in 0..20 {
            keep(&store, &path(number), length(number));
            written(&disks);
        }
        disks.close();
    }
}

pub(super) fn store(disks: &Arc<Disks>) -> Arc<Store> {
    Store::new(&MEMORY, Some(Arc::clone(disks)))
}

pub(super) fn length(number: usize) -> usize {
    if number < 10 { 100 } else { CHUNK_BYTES + 5 }
}

/// Tries until the disk is there: its lock may be held for a moment by what another test starts.
fn try_again(disks: &Disks, admit: &Admit) {
    let until = Instant::now() + Duration::from_secs(20);
    while disks.disk(0).is_none() {
        assert!(Instant::now() < until, "{:?}", disks.take_absence());
        disks.try_slot(0, admit);
    }
}

fn quiet(last: u64, _: Vec<Note>) -> Option<u64> {
    Some(last + 1)
}

pub(super) fn lengths(disks: &Arc<Disks>) -> Vec<Option<usize>> {
    (0..20).map(|number| found(disks, &path(number)).map(|body| body.len())).collect()
}

fn is_anew(disks: &Disks) -> Option<bool> {
    let events = std::iter::from_fn(|| disks.take_absence());
    events.into_iter().find_map(|(_, event)| match event {
        AbsenceEvent::Back { is_anew } => Some(is_anew),
        AbsenceEvent::Absent(_) => None,
    })
}

#[test]
fn the_others_do_without_a_disk_that_is_absent() {
    for (layout, count) in LAYOUTS {
        let shelf = Shelf::new(layout, count);
        shelf.take_away();
        let disks = shelf.open();
        let store = store(&disks);
        for number in 0..20 {
            keep(&store, &path(number), length(number));
            written(&disks);
        }
        let there = lengths(&disks).into_iter().flatten().count();
        assert_eq!(there, if count == 1 { 0 } else { 20 }, "{layout:?}");
        let usage: Vec<_> =
            disks.usage().0.iter().map(|(_, usage)| (usage.is_absent, usage.is_failing)).collect();
        assert!(
            usage[0] == (true, true) && usage[1..].iter().all(|other| *other == (false, false)),
            "{usage:?}"
        );
        // Everybody hears of it, and one does not confirm it.
        assert_eq!(store.invalidate(&key("/0"), 1), 1);
        assert!(found(&disks, "/0").is_none());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let synced = runtime.block_on(disks.sync());
        assert!(matches!(&synced, Err(DiskError::Absent(path)) if *path == shelf.paths()[0]), "{synced:?}");
        disks.close();
    }
}

#[test]
fn only_its_own_share_moves_while_a_disk_of_a_hash_is_absent() {
    let shelf = Shelf::new(Layout::Hash, 3);
    let all = shelf.open();
    let keys: Vec<CacheKey> = (0..300).map(|number| key(&path(number))).collect();
    let before: Vec<_> = keys.iter().map(|key| all.preference_of(key)).collect();
    all.close();
    drop(all);
    shelf.take_away();
    let left = shelf.open();
    for (key, before) in keys.iter().zip(before) {
        let expected: Vec<usize> = before.into_iter().filter(|disk| *disk != 0).collect();
        assert_eq!(left.preference_of(key).to_vec(), expected);
    }
}

#[test]
fn a_disk_that_comes_back_has_what_it_had_but_for_what_was_replaced_meanwhile() {
    for (layout, count) in LAYOUTS {
        let shelf = Shelf::new(layout, count);
        shelf.fill();
        shelf.take_away();
        let disks = shelf.open();
        let store = store(&disks);
        for number in [3, 13] {
            keep(&store, &path(number), NEWER);
        }
        keep(&store, &path(4), 100);
        written(&disks);
        // Taken out again, of which the disk knows nothing either.
        store.discard(&key(&path(4)), |_| true);
        shelf.bring_back();
        try_again(&disks, &quiet);
        assert_eq!(is_anew(&disks), Some(false));
        let newer = (count > 1).then_some(NEWER);
        let check = |disks: &Arc<Disks>| {
            for (number, found) in lengths(disks).into_iter().enumerate() {
                let expected = match number {
                    3 | 13 => newer,
                    4 => None,
                    _ => Some(length(number)),
                };
                assert_eq!(found, expected, "{layout:?} {number}");
            }
        };
        check(&disks);
        assert!(!disks.usage().0[0].1.is_absent);
        disks.close();
        drop((store, disks));
        // What it was told afterwards it knows for good.
        let disks = shelf.open();
        check(&disks);
        // And it takes its share again.
        let store = super::absent::store(&disks);
        let before = disks.usage().0[0].1.written_objects;
        for number in 20..40 {
            keep(&store, &path(number), 100);
        }
        written(&disks);
        assert!(disks.usage().0[0].1.written_objects > before, "{layout:?}");
    }
}

#[test]
fn nothing_of_a_disk_is_believed_that_did_not_hear_of_an_invalidation() {
    for noted in [false, true] {
        let shelf = Shelf::new(Layout::Single, 1);
        shelf.fill();
        shelf.take_away();
        let disks = shelf.open();
        if noted {
            disks.note(&Note { number: 1, moment: 0, what: b"a group".to_vec() });
        }
        shelf.bring_back();
        let admit = move |last, _| noted.then_some(last + 1);
        try_again(&disks, &admit);
        assert_eq!(is_anew(&disks), Some(true));
        assert!(lengths(&disks).into_iter().all(|length| length.is_none()), "{noted}");
        keep(&store(&disks), "/new", 100);
        written(&disks);
        disks.close();
        drop(disks);
        let disks = shelf.open();
        assert!(lengths(&disks).into_iter().all(|length| length.is_none()), "{noted}");
        assert!(found(&disks, "/new").is_some());
    }
}

#[test]
fn an_invalidation_while_a_disk_is_being_opened_is_heard_of() {
    let shelf = Shelf::new(Layout::Single, 1);
    shelf.fill();
    shelf.take_away();
    let disks = shelf.open();
    shelf.bring_back();
    let store = store(&disks);
    // The disk is open here, and not yet in use.
    let admit = {
        let store = Arc::clone(&store);
        move |last, _| {
            store.invalidate(&key("/7"), last + 2);
            Some(last + 1)
        }
    };
    try_again(&disks, &admit);
    let expected: Vec<_> = (0..20).map(|number| (number != 7).then_some(length(number))).collect();
    assert_eq!(lengths(&disks), expected);
    disks.close();
    drop((admit, store, disks));
    assert_eq!(lengths(&shelf.open()), expected);
}

#[test]
fn a_disk_that_is_opened_when_the_store_is_closed_is_not_used() {
    for is_quiet in [true, false] {
        let shelf = Shelf::new(Layout::Single, 1);
        shelf.fill();
        shelf.take_away();
        let disks = shelf.open();
        shelf.bring_back();
        let closing = Arc::clone(&disks);
        let admit = move |last, _| {
            closing.close();
            is_quiet.then_some(last + 1)
        };
        disks.try_slot(0, &admit);
        assert!(disks.disk(0).is_none() && !disks.begin_trying_slot(0));
        // Nobody has it any more.
        drop((admit, disks));
        assert!(shelf.open().disk(0).is_some());
    }
}

#[test]
fn what_was_missed_beyond_a_bound_is_everything() {
    let shelf = Shelf::new(Layout::Single, 1);
    shelf.fill();
    shelf.take_away();
    let disks = shelf.open();
    for number in 0..2000 {
        let long = format!("/{}{number}", "x".repeat(4000));
        disks.change_slot(0, &key(&long));
    }
    shelf.bring_back();
    try_again(&disks, &|_, _| panic!("it is not opened with what it holds"));
    assert_eq!(is_anew(&disks), Some(true));
    assert!(lengths(&disks).into_iter().all(|length| length.is_none()));
}

#[test]
fn an_absent_disk_is_tried_again_after_a_pause_and_each_reason_is_told_once() {
    let shelf = Shelf::new(Layout::Single, 1);
    shelf.take_away();
    let disks = shelf.open();
    let path = &shelf.paths()[0];
    let is_absent = |event: &Option<(PathBuf, AbsenceEvent)>| matches!(event, Some((folder, AbsenceEvent::Absent(DiskError::Io { .. }))) if folder == path);
    let event = disks.take_absence();
    assert!(is_absent(&event) && disks.take_absence().is_none(), "{event:?}");
    assert!(!disks.begin_trying_slot(0), "it was tried just now");
    disks.try_slot(0, &quiet);
    assert!(disks.take_absence().is_none());
    // Another reason.
    std::fs::remove_file(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(path.parent().unwrap(), path.parent().unwrap()).unwrap();
    disks.try_slot(0, &quiet);
    let event = disks.take_absence();
    assert!(is_absent(&event), "{event:?}");
    shelf.bring_back();
    let admit: Arc<Admit> = Arc::new(quiet);
    let (began, until) = (Instant::now(), Instant::now() + Duration::from_secs(60));
    while disks.disk(0).is_none() {
        assert!(Instant::now() < until);
        disks.try_absent(&admit);
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(began.elapsed() > Duration::from_secs(1), "not before its pause was over");
    assert!(matches!(disks.take_absence(), Some((_, AbsenceEvent::Back { is_anew: false }))));
}

#[test]
fn a_disk_that_is_somebody_elses_is_absent_and_stays_as_it_is() {
    let shelf = Shelf::new(Layout::Hash, 2);
    std::fs::create_dir(shelf.folders.0.join("1")).unwrap();
    std::fs::write(shelf.folders.0.join("1/larder"), "a list of what is in the larder").unwrap();
    let settings =
        |path| DiskSettings { path, size: DiskSize::Bytes(16 << 20), idle: None, files: Default::default() };
    let settings = shelf.paths().into_iter().map(settings).collect();
    let disks = Disks::open(Layout::Hash, settings, 1 << 30, &Clock::default());
    let event = disks.take_absence();
    assert!(matches!(event, Some((_, AbsenceEvent::Absent(DiskError::NotOurs(_))))), "{event:?}");
    assert!(disks.disk(0).is_some() && disks.disk(1).is_none());
    disks.try_slot(1, &quiet);
    let said = std::fs::read(shelf.folders.0.join("1/larder")).unwrap();
    assert_eq!(said, b"a list of what is in the larder");
}

/// What is in the disk's place is not touched.
#[test]
fn what_lies_where_an_absent_disk_should_be_stays() {
    let shelf = Shelf::new(Layout::Single, 1);
    shelf.take_away();
    let disks = shelf.open();
    disks.try_slot(0, &quiet);
    let in_the_way: &Path = &shelf.folders.0.join("mounted");
    assert_eq!(std::fs::read(in_the_way).unwrap(), b"in the way");
}
