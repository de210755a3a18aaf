//! Memory and plain files together: where a body is while it arrives, and what becomes of it.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use http_body_util::BodyExt;
use larder_cache::{CachePolicy, ExchangeTimes, Storability, storable};
use larder_http::authority::Authority;
use larder_http::body::BodyError;
use larder_http::message::RequestHead;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::time::Clock;
use tempfile::TempDir;

use super::*;
use crate::memory::MemoryStoreSettings;
use crate::store::Store;
use crate::streaming::{Reader, StreamingBody};
use larder_files::{FileStore, FilesSettings};

const MEMORY_BYTES: u64 = 4 << 20;
const MAX_OBJECT: u64 = 8 << 20;
/// More than memory takes of one response.
const BODY_BYTES: usize = (3 << 20) + 17;
/// What a body that is written while it arrives takes of memory.
const ROOM_BYTES: u64 = 1 << 20;

struct Fixture {
    store: Arc<Store>,
    files: Arc<FileStore>,
    clock: Clock,
    folder: TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        FilesSettings { max_object: MAX_OBJECT, ..FilesSettings::new(folder.path().join("html"), 64 << 20) };
    let files = FileStore::open(&settings).unwrap();
    wait(|| files.usage().is_counted);
    let memory = MemoryStoreSettings { memory: MEMORY_BYTES, max_object: MEMORY_BYTES / 4 };
    let clock = Clock::default();
    Fixture { store: Store::new(&memory, Some(Arc::clone(&files))), files, clock, folder }
}

#[track_caller]
fn wait(is_there: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_there() {
        assert!(Instant::now() < until, "it never came");
        std::thread::yield_now();
    }
}

fn request() -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"h"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(b"/large.bin")).unwrap(),
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    }
}

fn key() -> CacheKey {
    let mut key = CacheKey::new("h", "/large.bin");
    key.push_part(b"http");
    key
}

impl Fixture {
    fn path(&self) -> PathBuf {
        self.folder.path().join("html/h/large.bin")
    }

    fn files(&self) -> &Arc<FileStore> {
        &self.files
    }

    fn head(&self, fields: &[(&'static str, &'static str)]) -> Arc<StoredHead> {
        let fields: HeaderMap = fields
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let (now, policy) = (self.clock.now(), CachePolicy::default());
        let times = ExchangeTimes { request: now, response: now };
        let Storability::Storable(freshness) = storable(&request(), StatusCode::OK, &fields, times, &policy)
        else {
            panic!("not storable")
        };
        Arc::new(StoredHead::new(&request(), StatusCode::OK, fields, freshness, &policy))
    }

    fn begin(&self, head: &StoredHead, declared: Option<u64>) -> Option<Arc<StreamingBody>> {
        StreamingBody::keep_as(&self.store, &key(), head, declared, &Arc::default())
    }

    /// Ends a body and stores its response.
    async fn end(&self, streaming: &StreamingBody, head: &Arc<StoredHead>) -> bool {
        let room = self.store.reserve(StoredResponse::overhead_bytes(head, &key())).unwrap();
        let mut is_stored = false;
        let stored = streaming.finish(None, |body| {
            let response = StoredResponse::new(Arc::clone(head), Arc::clone(body), 1, room);
            is_stored = self.store.insert(&key(), Arc::new(response), |_| true, || true);
        });
        stored.await.unwrap();
        is_stored
    }

    /// All temporary files.
    fn temporary(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("html/.larder/tmp")).unwrap().count()
    }

    /// The response that the file is.
    fn filed(&self) -> Option<Arc<StoredResponse>> {
        match self.store.look_waiting(&request(), &CachePolicy::default(), self.clock.now()) {
            Looked::Found(stored) => {
                assert!(!stored.body.is_by_hand(), "by hand");
                Some(stored)
            }
            Looked::Absent | Looked::WouldWait => None,
        }
    }
}

fn content() -> Bytes {
    let word = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes();
    (0..BODY_BYTES.div_ceil(8) as u64).flat_map(word).take(BODY_BYTES).collect()
}

fn sent(content: &Bytes) -> Vec<Bytes> {
    let step = 30_011;
    (0..content.len()).step_by(step).map(|at| content.slice(at..content.len().min(at + step))).collect()
}

