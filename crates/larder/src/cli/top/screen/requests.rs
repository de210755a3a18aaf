//! The tab *requests*: the last requests of the stream, as far as the filter takes them, the newest first.
//!
//! In: samples. Out: a row for each, with its URL for *explain* and *purge*.

use super::numbers::{UNKNOWN, size, span};
use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::top::request::TopRequest;
use crate::cli::top::state::TopView;
use crate::cli::top::tab::TopTab;

/// A window with more columns.
const WIDE: u16 = 100;

pub(super) fn table(view: &TopView) -> ScreenTable {
    let columns = [
        ScreenColumn::right("UTC", 8),
        ScreenColumn::right("FOR", 4).from(WIDE),
        ScreenColumn::right("STATUS", 6),
        ScreenColumn::left("RESULT", 7),
        ScreenColumn::right("TIME", 7),
        ScreenColumn::right("BYTES", 9).from(WIDE),
        ScreenColumn::left("WHY", if view.size.0 < WIDE { 21 } else { 36 }),
        ScreenColumn::left("URL", 0),
    ];
    let empty = match view.filter(TopTab::Requests) {
        "" => "no request yet",
        _ => "no request yet that the filter takes; / changes it",
    };
    let mut table = ScreenTable::new(columns, empty);
    for (place, request) in view.requests.iter().enumerate() {
        table.push(row(request, place, view.size.0 < WIDE));
    }
    table.sorted(0, view.choice(TopTab::Requests), view.size.0)
}

fn row(of: &TopRequest, place: usize, is_narrow: bool) -> ScreenRow {
    let unknown = || UNKNOWN.to_owned();
    let TopRequest { at, clock, status, result, why, time, bytes, weight, url } = of;
    let is_failure = status.is_some_and(|status| status >= 500);
    let status = ScreenCell::number(
        status.map_or_else(unknown, |status| status.to_string()),
        status.unwrap_or_default() as f64,
    );
    let target = url.url.strip_prefix("http://").unwrap_or(&url.url);
    let target = match url.method.as_str() {
        "GET" => target.to_owned(),
        method => format!("{method} {target}"),
    };
    let cells = [
        // Of the same moment, the one that came later is above.
        ScreenCell::number(clock.clone(), at - place as f64 * 1e-9),
        ScreenCell::number(if *weight > 1 { format!("x{weight}") } else { String::new() }, *weight as f64),
        if is_failure { status.looking(CellLook::Warning) } else { status },
        ScreenCell::text(result.clone()).looking(CellLook::Result),
        ScreenCell::number(span(*time), time.unwrap_or_default()),
        ScreenCell::number(
            bytes.map_or_else(unknown, |of| size(of as f64)),
            bytes.unwrap_or_default() as f64,
        ),
        // What was before says that it was missed.
        ScreenCell::text(why.strip_prefix("uri-miss, ").filter(|_| is_narrow).unwrap_or(why)),
        ScreenCell::text(target),
    ];
    ScreenRow::new(format!("{at} {}", url.url), cells).with_url(url.clone())
}
