//! Directories that are purged as a whole: gone when that is told, removed a little later, and swept by the next start.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use larder_tier::tier::{CountRemoved, WantedHosts};

use super::*;

fn all() -> Arc<WantedHosts> {
    Arc::new(|_: &str| true)
}

fn wanted(hosts: &'static [&'static str]) -> Arc<WantedHosts> {
    Arc::new(move |authority| hosts.contains(&authority))
}

fn counter() -> (Arc<AtomicU64>, Arc<CountRemoved>) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let counted = move |files| {
        counted.fetch_add(files, Ordering::Relaxed);
    };
    (count, Arc::new(counted))
}

fn write(fixture: &Fixture, name: &str) {
    let path = fixture.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "by hand").unwrap();
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn everything_below_a_path_goes_whoever_put_it_there() {
    let fixture = Fixture::new(1 << 24);
    put(&fixture.store, "/img/a", b"stored").unwrap();
    put(&fixture.store, "/img/", b"index").unwrap();
    put(&fixture.store, "/img", b"the page itself").unwrap();
    put(&fixture.store, "/imgs", b"beside").unwrap();
    for name in ["h/img/deep/er/b", "h/img/hand", "other/img/c", "h/css/img/d"] {
        write(&fixture, name);
    }
    (0..600).for_each(|k| write(&fixture, &format!("h/img/many/{}/{k}", k % 7)));
    let (count, counted) = counter();
    fixture.store.remove_below("/img/", &wanted(&["h"]), &counted).unwrap();
    // At once, although not all of it can be removed by now.
    for path in ["/img/a", "/img/", "/img/hand", "/img/deep/er/b", "/img/many/3/3"] {
        check(&fixture.store, path, None);
    }
    check(&fixture.store, "/img", Some(("the page itself", true)));
    check(&fixture.store, "/imgs", Some(("beside", true)));
    check(&fixture.store, "/css/img/d", Some(("by hand", false)));
    assert!(fixture.path("other/img/c").exists());
    wait(|| is_empty(&fixture.path(".larder/aside")));
    wait(|| count.load(Ordering::Relaxed) == 604);
    wait(|| fixture.store.usage().files == 3);
    put(&fixture.store, "/img/a", b"anew").unwrap();
    check(&fixture.store, "/img/a", Some(("anew", true)));
    // Nothing is there: that is no failure.
    fixture.store.remove_below("/none/", &wanted(&["h"]), &counted).unwrap();
}

#[test]
fn what_was_stored_anew_below_a_path_stays_known_and_counted() {
    let fixture = Fixture::new(1 << 26);
    let targets: Vec<String> = (0..3000).map(|k| format!("/img/{}/{k}", k % 7)).collect();
    targets.iter().for_each(|target| write(&fixture, &format!("h{target}")));
    let (count, counted) = counter();
    fixture.store.remove_below("/img/", &wanted(&["h"]), &counted).unwrap();
    // While most of what was renamed is still to be removed, some of it is stored anew.
    let held = hold_up(&fixture.store);
    let anew: Vec<_> = targets.iter().step_by(30).collect();
    let stored: Vec<_> = anew.iter().map(|target| put_later(&fixture.store, target, b"anew")).collect();
    drop(held);
    stored.into_iter().for_each(|told| told.recv().unwrap().unwrap());
    wait(|| count.load(Ordering::Relaxed) == 3000 && is_empty(&fixture.path(".larder/aside")));
    assert!(fixture.store.flush());
    let other = Fixture::new(1 << 26);
    // That of the host was made by hand, and is met by the next count.
    std::fs::create_dir(other.path("h")).unwrap();
    anew.iter().for_each(|target| put(&other.store, target, b"anew").unwrap());
    let [taken, expected] = [&fixture, &other].map(|fixture| {
        let usage = fixture.store.usage();
        (usage.files, usage.bytes, usage.inodes)
    });
    assert_eq!(taken, expected);
    anew.iter().for_each(|target| check(&fixture.store, target, Some(("anew", true))));
}

/// Stores a response, and tells when that is done.
fn put_later(store: &FileStore, path: &str, body: &'static [u8]) -> mpsc::Receiver<Result<(), Refused>> {
    let (tell, told) = mpsc::sync_channel(1);
    let mut fill = store.begin(&uri(path), Some(body.len() as u64)).unwrap();
    fill.write(Bytes::from_static(body)).unwrap();
    fill.commit(meta(), || true, Box::new(move |done| tell.send(done).unwrap()));
    told
}

