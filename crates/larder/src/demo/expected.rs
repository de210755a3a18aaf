//! What every answer of a load has to be.
//!
//! In: the pieces of an answer, as they arrive. Out: whether they are the page that this client should get, and since when its oldest
//! part has existed. A load compares all answers, since figures of wrong ones mean nothing.

use std::sync::Arc;

use http::HeaderValue;
use larder_http::time::WallTime;

/// A page that clients ask for.
pub(super) trait ExpectedPage: Send + Sync + 'static {
    /// An answer on its way in.
    type Arrival: PageArrival;

    /// The Cookie field of a client, by its number.
    fn cookie(&self, client: usize) -> Option<HeaderValue>;

    /// The next answer to a client.
    fn arrival(self: &Arc<Self>, client: usize) -> Self::Arrival;
}

/// An answer on its way in, compared with what it should be.
pub(super) trait PageArrival: Send + 'static {
    /// Takes the next piece.
    ///
    /// # Errors
    /// It is not what comes next.
    fn take(&mut self, piece: &[u8]) -> Result<(), WrongPage>;

    /// The end of the answer. Gives the moment at which the oldest part of the page was rendered.
    ///
    /// # Errors
    /// It ended too early, or is another page.
    fn end(self) -> Result<WallTime, WrongPage>;
}

/// Where a body is not the page that it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WrongPage {
    /// A byte that is not the page's.
    #[error("the page differs at byte {0}")]
    Differs(usize),
    /// Too few bytes.
    #[error("the page ends at byte {found} of {expected}")]
    Short {
        /// How many there were.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Too many bytes.
    #[error("the page goes on after byte {0}, its last")]
    Long(usize),
    /// No stamp where it should be.
    #[error("the page has no stamp")]
    Stamp,
    /// Something else in place of a fragment.
    #[error("the page does not have the fragment {0} that is for this visitor")]
    Fragment(&'static str),
}
