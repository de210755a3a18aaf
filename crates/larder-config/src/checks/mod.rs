//! Checks that need more than one key: of the whole config, of a whole origin, and of a whole store.
//!
//! Names have to exist, addresses and hosts have to differ, stores have directories for themselves, and keys have to
//! tell apart what rules tell apart. A note says which cookies keep a request from what a rule stores.
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
