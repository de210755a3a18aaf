//! The tab *URLs*: the most frequent URLs of the last ten minutes, in the list that is chosen.
//!
//! In: what `/api/v1/top` says. Out: a row for each, with its URL for *explain* and *purge* where it is one. `s` goes from list to list: by
//! requests, by bytes, by reasons of misses, by what became of them, errors.

use serde_json::Value;

use super::numbers::{rate, size};
use super::table::{ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::table::signed_time;
use crate::cli::top::request::TopUrl;
use crate::cli::top::state::TopView;
use crate::cli::top::stats::each;
use crate::cli::top::tab::TopTab;

pub(super) fn table(view: &TopView) -> ScreenTable {
    let list = view.url_list();
    let (unit, word, title) = match list {
        "bytes" => ("BYTES/s", None, "URL, BY BYTES THAT WERE SENT"),
        "misses" => ("/s", Some("REASON"), "URL, BY REASONS OF REQUESTS THAT WERE NO HIT"),
        "before" => ("/s", Some("BEFORE"), "URL, BY WHAT IT WAS BEFORE IT WAS MISSED"),
        "errors" => ("/s", Some("ERROR"), "SERVER, BY ERRORS"),
        _ => ("/s", None, "URL, BY REQUESTS"),
    };
    let mut columns =
        vec![ScreenColumn::right(unit, 9), ScreenColumn::right("+-", 8), ScreenColumn::right("LAST", 7)];
    columns.extend(word.map(|word| ScreenColumn::left(word, 15)));
    columns.push(ScreenColumn::left(title, 0));
    let missing;
    let empty = if view.absent.contains("/api/v1/top") {
        "this larder has no /api/v1/top: it is older than this command; requests are in tab 6"
    } else if view.urls.is_null() {
        "asking ..."
    } else {
        missing = match view.filter(TopTab::Urls) {
            "" => "nothing in the last ten minutes".to_owned(),
            filter => format!("nothing in the last ten minutes that has {filter}"),
        };
        &missing
    };
    let mut table = ScreenTable::new(columns, empty);
    for of in each(&view.urls, "rows") {
        table.push(row(view, of, list, word.is_some()));
    }
    table.marked(0)
}

fn row(view: &TopView, of: &Value, list: &str, has_word: bool) -> ScreenRow {
    let key: Vec<&str> = each(of, "key").map(|part| part.as_str().unwrap_or("-")).collect();
    let number = |name: &str| of.get(name).and_then(Value::as_f64).unwrap_or_default();
    let many = |of: f64| if list == "bytes" { size(of) } else { rate(of) };
    let error = if number("error") > 0.0 { many(number("error")) } else { String::new() };
    let mut cells = vec![
        ScreenCell::number(many(number("rate")), number("rate")),
        ScreenCell::text(error),
        ScreenCell::text(signed_time((view.now - number("last")) as i64)),
    ];
    let name = *key.last().unwrap_or(&"-");
    if has_word {
        cells.push(ScreenCell::text(*key.first().unwrap_or(&"-")));
    }
    cells.push(ScreenCell::text(name));
    let row = ScreenRow::new(key.join(" "), cells);
    if list == "errors" { row } else { row.with_url(TopUrl::told("GET", name)) }
}
