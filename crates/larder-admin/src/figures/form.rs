//! What questions for figures have in common, and their answers.
//!
//! In: one parameter as it was sent, or a value. Out: what it means, or the answer that names what it may be; JSON.

use http::StatusCode;
use larder_http::message::Response;
use larder_http::time::WallTime;

use crate::answer::{JSON, Refused, content, refusal};

/// The most rows of an answer.
const ROWS_MAX: usize = 1000;

/// The answer to a value that cannot be had.
pub(super) fn wrong(message: &str) -> Box<Response> {
    let json = serde_json::json!({ "error": "query", "message": message });
    Box::new(content(StatusCode::BAD_REQUEST, JSON, json.to_string()))
}

/// The one of `all` with this word, or the first of them where there is none.
pub(super) fn one_of<T: Copy>(
    name: &str,
    word: Option<&str>,
    all: &[T],
    token: impl Fn(T) -> &'static str,
) -> Result<T, Box<Response>> {
    let found = match word {
        None => all.first(),
        Some(word) => all.iter().find(|one| token(**one) == word),
    };
    let words = || all.iter().map(|one| token(*one)).collect::<Vec<_>>().join(", ");
    found.copied().ok_or_else(|| wrong(&format!("{name} is one of {}", words())))
}

/// How many rows are asked for.
pub(super) fn limit(text: Option<&str>, default: usize) -> Result<usize, Box<Response>> {
    let limit = text.map_or(Some(default), |text| text.parse().ok());
    limit
        .filter(|limit| (1..=ROWS_MAX).contains(limit))
        .ok_or_else(|| wrong(&format!("limit is a number from 1 to {ROWS_MAX}")))
}

/// Seconds since 1970.
pub(super) fn seconds(time: WallTime) -> f64 {
    time.0 as f64 / 1000.0
}

pub(super) fn json(value: &serde_json::Value) -> Response {
    content(StatusCode::OK, JSON, value.to_string())
}

/// The answer to parameters of which one stands twice or is no text.
pub(super) fn unread() -> Box<Response> {
    Box::new(refusal(Refused::FiguresQuery))
}
