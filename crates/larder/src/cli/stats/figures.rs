//! Single figures of what `/stats` says.

use http::Method;
use serde_json::Value;

use crate::cli::admin::{AdminClientError, RunningLarder};
use crate::cli::table::count;

/// Stands for what is not known.
pub(super) const NOTHING: &str = "-";

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

/// Reasons with their counts, the most frequent first.
pub(super) fn refused(counts: &Value) -> String {
    let Some(all) = counts.as_object() else { return NOTHING.to_owned() };
    let mut reasons: Vec<(u64, &String)> =
        all.iter().filter_map(|(reason, count)| Some((count.as_u64()?, reason))).collect();
    reasons.sort_by_key(|(count, reason)| (std::cmp::Reverse(*count), *reason));
    let told: Vec<String> =
        reasons.iter().map(|(times, reason)| format!("{} {reason}", count(*times))).collect();
    if told.is_empty() { "0".to_owned() } else { told.join(", ") }
}

/// A count.
pub(super) fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| NOTHING.to_owned(), count)
}

/// All counts together.
pub(super) fn sum(counts: &Value) -> u64 {
    let all = counts.as_object().into_iter().flatten();
    all.filter_map(|(_, count)| count.as_u64()).fold(0, u64::saturating_add)
}

/// A time in seconds.
pub(super) fn wait(value: &Value) -> String {
    match value.as_f64() {
        None => NOTHING.to_owned(),
        Some(seconds) if seconds < 0.000_999 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) if seconds < 0.999_9 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.2} s"),
    }
}