async fn rest(reader: Reader) -> Result<Bytes, BodyError> {
    let read = tokio::time::timeout(Duration::from_secs(20), reader.collect()).await;
    read.expect("a reader ends").map(http_body_util::Collected::to_bytes)
}

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

#[tokio::test]
async fn a_body_beyond_what_memory_takes_becomes_a_file_and_readers_follow_it() {
    for declared in [Some(BODY_BYTES as u64), None] {
        let fixture = fixture();
        let (head, content) = (fixture.head(&[FRESH]), content());
        let streaming = fixture.begin(&head, declared).unwrap();
        let slow = streaming.reader(None).unwrap();
        for piece in sent(&content) {
            streaming.push(piece).await.unwrap();
            assert!(streaming.is_keeping());
            let counted = fixture.store.usage().bytes;
            assert!(counted <= ROOM_BYTES, "{counted} bytes counted");
            assert!(!fixture.path().exists(), "it has its name before it is whole");
        }
        let late = streaming.reader(Some(300_000..2_000_000)).unwrap();
        assert!(fixture.end(&streaming, &head).await);
        let after = streaming.reader(None).unwrap();
        drop(streaming);
        assert!(rest(slow).await.unwrap() == content);
        assert!(rest(late).await.unwrap() == content.slice(300_000..2_000_000));
        wait(|| fixture.path().exists());
        assert!(rest(after).await.unwrap() == content);
        assert!(std::fs::read(fixture.path()).unwrap() == content);
        wait(|| fixture.store.usage().bytes == 0);
        assert_eq!(fixture.temporary(), 0);
    }
}

#[tokio::test]
async fn what_is_stored_and_has_no_name_yet_can_be_read_and_is_not_there_twice() {
    let fixture = fixture();
    let (head, content) = (fixture.head(&[FRESH]), content());
    let streaming = fixture.begin(&head, None).unwrap();
    for piece in sent(&content) {
        streaming.push(piece).await.unwrap();
    }
    assert!(fixture.end(&streaming, &head).await);
    drop(streaming);
    let (there, _) = fixture.store.responses(&key(), Duration::ZERO);
    // Its file may have its name already.
    if let Some(stored) = there.first() {
        let body = stored.body.content(5..BODY_BYTES as u64).unwrap();
        let larder_http::body::Body::Stream { stream, length } = body else { panic!("not in memory") };
        assert_eq!(length, Some(BODY_BYTES as u64 - 5));
        assert!(stream.collect().await.unwrap().to_bytes() == content.slice(5..));
    }
    wait(|| fixture.store.responses(&key(), Duration::ZERO).0.is_empty());
    assert_eq!(fixture.filed().unwrap().body.length(), BODY_BYTES as u64);
    assert_eq!(fixture.files().usage().stored, 1);
}

#[tokio::test]
async fn a_body_that_ends_early_leaves_nothing() {
    for declared in [Some(BODY_BYTES as u64), None] {
        let fixture = fixture();
        let before = fixture.files().usage().bytes;
        let (head, content) = (fixture.head(&[FRESH]), content());
        let streaming = fixture.begin(&head, declared).unwrap();
        let reader = streaming.reader(None).unwrap();
        for piece in sent(&content).into_iter().take(50) {
            streaming.push(piece).await.unwrap();
        }
        streaming.abort(BodyError::Cut);
        assert_eq!(rest(reader).await.unwrap_err(), BodyError::Cut);
        drop(streaming);
        wait(|| fixture.temporary() == 0);
        wait(|| fixture.files().usage().bytes == before && fixture.store.usage().bytes == 0);
        assert!(!fixture.path().exists());
    }
}

