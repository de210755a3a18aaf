//! `/api/v1/breakdown`: what requests have in common.
//!
//! In: `by` with up to four dimensions, `from` in seconds, `where` as a filter, and `limit`. Out: rates of each combination as JSON, and from what
//! they are made: counters over time, or samples where these do not know the dimensions.

use std::time::Duration;

use larder_http::message::Response;
use larder_http::time::Now;
use larder_observe::watch::{BREAKDOWN_BY_MAX, Breakdown, BreakdownQuestion, BreakdownRow, Dimension, Watch};
use serde_json::{Map, Value, json};

use super::form::{json, limit, one_of, seconds, unread, wrong};
use crate::live::filter;
use crate::query::named;

/// Rows where the question does not say.
const LIMIT_DEFAULT: usize = 100;
/// Seconds where the question does not say.
const FROM_DEFAULT: f64 = 600.0;
/// The most of them.
const FROM_MAX: f64 = 86_400.0;

/// Answers a question for what requests have in common.
pub(crate) fn breakdown(watch: &Watch, query: &str, now: Now) -> Response {
    match question(query) {
        Ok(question) => json(&described(watch.breakdown(&question, now))),
        Err(response) => *response,
    }
}

fn question(query: &str) -> Result<BreakdownQuestion, Box<Response>> {
    let [by, from, wanted, rows] = named(query, ["by", "from", "where", "limit"]).ok_or_else(unread)?;
    let from = from.map_or(Some(FROM_DEFAULT), |text| text.parse().ok());
    let Some(from) = from.filter(|seconds| (1.0..=FROM_MAX).contains(seconds)) else {
        return Err(wrong(&format!("from is a number of seconds from 1 to {FROM_MAX}")));
    };
    Ok(BreakdownQuestion {
        by: dimensions(by.as_deref())?,
        from: Duration::from_secs_f64(from),
        filter: filter(wanted)?,
        limit: limit(rows.as_deref(), LIMIT_DEFAULT)?,
    })
}

fn dimensions(by: Option<&str>) -> Result<Vec<Dimension>, Box<Response>> {
    let words = by.map_or(vec![None], |by| by.split(',').map(Some).collect());
    if words.len() > BREAKDOWN_BY_MAX {
        return Err(wrong(&format!("by has at most {BREAKDOWN_BY_MAX} words")));
    }
    let each = |word| one_of("each word of by", word, Dimension::ALL, Dimension::token);
    words.into_iter().map(each).collect()
}

fn described(told: Breakdown) -> Value {
    let share = |rate: f64| if told.total > 0.0 { rate / told.total } else { 0.0 };
    let rows: Vec<_> = told.rows.iter().map(|row| described_row(row, share(row.rate))).collect();
    let mut all = Map::new();
    all.insert("source".into(), if told.samples.is_some() { "samples" } else { "history" }.into());
    all.insert("from".into(), seconds(told.from).into());
    all.insert("to".into(), seconds(told.to).into());
    if let Some(samples) = told.samples {
        all.insert("samples".into(), samples.into());
    }
    all.insert("total".into(), told.total.into());
    all.insert("rows".into(), rows.into());
    all.insert("other".into(), json!({ "rate": told.other, "share": share(told.other) }));
    all.into()
}

fn described_row(row: &BreakdownRow, share: f64) -> Value {
    let mut all = Map::new();
    all.insert("key".into(), json!(row.key));
    all.insert("rate".into(), row.rate.into());
    all.insert("share".into(), share.into());
    for (name, value) in [("bytes", row.bytes), ("origin_seconds", row.origin_seconds)] {
        if let Some(value) = value {
            all.insert(name.into(), value.into());
        }
    }
    all.into()
}
