//! `/api/v1/top`: what is most frequent.
//!
//! In: `of`, `window`, `where` as a glob over keys, and `limit`. Out: the rows of that table as JSON.

use larder_http::message::Response;
use larder_http::time::Now;
use larder_observe::watch::{TableKind, TableWindow, Top, TopQuestion, Watch};
use serde_json::json;

use super::form::{json, limit, one_of, seconds, unread, wrong};
use crate::query::named;

/// Rows where the question does not say.
const LIMIT_DEFAULT: usize = 50;
/// A longer glob is not read. All keys of a table are compared with it.
const GLOB_BYTES_MAX: usize = 256;

/// Answers a question for what is most frequent.
pub(crate) fn top(watch: &Watch, query: &str, now: Now) -> Response {
    let question = match question(query) {
        Ok(question) => question,
        Err(response) => return *response,
    };
    let Top { rows, folded } = watch.top(&question, now);
    let rows: Vec<_> = rows
        .into_iter()
        .map(|row| json!({ "key": row.key, "rate": row.rate, "error": row.error, "last": seconds(row.last) }))
        .collect();
    let window: u64 = question.window.token().parse().unwrap_or_default();
    json(&json!({ "of": question.of.token(), "window": window, "rows": rows, "folded": folded }))
}

fn question(query: &str) -> Result<TopQuestion, Box<Response>> {
    let [of, window, glob, rows] = named(query, ["of", "window", "where", "limit"]).ok_or_else(unread)?;
    if glob.as_ref().is_some_and(|glob| glob.len() > GLOB_BYTES_MAX) {
        return Err(wrong(&format!("where has at most {GLOB_BYTES_MAX} bytes")));
    }
    Ok(TopQuestion {
        of: one_of("of", of.as_deref(), &TableKind::ALL, TableKind::token)?,
        window: one_of("window", window.as_deref(), &TableWindow::ALL, TableWindow::token)?,
        glob: glob.filter(|glob| !glob.is_empty()),
        limit: limit(rows.as_deref(), LIMIT_DEFAULT)?,
    })
}
