//! A request and an event as rows of their lists have them.
//!
//! In: the objects of the stream and of the admin address. Out: what is drawn, in texts of bounded length, and the URL where it is known as a
//! whole. A URL with a hidden value, or one that was cut, is another URL: nothing can be asked about it.

use serde_json::Value;

use crate::cli::log::line::{number, target, text, time_of_day};

/// The most bytes of a text that is kept.
const TEXT_BYTES_MAX: usize = 1024;
/// What stands for a hidden value.
const HIDDEN: &str = "=***";
/// Where larder cuts path and query, and keys of its tables.
const CUT_BYTES: usize = 512;

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopRequest {
    pub(super) at: f64,
    /// The time of day, to a second.
    pub(super) clock: String,
    pub(super) status: Option<u64>,
    pub(super) result: String,
    pub(super) why: String,
    /// In seconds.
    pub(super) time: Option<f64>,
    pub(super) bytes: Option<u64>,
    pub(super) weight: u64,
    pub(super) url: TopUrl,
}

/// A URL with the method that it was asked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TopUrl {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) is_whole: bool,
}

/// Something that happened to larder itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopEvent {
    pub(super) at: f64,
    pub(super) clock: String,
    pub(super) kind: String,
    pub(super) text: String,
}

impl TopUrl {
    /// A URL as larder tells it.
    pub(super) fn told(method: &str, url: &str) -> Self {
        let target = url.split_once("://").map_or(url, |(_, rest)| rest);
        let target = target.find('/').and_then(|at| target.get(at..)).unwrap_or_default();
        let is_whole = !url.contains(HIDDEN) && target.len() < CUT_BYTES && url.contains("://");
        Self { method: kept(method), url: kept(url), is_whole }
    }
}

impl TopRequest {
    pub(super) fn read(of: &Value) -> Option<Self> {
        of.as_object()?;
        let word = |name| text(of, name).unwrap_or_default();
        let url = format!("{}://{}{}", text(of, "scheme").unwrap_or("http"), word("host"), target(of));
        Some(Self {
            at: at(of),
            clock: clock(of),
            status: number(of, "status"),
            result: kept(word("result")),
            why: kept(&why(of)),
            time: of.get("time").and_then(Value::as_f64),
            bytes: number(of, "bytes"),
            weight: number(of, "weight").unwrap_or(1),
            url: TopUrl::told(text(of, "method").unwrap_or("GET"), &url),
        })
    }
}

impl TopEvent {
    pub(super) fn read(of: &Value) -> Option<Self> {
        of.as_object()?;
        let parts: Vec<&str> = ["subject", "text"].into_iter().filter_map(|name| text(of, name)).collect();
        let kind = kept(text(of, "kind").unwrap_or_default());
        Some(Self { at: at(of), clock: clock(of), kind, text: kept(&parts.join("  ")) })
    }
}

/// Why it was no hit, in the words of the tab *why*, and why the answer is not stored.
fn why(of: &Value) -> String {
    let reasons: Vec<&str> = ["reason", "before"].into_iter().filter_map(|name| text(of, name)).collect();
    let mut why = reasons.join(", ");
    let detail = text(of, "detail");
    let not_stored = text(of, "not_stored").filter(|&reason| Some(reason) != detail);
    for more in [detail, not_stored].into_iter().flatten() {
        why.push_str(if why.is_empty() { "" } else { " " });
        why.push_str(more);
    }
    why
}

fn at(of: &Value) -> f64 {
    of.get("at").and_then(Value::as_f64).unwrap_or_default()
}

/// The time of day without its milliseconds.
fn clock(of: &Value) -> String {
    time_of_day(of).split('.').next().unwrap_or_default().to_owned()
}

fn kept(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_what_larder_tells_of_it() {
        let read = TopRequest::read(&json!({
            "at": 3661.9, "method": "GET", "scheme": "https", "host": "a.example", "path": "/b", "query": "c=d",
            "result": "asked", "reason": "uri-miss", "before": "new", "status": 200, "time": 0.5, "bytes": 7, "weight": 3,
        }))
        .unwrap();
        assert_eq!((read.clock.as_str(), read.url.url.as_str()), ("01:01:01", "https://a.example/b?c=d"));
        assert_eq!((read.why.as_str(), read.weight, read.url.is_whole), ("uri-miss, new", 3, true));
        assert_eq!(TopRequest::read(&json!([])), None);
        assert!(TopRequest::read(&json!({})).is_some() && TopEvent::read(&json!({})).is_some());
    }

    #[test]
    fn a_url_with_a_hidden_value_or_without_its_end_is_not_whole_and_none_is_kept_at_any_length() {
        let is_whole = |url: &str| TopUrl::told("GET", url).is_whole;
        assert!(is_whole("http://a/b?c=d"));
        assert!(!is_whole("http://a/b?token=***&c=d"));
        assert!(!is_whole("/b"));
        let long = format!("http://a/{}", "\u{20ac}".repeat(3000));
        assert!(!is_whole(&long));
        assert!(TopUrl::told("GET", &long).url.len() <= TEXT_BYTES_MAX);
    }
}
