//! Probes of a server that is left alone: they find out whether it is well again.
//!
//! In: a server whose breaker is open. Out: connections, one at a time, each up to its first reply, at the moments that the breaker
//! names, or at once where another server takes its place; and whether that reply came. No request ever is the probe.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use crate::protocol::Dialer;
use crate::server::Server;

/// While the breaker is open: connects when a probe is due, and has one reply, within `limit`. Never ends.
pub(crate) async fn probe(server: &Server, dialer: &Dialer, limit: Duration) {
    loop {
        server.breaker().until(true).await;
        let mut asked = dialer.elected();
        while let Some(at) = server.breaker().probe_at() {
            tokio::select! {
                () = sleep_until(at) => {}
                () = dialer.moved_from(asked.as_ref()) => {}
            }
            // As it is before connecting: a vote may come while that takes its time.
            asked = dialer.elected();
            match timeout(limit, dialer.open()).await {
                Ok(Ok(_)) => server.recovered(),
                Ok(Err(_)) | Err(_) => server.breaker().probe_failed(Instant::now()),
            }
        }
    }
}
