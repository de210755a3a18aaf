//! Why a question about what is stored has no answer.
//!
//! In: what was wrong. Out: a fixed word and a sentence. Whose fault it is, the admin address decides.

use larder_store::listing::NoSharedPage;

use super::told::PageLeftOut;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// Not an absolute `http://` or `https://` URL.
    #[error("{0:?} is not an absolute URL such as http://example.com/path")]
    Url(String),
    /// No store has this name.
    #[error("there is no store {0:?}")]
    Store(String),
    /// Not what a page before ended with.
    #[error("{0:?} is not where a page ended")]
    Cursor(String),
    /// What larders share cannot be listed.
    #[error("what larders share in the store {store:?} cannot be listed")]
    Remote {
        /// The store.
        store: String,
        /// Why not.
        #[source]
        why: NoSharedPage,
    },
    /// Nothing is stored there.
    #[error("nothing is stored under {0}")]
    NotStored(String),
    /// Fewer responses are stored there.
    #[error("{} stored under {url}, so there is no number {number}", responses(*stored as u64))]
    NoSuchResponse {
        /// The URL.
        url: String,
        /// How many lie there.
        stored: usize,
        /// Which was asked for, counted from 1.
        number: usize,
    },
    /// Nothing that is stored there is for a request without fields.
    #[error("nothing that is stored under {0} answers a request without fields")]
    NotForAll(String),
    /// No page can be put together there, or none for everybody.
    #[error("{url} is no page to be shown: {}: {}", why.token, why.sentence)]
    NoPage {
        /// The URL.
        url: String,
        /// Why not.
        why: PageLeftOut,
    },
    /// As many pages are held as may be.
    #[error("too many pages are put together at once: ask again")]
    Busy,
    /// It went while it was read, or is damaged.
    #[error("what is stored under {0} cannot be read any more")]
    Unreadable(String),
    /// The thread that looked is lost.
    #[error("the look was lost")]
    Lost,
}

/// So many responses, with the verb that goes with them.
fn responses(count: u64) -> String {
    match count {
        1 => "1 response is".to_owned(),
        count => format!("{count} responses are"),
    }
}

impl ObjectsError {
    /// The fixed word.
    pub const fn token(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Store(_) => "no-such-store",
            Self::Cursor(_) => "cursor",
            Self::NotStored(_) | Self::NotForAll(_) | Self::NoSuchResponse { .. } => "not-stored",
            Self::NoPage { .. } => "no-page",
            Self::Remote { .. } => "remote",
            Self::Busy => "busy",
            Self::Unreadable(_) => "unreadable",
            Self::Lost => "broken",
        }
    }
}
