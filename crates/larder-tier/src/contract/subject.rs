//! What the tests of a kind of tier bring to the suite.

use std::sync::Arc;

use larder_http::time::Now;

use crate::tier::Tier;
use crate::uri::TargetUri;
use crate::vocabulary::Vocabulary;

/// What a kind of tier brings.
pub trait Subject {
    /// The types that its traits have.
    type Vocabulary: Vocabulary;

    /// Makes the tier, which is still to be opened: empty the first time, and later over what the one before has left. It takes
    /// bodies of 1 MiB, and has room for 16 of them.
    fn make(&self) -> Arc<dyn Tier<Self::Vocabulary>>;

    /// The head of a response that it keeps; `mark` tells it apart from others.
    fn head(&self, mark: u8) -> <Self::Vocabulary as Vocabulary>::Head;

    /// A head as bytes. What a tier gives back is compared in this form.
    fn head_bytes(&self, head: &<Self::Vocabulary as Vocabulary>::Head) -> Vec<u8>;

    /// What the sites say of caching.
    fn policy(&self) -> <Self::Vocabulary as Vocabulary>::Policy;

    /// The time.
    fn now(&self) -> Now;

    /// Puts a response with this content under `uri`, as others than larder do; false for a tier that only larder writes to.
    fn put_apart(&self, _uri: &TargetUri<'_>, _content: &[u8]) -> bool {
        false
    }
}
