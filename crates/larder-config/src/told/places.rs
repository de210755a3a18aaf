//! On which lines sites and rules stand.
//!
//! In: a document and the config that was made of it. Out: first and last line of each site and rule, with their names.
//! A site that a flag has made has no lines, and is left out.

use crate::document::source::Source;
use crate::document::{Node, Position, Table, Value};
use crate::reading::tables;
use crate::sections::config::Config;

/// The lines of a site. Both are part of it, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePlace {
    /// Its first host; `*` where it has none.
    pub site: String,
    /// Its first line.
    pub line: usize,
    /// The last line of its keys and rules.
    pub end: usize,
}

/// The lines of a rule. Both are part of it, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlace {
    /// The first host of its site; `*` where it has none.
    pub site: String,
    /// What it is called.
    pub rule: String,
    /// Its first line.
    pub line: usize,
    /// The last line of its keys.
    pub end: usize,
}

pub(super) fn of(source: &Source<'_>, document: &Table, config: &Config) -> (Vec<SitePlace>, Vec<RulePlace>) {
    let (mut sites, mut rules) = (Vec::new(), Vec::new());
    for (site, table) in config.sites.iter().zip(tables(document, "site")) {
        let name = site.label();
        if let Some((line, end)) = lines(source, table) {
            sites.push(SitePlace { site: name.to_owned(), line, end });
        }
        for (rule, table) in site.labels().into_iter().zip(tables(table, "rule")) {
            if let Some((line, end)) = lines(source, table) {
                rules.push(RulePlace { site: name.to_owned(), rule, line, end });
            }
        }
    }
    (sites, rules)
}

/// First and last line of a table with all that is in it.
fn lines(source: &Source<'_>, table: &Table) -> Option<(usize, usize)> {
    let Position::Text(range) = &table.place else { return None };
    let last = end_of(table).max(range.end).saturating_sub(1).max(range.start);
    Some((source.position(range.start).0, source.position(last).0))
}

/// The last byte of what is in a table, and one. The parser bounds how deep that can be.
fn end_of(table: &Table) -> usize {
    table.entries.iter().map(|entry| end(&entry.place).max(end_of_node(&entry.node))).max().unwrap_or(0)
}

fn end_of_node(node: &Node) -> usize {
    let inside = match &node.value {
        Value::Table(table) => end_of(table),
        Value::List(items) => items.iter().map(end_of_node).max().unwrap_or(0),
        _ => 0,
    };
    end(&node.place).max(inside)
}

fn end(place: &Position) -> usize {
    match place {
        Position::Text(range) => range.end,
        Position::Flag(_) => 0,
    }
}
