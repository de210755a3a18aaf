//! A tier from its opening to its end, and the responses that are put into it.
//!
//! In: a [`Subject`], and what the lives before have left ([`Past`]). Out: the calls of a store, in its order, and what is found.
//! What a tier may do behind a call is waited for, within a bound.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use http_body::Body;
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use parking_lot::Mutex;

use super::subject::Subject;
use crate::entry::{Candidate, Entry, InMemory, LoadedContent, Look};
use crate::fill::{CHUNK_BYTES, Fill, Offered, StoredChunk};
use crate::key::CacheKey;
use crate::note::Note;
use crate::source::BodySource;
use crate::tier::{Admit, Tier};
use crate::uri::TargetUri;

/// How long what is to come may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the fetch of a response took.
const TOOK: Duration = Duration::from_millis(5);

/// What a body in memory is cut into.
const PIECE_BYTES: usize = 100_000;

/// What the lives so far have left in the tier.
#[derive(Default)]
pub(super) struct Past {
    pub(super) kept: Vec<Page>,
    pub(super) gone: Vec<Page>,
    pub(super) notes: Vec<Note>,
    /// Notes of a base, each with what lay there.
    pub(super) noted_bases: Vec<(Note, Page)>,
    /// The number of the last invalidation.
    number: u64,
    identity: u64,
}

impl Past {
    /// The number of the next invalidation.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

/// A response of the suite. Its head and its content follow from this.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) key: CacheKey,
    pub(super) number: u64,
    pub(super) identity: u64,
    pub(super) mark: u8,
    pub(super) length: usize,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, variant) = (self.key.base().escape_ascii(), self.key.variant().escape_ascii());
        write!(f, "{base} ({variant}), #{}, mark {}", self.identity, self.mark)?;
        write!(f, ", {} bytes, number {}", self.length, self.number)
    }
}

impl Page {
    pub(super) fn content(&self) -> Bytes {
        content(self.mark, self.length)
    }

    pub(super) fn uri(&self) -> TargetUri<'_> {
        TargetUri::of_key(&self.key).expect("it has the key of a request")
    }

    fn request(&self) -> RequestHead {
        let TargetUri { scheme, authority, path, .. } = self.uri();
        let authority = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), scheme);
        RequestHead {
            method: Method::GET,
            scheme,
            authority: authority.expect("it is canonical"),
            target: Target::parse(Bytes::copy_from_slice(path.as_bytes())).expect("it is a path"),
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        }
    }
}

/// What a tier has of a response, as far as it can be compared.
#[derive(PartialEq, Eq)]
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, length) = (self.head.escape_ascii(), self.body.len());
        write!(f, "head {head}, {length} bytes, number {}", self.number)
    }
}

/// A tier that is open.
pub(super) struct Life<'a, S: Subject> {
    pub(super) subject: &'a S,
    pub(super) tier: Arc<dyn Tier<S::Vocabulary>>,
    /// How many there were before.
    pub(super) turn: usize,
    /// The notes that it had when it was opened.
    pub(super) told: Vec<Note>,
}

impl<'a, S: Subject> Life<'a, S> {
    /// Opens the tier.
    pub(super) fn begin(subject: &'a S, turn: usize, past: &mut Past) -> Self {
        let (life, number) = Self::open(subject, turn, true);
        assert!(number >= past.number, "{number} is below {}", past.number);
        past.number = number.max(1);
        life
    }

    /// Opens the tier, of which it is not known whether it has heard of everything.
    pub(super) fn begin_in_doubt(subject: &'a S, turn: usize) -> Self {
        Self::open(subject, turn, false).0
    }

    /// Opens it, and says the highest number that it knew.
    fn open(subject: &'a S, turn: usize, is_believed: bool) -> (Self, u64) {
        let known = Arc::new(Mutex::new((0, Vec::new())));
        let admit: Arc<Admit> = {
            let known = Arc::clone(&known);
            Arc::new(move |last: u64, notes: Vec<Note>| {
                let mut known = known.lock();
                known.0 = last.max(known.0);
                known.1.extend(notes);
                Some(known.0 + 1)
            })
        };
        let tier = subject.make();
        tier.open(&admit, is_believed);
        let (number, told) = std::mem::take(&mut *known.lock());
        (Self { subject, tier, turn, told }, number)
    }