#[tokio::test]
async fn a_body_beyond_max_object_passes_and_leaves_nothing() {
    let fixture = fixture();
    let head = fixture.head(&[FRESH]);
    assert!(fixture.begin(&head, Some(MAX_OBJECT + 1)).is_none());
    let streaming = fixture.begin(&head, None).unwrap();
    let reader = streaming.reader(None).unwrap();
    let reading = tokio::spawn(rest(reader));
    let piece = Bytes::from(vec![7; 100_000]);
    let pieces = MAX_OBJECT / 100_000 + 2;
    for _ in 0..pieces {
        streaming.push(piece.clone()).await.unwrap();
        // So that the queue of the files never is why.
        assert!(fixture.files().flush());
    }
    assert!(!streaming.is_keeping());
    assert!(!fixture.end(&streaming, &head).await);
    assert_eq!(reading.await.unwrap().unwrap().len() as u64, pieces * 100_000);
    drop(streaming);
    wait(|| fixture.temporary() == 0);
    assert!(!fixture.path().exists());
}

#[tokio::test]
async fn what_no_file_can_stand_for_is_bounded_by_memory() {
    let fixture = fixture();
    let head = fixture.head(&[FRESH, ("vary", "accept-language")]);
    assert!(fixture.begin(&head, Some(BODY_BYTES as u64)).is_none());
    assert!(fixture.begin(&head, Some(MEMORY_BYTES / 4)).is_some());
}

#[tokio::test]
async fn where_files_take_nothing_a_body_passes_or_stays_in_memory() {
    let fixture = fixture();
    let head = fixture.head(&[FRESH]);
    fixture.files().close();
    let content = content();
    let streaming = fixture.begin(&head, Some(BODY_BYTES as u64)).unwrap();
    let reading = tokio::spawn(rest(streaming.reader(None).unwrap()));
    for piece in sent(&content) {
        streaming.push(piece).await.unwrap();
    }
    assert!(!fixture.end(&streaming, &head).await);
    assert!(reading.await.unwrap().unwrap() == content);
}

#[tokio::test]
async fn a_validation_keeps_the_file_and_memory_keeps_nothing() {
    for length in [1000, BODY_BYTES] {
        let fixture = fixture();
        let content = content().slice(..length);
        let head = fixture.head(&[FRESH, ("etag", "\"1\"")]);
        let streaming = fixture.begin(&head, Some(length as u64)).unwrap();
        for piece in sent(&content) {
            streaming.push(piece).await.unwrap();
        }
        assert!(fixture.end(&streaming, &head).await);
        wait(|| fixture.path().exists() && fixture.store.usage().objects == 0);
        let status = || {
            let found = std::fs::metadata(fixture.path()).unwrap();
            (found.ino(), found.mtime(), found.mtime_nsec())
        };
        let before = status();
        let old = fixture.filed().unwrap();
        let newer = fixture.head(&[("cache-control", "max-age=600"), ("etag", "\"1\""), ("x-newer", "1")]);
        let room = fixture.store.reserve(StoredResponse::overhead_bytes(&newer, &key())).unwrap();
        let new = StoredResponse::new(newer, Arc::clone(&old.body), 2, room);
        assert!(fixture.store.replace(&key(), &old, Arc::new(new), || true));
        wait(|| fixture.store.usage().objects == 0);
        assert!(fixture.files().flush());
        assert_eq!(status(), before);
        let found = fixture.filed().unwrap();
        assert_eq!(found.head.fields.map.get("x-newer").unwrap(), "1");
        assert!(std::fs::read(fixture.path()).unwrap() == content);
        assert_eq!((fixture.files().usage().stored, fixture.files().usage().renewed), (1, 1));
    }
}

#[tokio::test]
async fn what_becomes_no_file_any_more_goes_from_there() {
    let fixture = fixture();
    let content = content();
    let head = fixture.head(&[FRESH]);
    let streaming = fixture.begin(&head, None).unwrap();
    for piece in sent(&content) {
        streaming.push(piece).await.unwrap();
    }
    assert!(fixture.end(&streaming, &head).await);
    wait(|| fixture.path().exists() && fixture.store.usage().objects == 0);
    let old = fixture.filed().unwrap();
    let varying = fixture.head(&[FRESH, ("vary", "accept-language")]);
    let room = fixture.store.reserve(StoredResponse::overhead_bytes(&varying, &key())).unwrap();
    let new = StoredResponse::new(varying, Arc::clone(&old.body), 2, room);
    fixture.store.replace(&key(), &old, Arc::new(new), || true);
    wait(|| !fixture.path().exists());
    assert_eq!(fixture.store.usage().objects, 0, "memory would hold the file open");
}
