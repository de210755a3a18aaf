//! What makes a value shorter when it is written.
//!
//! In: a function of whoever queues values. Out: the same for the thread that writes them. Values are queued under locks, on threads that serve clients,
//! so what takes time is done there. In the queue a value counts with its full length.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// See the head of the file.
#[derive(Clone)]
pub struct Pack(Arc<dyn Fn(Bytes) -> Bytes + Send + Sync>);

impl Pack {
    /// `pack` gives a value back as it is to be written. It must not wait.
    pub fn new(pack: impl Fn(Bytes) -> Bytes + Send + Sync + 'static) -> Self {
        Self(Arc::new(pack))
    }

    pub(crate) fn pack(&self, value: Bytes) -> Bytes {
        (self.0)(value)
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pack")
    }
}
