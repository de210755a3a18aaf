//! The tab *stores*: what each store finds, takes in and lets go of, and how full its memory, disks and directories are.
//!
//! In: figures by store, and what `/stats` says of the tiers. Out: a row for each store, and below it one for each tier and server.

use serde_json::Value;

use super::numbers::{UNKNOWN, rate, ratio, share, size};
use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::table::count;
use crate::cli::top::figures::{scoped, worded};
use crate::cli::top::state::TopView;
use crate::cli::top::stats::{each, word};
use crate::cli::top::tab::TopTab;

pub(super) fn table(view: &TopView) -> ScreenTable {
    let mut columns = vec![
        ScreenColumn::right("/s", 7),
        ScreenColumn::right("HITS %", 6),
        ScreenColumn::right("STORED/s", 8),
        ScreenColumn::right("EVICT/s", 7),
        ScreenColumn::right("RESPONSES", 9),
        ScreenColumn::right("BYTES", 9),
        ScreenColumn::right("FULL %", 6),
        ScreenColumn::left("STORE", 0),
    ];
    if view.is_beside {
        columns.insert(2, ScreenColumn::right("1 h AGO", 7));
    }
    let mut table = ScreenTable::new(columns, "no store is known yet");
    let figures = scoped(view.recent.values(), "store", 1);
    let before = view.hour_ago().map(|before| scoped(before, "store", 1));
    for store in each(&view.stats, "stores") {
        let name = word(store, "name");
        let names = vec![name.to_owned()];
        let of = figures.get(&names).cloned().unwrap_or_default();
        let value = |name: &str| of.get(name).copied().unwrap_or_default();
        let evicted: f64 =
            worded(of.iter().map(|(name, rate)| (*name, *rate)), "evictions").map(|(_, rate)| rate).sum();
        let number = |of: f64| ScreenCell::number(rate(of), of);
        let hits =
            |hits: f64, all: f64| ScreenCell::number(share(hits, all), ratio(hits, all).unwrap_or(-1.0));
        let is_degraded = store.get("degraded").and_then(Value::as_bool).unwrap_or_default();
        let named = match is_degraded {
            true => ScreenCell::text(format!("degraded: {name}")).looking(CellLook::Warning),
            false => ScreenCell::text(name).looking(CellLook::Bold),
        };
        let mut cells = vec![
            number(value("lookups")).looking(CellLook::Bold),
            hits(value("hits"), value("lookups")),
            number(value("stored")),
            number(evicted),
            ScreenCell::default(),
            ScreenCell::default(),
            ScreenCell::default(),
            named,
        ];
        if view.is_beside {
            let then = before.as_ref().and_then(|before| before.get(&names));
            let then = |name: &str| then.and_then(|of| of.get(name)).copied().unwrap_or_default();
            cells.insert(2, hits(then("hits"), then("lookups")));
        }
        let tiers = each(store, "tiers").map(|of| tier(name, of, view.is_beside));
        let servers = each(store, "servers").map(|of| server(name, of, view.is_beside));
        table.push(ScreenRow::new(name, cells).with_below(tiers.chain(servers).collect()));
    }
    table.sorted(0, view.choice(TopTab::Stores), view.size.0)
}

/// Memory, a disk, or a directory of files.
fn tier(store: &str, of: &Value, is_beside: bool) -> ScreenRow {
    let number = |name: &str| of.get(name).and_then(Value::as_u64);
    let bytes = number("bytes").map_or_else(|| UNKNOWN.to_owned(), |bytes| size(bytes as f64));
    let full = match (number("bytes"), number("max_bytes")) {
        (Some(bytes), Some(most)) => share(bytes as f64, most as f64),
        _ => UNKNOWN.to_owned(),
    };
    let cells = [
        ScreenCell::text(number("objects").map_or_else(|| UNKNOWN.to_owned(), count)),
        ScreenCell::text(bytes),
        ScreenCell::text(full),
    ];
    let name = format!("{} {}", word(of, "tier"), word(of, "disk"));
    below(store, name.trim(), word(of, "state"), "ok", cells, is_beside)
}

/// A server of values.
fn server(store: &str, of: &Value, is_beside: bool) -> ScreenRow {
    let name = format!("{} {}", word(of, "kind"), word(of, "server"));
    below(store, &name, word(of, "state"), "up", Default::default(), is_beside)
}

fn below(
    store: &str,
    name: &str,
    state: &str,
    good: &str,
    cells: [ScreenCell; 3],
    is_beside: bool,
) -> ScreenRow {
    let named = match state.is_empty() || state == good {
        true => ScreenCell::text(format!(" {name}")),
        false => ScreenCell::text(format!(" {state}: {name}")).looking(CellLook::Warning),
    };
    let mut all = vec![ScreenCell::default(); if is_beside { 5 } else { 4 }];
    all.extend(cells);
    all.push(named);
    ScreenRow::new(format!("{store} {name}"), all)
}
