//! One record for each coding, and none that nothing would find to replace.

use super::*;
use larder_disk::engine::Object;

/// A response to a request with this Accept-Encoding, which varies by it.
fn response(store: &Arc<Store>, accepted: &'static str) -> Arc<StoredResponse> {
    let room = || store.reserve(2000).unwrap();
    let body = StoredBody::new(vec![Bytes::from_static(b"0123")], room());
    let head = head(&request(&[("accept-encoding", accepted)]), Some("accept-encoding"));
    Arc::new(StoredResponse::new(head, Arc::new(body), 0, room()))
}

#[test]
fn spellings_of_what_is_taken_share_a_record() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    let records = |accepted: &'static str| {
        // A store whose memory knows nothing of the records before.
        let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
        assert!(store.insert(&key("/a"), response(&store, accepted), |_| false, || true));
        written(&disks);
        disks.lie_under(&key("/a"))
    };
    assert_eq!(records("gzip"), 1);
    assert_eq!(records("gzip, deflate, br"), 1);
    assert_eq!(records("identity"), 2, "it was made for those who take none");
}

#[test]
fn a_record_that_was_told_apart_otherwise_is_dropped() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    let response = response(&store, "gzip");
    let disk = disks.disks().next().unwrap();
    let object = Object {
        number: 0,
        stored_at: response.head.freshness.received.wall,
        identity: response.identity() ^ 1,
        key: key("/a"),
        head: Bytes::from(response.head.to_bytes()),
        content: larder_disk::engine::RecordContent::Inline(vec![Bytes::from_static(b"0123")]),
    };
    disk.put(object).unwrap();
    written(&disks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = larder_http::time::Clock::default().now();
    let recalled = runtime.block_on(store.recall(&key("/a"), false, now, |_| true));
    assert_eq!(recalled, crate::Recalled::Nothing);
    assert!(disks.lie_under(&key("/a")) == 0);
}
