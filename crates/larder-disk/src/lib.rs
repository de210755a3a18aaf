//! Keep bytes on disks and find them again.
//!
//! In: keys, heads as bytes, contents, and pieces of large contents while they arrive. Out: the same, checked. [`engine`] is one
//! disk: a log of segments, a journal, an index in memory. [`layouts`] makes one tier of several of them.
//! Deliberately absent: HTTP and the rules of caching. What a head says is the store's affair.

pub mod engine;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod layouts;

pub use engine::{Disk, DiskSettings};
pub use layouts::{Disks, Layout};
