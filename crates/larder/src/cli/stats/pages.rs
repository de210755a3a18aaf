//! The table of pages that are put together from fragments.
//!
//! In: what `/stats` says of them. Out: the table, without a row where no page was put together: most larders have none.

use serde_json::Value;

use super::figures::{NOTHING, number, refused, sum, tenths, wait};
use crate::cli::table::{Lean, Table, count};

/// How pages came about, what they asked for, and what they lacked.
pub(super) fn pages(stats: &Value) -> Table {
    let pages = &stats["pages"];
    let mut table =
        Table::new(&[("PAGES", Lean::Left), ("", Lean::Right), ("", Lean::Right), ("", Lean::Left)]);
    if sum(&pages["by_how"]) == 0 {
        return table;
    }
    let share = |of: &Value, all: u64| match of.as_u64() {
        Some(of) if all > 0 => tenths(of as f64 / all as f64),
        _ => NOTHING.to_owned(),
    };
    let assembled = sum(&pages["by_how"]);
    let of_pages = |how: &str| (number(&pages["by_how"][how]), share(&pages["by_how"][how], assembled));
    let ((kept, kept_share), (whole, whole_share), (open, open_share)) =
        (of_pages("kept"), of_pages("whole"), of_pages("open"));
    let fragments = sum(&pages["fragments"]);
    let hits = share(&pages["fragments"]["hit"], fragments);
    let failed = sum(&pages["failures"]);
    let why = if failed > 0 { refused(&pages["failures"]) } else { String::new() };
    let (waited, p99) = (number(&pages["wait"]["count"]), wait(&pages["wait"]["p99"]));
    let rows = [
        ("kept", kept, kept_share, "put together before, and used again".to_owned()),
        ("whole", whole, whole_share, "all parts were in memory".to_owned()),
        ("open", open, open_share, "sent while parts were on their way".to_owned()),
        ("fragments", count(fragments), hits, "of them hits".to_owned()),
        ("  failed", count(failed), String::new(), why),
        ("waited", waited, p99, "99 of 100 waited no longer for a fragment".to_owned()),
    ];
    for (name, figure, share, meaning) in rows {
        table.row([name.to_owned(), figure, share, meaning]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_with_their_fragments_and_what_failed() {
        let stats = serde_json::json!({"pages": {
            "by_how": {"kept": 6, "whole": 3, "open": 1},
            "fragments": {"hit": 1500, "uri-miss": 500},
            "failures": {"status": 2, "timeout": 3},
            "wait": {"count": 1, "p99": 0.002},
        }});
        let text = pages(&stats).text(0);
        for part in [
            "kept           6  60.0 %  put together before",
            "open           1  10.0 %  sent while",
            "fragments  2 000  75.0 %  of them hits",
            "  failed       5          3 timeout, 2 status",
            "waited         1  2.0 ms  99 of 100",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }

    #[test]
    fn a_larder_without_pages_has_no_such_table() {
        let none = serde_json::json!({"pages": {"by_how": {"kept": 0}, "failures": {}}});
        assert!(pages(&none).is_empty() && pages(&Value::Null).is_empty());
    }
}
