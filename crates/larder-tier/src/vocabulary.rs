//! The types of the rules of caching, which tiers carry and need not know.
//!
//! In: the type of a stored head and that of a site's policy. Out: one parameter for the traits of a tier.
//! A store and its tiers have to name the same vocabulary. None of them can define it: a tier does not import the store, and
//! the store does not import its tiers. The crate of the rules does not import this one, nor this one that. So a vocabulary is
//! the pair of its types ([`VocabularyOf`]), and each crate that names `VocabularyOf<StoredHead, CachePolicy>` means the same.

use std::marker::PhantomData;

/// The types of the rules of caching.
pub trait Vocabulary: 'static {
    /// The head of a stored response.
    type Head: Send + Sync + 'static;
    /// What a site says of caching.
    type Policy: Sync;
}

/// The vocabulary of these two types. It has no values.
pub struct VocabularyOf<Head, Policy>(PhantomData<fn() -> (Head, Policy)>);

impl<Head: Send + Sync + 'static, Policy: Sync + 'static> Vocabulary for VocabularyOf<Head, Policy> {
    type Head = Head;
    type Policy = Policy;
}
