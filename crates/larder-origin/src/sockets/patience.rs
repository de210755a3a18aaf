//! How long a test waits for what has to happen.

use std::future::Future;
use std::time::Duration;

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What `future` gives, in good time.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in good time")
}
