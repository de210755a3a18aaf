//! The screen: draws the state of the view, and does nothing else.
//!
//! In: the view, and how the terminal shows things. Out: a frame: three lines of head, the tab, a last line with the keys or a sentence, and what lies over
//! it. A window that is too small is told so. Whatever a peer may have chosen goes through [`look::shown`].

mod events;
mod head;
mod look;
mod numbers;
mod origins;
mod overview;
mod pane;
mod requests;
mod rules;
mod stores;
mod table;
#[cfg(test)]
mod tests;
mod urls;
mod why;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::state::TopView;
use super::tab::TopTab;
pub(super) use look::ScreenLook;
use look::write;
pub(super) use table::ScreenTable;

/// The smallest window that has room for it.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 16;
const HEAD_LINES: u16 = 3;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &TopView, look: ScreenLook) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        too_small(frame, area);
        return;
    }
    head::draw(frame, area, view, look);
    let body = Rect { y: HEAD_LINES, height: area.height - HEAD_LINES - 1, ..area };
    match view.tab {
        TopTab::Overview => overview::draw(frame, body, view, look),
        TopTab::Why => why::draw(frame, body, view, look),
        tab => {
            if let Some(table) = table(view, tab) {
                table.draw(frame.buffer_mut(), body, view.choice(tab), look);
            }
        }
    }
    pane::last_line(frame, area, view, look);
    pane::draw(frame, body, view, look);
}

/// The list of a tab, where it is one.
pub(super) fn table(view: &TopView, tab: TopTab) -> Option<ScreenTable> {
    let table = match tab {
        TopTab::Overview => return None,
        TopTab::Why => why::table(view),
        TopTab::Rules => rules::table(view),
        TopTab::Stores => stores::table(view),
        TopTab::Origins => origins::table(view),
        TopTab::Requests => requests::table(view),
        TopTab::Urls => urls::table(view),
        TopTab::Events => events::table(view),
    };
    Some(table)
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let lines = [
        "too small".to_owned(),
        format!("this window is {} x {}", area.width, area.height),
        format!("larder top needs {WIDTH_MIN} x {HEIGHT_MIN}"),
        "q quits".to_owned(),
    ];
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        write(frame.buffer_mut(), area.left(), y, area.width, line, ratatui::style::Style::new());
    }
}
