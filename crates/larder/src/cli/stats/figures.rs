//! Single figures of what `/stats` says.

use http::Method;
use serde_json::Value;

use crate::cli::admin::{AdminClientError, RunningLarder};

/// What `/stats` says now.
pub(super) async fn ask(larder: &RunningLarder) -> Result<Value, AdminClientError> {
    larder.ask_for(Method::GET, "/stats", "tells its figures").await
}

/// Requests to origins: those that got a final head, and those that failed before one.
pub(super) fn origin_requests(stats: &Value) -> Option<u64> {
    let origins = stats["origins"].as_array()?.iter();
    let of = |origin: &Value| {
        let answered = origin["latency"]["count"].as_u64().unwrap_or_default();
        answered.saturating_add(origin["failed"].as_u64().unwrap_or_default())
    };
    Some(origins.map(of).fold(0, u64::saturating_add))
}

pub(super) fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A ratio in percent, rounded down: all is 100 % only where it is all.
pub(super) fn tenths(ratio: f64) -> String {
    format!("{:.1} %", (ratio * 1000.0).floor() / 10.0)
}
