//! What lies over a tab, and the last line.
//!
//! In: the view. Out: help, a text that can be moved, a question, the line of a filter; the keys of the tab, or the sentence that is to be said.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget as _};

use super::look::{ScreenLook, fitted, shown, width, write};
use crate::cli::table::counted;
use crate::cli::top::state::{TopLink, TopPane, TopView};
use crate::cli::top::tab::TopTab;

const HELP: [&str; 15] = [
    "1 to 8, Tab     the tab; also left and right",
    "up, down        choose a row; also PgUp, PgDn, Home, End",
    "Enter           tab 6 and 7: explain the chosen URL; the origin is not asked",
    "d               tab 6 and 7: purge the chosen URL from all stores, after a question",
    "/               tab 6: a filter as for larder log; tab 7: a part of a URL, * for any text",
    "s               sort by the next column; tab 7: the next list",
    "space           stop the picture, and go on",
    "h               figures of an hour ago beside those of now",
    "w               the window of the pictures over time: 10 min, 3 h, 24 h",
    "Ctrl-L          draw everything anew",
    "Ctrl-Z          stop this command as a shell does it",
    "Esc             close what lies over the tab",
    "q, Ctrl-C       quit",
    "",
    "Rates are means over the last 10 seconds.",
];
/// So many lines of a URL are in a question.
const URL_LINES: usize = 4;

/// Lines of at most so many columns, cut wherever that is.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let line = lines.last_mut().filter(|line| width(line) + width(word.trim_end()) <= columns);
        match line {
            Some(line) => line.push_str(word),
            None => lines.push(word.to_owned()),
        }
    }
    let cut = |line: String| {
        let mut pieces = vec![String::new()];
        for character in line.trim_end().chars() {
            let piece = pieces.last().map_or(0, |piece| width(piece));
            if piece + width(character.encode_utf8(&mut [0; 4])) > columns {
                pieces.push(String::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(character);
            }
        }
        pieces
    };
    lines.into_iter().filter(|line| !line.is_empty()).flat_map(cut).collect()
}

/// The last line of the screen.
pub(super) fn last_line(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let (y, columns) = (area.bottom() - 1, area.width.saturating_sub(2));
    let buffer = frame.buffer_mut();
    let mut x = 1;
    if let TopPane::Line(line) = &view.pane {
        let room = usize::from(columns).saturating_sub(3);
        let line = shown(line);
        // The end of the line is where one types.
        let skipped = line
            .char_indices()
            .map(|(at, _)| at)
            .find(|&at| width(line.get(at..).unwrap_or_default()) < room);
        x = write(buffer, x, y, columns, "/", look.bold());
        x = write(buffer, x, y, columns, line.get(skipped.unwrap_or(0)..).unwrap_or_default(), look.plain());
        x = write(buffer, x, y, 1, " ", look.chosen()) + 1;
    }
    if let Some(said) = &view.said {
        write(buffer, x, y, area.width.saturating_sub(x + 1), &shown(said), look.warning());
        return;
    }
    if let TopPane::Line(_) = view.pane {
        write(buffer, x, y, area.width.saturating_sub(x + 1), "Enter takes it, Esc does not", look.faint());
        return;
    }
    let pane_keys = match view.pane {
        TopPane::Help => "Esc closes",
        TopPane::Text(..) => "Esc closes  up down PgUp PgDn move  d purge",
        TopPane::Question(..) => "y purges  Esc does not",
        TopPane::None | TopPane::Line(_) => "",
    };
    if !pane_keys.is_empty() {
        write(buffer, x, y, columns, pane_keys, look.faint());
        return;
    }
    if let TopLink::Lost(_, why) = &view.link {
        write(buffer, x, y, columns, &shown(&format!("{why}; trying again")), look.warning());
        return;
    }
    let filter = view.filter(view.tab);
    let mut keys =
        if filter.is_empty() { String::new() } else { format!("/{}  ", fitted(&shown(filter), 24)) };
    if view.tab == TopTab::Requests && view.skipped > 0 {
        keys.push_str(&format!("{} left out  ", crate::cli::table::count(view.skipped)));
    }
    keys.push_str(keys_of(view.tab));
    if !view.absent.is_empty() {
        keys.push_str(&format!("  {}", lacks(view)));
    }
    write(buffer, x, y, columns, &keys, look.faint());
}

/// What this larder does not have.
fn lacks(view: &TopView) -> String {
    let all: Vec<&str> = view.absent.iter().copied().collect();
    format!("older: no {}", all.join(", "))
}

const fn keys_of(tab: TopTab) -> &'static str {
    match tab {
        TopTab::Overview => "q quit  1-8 tab  space stop  h an hour ago  w window  ? help",
        TopTab::Requests | TopTab::Urls => {
            "q quit  / filter  s sort  space stop  Enter explain  d purge  ? help"
        }
        TopTab::Events => "q quit  1-8 tab  space stop  ? help",
        _ => "q quit  1-8 tab  s sort  space stop  h an hour ago  ? help",
    }
}

/// What lies over the tab.
pub(super) fn draw(frame: &mut Frame<'_>, body: Rect, view: &TopView, look: ScreenLook) {
    match &view.pane {
        TopPane::None | TopPane::Line(_) => {}
        TopPane::Help => {
            let mut lines: Vec<String> = HELP.iter().map(|&line| line.to_owned()).collect();
            if !view.absent.is_empty() {
                lines.push(format!("This larder is {}.", lacks(view)));
            }
            boxed(frame, body, "Keys", &lines, look);
        }
        TopPane::Text(url, text, above) => {
            let lines: Vec<String> =
                text.lines().skip(*above).take(usize::from(body.height)).map(shown).collect();
            boxed(frame, body, &url.url, &lines, look);
        }
        TopPane::Question(url, responses) => {
            let columns = usize::from(body.width).saturating_sub(4);
            let mut lines = wrapped(&shown(&url.url), columns);
            if lines.len() > URL_LINES {
                lines.truncate(URL_LINES - 1);
                lines.push("...".to_owned());
            }
            lines.push(String::new());
            match responses {
                None => lines.push("counting what would go ...".to_owned()),
                Some(number) => {
                    lines.push(format!(
                        "{} would go, from all stores.",
                        counted(*number, "response", "responses")
                    ));
                    lines.push("y purges; every other key does not".to_owned());
                }
            }
            let height = u16::try_from(lines.len() + 2).unwrap_or(body.height).min(body.height);
            let area = Rect { y: body.y + (body.height - height) / 2, height, ..body };
            boxed(frame, area, "Purge this URL?", &lines, look);
        }
    }
}

/// A box over the tab.
fn boxed(frame: &mut Frame<'_>, area: Rect, title: &str, lines: &[String], look: ScreenLook) {
    let buffer = frame.buffer_mut();
    Clear.render(area, buffer);
    let title = format!(" {} ", fitted(&shown(title), usize::from(area.width).saturating_sub(6)));
    Block::bordered().title(title).title_style(look.bold()).render(area, buffer);
    for (line, y) in lines.iter().zip(area.y + 1..area.bottom().saturating_sub(1)) {
        write(buffer, area.x + 2, y, area.width.saturating_sub(4), line, look.plain());
    }
}
