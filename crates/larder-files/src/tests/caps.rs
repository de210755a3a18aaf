//! The caps hold at every moment, also on a file system that is smaller than they are.

use proptest::prelude::*;

use super::*;

const FILE: usize = 10_000;

#[test]
fn what_was_not_used_goes_first_and_the_cap_holds() {
    let fixture = Fixture::new(1 << 20);
    for number in 0..200 {
        put(&fixture.store, &format!("/{number}"), &vec![b'x'; FILE]).unwrap();
        assert!(find(&fixture.store, "/0").is_some(), "in use all the time, and gone after {number}");
        let usage = fixture.store.usage();
        assert!(usage.high_water_bytes <= usage.max_bytes);
    }
    let usage = fixture.store.usage();
    assert!(usage.evicted > 100 && usage.files > 30, "{usage:?}");
    assert!(find(&fixture.store, "/1").is_none());
}

#[test]
fn inodes_are_capped_too() {
    let fixture = Fixture::with(1 << 24, |settings| settings.inodes = 50);
    for number in 0..200 {
        put(&fixture.store, &format!("/d{number}/x"), b"x").unwrap();
        let usage = fixture.store.usage();
        assert!(usage.inodes <= 50, "{usage:?}");
    }
    assert!(fixture.store.usage().files > 10);
    let there = std::fs::read_dir(fixture.path("h")).unwrap().count() as u64;
    assert_eq!(there, fixture.store.usage().files, "empty directories went with their files");
}

#[test]
fn a_body_that_can_never_fit_is_refused_and_evicts_nothing() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"x").unwrap();
    let large = vec![0; 1 << 20];
    assert_eq!(put(&fixture.store, "/b", &large), Err(Refused::NoRoom));
    assert_eq!(fixture.store.begin(&uri("/b"), Some(1 << 21)).unwrap_err(), Refused::TooLarge);
    check(&fixture.store, "/a", Some(("x", true)));
}

#[test]
fn bytes_that_somebody_reads_still_count() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", &vec![0; 700_000]).unwrap();
    let hit = find(&fixture.store, "/a").unwrap();
    assert!(fixture.store.remove(&uri("/a")).unwrap());
    assert!(fixture.store.usage().bytes > 700_000);
    assert_eq!(put(&fixture.store, "/b", &vec![0; 700_000]), Err(Refused::NoRoom));
    drop(hit);
    assert_eq!(put(&fixture.store, "/b", &vec![0; 700_000]), Ok(()));
}

#[test]
fn what_others_wrote_takes_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    std::fs::create_dir_all(path.join("h")).unwrap();
    std::fs::write(path.join("h/theirs"), vec![0; 900_000]).unwrap();
    let store = open(&path, 1 << 20, |_| {});
    assert!(store.usage().bytes > 900_000);
    assert_eq!(put(&store, "/a", &vec![0; 300_000]), Err(Refused::NoRoom));
    assert_eq!(put(&store, "/a", &vec![0; 30_000]), Ok(()));
    assert!(find(&store, "/theirs").is_some());
}

#[test]
fn a_cap_below_the_size_of_the_file_system_never_fills_it() {
    let Some(mounted) = Mounted::new("tmpfs", "size=4m") else { return };
    let store = open(&mounted.path(), 3 << 20, |_| {});
    for number in 0..2000_u64 {
        let body = vec![b'x'; usize::try_from(number * 37 % 50_000).unwrap()];
        put(&store, &format!("/{}/{number}", number % 10), &body).unwrap();
        let status = rustix::fs::statvfs(mounted.0.path()).unwrap();
        let used = (status.f_blocks - status.f_bfree) * status.f_frsize;
        assert!(used <= 3 << 20, "{used}");
    }
    assert_eq!(store.usage().errors, 0);
    store.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Random operations against a plain map: what is found is what was stored last, or nothing; and the caps hold.
    #[test]
    fn random_histories(operations in proptest::collection::vec((0_u8..10, 0_u8..12, 0_usize..60_000), 1..80)) {
        let mut fixture = Fixture::with(400_000, |settings| settings.inodes = 40);
        let mut model: std::collections::HashMap<String, Vec<u8>> = Default::default();
        for (round, (what, key, length)) in operations.into_iter().enumerate() {
            let path = match key % 4 {
                0 => format!("/{key}"),
                1 => format!("/{}/{key}", key - 1),
                2 => format!("/{key}?q"),
                _ => format!("/{key}/"),
            };
            match what {
                0..=4 => {
                    let body = vec![u8::try_from(round).unwrap(); length];
                    match put(&fixture.store, &path, &body) {
                        Ok(()) => drop(model.insert(path.clone(), body)),
                        Err(why) => prop_assert_eq!(why, Refused::NoRoom),
                    }
                }
                5 => {
                    fixture.store.invalidate(&uri(&path));
                    model.remove(&path);
                }
                6 => {
                    let was_there = fixture.store.remove(&uri(&path)).unwrap();
                    prop_assert!(!was_there || model.contains_key(&path));
                    model.remove(&path);
                }
                7 => {
                    fixture = fixture.reopened(400_000);
                    fixture.store.resize(400_000, 40, 400_000);
                }
                _ => {}
            }
            if let Some((body, is_stored)) = read(&fixture.store, &path) {
                prop_assert!(is_stored);
                prop_assert_eq!(Some(&body), model.get(&path));
            }
            let usage = fixture.store.usage();
            prop_assert!(usage.high_water_bytes <= usage.max_bytes, "{:?}", usage);
            prop_assert!(usage.inodes <= usage.max_inodes, "{:?}", usage);
        }
    }
}
