//! One question to a server: how are you?
//!
//! In: how to reach it and what to ask for. Out: a [`Verdict`]. A connection of its own for each question, so that what
//! is checked is what a new request would meet, TLS and PROXY header included; over HTTP/1.1 or HTTP/2, as requests go.
//! Only the head is waited for: the connection is closed without reading content, whatever its length.
//! A connection that larder itself does not open, because too many are, or cannot, because it has no descriptor left, says
//! nothing about the server.

use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::trailers::Wish;
use tokio::time::Instant;

use super::streak::Verdict;
use crate::attempt::attempt;
use crate::connect::Dial;
use crate::error::{OriginError, is_our_own};
use crate::place::Place;
use crate::pool::Pool;
use crate::request::Outgoing;
use crate::resources::OriginResources;
use crate::settings::{HealthCheck, OriginSettings};

/// Whom the server's log names.
const AGENT: HeaderValue = HeaderValue::from_static("larder-health-check");

/// Asks the server at `place` once, within `health.timeout`.
///
/// # Cancel safety
/// May be dropped at any time; the connection is closed.
pub(super) async fn check(
    dial: &Dial,
    place: &Place,
    host: &Authority,
    health: &HealthCheck,
    settings: &OriginSettings,
    resources: &Arc<OriginResources>,
) -> Verdict {
    let deadline = Instant::now() + health.timeout;
    // Keeps nothing and shares nothing: one exchange and its end.
    let pool = Pool::new(0, Duration::ZERO, resources.clone());
    let asking = async {
        let fields = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        let outgoing =
            Outgoing::new(Method::GET, &health.path, host, fields, Body::Empty, (false, &Wish::default()))?;
        let lease = pool.open(dial, place, None, deadline, None).await?;
        let answered =
            attempt(lease, outgoing, None, settings, Some(deadline)).await.map_err(|failed| failed.error)?;
        Ok::<_, OriginError>(answered.response.status())
    };
    let outcome = tokio::time::timeout_at(deadline, asking).await;
    verdict(outcome.unwrap_or(Err(OriginError::TotalTimeout)), health)
}

fn verdict(outcome: Result<StatusCode, OriginError>, health: &HealthCheck) -> Verdict {
    match outcome {
        Ok(status) if health.statuses.iter().any(|range| range.contains(&status.as_u16())) => Verdict::Good,
        Err(OriginError::ConnectionLimit) => Verdict::Unknown,
        Err(OriginError::ConnectFailed(error)) if is_our_own(&error) => Verdict::Unknown,
        Ok(_) | Err(_) => Verdict::Bad,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;
    use larder_http::target::Target;
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_status_in_any_of_the_ranges_is_good_and_what_larder_lacks_says_nothing() {
        let path = Target::parse(Bytes::from_static(b"/")).unwrap();
        let health = HealthCheck { statuses: vec![200..=299, 401..=401], ..HealthCheck::new(path) };
        for (status, expected) in [
            (199, Verdict::Bad),
            (200, Verdict::Good),
            (299, Verdict::Good),
            (300, Verdict::Bad),
            (401, Verdict::Good),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(verdict(Ok(status), &health), expected, "{status}");
        }
        let failed = |errno: Errno| OriginError::ConnectFailed(errno.into());
        for (error, expected) in [
            (OriginError::ConnectRefused, Verdict::Bad),
            (OriginError::TotalTimeout, Verdict::Bad),
            (failed(Errno::NETUNREACH), Verdict::Bad),
            (failed(Errno::MFILE), Verdict::Unknown),
            (OriginError::ConnectionLimit, Verdict::Unknown),
        ] {
            let shown = format!("{error:?}");
            assert_eq!(verdict(Err(error), &health), expected, "{shown}");
        }
    }
}
