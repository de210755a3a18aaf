//! The tab *rules*: what each rule answers, from where, and at which cost.
//!
//! In: figures by rule, of which larder keeps the busiest. Out: a row for each.

use std::collections::BTreeMap;

use super::numbers::{rate, ratio, share, size, span};
use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::top::figures::{scoped, worded};
use crate::cli::top::state::TopView;
use crate::cli::top::tab::TopTab;

const HITS: [&str; 5] = ["memory", "disk", "file", "remote", "stale"];
/// With those, all that was looked up.
const OTHERS: [&str; 2] = ["joined", "asked"];

/// Hits, and all look-ups.
pub(super) fn hits(of: &BTreeMap<&str, f64>) -> (f64, f64) {
    let sum = |words: &[&str]| -> f64 {
        // A sum of nothing would be minus nothing.
        words
            .iter()
            .filter_map(|word| of.get(format!("result.{word}").as_str()))
            .fold(0.0, |sum, of| sum + of)
    };
    let hits = sum(&HITS);
    (hits, hits + sum(&OTHERS))
}

pub(super) fn table(view: &TopView) -> ScreenTable {
    let mut columns = vec![
        ScreenColumn::right("/s", 7),
        ScreenColumn::right("HITS %", 6),
        ScreenColumn::right("ASKED/s", 7),
        ScreenColumn::right("ORIGIN", 7),
        ScreenColumn::right("OUT/s", 9),
        ScreenColumn::right("FROM ORIGIN/s", 13).from(100),
        ScreenColumn::left("NOT STORED", 15),
        ScreenColumn::left("RULE", 0),
    ];
    if view.is_beside {
        columns.insert(2, ScreenColumn::right("1 h AGO", 7));
    }
    let mut table = ScreenTable::new(columns, "no request in the last seconds");
    let before = view.hour_ago().map(|before| scoped(before, "rule", 2));
    for (names, of) in scoped(view.recent.values(), "rule", 2) {
        let value = |name: &str| of.get(name).copied().unwrap_or_default();
        let pairs = || of.iter().map(|(name, value)| (*name, *value));
        let requests: f64 = worded(pairs(), "result").map(|(_, rate)| rate).sum();
        let (hits_now, look_ups) = hits(&of);
        let mean = ratio(value("origin_seconds"), value("origin_answers"));
        let out = value("bytes_store") + value("bytes_origin") + value("bytes_own");
        let most = worded(pairs(), "not_stored").max_by(|one, other| one.1.total_cmp(&other.1));
        let hits_share =
            |hits: f64, all: f64| ScreenCell::number(share(hits, all), ratio(hits, all).unwrap_or(-1.0));
        let mut cells = vec![
            ScreenCell::number(rate(requests), requests).looking(CellLook::Bold),
            hits_share(hits_now, look_ups),
            ScreenCell::number(rate(value("result.asked")), value("result.asked")),
            ScreenCell::number(span(mean), mean.unwrap_or_default()),
            ScreenCell::number(size(out), out),
            ScreenCell::number(size(value("bytes_origin")), value("bytes_origin")),
            ScreenCell::text(most.map_or("", |(word, _)| word)),
            ScreenCell::text(names.join(" ")),
        ];
        if view.is_beside {
            let then = before.as_ref().and_then(|before| before.get(&names)).map(hits);
            let (hits, all) = then.unwrap_or_default();
            cells.insert(2, hits_share(hits, all));
        }
        table.push(ScreenRow::new(names.join(" "), cells));
    }
    table.sorted(0, view.choice(TopTab::Rules), view.size.0)
}
