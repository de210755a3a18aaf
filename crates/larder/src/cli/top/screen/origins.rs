//! The tab *origins*: what each origin is asked, how fast it answers, and how its servers are.
//!
//! In: figures by origin, what `/stats` says of the servers, and their rates. Out: a row for each origin, and below it one for each server.

use serde_json::Value;

use super::numbers::{UNKNOWN, rate, span};
use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::table::count;
use crate::cli::top::figures::scoped;
use crate::cli::top::state::TopView;
use crate::cli::top::stats::{each, word};
use crate::cli::top::tab::TopTab;

/// The state of a server that is well.
pub(super) const UP: &str = "up";

pub(super) fn table(view: &TopView) -> ScreenTable {
    let mut columns = vec![
        ScreenColumn::right("/s", 6),
        ScreenColumn::right("FAIL/s", 6),
        ScreenColumn::right("FLIGHT", 6),
        ScreenColumn::right("QUEUE", 5),
        ScreenColumn::right("P50", 7),
        ScreenColumn::right("P99", 7),
        ScreenColumn::left("STATE", 9),
        ScreenColumn::left("ORIGIN", 0),
    ];
    if view.is_beside {
        columns.insert(1, ScreenColumn::right("1 h AGO", 7));
    }
    let mut table = ScreenTable::new(columns, "no origin is known yet");
    let figures = scoped(view.recent.values(), "origin", 1);
    let before = view.hour_ago().map(|before| scoped(before, "origin", 1));
    for origin in each(&view.stats, "origins") {
        let name = word(origin, "name");
        let names = vec![name.to_owned()];
        let of = figures.get(&names).cloned().unwrap_or_default();
        let value = |name: &str| of.get(name).copied().unwrap_or_default();
        let number = |of: f64| ScreenCell::number(rate(of), of);
        let whole = |name: &str| ScreenCell::number(count(value(name).max(0.0) as u64), value(name));
        let failed = number(value("failures"));
        let failed = if value("failures") > 0.0 { failed.looking(CellLook::Warning) } else { failed };
        let percentile = |name: &str| ScreenCell::number(span(of.get(name).copied()), value(name));
        let servers: Vec<&Value> = each(origin, "servers").collect();
        let up = servers.iter().filter(|server| word(server, "state") == UP).count();
        let state = ScreenCell::text(format!("{up}/{} up", servers.len()));
        let mut cells = vec![
            number(value("requests")).looking(CellLook::Bold),
            failed,
            whole("in_flight"),
            whole("queued"),
            percentile("p50"),
            percentile("p99"),
            if up < servers.len() { state.looking(CellLook::Warning) } else { state },
            ScreenCell::text(name).looking(CellLook::Bold),
        ];
        if view.is_beside {
            let then = before.as_ref().map(|before| before.get(&names)?.get("requests").copied());
            cells.insert(1, ScreenCell::rate(then.map(Option::unwrap_or_default)));
        }
        let below = servers.iter().map(|of| server(view, name, of)).collect();
        table.push(ScreenRow::new(name, cells).with_below(below));
    }
    table.sorted(0, view.choice(TopTab::Origins), view.size.0)
}

/// The state of a server.
pub(super) fn state_cell(state: &str) -> ScreenCell {
    ScreenCell::text(state).looking(if state == UP { CellLook::Plain } else { CellLook::Warning })
}

fn server(view: &TopView, origin: &str, of: &Value) -> ScreenRow {
    let name = word(of, "server");
    let unknown = || UNKNOWN.to_owned();
    let (requests, failures) = match view.servers.rate(origin, name) {
        Some((requests, failures)) => (rate(requests), rate(failures)),
        None => (unknown(), unknown()),
    };
    let in_flight = of.get("in_flight").and_then(Value::as_u64).map_or_else(unknown, count);
    let state = state_cell(word(of, "state"));
    let backup = if of.get("backup").and_then(Value::as_bool) == Some(true) { "  backup" } else { "" };
    let mut cells = vec![
        ScreenCell::text(requests),
        ScreenCell::text(failures),
        ScreenCell::text(in_flight),
        ScreenCell::default(),
        ScreenCell::default(),
        ScreenCell::default(),
        state,
        ScreenCell::text(format!(" {name}{backup}")),
    ];
    if view.is_beside {
        cells.insert(1, ScreenCell::default());
    }
    ScreenRow::new(format!("{origin} {name}"), cells)
}
