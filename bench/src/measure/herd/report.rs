//! What a herd's moments left, as a page: a row for each server at each moment, and what larder had to do there.
//!
//! In: the rows as they were counted. Out: bench/results/herd.md and herd.json; then an error where larder did not do what
//! it must, after both are written.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{CLIENTS, Moment, RENDER, Row, WHOLE};
use crate::measure::load::{ms, quantile};
use crate::measure::report::{Report, round};

impl Row {
    pub(super) fn outcomes_text(&self) -> String {
        let counted: Vec<String> = self.outcomes.iter().map(|(what, n)| format!("{n} x {what}")).collect();
        counted.join(", ")
    }

    /// Whether larder did what it must; `None` for a peer.
    fn holds(&self) -> Option<bool> {
        let wanted = match self.moment {
            Moment::DiesBeforeHead => "502",
            Moment::DiesInMidBody => "cut",
            _ => WHOLE,
        };
        let outcomes = self.outcomes.keys().all(|outcome| outcome == wanted);
        let next = self.next.as_ref().is_none_or(|(how, asked)| how == WHOLE && *asked);
        let origin = self.origin_requests == self.moment.origin_requests();
        self.is_larder.then_some(outcomes && next && origin)
    }

    fn next_text(&self) -> String {
        self.next.as_ref().map_or_else(String::new, |(how, asked)| {
            format!("{how}, {}", if *asked { "asked again" } else { "from the store" })
        })
    }

    fn wait_ms(&self, share: f64) -> f64 {
        ms(quantile(&self.waits, share))
    }
}

/// Prints the table and writes page and figures.
///
/// # Errors
/// larder did not do what it must; everything has been written then.
pub(super) fn report(root: &Path, rows: &[Row]) -> Result<()> {
    let mut table = String::from(
        "| moment | server | clients | outcomes | of them stored before | origin requests | at once | p50 ms | p99 ms | \
         longest ms | next request | |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {} | {} |",
            row.moment.title(),
            row.server,
            row.waits.len(),
            row.outcomes_text(),
            row.from_store,
            row.origin_requests,
            row.at_once,
            row.wait_ms(0.5),
            row.wait_ms(0.99),
            row.wait_ms(1.0),
            row.next_text(),
            match row.holds() {
                Some(true) => "holds",
                Some(false) => "MISSED",
                None => "",
            }
        );
    }
    table.push_str("\nWhat larder must do:\n\n");
    let mut told = None;
    for row in rows.iter().filter(|row| row.is_larder) {
        if told.replace(row.moment) != Some(row.moment) {
            let _ = writeln!(table, "- {}: {}", row.moment.title(), row.moment.demand());
        }
    }
    let missed = rows.iter().filter(|row| row.holds() == Some(false)).count();
    Report {
        name: "herd",
        title: "A thousand clients at the worst moment",
        table: &table,
        how: &how(),
        programs: &[("rustc", "--version"), ("nginx", "-v")],
        figures: json!({ "clients": CLIENTS, "render_ms": round(ms(RENDER)), "missed": missed,
            "rows": rows.iter().map(row_json).collect::<Vec<Value>>() }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} rows of larder are not what they must be");
    Ok(())
}

fn how() -> String {
    format!(
        "{CLIENTS} clients are connected and send in the same instant; the application takes {:.0} ms for a page and \
         works on any number at once. One server at a time, one worker, pinned to one core; clients on another. Waits \
         are from before sending to the last byte, or to the error. \"At once\" is the most the application had in \
         flight. Origin requests are counted until nothing is under way any more: refreshes behind are in them. Of the \
         {CLIENTS} who share a fetch, the one that hangs up is not counted.",
        ms(RENDER)
    )
}

fn row_json(row: &Row) -> Value {
    json!({
        "moment": row.moment.title(), "server": row.server, "clients": row.waits.len(),
        "outcomes": row.outcomes, "from_store": row.from_store, "origin_requests": row.origin_requests,
        "at_once": row.at_once, "p50_ms": round(row.wait_ms(0.5)), "p99_ms": round(row.wait_ms(0.99)),
        "longest_ms": round(row.wait_ms(1.0)), "next": row.next_text(), "holds": row.holds(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_only_with_one_outcome_for_all_and_no_request_too_many() {
        let row = |moment, outcomes: &[&str], origin_requests, next: Option<(&str, bool)>| Row {
            moment,
            server: String::new(),
            waits: Vec::new(),
            outcomes: outcomes.iter().map(|outcome| ((*outcome).to_owned(), 1)).collect(),
            from_store: 0,
            origin_requests,
            at_once: 1,
            next: next.map(|(how, asked)| (how.to_owned(), asked)),
            is_larder: true,
        };
        let again = Some(("200", true));
        for (row, holds) in [
            (row(Moment::ColdUrl, &["200"], 1, None), true),
            (row(Moment::ColdUrl, &["200"], 2, None), false),
            (row(Moment::ColdUrl, &["200", "cut"], 1, None), false),
            (row(Moment::ExpireTogether, &["200"], 1000, None), true),
            (row(Moment::DiesBeforeHead, &["502"], 1, again), true),
            (row(Moment::DiesBeforeHead, &["502", "504"], 1, again), false),
            (row(Moment::DiesInMidBody, &["cut"], 1, again), true),
            (row(Moment::DiesInMidBody, &["cut"], 1, Some(("200", false))), false),
            (row(Moment::DiesInMidBody, &["200"], 1, again), false),
        ] {
            assert_eq!(row.holds(), Some(holds), "{}", row.outcomes_text());
        }
    }
}
