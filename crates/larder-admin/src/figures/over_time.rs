//! Figures over time, and those of this moment.
//!
//! In: names of series, or of whose durations, and a span. Out: JSON with columns: times, and for each name its values. What is not known
//! is null. The names are those of docs/reference/api.md.

use http::StatusCode;
use larder_http::message::Response;
use larder_observe::HistogramSnapshot;
use larder_observe::watch::tick::{number, values};
use larder_observe::watch::{NotASpan, Span, Watch, scope_name};

use super::form::wrong;
use crate::answer::{JSON, Refused, content, refusal};
use crate::query::named;
use crate::stats::Stats;

/// The most names of one question.
const NAMES_MAX: usize = 64;
/// A number of seconds is written whole.
const TIME_DIGITS: usize = 16;
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// The span of a question: seconds before now.
fn span([from, to, step]: [Option<String>; 3]) -> Option<Span> {
    let default = Span::default();
    let number = |text: Option<String>, default: u64| text.map_or(Some(default), |text| text.parse().ok());
    let step = match step {
        Some(step) => Some(step.parse().ok()?),
        None => None,
    };
    Some(Span { from: number(from, default.from)?, to: number(to, default.to)?, step })
}

fn not_a_span(error: NotASpan) -> Response {
    *wrong(&error.to_string())
}

/// `"at":…,"from":…,"step":…`.
fn times(out: &mut Vec<u8>, at: f64, from: f64, step: u64) {
    for (name, value) in [("{\"at\":", at), (",\"from\":", from), (",\"step\":", step as f64)] {
        out.extend_from_slice(name.as_bytes());
        number(value, TIME_DIGITS, out);
    }
}

fn list<T>(out: &mut Vec<u8>, all: impl IntoIterator<Item = T>, mut one: impl FnMut(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (place, value) in all.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        one(value, out);
    }
    out.push(b']');
}

fn value(value: Option<f64>, out: &mut Vec<u8>) {
    number(value.unwrap_or(f64::NAN), 4, out);
}

/// What figures were.
pub(crate) fn series(watch: &Watch, query: &str) -> Response {
    let Some([names, from, to, step]) = named(query, ["names", "from", "to", "step"]) else {
        return refusal(Refused::HistoryQuery);
    };
    let (Some(names), Some(span)) = (names, span([from, to, step])) else {
        return refusal(Refused::HistoryQuery);
    };
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return refusal(Refused::HistoryQuery);
    }
    if names.len() > NAMES_MAX {
        return not_a_span(NotASpan::TooManyNames);
    }
    let answer = match watch.series(&names, span) {
        Ok(answer) => answer,
        Err(error) => return not_a_span(error),
    };
    let mut out = Vec::new();
    times(&mut out, answer.at.0 as f64 / 1e3, answer.from.0 as f64 / 1e3, answer.step);
    out.extend_from_slice(b",\"newest\":");
    number(answer.newest.0 as f64 / 1e3, TIME_DIGITS, &mut out);
    out.extend_from_slice(b",\"values\":{");
    for (place, (name, all)) in answer.values.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(serde_json::Value::from(&**name).to_string().as_bytes());
        out.push(b':');
        list(&mut out, all, |one, out| value(*one, out));
    }
    out.extend_from_slice(b"}}");
    content(StatusCode::OK, JSON, out)
}

/// The scope whose durations are asked for: `hit`, `forwarded`, `local`, `all`, or `origin/NAME`.
fn durations_of(of: &str) -> Option<String> {
    match of.split_once('/') {
        Some(("origin", origin)) => Some(scope_name(&["origin", origin])),
        Some(_) => None,
        None => ["hit", "forwarded", "local", "all"].contains(&of).then(|| scope_name(&["latency", of])),
    }
}

/// How durations lay.
pub(crate) fn latency(watch: &Watch, query: &str) -> Response {
    let Some([of, from, to, step]) = named(query, ["of", "from", "to", "step"]) else {
        return refusal(Refused::HistoryQuery);
    };
    let name = of.as_deref().and_then(durations_of);
    let (Some(name), Some(span)) = (name, span([from, to, step])) else {
        return refusal(Refused::HistoryQuery);
    };
    let answer = match watch.latency(&name, span) {
        Ok(answer) => answer,
        Err(error) => return not_a_span(error),
    };
    let mut out = Vec::new();
    times(&mut out, answer.at.0 as f64 / 1e3, answer.from.0 as f64 / 1e3, answer.step);
    out.extend_from_slice(b",\"bounds\":");
    list(&mut out, HistogramSnapshot::octave_bounds(), |bound, out| number(bound, 8, out));
    out.extend_from_slice(b",\"counts\":");
    list(&mut out, &answer.counts, |counts, out| match counts {
        Some(counts) => list(out, counts, |count, out| value(Some(*count), out)),
        None => out.extend_from_slice(b"null"),
    });
    out.push(b'}');
    content(StatusCode::OK, JSON, out)
}

/// Everything of this moment.
pub(crate) fn now(watch: &Watch, stats: &Stats) -> Response {
    let Ok(told) = serde_json::to_vec(stats) else { return refusal(Refused::Broken) };
    let mut out = b"{".to_vec();
    if let Some(tick) = watch.newest() {
        // The members of the tick come first.
        let members = tick.json().strip_prefix(b"{").and_then(|json| json.strip_suffix(b"}"));
        out.extend_from_slice(members.unwrap_or_default());
        out.push(b',');
    }
    for (name, seconds) in [("minute", MINUTE), ("hour", HOUR)] {
        out.extend_from_slice(format!("\"{name}\":").as_bytes());
        let means = watch.means(seconds);
        values(means.iter().map(|(name, mean)| (name.as_str(), *mean)), &mut out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"uptime\":");
    number(stats.uptime_seconds, TIME_DIGITS, &mut out);
    out.extend_from_slice(b",\"stats\":");
    out.extend_from_slice(&told);
    out.push(b'}');
    content(StatusCode::OK, JSON, out)
}
