//! Files as orders write them, and as crashes, people and disks leave them.

use std::os::unix::fs::PermissionsExt as _;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

const NAME: &str = "a.example";

fn storage() -> (Storage, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Storage::open(&folder.path().join("acme")).unwrap(), folder)
}

/// A certificate for `name` and its key, as PEM.
fn pair(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn found(storage: &Storage) -> Option<Vec<u8>> {
    match storage.certificate(NAME).unwrap() {
        Found::Pair(pair) => Some(pair.chain[0].to_vec()),
        Found::Nothing => None,
        Found::Damaged(reason) => panic!("damaged: {reason}"),
    }
}

fn der(chain: &str) -> Option<Vec<u8>> {
    Some(CertificateDer::from_pem_slice(chain.as_bytes()).unwrap().to_vec())
}

#[test]
fn every_step_of_a_renewal_leaves_a_pair() {
    let (storage, _folder) = storage();
    let ((old, old_key), (new, new_key)) = (pair(NAME), pair(NAME));
    assert_eq!(found(&storage), None);
    storage.save_next_key(NAME, &old_key).unwrap();
    assert_eq!(found(&storage), None);
    storage.save_chain(NAME, &old).unwrap();
    assert_eq!(found(&storage), der(&old));
    storage.take_next_key(NAME).unwrap();
    assert_eq!(found(&storage), der(&old));
    storage.save_next_key(NAME, &new_key).unwrap();
    assert_eq!(found(&storage), der(&old));
    storage.save_chain(NAME, &new).unwrap();
    assert_eq!(found(&storage), der(&new), "the chain is new, its key is still the next one");
    storage.complete(NAME).unwrap();
    assert!(!storage.of(NAME, NEXT_KEY).exists());
    assert_eq!(found(&storage), der(&new));
    storage.complete(NAME).unwrap();
}

#[test]
fn the_key_of_an_order_is_not_taken_before_its_chain() {
    let (storage, _folder) = storage();
    let (chain, key) = pair(NAME);
    storage.save_next_key(NAME, &key).unwrap();
    storage.save_chain(NAME, &chain).unwrap();
    storage.complete(NAME).unwrap();
    storage.save_next_key(NAME, &pair(NAME).1).unwrap();
    storage.complete(NAME).unwrap();
    assert_eq!(found(&storage), der(&chain));
    assert!(storage.next_key(NAME).unwrap().is_some());
}

#[test]
fn files_are_for_their_owner_alone() {
    let (storage, folder) = storage();
    storage.save_next_key(NAME, "x").unwrap();
    storage.save_account("ca.example:14000", &1).unwrap();
    let _lock = storage.lock().unwrap().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in ["certs/a.example/next.pem", "account/ca.example_14000.json", "lock"] {
        assert_eq!(mode(&folder.path().join("acme").join(file)), 0o600, "{file}");
    }
    for file in ["", "certs", "certs/a.example", "account"] {
        assert_eq!(mode(&folder.path().join("acme").join(file)), 0o700, "{file}");
    }
}

#[test]
fn what_a_crash_has_left_beside_the_place_is_replaced() {
    let (storage, _folder) = storage();
    let beside = storage.of(NAME, "next.pem.tmp");
    storage.save_next_key(NAME, "x").unwrap();
    fs::write(&beside, "half").unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o644)).unwrap();
    storage.save_next_key(NAME, "y").unwrap();
    assert_eq!(storage.next_key(NAME).unwrap().as_deref(), Some(&b"y"[..]));
    let mode = fs::metadata(storage.of(NAME, NEXT_KEY)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!beside.exists());
}

#[test]
fn what_is_damaged_is_known_as_such() {
    let (chain, key) = pair(NAME);
    let (other_chain, other_key) = pair("b.example");
    let (cut_chain, cut_key) = (&chain[..chain.len() / 2], &key[..key.len() / 2]);
    let noise = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (chain, key) in [
        ("", &*key),
        (cut_chain, &*key),
        (noise, &*key),
        (&*other_chain, &*other_key),
        (&*chain, &*other_key),
        (&*chain, ""),
        (&*chain, cut_key),
        (&*chain.repeat(CHAIN_MAX + 1), &*key),
    ] {
        let (storage, _folder) = storage();
        storage.save_chain(NAME, chain).unwrap();
        storage.write(NAME, KEY, key.as_bytes()).unwrap();
        let found = storage.certificate(NAME).unwrap();
        assert!(matches!(found, Found::Damaged(_)), "{found:?}");
        let aside = storage.set_certificate_aside(NAME).unwrap();
        assert_eq!(fs::read_to_string(aside).unwrap(), chain);
        assert!(matches!(storage.certificate(NAME).unwrap(), Found::Nothing));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_damaged() {
    let (storage, _folder) = storage();
    assert!(storage.is_readable(NAME), "there is nothing");
    fs::create_dir_all(storage.of(NAME, CHAIN)).unwrap();
    assert!(storage.certificate(NAME).is_err());
    assert!(!storage.is_readable(NAME));
    fs::remove_dir(storage.of(NAME, CHAIN)).unwrap();
    // Root may open every file, and nobody reads a directory as one.
    for file in [STATE, ORDER] {
        let path = storage.of(NAME, file);
        fs::create_dir_all(&path).unwrap();
        match file {
            STATE => assert!(storage.state::<u32>(NAME, true).is_err()),
            _ => assert!(storage.order::<u32>(NAME).is_err()),
        }
        assert!(path.is_dir(), "it is left alone");
        assert!(!storage.is_readable(NAME));
        fs::remove_dir(path).unwrap();
    }
    let account = storage.account_file("ca.example");
    fs::create_dir_all(&account).unwrap();
    assert!(storage.account::<u32>("ca.example").is_err());
    assert!(account.is_dir(), "it is left alone");
}

#[test]
fn a_damaged_note_is_moved_aside() {
    let (storage, _folder) = storage();
    let state = |leads| storage.state::<u32>(NAME, leads).unwrap();
    assert_eq!(state(true).0, 0);
    storage.save_state(NAME, &7).unwrap();
    assert!(matches!(state(true), (7, None)));
    fs::write(storage.of(NAME, STATE), "{").unwrap();
    assert!(state(false).1.is_some_and(|aside| aside.to.is_none()), "without the lock it stays");
    assert!(storage.is_readable(NAME), "what is damaged can be read");
    let (value, aside) = state(true);
    let aside = aside.unwrap();
    assert_eq!((value, aside.path), (0, storage.of(NAME, STATE)));
    assert_eq!(fs::read_to_string(aside.to.unwrap()).unwrap(), "{");
    assert!(state(true).1.is_none());
}

#[test]
fn one_process_has_the_lock() {
    let (storage, folder) = storage();
    let lock = storage.lock().unwrap().unwrap();
    let second = Storage::open(&folder.path().join("acme")).unwrap();
    assert!(second.lock().unwrap().is_none());
    drop(lock);
    assert!(second.lock().unwrap().is_some());
}

#[test]
fn another_certificate_has_another_stamp() {
    let (storage, _folder) = storage();
    let none = storage.stamp(NAME);
    storage.save_chain(NAME, "x").unwrap();
    let one = storage.stamp(NAME);
    storage.save_chain(NAME, "y").unwrap();
    assert!(none != one && one != storage.stamp(NAME));
    assert_eq!(storage.stamp(NAME), storage.stamp(NAME));
}
