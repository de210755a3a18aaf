//! Where responses are said to lie, beside where they do.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::*;
use crate::behind::Folders;
use crate::memory::MemoryStoreSettings;
use crate::memory::tests::{head, key, request};
use crate::stored::StoredBody;
use larder_disk::Layout;
use larder_files::{FileStore, FilesSettings};

const MEMORY: MemoryStoreSettings = MemoryStoreSettings { memory: 8 << 20, max_object: 8 << 20 };

fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

fn response(store: &Store, vary: Option<&'static str>) -> Arc<StoredResponse> {
    let room = |bytes| store.reserve(bytes).unwrap();
    let body = StoredBody::new(vec![Bytes::from_static(b"0123")], room(100));
    Arc::new(StoredResponse::new(head(&request(&[]), vary), Arc::new(body), 0, room(2000)))
}

#[test]
fn a_response_lies_on_the_disks_once_it_is_written_and_is_held_back_until_then() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Mirror, &[16, 16]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    let (key, response) = (key("/a"), response(&store, None));
    assert_eq!(store.would_hold_back(&key, &response.head), None);
    assert_eq!(store.holds_back(&key, &response).map(|why| why.token), Some("not-taken"));
    assert!(store.insert(&key, Arc::clone(&response), |_| true, || true));
    let why = store.holds_back(&key, &response);
    assert!(why.as_ref().is_none_or(|why| *why == HeldBack::QUEUED), "{why:?}");
    until(|| store.disks_of(&key, &response).len() == 2);
    assert_eq!(store.holds_back(&key, &response), None);
    let directories = store.directories();
    assert_eq!(store.disks_of(&key, &response).to_vec(), directories);
}

#[test]
fn what_no_file_can_stand_for_is_held_back_for_the_reason_by_which_it_is() {
    let folder = std::env::temp_dir().join(format!("larder-whereabouts-{}", std::process::id()));
    let files = FileStore::open(&FilesSettings::new(&folder, 1 << 20)).unwrap();
    until(|| files.usage().is_counted);
    let store = Store::new(&MEMORY, Some(files));
    let (plain, varying) = (response(&store, None), response(&store, Some("accept-language")));
    let held_back = |key: &CacheKey, response: &StoredResponse| {
        let why = store.would_hold_back(key, &response.head);
        (why.map(|why| why.token), store.holds_back(key, response).map(|why| why.token))
    };
    let named = key("/a");
    assert_eq!(held_back(&named, &plain), (None, Some("queued")));
    assert_eq!(held_back(&named, &varying), (Some("varies"), Some("varies")));
    assert_eq!(held_back(&key(&"/a".repeat(50)), &plain), (Some("name"), Some("name")));
    assert_eq!(store.directories(), [folder.as_path()]);
    store.close();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn memory_alone_holds_nothing_back() {
    let store = Store::in_memory(&MEMORY);
    let response = response(&store, None);
    assert_eq!(store.would_hold_back(&key("/a"), &response.head), None);
    assert_eq!(store.holds_back(&key("/a"), &response), None);
    assert_eq!(store.directories().len(), 0);
}
