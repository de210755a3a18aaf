//! A list with columns: sorted, one row chosen, as many rows as there is room for.
//!
//! In: columns and rows, and the choice. Out: lines of a buffer. Numbers lean to the right under their heads; the last column takes what is left.
//! Rows may have rows below them that stay with them. A column may ask for a wider window, and is left out in a narrower one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::look::{ScreenLook, shown, width, write};
use super::numbers::{UNKNOWN, rate};
use super::pane::wrapped;
use crate::cli::top::choice::RowChoice;
use crate::cli::top::request::TopUrl;

/// A column.
#[derive(Clone, Debug)]
pub(super) struct ScreenColumn {
    pub(super) name: String,
    /// 0 takes what is left.
    width: u16,
    is_right: bool,
    /// The least width of the window that has it.
    from: u16,
}

/// How a cell looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum CellLook {
    #[default]
    Plain,
    Faint,
    Bold,
    Warning,
    /// The word of a result.
    Result,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ScreenCell {
    text: String,
    /// What it is sorted by, where that is a number.
    by: f64,
    look: CellLook,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenRow {
    pub(super) key: String,
    pub(super) url: Option<TopUrl>,
    cells: Vec<ScreenCell>,
    below: Vec<ScreenRow>,
}

/// A list.
#[derive(Clone, Debug, Default)]
pub(in crate::cli::top) struct ScreenTable {
    columns: Vec<ScreenColumn>,
    rows: Vec<ScreenRow>,
    /// The column by which it is sorted.
    sorted_by: Option<usize>,
    /// What stands there while there are no rows.
    empty: String,
}

impl ScreenColumn {
    pub(super) fn left(name: &str, width: u16) -> Self {
        Self { name: name.to_owned(), width, is_right: false, from: 0 }
    }

    pub(super) fn right(name: &str, width: u16) -> Self {
        Self { is_right: true, ..Self::left(name, width) }
    }

    /// Only in a window of at least this width.
    pub(super) fn from(self, from: u16) -> Self {
        Self { from, ..self }
    }
}

impl ScreenCell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn number(text: String, by: f64) -> Self {
        Self { text, by, look: CellLook::Plain }
    }

    /// So many per second, where that is known.
    pub(super) fn rate(of: Option<f64>) -> Self {
        Self::number(of.map_or_else(|| UNKNOWN.to_owned(), rate), of.unwrap_or(-1.0))
    }

    pub(super) fn looking(self, look: CellLook) -> Self {
        Self { look, ..self }
    }
}

impl ScreenRow {
    pub(super) fn new(key: impl Into<String>, cells: impl Into<Vec<ScreenCell>>) -> Self {
        Self { key: key.into(), url: None, cells: cells.into(), below: Vec::new() }
    }

    pub(super) fn with_url(self, url: TopUrl) -> Self {
        Self { url: Some(url), ..self }
    }

    pub(super) fn with_below(self, below: Vec<Self>) -> Self {
        Self { below, ..self }
    }
}

impl ScreenTable {
    pub(super) fn new(columns: impl Into<Vec<ScreenColumn>>, empty: &str) -> Self {
        Self { columns: columns.into(), empty: empty.to_owned(), ..Self::default() }
    }

    pub(super) fn push(&mut self, row: ScreenRow) {
        self.rows.push(row);
    }

    /// Sorts the rows by the column so many behind `first`: numbers fall, texts rise. Columns that are left out are passed over.
    pub(super) fn sorted(mut self, first: usize, choice: &RowChoice, window: u16) -> Self {
        let shown: Vec<usize> = (0..self.columns.len()).filter(|&at| self.is_shown(at, window)).collect();
        let begin = shown.iter().position(|&at| at == first).unwrap_or_default();
        let Some(&by) = shown.get((begin + choice.sort) % shown.len().max(1)) else { return self };
        let is_right = self.columns.get(by).is_some_and(|column| column.is_right);
        self.rows.sort_by(|one, other| match (one.cells.get(by), other.cells.get(by)) {
            (Some(one), Some(other)) if is_right => other.by.total_cmp(&one.by),
            (Some(one), Some(other)) => one.text.cmp(&other.text),
            _ => std::cmp::Ordering::Equal,
        });
        self.sorted_by = Some(by);
        self
    }

    /// Marks a column whose order the rows have already.
    pub(super) fn marked(self, column: usize) -> Self {
        Self { sorted_by: Some(column), ..self }
    }

