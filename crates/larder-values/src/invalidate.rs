//! Invalidations: each deletes the values of its URL.
//!
//! In: a base, whatever it was invalidated by. Out: its values are deleted, and not believed until then. A validation by the origin
//! would be enough for what larder stores. A value says nothing of when it was made, so none is left to be validated.
//! Purges by anything but a URL name responses that memory has; [`disown`](larder_tier::Ask::disown) deletes their values.
//! Deliberately absent: a journal. What is not confirmed when larder ends is forgotten, and a purge that waited for it has
//! said so.

use larder_tier::fill::BoxFuture;
use larder_tier::tier::Failure;
use larder_tier::{CacheKey, Invalidate, Note, TargetUri};

use crate::Values;

/// A purge cannot name the values of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Unnameable {
    #[error(
        "the key of values has a cookie or a field: larder cannot name those of a URL, and has deleted none"
    )]
    Parts,
    #[error(
        "the key of values has a version: larder cannot name those of a URL, and has deleted none; a new version takes their \
         place"
    )]
    Versions,
}

impl Invalidate for Values {
    fn take_out(&self, key: &CacheKey, number: u64) -> u64 {
        self.delete(key, Some(number));
        0
    }

    /// Any URL of its hosts may have a value.
    fn has_base(&self, key: &CacheKey) -> bool {
        self.serves(key)
    }

    fn note_base(&self, key: &CacheKey, note: &Note) {
        self.delete(key, Some(note.number));
    }

    fn note(&self, _note: &Note) {}

    fn is_behind(&self) -> bool {
        self.notes.is_behind()
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async { self.notes.confirmed().await.map_err(Failure::from) })
    }

    fn purge(&self, uri: &TargetUri<'_>) -> Result<bool, Failure> {
        let key = &self.settings.key;
        match self.served(uri).is_some() && !key.is_of_uri() {
            true if key.has_versions() => Err(Box::new(Unnameable::Versions)),
            true => Err(Box::new(Unnameable::Parts)),
            false => Ok(false),
        }
    }
}
