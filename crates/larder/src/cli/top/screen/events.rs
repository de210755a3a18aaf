//! The tab *events*: what happened to larder itself, the newest first.

use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::table::signed_time;
use crate::cli::top::state::TopView;

pub(super) fn table(view: &TopView) -> ScreenTable {
    let columns = [
        ScreenColumn::right("UTC", 8),
        ScreenColumn::right("AGO", 7),
        ScreenColumn::left("KIND", 10),
        ScreenColumn::left("WHAT", 0),
    ];
    let mut table = ScreenTable::new(columns, "nothing has happened since the start");
    for (place, event) in view.events.iter().enumerate() {
        let cells = [
            ScreenCell::text(event.clock.clone()),
            ScreenCell::text(signed_time((view.now - event.at) as i64)),
            ScreenCell::text(event.kind.clone()).looking(CellLook::Bold),
            ScreenCell::text(event.text.clone()),
        ];
        // Two may be of the same moment.
        table.push(ScreenRow::new(
            format!("{} {} {}", event.at, view.events.len() - place, event.kind),
            cells,
        ));
    }
    table.marked(0)
}
