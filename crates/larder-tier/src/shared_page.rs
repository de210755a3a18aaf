//! A page of what larders share, for people.
//!
//! In: where a walk through the names of its servers has ended. Out: what lies there, without bodies, as far as the page may take.
//! Such a walk goes through all names of a server, and says how many it has met. Its order means nothing, and what comes or goes meanwhile
//! may be missed, or met twice.

use std::time::Duration;

use crate::key::CacheKey;

/// What a page may take.
#[derive(Clone, Copy, Debug)]
pub struct SharedBounds {
    /// Responses, at least 1.
    pub responses: usize,
    /// Names that servers may look at.
    pub names: u64,
    /// How long it may take, with the last reply perhaps a little longer.
    pub time: Duration,
}

/// See the head of the file.
#[derive(Debug)]
pub struct SharedPage<E> {
    /// What was found; may be nothing although there is more.
    pub entries: Vec<E>,
    /// Of what lies there so much could not be read.
    pub unreadable: u64,
    /// About how many names were looked at.
    pub looked_at: u64,
    /// How many names the server has that was asked last.
    pub names: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

/// A page of responses, or why there is none. `None`: nothing is shared there.
pub type SharedPageOf<H> = Option<Result<SharedPage<SharedEntry<H>>, NoSharedPage>>;

/// A response that lies there.
#[derive(Debug)]
pub struct SharedEntry<H> {
    /// Its full key.
    pub key: CacheKey,
    /// Its head.
    pub head: H,
    /// The length of its body.
    pub body_bytes: u64,
    /// The number by which it is judged here. `None`: it is not used here.
    pub number: Option<u64>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum NoSharedPage {
    /// What it was to begin with is not what a page ended with.
    #[error("it is not where a page ended")]
    Cursor,
    /// A server has no usable reply.
    #[error("{server}")]
    Server {
        /// Which one.
        server: String,
        /// Why.
        #[source]
        why: std::io::Error,
    },
}
