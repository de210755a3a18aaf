//! What only the whole config can tell: names that have to exist, addresses and hosts that have to
//! differ, directories that stores have for themselves, keys that have to tell apart what rules tell apart; and what only
//! a whole origin or a whole store can; and, as a note, which cookies keep a request from what a rule stores.
//!
//! In: the sections as they were read, and the document for the places. Values that were refused are not judged
//! again, so that one mistake makes one error.

pub(crate) mod addresses;
pub(crate) mod cookies;
pub(crate) mod directories;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod patterns;
pub(crate) mod store;
