//! Directories that are purged as a whole: gone when that is told, removed a little later, and swept by the next start.

use std::sync::atomic::AtomicU64;

use larder_tier::tier::{CountRemoved, WantedHosts};

use super::*;

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
    assert_eq!(count.load(Ordering::Relaxed), 604);
    wait(|| fixture.store.usage().files == 3);
    put(&fixture.store, "/img/a", b"anew").unwrap();
    check(&fixture.store, "/img/a", Some(("anew", true)));
    // Nothing is there: that is no failure.
    fixture.store.remove_below("/none/", &wanted(&["h"]), &counted).unwrap();
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
    fixture.store.remove_below("/", &(Arc::new(|_: &str| true) as Arc<WantedHosts>), &counted).unwrap();
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
