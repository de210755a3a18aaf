//! File systems that are full, read-only or poor, and a larder that is killed.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

const FILE: usize = 10_000;

#[test]
fn a_full_file_system_is_a_smaller_cache() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m,nr_inodes=100") else { return };
    let store = open(&mounted.path(), 1 << 24, |settings| settings.inodes = 1000);
    let mut refused = 0;
    for number in 0..600 {
        let path = format!("/{number}");
        match put(&store, &path, &vec![b'x'; FILE]) {
            Ok(()) => assert_eq!(read(&store, &path).unwrap().0, vec![b'x'; FILE]),
            Err(Refused::NoRoom | Refused::Failing) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    let usage = store.usage();
    assert!(refused > 0 && usage.errors > 0 && usage.is_failing, "{refused} {usage:?}");
    assert!(store.take_event().is_some());
    assert!(store.take_event().is_none(), "said once");
    assert!(find(&store, "/0").is_some(), "what is there is served");
    assert_eq!(files(&mounted.path().join(".larder/tmp")).len(), 0);
    store.close();
}

#[test]
fn a_read_only_file_system_goes_on_being_served() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m") else { return };
    let store = open(&mounted.path(), 1 << 20, |_| {});
    put(&store, "/a", b"there").unwrap();
    mounted.remount("remount,ro");
    assert_eq!(put(&store, "/b", b"new"), Err(Refused::Failing));
    assert_eq!(store.begin(&uri("/b"), None).unwrap_err(), Refused::Failing, "it is left alone for a while");
    check(&store, "/a", Some(("there", true)));
    assert!(store.remove(&uri("/a")).is_err(), "a purge that did not happen is not acknowledged");
    mounted.remount("remount,rw");
    wait(|| put(&store, "/b", b"new").is_ok());
    assert!(!store.usage().is_failing);
    store.close();
}

#[test]
fn without_attributes_meta_lies_in_files_of_its_own() {
    let Some(mounted) = Mounted::new("ramfs", "mode=755") else { return };
    let store = open(&mounted.path(), 1 << 22, |settings| settings.recount = Duration::from_millis(10));
    assert!(!store.shared().tree.has_attributes());
    for round in 0..3 {
        for path in ["/a", "/a/b", "/c/"] {
            put(&store, path, format!("{path}{round}").as_bytes()).unwrap();
        }
    }
    check(&store, "/c/", Some(("/c/2", true)));
    check(&store, "/a/b", Some(("/a/b2", true)));
    std::fs::write(mounted.path().join("h/c/index.html"), "by hand").unwrap();
    check(&store, "/c/", Some(("by hand", false)));
    assert!(store.remove(&uri("/a/b")).unwrap());
    let metas = files(&mounted.path().join(".larder/meta"));
    assert_eq!(metas.len(), 2, "{metas:?}");
    store.close();
    drop(store);
    let store = open(&mounted.path(), 1 << 22, |_| {});
    check(&store, "/a", Some(("/a2", true)));
    store.close();
}

/// The child of the test below: stores without end, until it is killed.
#[test]
#[ignore = "runs as a child of another test"]
fn stores_until_it_is_killed() {
    let Some(path) = std::env::var_os("LARDER_FILES_TEST") else { return };
    let store = open(Path::new(&path), 1 << 20, |_| {});
    for round in 0_usize.. {
        let body = vec![u8::try_from(round % 251).unwrap(); round * 997 % 70_000];
        put(&store, &format!("/{}/{}", round % 5, round % 37), &body).unwrap();
    }
}

#[test]
fn a_kill_leaves_whole_files_and_nothing_else() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "tests::faults::stores_until_it_is_killed"])
            .env("LARDER_FILES_TEST", &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait(|| path.join("h").is_dir() && files(&path.join("h")).len() > 20);
        child.kill().unwrap();
        child.wait().unwrap();
        let store = open(&path, 1 << 20, |_| {});
        assert_eq!(files(&path.join(".larder/tmp")).len(), 0);
        let listed = store.list(FilesCursor::default(), 1000, &|_| true).files;
        assert!(listed.len() > 10);
        for listed in &listed {
            assert!(listed.meta.is_some(), "{listed:?}");
            let (body, _) = read(&store, &listed.uri.as_ref().unwrap().1).unwrap();
            assert!(body.windows(2).all(|two| two[0] == two[1]));
        }
        let usage = store.usage();
        assert!(usage.bytes <= usage.max_bytes);
        put(&store, "/after", b"x").unwrap();
        store.close();
    }
}

#[test]
fn a_directory_that_cannot_be_a_store_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let store = FileStore::open(&FilesSettings::new(&file, 1 << 20)).unwrap();
    let Some(FilesAbsence::Absent(error)) = store.take_absence() else { panic!("nothing is said") };
    assert!(matches!(error, FilesError::Io { .. }) && error.to_string().contains("file"), "{error}");
    assert!(probe(&file).is_err() && store.usage().is_absent);
}

#[test]
fn what_fails_in_one_place_does_not_stop_the_others() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m") else { return };
    let folder = mounted.0.path().parent().unwrap();
    // Another file system inside: nothing can be renamed into it.
    let inside = TempDir::new_in(folder).unwrap();
    let path = inside.path().join("store");
    let store = open(&path, 1 << 20, |_| {});
    std::fs::create_dir_all(path.join("h/other")).unwrap();
    let mut command = Command::new("mount");
    assert!(
        command.arg("--bind").arg(mounted.0.path()).arg(path.join("h/other")).status().unwrap().success()
    );
    std::fs::write(path.join("h/other/theirs"), "theirs").unwrap();
    let put_there = put(&store, "/other/a", b"x");
    let found = read(&store, "/other/theirs");
    let elsewhere = put(&store, "/a", b"x");
    let removed = store.remove(&uri("/other/theirs"));
    let usage = store.usage();
    store.close();
    drop(store);
    assert!(Command::new("umount").arg("-l").arg(path.join("h/other")).status().unwrap().success());
    assert_eq!(put_there, Err(Refused::InTheWay));
    assert_eq!(found.unwrap().0, b"theirs");
    assert_eq!(elsewhere, Ok(()));
    assert!(removed.unwrap() && !usage.is_failing && usage.errors == 0, "{usage:?}");
}

#[test]
fn what_a_crash_of_the_machine_has_torn_is_not_taken_for_a_persons_file() {
    let fixture = Fixture::new(1 << 20);
    for path in ["/a", "/b", "/c"] {
        put(&fixture.store, path, b"0123456789").unwrap();
        // The name and the attribute are on the disk, the content is not.
        let file = std::fs::File::options().write(true).open(fixture.path("h").join(&path[1..])).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_len(if path == "/a" { 0 } else { 4 }).unwrap();
        file.set_modified(modified).unwrap();
    }
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/b", None);
    put(&fixture.store, "/a", b"anew").unwrap();
    check(&fixture.store, "/a", Some(("anew", true)));
    fixture.store.invalidate(&uri("/b"));
    wait(|| !fixture.path("h/b").exists());
}
