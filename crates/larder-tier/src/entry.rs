//! A response as it goes into a tier, and as it is found there.
//!
//! In: what a store has: key, number, head, body. Out: what a tier has: the same as bytes, or as its own. The head is a type of the
//! store's; a tier that only writes bytes asks for it as bytes, and only where it writes.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use larder_http::message::RequestHead;
use larder_http::time::{Now, WallTime};

use crate::fill::BoxFuture;
use crate::key::CacheKey;
use crate::source::BodySource;
use crate::vocabulary::Vocabulary;

/// A response that is stored, or is to be.
pub struct Entry<'a, H> {
    /// Its full key.
    pub key: &'a CacheKey,
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// Tells it apart from the others under its key.
    pub identity: u64,
    /// When its head arrived.
    pub received: WallTime,
    /// How long its fetch took.
    pub took: Duration,
    /// Its head.
    pub head: &'a H,
    /// The same as bytes.
    pub head_bytes: &'a dyn Fn() -> Vec<u8>,
    /// Its body, where it is in memory.
    pub chunks: &'a [Bytes],
    /// The length of its body.
    pub length: u64,
    /// Whether all of its body is in memory.
    pub is_in_memory: bool,
    /// Where else its body lies.
    pub source: Option<&'a dyn BodySource>,
}

/// A response in memory, as a tier asks for it that writes it behind memory.
pub trait InMemory: Send + Sync {
    /// Whether it is still there. What comes with it is to be dropped behind every lock.
    fn is_there(&self) -> (bool, Box<dyn Any + Send>);

    /// Takes it out.
    fn remove(&self);
}

/// What lies in a tier under a key, as its index has it. Another key may hide behind it until it is loaded.
pub trait Candidate: Debug + Send + Sync {
    /// What lies there, checked, if it is of `key`.
    ///
    /// # Errors
    /// It cannot be read.
    fn load<'a>(&'a self, key: &'a CacheKey) -> BoxFuture<'a, Result<Loaded, Unreadable>>;

    /// Whether the index still has it.
    fn is_held(&self) -> bool;

    /// It is in use.
    fn note_use(&self);

    /// It is of no use.
    fn forget(&self);
}

/// Why something that an index has cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// At this moment.
    ForNow,
    /// For good.
    ForGood,
}

/// What a tier has of a response.
pub struct Loaded {
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// The identity that it was stored under.
    pub identity: u64,
    /// Its head, as it was given.
    pub head: Bytes,
    /// Its body.
    pub content: LoadedContent,
}

/// A body, as a tier has it.
pub enum LoadedContent {
    /// All of it.
    Inline(Bytes),
    /// To be read from there.
    Source(Arc<dyn BodySource>),
}

/// What the first who asked made of an entry that is found open; kept with it for all others.
#[derive(Default)]
pub struct Memo(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Memo").field(&self.0.get().is_some()).finish()
    }
}

impl Memo {
    /// What was made of it.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get()?).downcast().ok()
    }

    /// The same; made now where it was not yet.
    pub fn or_make<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        // Of another type it never is: each owner makes one kind.
        let mut made = None;
        let kept = self.0.get_or_init(|| Arc::clone(made.insert(make())) as Arc<dyn Any + Send + Sync>);
        let kept = Arc::clone(kept).downcast();
        made.or_else(|| kept.ok()).expect("one kind of thing is made of an entry")
    }
}

/// An entry that a look before memory found, open.
pub trait Opened<V: Vocabulary>: Debug + Send + Sync {
    /// The number of the last invalidation when the fetch that brought it began; zero where there was none.
    fn number(&self) -> u64;

    /// How long that fetch took.
    fn took(&self) -> Duration;

    /// Its head, as an answer to `request`.
    fn head(&self, request: &RequestHead, policy: &V::Policy, now: Now) -> V::Head;

    /// All of its content, where it is here.
    fn whole(&self) -> Option<&Bytes>;

    /// Its content, to be read; of one that is here, what tells which entry that is.
    fn body(self: Arc<Self>) -> Arc<dyn BodySource>;

    /// Where it lies, in the tier's directory.
    fn path(&self) -> std::path::PathBuf;

    /// What was made of it, where it may be shared.
    fn memo(&self) -> Option<&Memo>;
}

/// What a look before memory found.
pub enum Look<V: Vocabulary> {
    /// An entry that stands for the response.
    Found(Arc<dyn Opened<V>>),
    /// There is none.
    Absent,
    /// Only a look that waits can tell.
    WouldWait,
}
