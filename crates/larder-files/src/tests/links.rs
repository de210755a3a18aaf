//! Names never leave the directory, whatever is planted in it, and whenever.

use std::os::unix::fs::symlink;

use super::*;

/// A store with a folder outside that holds a secret.
fn with_outside() -> (Fixture, PathBuf) {
    let fixture = Fixture::new(1 << 22);
    let outside = fixture.folder.path().join("outside");
    std::fs::create_dir_all(outside.join("h")).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    std::fs::create_dir_all(fixture.path("h")).unwrap();
    (fixture, outside)
}

#[test]
fn planted_links_are_neither_read_nor_written_through() {
    let (fixture, outside) = with_outside();
    std::fs::write(fixture.path("h/inside"), "inside").unwrap();
    symlink(&outside, fixture.path("h/dir")).unwrap();
    symlink(outside.join("secret"), fixture.path("h/file")).unwrap();
    symlink("../../outside/secret", fixture.path("h/up")).unwrap();
    symlink("inside", fixture.path("h/stays")).unwrap();
    symlink(outside.join("new"), fixture.path("h/dangling")).unwrap();
    symlink(outside.join("h"), fixture.path("other")).unwrap();
    symlink("/proc/self/root", fixture.path("h/magic")).unwrap();
    for path in ["/dir/secret", "/dir/new", "/file", "/up", "/stays", "/dangling", "/magic/etc/passwd"] {
        check(&fixture.store, path, None);
        assert_eq!(put(&fixture.store, path, b"x"), Err(Refused::InTheWay), "{path}");
        fixture.store.invalidate(&uri(path));
        assert!(!fixture.store.remove(&uri(path)).unwrap());
    }
    let other = TargetUri { authority: "other", ..uri("/a") };
    assert!(find_uri(&fixture.store, &other).is_none());
    assert_eq!(put_uri(&fixture.store, &other, b"x"), Err(Refused::InTheWay));
    assert_eq!(files(&outside), [outside.join("secret")]);
    assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"secret");
    check(&fixture.store, "/inside", Some(("inside", false)));
}

#[test]
fn dots_slashes_and_nuls_stay_beneath() {
    let (fixture, outside) = with_outside();
    for path in [
        "/../outside/secret",
        "/..%2foutside%2fsecret",
        "/%2e%2e/outside/secret",
        "/a%00",
        "/./../..//x",
        "/..",
    ] {
        check(&fixture.store, path, None);
        put(&fixture.store, path, b"mine").unwrap();
        check(&fixture.store, path, Some(("mine", true)));
    }
    assert_eq!(files(&outside), [outside.join("secret")]);
    assert!(std::fs::read_dir(fixture.folder.path()).unwrap().count() == 2);
}

#[test]
fn without_openat2_no_link_is_followed_either() {
    let (fixture, outside) = with_outside();
    std::fs::create_dir_all(fixture.path("h/sub")).unwrap();
    std::fs::write(fixture.path("h/sub/inside"), "inside").unwrap();
    symlink(&outside, fixture.path("h/dir")).unwrap();
    symlink(outside.join("secret"), fixture.path("h/file")).unwrap();
    let shared = fixture.store.shared();
    let root = shared.tree.root();
    for resolver in [Resolver::without_openat2(), Resolver::probe(root, Links::None)] {
        let opens = |name: &str| resolver.open(root, name.as_bytes(), READ).is_ok();
        assert!(opens("h/sub/inside"));
        for name in
            ["h/dir/secret", "h/file", "../outside/secret", "h/../../outside/secret", "h/./sub/../../x"]
        {
            assert!(!opens(name), "{name}");
        }
    }
}

/// A folder that is now a directory and now a link to the outside, for as long as `work` runs.
fn while_swapped(fixture: &Fixture, outside: &Path, work: impl FnOnce()) {
    let (name, real, link) = (fixture.path("h/d"), fixture.path("h/real"), fixture.path("h/link"));
    std::fs::create_dir_all(&real).unwrap();
    symlink(outside, &link).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Not all of them succeed: the store makes a directory in between.
                let _ = std::fs::rename(&real, &name);
                let _ = std::fs::rename(&name, &real);
                let _ = std::fs::rename(&link, &name);
                let _ = std::fs::rename(&name, &link);
            }
        });
        let _over = Over(Arc::clone(&is_over));
        work();
    });
}

#[test]
fn a_race_between_a_directory_and_a_link_never_leads_outside() {
    let (fixture, outside) = with_outside();
    std::fs::write(outside.join("x0"), "secret").unwrap();
    while_swapped(&fixture, &outside, || {
        for round in 0..400 {
            let path = format!("/d/x{}", round % 4);
            let _ = put(&fixture.store, &path, b"mine");
            if let Some((body, _)) = read(&fixture.store, &path) {
                assert_eq!(body, b"mine");
            }
            if round % 7 == 0 {
                fixture.store.invalidate(&uri(&path));
            }
            if round % 11 == 0 {
                let _ = fixture.store.remove(&uri(&path));
            }
        }
        assert!(fixture.store.flush());
    });
    assert_eq!(std::fs::read(outside.join("x0")).unwrap(), b"secret");
    assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"secret");
    assert_eq!(files(&outside).len(), 2);
}

#[test]
fn odd_files_are_nothing() {
    let (fixture, _) = with_outside();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.path("h/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("h/sock")).unwrap();
    for path in ["/pipe", "/sock", "/"] {
        check(&fixture.store, path, None);
    }
    for path in ["/pipe", "/sock"] {
        assert_eq!(put(&fixture.store, path, b"x"), Err(Refused::InTheWay));
    }
}