    /// Closes it.
    pub(super) fn end(self) {
        self.tier.close();
    }

    pub(super) fn key(&self, path: &str) -> CacheKey {
        let mut key = CacheKey::new("example.com", &format!("/{}{path}", self.turn));
        key.push_part(Scheme::Http.as_str().as_bytes());
        key
    }

    /// A response of which nothing is stored yet.
    pub(super) fn page(&self, past: &mut Past, path: &str, length: usize) -> Page {
        past.identity += 1;
        let mark = u8::try_from(past.identity % 251).expect("less than 251");
        Page { key: self.key(path), number: past.number, identity: past.identity, mark, length }
    }

    /// Stores it out of memory, and waits until it is found.
    pub(super) async fn put(&self, page: &Page) {
        let content = page.content();
        let pieces: Vec<Bytes> = content.chunks(PIECE_BYTES).map(Bytes::copy_from_slice).collect();
        self.put_entry(page, &pieces, None).await;
    }

    /// Stores it while it arrives, and waits until it is found.
    pub(super) async fn fill(&self, page: &Page) {
        let fill = Arc::clone(&self.tier).begin_fill(&page.key, Some(page.length as u64));
        let mut fill = fill.expect("it takes what it keeps");
        offer(&mut *fill, &page.content()).await;
        let body = fill.finish().expect("all of it was taken");
        self.put_entry(page, &[], Some(&*body)).await;
    }

    async fn put_entry(&self, page: &Page, chunks: &[Bytes], source: Option<&dyn BodySource>) {
        let head = self.subject.head(page.mark);
        let head_bytes = || self.subject.head_bytes(&head);
        let entry = Entry {
            key: &page.key,
            number: page.number,
            identity: page.identity,
            received: self.subject.now().wall,
            took: TOOK,
            head: &head,
            head_bytes: &head_bytes,
            chunks,
            length: page.length as u64,
            is_in_memory: source.is_none(),
            source,
        };
        assert!(!self.tier.is_newer(&entry), "{page:?}");
        Arc::clone(&self.tier).put(&entry);
        self.tier.write_journals();
        let memory = Arc::new(Memory(AtomicBool::new(true)));
        assert!(Arc::clone(&self.tier).put_behind(&entry, memory), "{page:?}");
        self.comes_to(page).await;
    }

