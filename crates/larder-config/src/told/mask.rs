//! A text without its secrets.
//!
//! In: a text, the document that was made of it, and the places that were read as secrets. Out: the same lines with `***` in place of
//! each secret. Hidden are values at those places, and the same bytes wherever else they stand, as in a comment. In comments, what looks
//! like a setting with a secret is hidden as well: a setting that was commented out often still has one.
//! Deliberately absent: finding a secret of another kind in the words of a comment. A password of less than 8 bytes is hidden
//! at its place alone, because its bytes may be part of any word.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{NoExpand, Regex};

use super::forms::Forms;
use super::hidden::{Hidden, MASK};
use super::sound::sounds_secret;
use crate::document::{Node, Position, Table, Value};

/// `text` without what is hidden of it, and the secrets in it.
pub(super) fn masked(text: &str, document: &Table, hidden: Vec<Hidden>) -> (String, Forms) {
    let mut literals = Vec::new();
    add_literals(document, &mut literals);
    literals.sort_unstable_by_key(|range| range.start);
    let forms = Forms::of(&hidden, text, document);
    let mut edits = Vec::new();
    for Hidden { range, shown, .. } in hidden {
        // A value over several lines leaves as many behind.
        let lines = text.get(range.clone()).unwrap_or_default().matches('\n').count();
        edits.push((range, format!("\"{}\"{}", plain(&shown), "\n".repeat(lines))));
    }
    for comment in comments(text, &literals) {
        if let Some(shown) = text.get(comment.clone()).and_then(comment_without_secrets) {
            edits.push((comment, shown));
        }
    }
    (forms.cut_out(&composed(text, edits)), forms)
}

/// What may stand between quotes as it is.
fn plain(shown: &str) -> &str {
    let is_plain = |character: char| !character.is_control() && !matches!(character, '"' | '\\');
    if shown.chars().all(is_plain) { shown } else { MASK }
}

fn composed(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut reached) = (String::with_capacity(text.len()), 0);
    for (range, shown) in edits {
        if range.start < reached {
            continue;
        }
        out.push_str(text.get(reached..range.start).unwrap_or_default());
        out.push_str(&shown);
        reached = range.end;
    }
    out.push_str(text.get(reached..).unwrap_or_default());
    out
}

/// Where names and strings stand, in which `#` begins no comment.
fn add_literals(table: &Table, out: &mut Vec<Range<usize>>) {
    for entry in &table.entries {
        if let Position::Text(range) = &entry.place {
            out.push(range.clone());
        }
        add_literals_of(&entry.node, out);
    }
}

fn add_literals_of(node: &Node, out: &mut Vec<Range<usize>>) {
    match (&node.value, &node.place) {
        (Value::Table(table), _) => add_literals(table, out),
        (Value::List(items), _) => items.iter().for_each(|item| add_literals_of(item, out)),
        (Value::Text(_), Position::Text(range)) => out.push(range.clone()),
        _ => {}
    }
}

/// The comments of a text, each without its line feed.
fn comments(text: &str, literals: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut comments = Vec::new();
    let mut literals = literals.iter().peekable();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('#')) {
        let sign = at + found;
        while literals.next_if(|literal| literal.end <= sign).is_some() {}
        if let Some(literal) = literals.next_if(|literal| literal.contains(&sign)) {
            at = literal.end.max(sign + 1);
            continue;
        }
        let end = text.get(sign..).and_then(|rest| rest.find('\n')).map_or(text.len(), |found| sign + found);
        comments.push(sign..end);
        at = end;
    }
    comments
}

/// The login of a URL.
static LOGIN: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(|| Regex::new(r#"://[^\s"']*@"#));

/// A comment without what looks like a secret; `None` where nothing does.
fn comment_without_secrets(comment: &str) -> Option<String> {
    let setting = comment.match_indices(['=', ':']).find(|(at, _)| {
        let before = comment.get(..*at).unwrap_or_default().trim_end_matches(['"', '\'', ' ', '\t']);
        let is_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        let name = before.rsplit(|character| !is_name(character)).next().unwrap_or_default();
        sounds_secret(name) || (name == "header" && comment.get(*at..).is_some_and(|rest| rest.contains(':')))
    });
    let shown = setting.and_then(|(at, sign)| comment.get(..at + sign.len()));
    let shown = shown.map(|shown| format!("{shown} {MASK}"));
    let text = shown.as_deref().unwrap_or(comment);
    let rest = LOGIN.as_ref().ok()?.replace_all(text, NoExpand("://***@"));
    (rest != comment).then(|| rest.into_owned())
}