    fn is_shown(&self, column: usize, window: u16) -> bool {
        self.columns.get(column).is_some_and(|column| column.from <= window)
    }

    fn flat(&self) -> Vec<&ScreenRow> {
        self.rows.iter().flat_map(|row| std::iter::once(row).chain(&row.below)).collect()
    }

    /// The keys of all rows.
    pub(in crate::cli::top) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.flat().into_iter().map(|row| row.key.as_str())
    }

    pub(in crate::cli::top) fn into_keys(self) -> Vec<String> {
        self.keys().map(str::to_owned).collect()
    }

    /// The URL of a row.
    pub(in crate::cli::top) fn url(&self, place: usize) -> Option<TopUrl> {
        self.flat().get(place)?.url.clone()
    }

    /// The key of the chosen row.
    pub(super) fn chosen_key(&self, choice: &RowChoice) -> Option<&str> {
        let place = choice.place(self.keys());
        self.flat().get(place).map(|row| row.key.as_str())
    }

    /// Draws it with its chosen row.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, choice: &RowChoice, look: ScreenLook) {
        self.draw_rows(buffer, area, Some(choice.place(self.keys())), look);
    }

    /// Draws its first rows, none of them chosen.
    pub(super) fn draw_unchosen(&self, buffer: &mut Buffer, area: Rect, look: ScreenLook) {
        self.draw_rows(buffer, area, None, look);
    }

    fn draw_rows(&self, buffer: &mut Buffer, area: Rect, chosen: Option<usize>, look: ScreenLook) {
        let places = self.places(area);
        for (column, at, columns) in &places {
            let Some(of) = self.columns.get(*column) else { continue };
            let is_sorted = self.sorted_by == Some(*column) && !self.rows.is_empty();
            let style = if is_sorted { look.bold() } else { look.faint() };
            lean(buffer, *at, area.y, *columns, &of.name, of.is_right, style);
        }
        let rows = self.flat();
        if rows.is_empty() {
            let columns = area.width.saturating_sub(2);
            let lines = wrapped(&shown(&self.empty), usize::from(columns));
            for (line, y) in lines.iter().zip(area.y + 2..area.bottom()) {
                write(buffer, area.x + 1, y, columns, line, look.faint());
            }
        }
        let page = usize::from(area.height.saturating_sub(1));
        let above = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(page));
        for ((place, row), y) in rows.iter().enumerate().skip(above).take(page).zip(area.y + 1..area.bottom())
        {
            for (column, at, columns) in &places {
                let (Some(of), Some(cell)) = (self.columns.get(*column), row.cells.get(*column)) else {
                    continue;
                };
                let style = cell.style(look);
                lean(buffer, *at, y, *columns, &shown(&cell.text), of.is_right, style);
            }
            if Some(place) == chosen {
                buffer.set_style(Rect { y, height: 1, ..area }, look.chosen());
            }
        }
    }

    /// Column, where it begins, and how wide it is.
    fn places(&self, area: Rect) -> Vec<(usize, u16, u16)> {
        let shown: Vec<(usize, &ScreenColumn)> =
            self.columns.iter().enumerate().filter(|(at, _)| self.is_shown(*at, area.width)).collect();
        let fixed: u16 = shown.iter().map(|(_, column)| column.width + 1).sum();
        let left = area.width.saturating_sub(fixed + 1);
        let mut at = area.x + 1;
        let mut places = Vec::new();
        for (column, of) in shown {
            let columns = if of.width == 0 { left } else { of.width };
            let columns = columns.min(area.right().saturating_sub(at));
            places.push((column, at, columns));
            at += columns + 1;
        }
        places
    }
}

impl ScreenCell {
    fn style(&self, look: ScreenLook) -> Style {
        match self.look {
            CellLook::Plain => look.plain(),
            CellLook::Faint => look.faint(),
            CellLook::Bold => look.bold(),
            CellLook::Warning => look.warning(),
            CellLook::Result => look.result(&self.text),
        }
    }
}

/// Writes a text to one side of its columns.
fn lean(buffer: &mut Buffer, x: u16, y: u16, columns: u16, text: &str, is_right: bool, style: Style) {
    let room = if is_right { usize::from(columns).saturating_sub(width(text)) } else { 0 };
    let room = u16::try_from(room).unwrap_or_default();
    write(buffer, x + room, y, columns - room, text, style);
}
