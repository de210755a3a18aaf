//! Where a listing of a tier goes on, as text.
//!
//! In: a text from outside, which is to be what an earlier page ended with. Out: that it is none, where it is not.

/// A text that no page ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a place in a listing")]
pub struct NoCursor;
