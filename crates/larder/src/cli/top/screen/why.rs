//! The tab *why*: why requests were no hits, and why responses were not stored, with the rule where it happened.
//!
//! In: figures by rule. Out: a row for each word and rule, the most frequent first, and what the chosen word means. `uri-miss` is divided by
//! what its URL was before; the other reasons stand as they are, so that the rows of one kind add up.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::look::{ScreenLook, shown, write};
use super::numbers::{rate, share};
use super::pane::wrapped;
use super::table::{CellLook, ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use crate::cli::top::figures::{FigureValues, scoped, worded};
use crate::cli::top::state::TopView;
use crate::cli::top::tab::TopTab;

/// A word, where it was, and how often.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WhyRow {
    /// The list of words that it is from.
    pub(super) kind: &'static str,
    pub(super) word: String,
    /// The site, where there are several.
    site: Option<String>,
    rule: String,
    pub(super) rate: f64,
}

impl WhyRow {
    /// Site and rule.
    fn place(&self) -> String {
        match &self.site {
            Some(site) => format!("{site} {}", self.rule),
            None => self.rule.clone(),
        }
    }

    /// The same, with first what tells more, for a place with little room.
    pub(super) fn place_from_rule(&self) -> String {
        match &self.site {
            Some(site) if self.rule.starts_with('(') => format!("{site} {}", self.rule),
            Some(site) => format!("{} {site}", self.rule),
            None => self.rule.clone(),
        }
    }
}

/// Why there was no hit, by rule.
pub(super) fn reasons(of: &FigureValues) -> Vec<WhyRow> {
    rows(of, &["reason", "before"])
}

fn rows(of: &FigureValues, kinds: &[&'static str]) -> Vec<WhyRow> {
    let all = scoped(of, "rule", 2);
    let sites: std::collections::BTreeSet<&String> = all.keys().filter_map(|names| names.first()).collect();
    let mut rows = Vec::new();
    for (names, measures) in &all {
        let [site, rule] = names.as_slice() else { continue };
        let site = (sites.len() > 1).then(|| site.clone());
        for kind in kinds {
            let words = worded(measures.iter().map(|(name, value)| (*name, *value)), kind);
            let has_before = measures.keys().any(|name| name.starts_with("before."));
            // It is divided by what was before.
            let words = words.filter(|(word, _)| *word != "uri-miss" || !has_before);
            rows.extend(words.map(|(word, rate)| WhyRow {
                kind,
                word: word.to_owned(),
                site: site.clone(),
                rule: rule.clone(),
                rate,
            }));
        }
    }
    rows
}

/// The words of a row as they are read.
fn told(row: &WhyRow) -> String {
    if row.kind == "before" { format!("uri-miss, {}", row.word) } else { row.word.clone() }
}

pub(super) fn table(view: &TopView) -> ScreenTable {
    let mut columns = vec![
        ScreenColumn::left("WHY", 26),
        ScreenColumn::right("/s", 7),
        ScreenColumn::right("% OF ALL", 8),
        ScreenColumn::left("WHAT", 10),
        ScreenColumn::left("WHERE", 0),
    ];
    if view.is_beside {
        columns.insert(2, ScreenColumn::right("1 h AGO", 7));
    }
    let empty = "every request was a hit in the last seconds";
    let mut table = ScreenTable::new(columns, empty);
    let requests = view.recent.value("requests");
    let before = view.hour_ago().map(|before| rows(before, &["reason", "before", "not_stored"]));
    for row in rows(view.recent.values(), &["reason", "before", "not_stored"]) {
        let what = if row.kind == "not_stored" { "not stored" } else { "no hit" };
        let part = requests.max(f64::MIN_POSITIVE);
        let mut cells = vec![
            ScreenCell::text(told(&row)).looking(CellLook::Bold),
            ScreenCell::number(rate(row.rate), row.rate),
            ScreenCell::number(share(row.rate, requests), row.rate / part),
            ScreenCell::text(what).looking(CellLook::Faint),
            ScreenCell::text(row.place()),
        ];
        if view.is_beside {
            let same = |other: &&WhyRow| {
                (other.kind, &other.word, &other.rule) == (row.kind, &row.word, &row.rule)
                    && other.site == row.site
            };
            let then = before.as_ref().map(|all| all.iter().find(same).map_or(0.0, |row| row.rate));
            cells.insert(2, ScreenCell::rate(then));
        }
        table.push(ScreenRow::new(format!("{} {} {}", row.kind, row.word, row.place()), cells));
    }
    table.sorted(1, view.choice(TopTab::Why), view.size.0)
}

/// So many lines tell what a word means.
const MEANING_LINES: u16 = 3;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let table = table(view);
    let choice = view.choice(TopTab::Why);
    let key = table.chosen_key(choice).unwrap_or_default().to_owned();
    let mut words = key.split(' ');
    let meaning = match (words.next(), words.next()) {
        (Some(kind), Some(word)) => view.sentence(kind, word).map(|sentence| format!("{word}: {sentence}")),
        _ => None,
    };
    let lines = if meaning.is_some() { MEANING_LINES } else { 0 };
    let upper = Rect { height: area.height - lines, ..area };
    table.draw(frame.buffer_mut(), upper, choice, look);
    let Some(meaning) = meaning else { return };
    let columns = area.width.saturating_sub(2);
    for (line, y) in wrapped(&shown(&meaning), usize::from(columns)).iter().zip(upper.bottom()..area.bottom())
    {
        write(frame.buffer_mut(), area.x + 1, y, columns, line, look.plain());
    }
}
