//! Keep bytes and find them again.
//!
//! In: a key, a stored head, a body while it arrives. Out: shared handles to stored responses, and readers that
//! follow a body as it grows. Everything kept is counted against a cap that holds at every moment: room is reserved
//! before bytes are kept, and a stored byte counts until its last reader lets go of it.
//!
//! Look-up is a plain call that never waits for anything but a shard's lock, held for the length of a look.
//! What lies behind memory is a list of tiers ([`larder_tier::Tier`]), which the owner builds; a hit in memory asks none of them.
//! Deliberately absent: any judgement of HTTP. Whether a response may be kept or used is decided in `larder-cache`.

mod apart;
mod ask;
pub mod audience;
#[cfg(test)]
mod behind;
#[cfg(test)]
mod contract;
mod fates;
mod join;
mod lease;
pub mod listing;
pub mod memory;
mod outside;
mod promote;
mod recall;
pub mod store;
pub mod stored;
pub mod streaming;
pub mod tier;
pub mod walk;
pub mod whereabouts;

pub use ask::Led;
pub use audience::Audience;
pub use fates::{Fate, Fates};
pub use larder_tier::outlook;
pub use larder_tier::{
    Budget, CacheKey, IsOfUse, Lead, Note, Reservation, TargetUri, budget, descriptors, key, rank, template,
};
pub use memory::{Held, HotCache, MemoryStore, MemoryStoreSettings, Selection, Usage};
pub use recall::Recalled;
pub use store::Store;
pub use stored::{RefreshFailure, Refreshing, StoredBody, StoredResponse};
pub use streaming::{Finished, Loss, PushError, Reader, StreamingBody};
pub use whereabouts::HeldBack;
