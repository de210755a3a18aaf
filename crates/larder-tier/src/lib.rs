//! What a store asks of a tier behind its memory, and what tiers and the store share.
//!
//! In: nothing of its own. Out: the key of a stored response, names by templates, the budget in bytes with its loans, the notes and
//! entries of journals, locks with ranks, and the traits of a tier, of a fill and of a body's source. The head of a
//! stored response is a parameter of these traits: a tier that only writes bytes knows nothing of HTTP caching.
//! Deliberately absent: any store, any disk, any rule of caching.

pub mod ask;
pub mod backlog;
pub mod budget;
#[cfg(feature = "contract")]
pub mod contract;
pub mod cursor;
pub mod descriptors;
pub mod entry;
pub mod fill;
pub mod format;
pub mod held_back;
pub mod key;
pub mod metrics;
pub mod missed;
pub mod note;
pub mod outlook;
pub mod pause;
pub mod rank;
pub mod shared_page;
pub mod source;
pub mod template;
pub mod tier;
pub mod uri;
pub mod vocabulary;

pub use ask::{Ask, Asked, FetchedRecord, FoundValue, IsOfUse, Lead, Leading};
pub use budget::{Budget, Reservation};
pub use entry::{Candidate, Entry, InMemory, Loaded, LoadedContent, Look, Memo, Opened, Unreadable};
pub use fill::{CHUNK_BYTES, Fill, Loss, Offered, StoredChunk};
pub use key::CacheKey;
pub use note::Note;
pub use source::BodySource;
pub use tier::{Find, HeldBack, Inspect, Invalidate, Keep, Run, Tier};
pub use uri::TargetUri;
pub use vocabulary::{Vocabulary, VocabularyOf};