#[test]
fn a_host_goes_and_so_do_all() {
    let fixture = Fixture::new(1 << 24);
    for name in ["h/a", "h/b/c", "other/a", "third/a"] {
        write(&fixture, name);
    }
    let (count, counted) = counter();
    fixture.store.remove_below("/", &wanted(&["h"]), &counted).unwrap();
    assert!(!fixture.path("h").exists() && fixture.path("other/a").exists());
    fixture.store.remove_below("/", &all(), &counted).unwrap();
    wait(|| count.load(Ordering::Relaxed) == 4);
    assert!(!fixture.path("other").exists() && !fixture.path("third").exists());
}

#[test]
fn what_a_killed_run_has_put_aside_is_removed_by_the_next() {
    let fixture = Fixture::new(1 << 24);
    write(&fixture, "h/a");
    (0..300).for_each(|k| write(&fixture, &format!(".larder/aside/1-1/x/{k}/y")));
    let fixture = fixture.reopened(1 << 24);
    wait(|| is_empty(&fixture.path(".larder/aside")));
    check(&fixture.store, "/a", Some(("by hand", false)));
}

#[test]
fn a_link_is_not_followed_out_of_the_directory() {
    let fixture = Fixture::new(1 << 24);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("kept"), "x").unwrap();
    write(&fixture, "h/img/a");
    std::os::unix::fs::symlink(outside.path(), fixture.path("h/img/link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), fixture.path("h/linked")).unwrap();
    let (_, counted) = counter();
    fixture.store.remove_below("/linked/", &wanted(&["h"]), &counted).unwrap();
    fixture.store.remove_below("/img/", &wanted(&["h"]), &counted).unwrap();
    wait(|| is_empty(&fixture.path(".larder/aside")));
    assert!(outside.path().join("kept").exists());
}

#[test]
fn many_hosts_go_with_few_syncs_and_none_on_the_writing_thread() {
    let fixture = Fixture::new(1 << 24);
    (0..150).for_each(|k| write(&fixture, &format!("host-{k}/img/a")));
    let (count, counted) = counter();
    let shared = fixture.store.shared();
    for (path, hosts, most) in
        [("/img/", wanted(&["host-1", "host-7"]), 4), ("/img/", all(), 154), ("/", all(), 4)]
    {
        shared.tree.syncs.take();
        fixture.store.remove_below(path, &hosts, &counted).unwrap();
        let syncs = shared.tree.syncs.take();
        assert!((2..=most).contains(&syncs.len()), "{path}: {}", syncs.len());
        assert!(!syncs.contains(&Some("files-write".to_owned())), "{syncs:?}");
    }
    wait(|| count.load(Ordering::Relaxed) == 150);
}

#[test]
fn a_host_that_cannot_go_keeps_no_other_from_it() {
    let fixture = Fixture::new(1 << 24);
    (0..200).for_each(|k| write(&fixture, &format!("host-{k}/a")));
    let Some(held) = InTheWay::at(&fixture.path("held")) else { return };
    let (count, counted) = counter();
    let failed = fixture.store.remove_below("/", &all(), &counted);
    assert!(matches!(failed, Err(FilesError::Io { .. })), "{failed:?}");
    let left = (0..200).filter(|k| fixture.path(&format!("host-{k}")).exists()).count();
    assert_eq!(left, 0);
    wait(|| count.load(Ordering::Relaxed) == 200);
    assert!(!fixture.store.usage().is_failing);
    drop(held);
    wait(|| fixture.store.remove_below("/", &all(), &counted).is_ok());
}

#[test]
fn what_was_renamed_and_not_synced_is_removed_and_synced_by_the_next_try() {
    let fixture = Fixture::new(1 << 24);
    (0..300).for_each(|k| write(&fixture, &format!("h/img/{k}")));
    let (count, counted) = counter();
    for path in ["/img/", "/"] {
        write(&fixture, "h/img/one");
        let shared = fixture.store.shared();
        shared.tree.syncs.fail(usize::MAX);
        assert!(fixture.store.remove_below(path, &all(), &counted).is_err(), "{path}");
        assert!(!fixture.path("h/img").exists());
        wait(|| is_empty(&fixture.path(".larder/aside")));
        // No host is left that it could be asked for at.
        assert!(fixture.store.remove_below(path, &all(), &counted).is_err(), "{path}");
        shared.tree.syncs.fail(0);
        shared.tree.syncs.take();
        fixture.store.remove_below(path, &all(), &counted).unwrap();
        assert!(!shared.tree.syncs.take().is_empty(), "{path}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 302);
}

#[test]
fn directories_below_directories_go_however_deep_they_are() {
    let fixture = Fixture::new(1 << 24);
    let deep = format!("h/deep/{}", "d/".repeat(600));
    write(&fixture, &format!("{deep}a"));
    write(&fixture, "h/deep/d/d/d/b");
    // A path that is longer than any call takes.
    let long = format!("h/deep/{}", format!("{}/", "x".repeat(200)).repeat(17));
    write(&fixture, &format!("{long}c"));
    write(&fixture, "h/deep/y/e");
    std::fs::rename(fixture.path("h/deep/y"), fixture.path(&format!("{long}y"))).unwrap();
    std::fs::rename(fixture.path("h/deep").join("x".repeat(200)), fixture.path(&format!("{deep}x"))).unwrap();
    let (count, counted) = counter();
    fixture.store.remove_below("/deep/", &all(), &counted).unwrap();
    wait(|| is_empty(&fixture.path(".larder/aside")));
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_and_is_tried_again_and_then_told() {
    let fixture = Fixture::new(1 << 24);
    let (count, counted) = counter();
    let later = || fixture.store.shared().remove_asides_again(Instant::now() + Duration::from_secs(3600));
    let left = || files(&fixture.path(".larder/aside")).len();
    for is_over in [true, false] {
        count.store(0, Ordering::Relaxed);
        (0..500).for_each(|k| write(&fixture, &format!("h/img/{}/{k}", k % 7)));
        let Some(held) = InTheWay::at(&fixture.path("h/img/3/held")) else { return };
        fixture.store.remove_below("/img/", &all(), &counted).unwrap();
        wait(|| count.load(Ordering::Relaxed) == 500 && left() == 0);
        let usage = fixture.store.usage();
        assert!(!usage.is_failing && usage.errors == 0, "{usage:?}");
        assert!(held.path().starts_with(fixture.path(".larder/aside")), "{:?}", held.path());
        if is_over {
            // It can go now, and nothing has to be started anew for that.
            drop(held);
            wait(|| {
                later();
                is_empty(&fixture.path(".larder/aside"))
            });
            continue;
        }
        let told = std::cell::RefCell::new(None);
        wait(|| {
            later();
            *told.borrow_mut() = fixture.store.take_left_aside();
            told.borrow().is_some()
        });
        let told = told.take().unwrap();
        assert!(fixture.path(&told.path).join("3/held").is_dir() && told.why.contains("busy"), "{told:?}");
        // That was the last try.
        later();
        assert!(fixture.store.flush() && fixture.store.take_left_aside().is_none());
        drop(held);
        let fixture = fixture.reopened(1 << 24);
        wait(|| is_empty(&fixture.path(".larder/aside")));
        return;
    }
}

#[test]
fn nothing_but_a_page_is_given_back() {
    let fixture = Fixture::new(1 << 24);
    let (_, counted) = counter();
    // A directory that a person called so, with what would be pages below the name then.
    write(&fixture, "h/img/%self/a");
    fixture.store.remove_below("/img/", &all(), &counted).unwrap();
    assert!(!fixture.path("h/img").exists());
    check(&fixture.store, "/img/a", None);
    // A link.
    write(&fixture, "h/img/a");
    std::os::unix::fs::symlink("../css", fixture.path("h/img/%self")).unwrap();
    fixture.store.remove_below("/img/", &all(), &counted).unwrap();
    assert!(!fixture.path("h/img").is_symlink());
    // The page, by hand.
    write(&fixture, "h/img/a");
    write(&fixture, "h/img/%self");
    fixture.store.remove_below("/img/", &all(), &counted).unwrap();
    check(&fixture.store, "/img", Some(("by hand", false)));
    // No page has the name of a host, and a file of that name would be in the way of all that comes.
    write(&fixture, "other/%self");
    fixture.store.remove_below("/", &wanted(&["other"]), &counted).unwrap();
    assert!(!fixture.path("other").exists());
}