    /// Waits until what is found is this.
    async fn comes_to(&self, page: &Page) {
        let begun = Instant::now();
        loop {
            let found = self.find(page).await;
            if found.as_ref() == Some(&self.expected(page)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{page:?} is not what is found: {found:?}");
            others_turn().await;
        }
    }

    /// What is to be found of a response.
    pub(super) fn expected(&self, page: &Page) -> Found {
        let head = self.subject.head_bytes(&self.subject.head(page.mark));
        Found { number: page.number, head, body: page.content().to_vec() }
    }

    /// What is found of it.
    pub(super) async fn find(&self, page: &Page) -> Option<Found> {
        match self.tier.is_before_memory() {
            true => self.find_open(page).await,
            false => self.find_behind(page).await,
        }
    }

    /// Before memory there is one response for a URI.
    async fn find_open(&self, page: &Page) -> Option<Found> {
        let opened = match self.tier.look(&page.uri()) {
            Look::WouldWait => self.tier.look_waiting(&page.uri()),
            look => look,
        };
        let Look::Found(opened) = opened else { return None };
        assert!(self.tier.may_have(&page.uri()), "{page:?}");
        let head = opened.head(&page.request(), &self.subject.policy(), self.subject.now());
        let (number, head) = (opened.number(), self.subject.head_bytes(&head));
        let body = match opened.whole() {
            Some(whole) => whole.to_vec(),
            None => read_all(&opened.body()).await,
        };
        Some(Found { number, head, body })
    }

    /// Behind memory there may be several under a key.
    async fn find_behind(&self, page: &Page) -> Option<Found> {
        let mut found = None;
        for candidate in self.candidates(&page.key).await {
            let Ok(loaded) = candidate.load(&page.key).await else { continue };
            if loaded.identity != page.identity {
                continue;
            }
            candidate.note_use();
            let body = body_of(loaded.content).await;
            // A copy is the same.
            let copy = Found { number: loaded.number, head: loaded.head.to_vec(), body };
            assert!(found.as_ref().is_none_or(|found| *found == copy), "{page:?}: {found:?}, {copy:?}");
            found = Some(copy);
        }
        assert!(found.is_none() || self.tier.has(&page.key), "{page:?}");
        found
    }

    pub(super) async fn candidates(&self, key: &CacheKey) -> Vec<Box<dyn Candidate>> {
        Arc::clone(&self.tier).settle_versions(key).await;
        Arc::clone(&self.tier).candidates(key)
    }

    #[track_caller]
    pub(super) fn check(&self, page: &Page, found: Option<&Found>, is_there: bool) {
        let expected = is_there.then(|| self.expected(page));
        assert!(found == expected.as_ref(), "{page:?}, to be there: {is_there}; found: {found:?}");
    }
}

/// The memory in front of a tier, with one response.
struct Memory(AtomicBool);

impl InMemory for Memory {
    fn is_there(&self) -> (bool, Box<dyn Any + Send>) {
        (self.0.load(Ordering::Relaxed), Box::new(()))
    }

    fn remove(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Bytes that tell chunks and marks apart.
pub(super) fn content(mark: u8, length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8 ^ (at / CHUNK_BYTES) as u8 ^ mark).collect()
}

/// Offers all of it, and waits for room where there is none.
pub(super) async fn offer(fill: &mut dyn Fill, content: &Bytes) -> Vec<Arc<dyn StoredChunk>> {
    let (mut chunks, begun) = (Vec::new(), Instant::now());
    for (number, start) in (0..content.len()).step_by(CHUNK_BYTES).enumerate() {
        let chunk = content.slice(start..content.len().min(start + CHUNK_BYTES));
        loop {
            match fill.offer(number, &chunk) {
                Offered::Taken(taken) => break chunks.push(taken),
                Offered::Full => {
                    assert!(begun.elapsed() < PATIENCE, "there is no room for chunk {number}");
                    others_turn().await;
                }
                Offered::Lost(why) => panic!("chunk {number} is lost: {why:?}"),
            }
        }
    }
    chunks
}

pub(super) async fn read(source: &Arc<dyn BodySource>, range: Range<u64>) -> Vec<u8> {
    let mut stream = Arc::clone(source).reader(range).expect("what is there can be read");
    let mut got = Vec::new();
    while let Some(frame) = poll_fn(|cx| Body::poll_frame(stream.as_mut(), cx)).await {
        let data = frame.expect("nobody has changed it").into_data();
        got.extend_from_slice(&data.unwrap_or_default());
    }
    got
}

async fn read_all(source: &Arc<dyn BodySource>) -> Vec<u8> {
    read(source, 0..source.length()).await
}

pub(super) async fn body_of(content: LoadedContent) -> Vec<u8> {
    match content {
        LoadedContent::Inline(bytes) => bytes.to_vec(),
        LoadedContent::Source(source) => read_all(&source).await,
    }
}

/// Waits for something that is sure to come.
pub(super) async fn within<T>(coming: impl Future<Output = T>) -> T {
    let (mut coming, begun) = (pin!(coming), Instant::now());
    poll_fn(|cx| {
        assert!(begun.elapsed() < PATIENCE, "it never came");
        let polled = coming.as_mut().poll(cx);
        if polled.is_pending() {
            cx.waker().wake_by_ref();
            std::thread::yield_now();
        }
        polled
    })
    .await
}

/// Returns after others had a turn, on this thread and on others.
async fn others_turn() {
    let mut has_waited = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        match std::mem::replace(&mut has_waited, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    std::thread::yield_now();
}
