//! What is listed, page by page, and what is not.

use std::collections::BTreeSet;

use super::*;

/// Everything that is listed: URL without scheme, and whether larder stored it.
fn all(store: &FileStore, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<(String, bool)> {
    let (mut from, mut all) = (FilesCursor::default(), Vec::new());
    loop {
        let page = store.list(from, most, wanted);
        assert!(page.files.len() <= most);
        all.extend(page.files.into_iter().map(|file| {
            let (authority, path, query) = file.uri.unwrap();
            let query = query.map_or_else(String::new, |query| format!("?{query}"));
            (format!("{authority}{path}{query}"), file.meta.is_some())
        }));
        match page.next {
            // As it would come back from outside.
            Some(next) => from = next.to_string().parse().unwrap(),
            None => return all,
        }
    }
}

#[test]
fn every_file_that_a_url_leads_to_is_listed_once() {
    let fixture = Fixture::new(1 << 24);
    let long = format!("/{}?q", "x".repeat(300));
    let mut expected = BTreeSet::new();
    for path in ["/b", "/a?q=/1", "/c/", "/d", "/d/e", "/d/f/g", "/caf%C3%A9", &long] {
        let _ = put(&fixture.store, path, b"x");
        put(&fixture.store, path, b"x").unwrap();
        expected.insert((format!("h{path}"), true));
    }
    put(&fixture.store, "/d", b"again").unwrap();
    for number in 0..300 {
        put(&fixture.store, &format!("/many/{number}"), b"x").unwrap();
        expected.insert((format!("h/many/{number}"), true));
    }
    // Nobody has asked for these, and nobody has counted them.
    std::fs::write(fixture.path("h/by hand"), "y").unwrap();
    std::fs::create_dir_all(fixture.path("other.example/x")).unwrap();
    std::fs::write(fixture.path("other.example/x/index.html"), "y").unwrap();
    expected.insert(("h/by%20hand".to_owned(), false));
    expected.insert(("other.example/x/".to_owned(), false));
    // What larder stored and somebody gave another name is theirs.
    std::fs::rename(fixture.path("h/b"), fixture.path("h/moved")).unwrap();
    expected.remove(&("h/b".to_owned(), true));
    expected.insert(("h/moved".to_owned(), false));
    // No URL leads to these.
    std::fs::write(fixture.path("h/.swp"), "y").unwrap();
    std::fs::write(fixture.path("h/%zz"), "y").unwrap();
    std::os::unix::fs::symlink("by hand", fixture.path("h/link")).unwrap();
    std::os::unix::fs::symlink("/etc", fixture.path("h/etc")).unwrap();
    for most in [1, 7, 1000] {
        let listed = all(&fixture.store, most, &|_| true);
        let once: BTreeSet<_> = listed.iter().cloned().collect();
        assert_eq!(listed.len(), once.len(), "some twice");
        assert_eq!(once, expected);
    }
    let of_many = all(&fixture.store, 10, &|base| base.starts_with(b"h/many/1"));
    assert_eq!(of_many.len(), 111);
    assert_eq!(all(&fixture.store, 10, &|base| base == long.replacen('/', "h/", 1).as_bytes()).len(), 1);
}

#[test]
fn listing_is_no_use_and_changes_nothing() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"x").unwrap();
    std::fs::write(fixture.path("h/by hand"), "y").unwrap();
    let usage = fixture.store.usage();
    assert_eq!(all(&fixture.store, 10, &|_| true).len(), 2);
    assert!(fixture.store.under(&uri("/a")).is_some_and(|file| file.scheme == Some(Scheme::Http)));
    assert!(fixture.store.under(&uri("/by%20hand")).is_some_and(|file| file.scheme.is_none()));
    assert!(fixture.store.under(&uri("/c")).is_none());
    assert_eq!(fixture.store.open_unused(&uri("/a")).unwrap().read_at(0, 1).unwrap(), "x");
    assert_eq!(fixture.store.usage(), usage);
    // The next to go is the one that nobody used.
    assert_eq!(
        fixture.store.shared().index.victim().map(|name| name.bytes().to_vec()),
        Some(b"h/a".to_vec())
    );
}

#[test]
fn a_listing_goes_on_where_directories_went_meanwhile() {
    let fixture = Fixture::new(1 << 20);
    for path in ["/a/1", "/a/2", "/a/3", "/b/1", "/c"] {
        put(&fixture.store, path, b"x").unwrap();
    }
    // Within the first directory that it comes to.
    let mut from = FilesCursor::default();
    let page = loop {
        let page = fixture.store.list(from, 1, &|_| true);
        match page.files.first().is_some_and(|file| file.path.starts_with(b"h/a")) {
            true => break page,
            false => from = page.next.unwrap(),
        }
    };
    std::fs::remove_dir_all(fixture.path("h/a")).unwrap();
    let rest = fixture.store.list(page.next.unwrap(), 100, &|_| true);
    assert!(rest.files.iter().all(|file| !file.path.starts_with(b"h/a")) && rest.next.is_none());
    std::fs::remove_dir_all(fixture.path("")).unwrap();
    assert!(all(&fixture.store, 10, &|_| true).is_empty());
    for foreign in ["0-0-2e2e", "0-0-2e6c6172646572", "0-0-0-2e6c61726465722f746d70", "ffffffffffffffff-"] {
        let foreign: FilesCursor = foreign.parse().unwrap();
        assert!(fixture.store.list(foreign, 10, &|_| true).files.is_empty());
    }
}

#[test]
fn what_somebody_gave_another_name_is_never_evicted() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"x").unwrap();
    std::fs::rename(fixture.path("h/a"), fixture.path("h/b")).unwrap();
    check(&fixture.store, "/b", Some(("x", false)));
    fixture.store.invalidate(&uri("/b"));
    assert!(fixture.store.flush());
    check(&fixture.store, "/b", Some(("x", false)));
}
