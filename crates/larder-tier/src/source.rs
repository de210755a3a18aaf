//! A stored body that lies outside memory, and is read from there.
//!
//! In: a range. Out: a stream of its bytes, and whether they can still be had. What a tier keeps, what it has found open, and
//! what was written to it a moment ago are such sources. A tier gets its own back where a response is stored again, and knows it
//! by its type ([`BodySource::of`](trait.BodySource.html#method.of)); nobody else asks for that.
//! Deliberately absent: bodies in memory.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use larder_http::body::Stream;

use crate::key::CacheKey;

/// A whole body outside memory. Shared by all who read it.
pub trait BodySource: Any + Debug + Send + Sync {
    /// The length in bytes.
    fn length(&self) -> u64;

    /// A reader of `range`, which lies within the body. `None` where some of it is gone.
    fn reader(self: Arc<Self>, range: Range<u64>) -> Option<Stream>;

    /// Whether all of it can be read, as far as anybody knows.
    fn is_there(&self) -> bool {
        true
    }

    /// Whether nothing is wrong with it, but it is not where it was.
    fn has_moved(&self) -> bool {
        false
    }

    /// Chunks whose locations it holds; each takes a little memory.
    fn chunks(&self) -> usize {
        0
    }

    /// The key that it is kept under, where a copy in memory is worth it once it is read often.
    fn promotable_as(&self) -> Option<&CacheKey> {
        None
    }

    /// Whether it is a plain file that was found, or was read of one.
    fn is_a_file(&self) -> bool {
        false
    }

    /// Whether a person put it there.
    fn is_by_hand(&self) -> bool {
        false
    }
}

impl dyn BodySource {
    /// It as what it is, for the tier that made it.
    pub fn of<T: BodySource>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}
