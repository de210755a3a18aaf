//! A task whose owner ends it.

use tokio::task::AbortHandle;

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
