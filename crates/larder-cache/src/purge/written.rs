//! Predicates as bytes, for journals.
//!
//! In: a [`Predicate`]. Out: what a journal's note says of it, and the predicate again. Number and moment are the note's own.
//! Equal predicates give equal bytes. A note has at most [`NOTE_BYTES_MAX`] bytes. A predicate that needs more is written as
//! the first of these that fits: the same at every host, everything in its scope, everything. So a note never names less
//! than its predicate.
//! Bytes come from a disk and may be anything: reading checks each length, and takes nothing that this version did not
//! write. What cannot be read is for the caller to take for everything.

use std::sync::Arc;

use larder_http::message::Scheme;

use super::pattern::{Expression, Pattern, PatternText};
use super::{Mode, Predicate, Scope, What};
use crate::codec::{Reading, push};

/// The longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;

/// The first byte of such notes. Other kinds of notes have others.
const PURGE: u8 = b'p';
/// Changes with every change of what is written.
const VERSION: u8 = 1;

const HARD: u8 = b'h';
const SOFT: u8 = b's';

const URL: u8 = 1;
const TARGET: u8 = 2;
const TAG: u8 = 3;
const GROUP: u8 = 4;
const PREFIX: u8 = 5;
const HOST: u8 = 6;
const ALL: u8 = 7;
const PATTERN: u8 = 8;

/// What stands before an expression of a pattern.
const ABSENT: u8 = 0;
const ANYWHERE: u8 = 1;
const AT_START: u8 = 2;

/// Writes a predicate, or one that names more where it is too long.
pub fn to_note(predicate: &Predicate) -> Vec<u8> {
    let Predicate { what, scope, mode } = predicate;
    let any = &Scope::any();
    let wider = [(what, &**scope), (what, any), (&What::All, scope)];
    let notes = wider.into_iter().map(|(what, scope)| write(what, scope, *mode));
    let fitting = notes.into_iter().find(|note| note.len() <= NOTE_BYTES_MAX);
    fitting.unwrap_or_else(|| write(&What::All, any, *mode))
}

fn write(what: &What, scope: &Scope, mode: Mode) -> Vec<u8> {
    let mode = match mode {
        Mode::Hard => HARD,
        Mode::Soft => SOFT,
    };
    let mut out = vec![PURGE, VERSION, mode];
    push(&mut out, scope.to_text().as_bytes());
    let mut block = |kind: u8, parts: &[&[u8]]| {
        out.push(kind);
        parts.iter().for_each(|part| push(&mut out, part));
    };
    match what {
        What::Url { authority, target } => block(URL, &[authority.as_bytes(), target.as_bytes()]),
        What::Target(target) => block(TARGET, &[target.as_bytes()]),
        What::Tag(tag) => block(TAG, &[tag]),
        What::Group { scheme, authority, name } => {
            block(GROUP, &[scheme.as_str().as_bytes(), authority.as_bytes(), name.as_bytes()]);
        }
        What::Prefix(path) => block(PREFIX, &[path.as_bytes()]),
        What::Host(host) => block(HOST, &[host.as_bytes()]),
        What::All => block(ALL, &[]),
        What::Pattern(pattern) => {
            block(PATTERN, &[]);
            write_pattern(pattern.text(), &mut out);
        }
    }
    out
}

fn write_pattern(text: &PatternText, out: &mut Vec<u8>) {
    for expression in [&text.host, &text.target, &text.content_type, &text.tags] {
        match expression {
            None => out.push(ABSENT),
            Some(Expression { text, at_start }) => {
                out.push(if *at_start { AT_START } else { ANYWHERE });
                push(out, text.as_bytes());
            }
        }
    }
}

/// Reads a predicate again; `None` where this version has not written it.
pub fn from_note(note: &[u8]) -> Option<Predicate> {
    if note.len() > NOTE_BYTES_MAX {
        return None;
    }
    let mut from = Reading::new(note);
    let [PURGE, VERSION, mode] = *from.array().ok()? else { return None };
    let mode = match mode {
        HARD => Mode::Hard,
        SOFT => Mode::Soft,
        _ => return None,
    };
    let scope = Arc::new(Scope::from_text(&text(&mut from)?)?);
    let [kind] = *from.array().ok()?;
    let what = match kind {
        URL => What::Url { authority: text(&mut from)?, target: text(&mut from)? },
        TARGET => What::Target(text(&mut from)?),
        TAG => What::Tag(from.block().ok()?.into()),
        GROUP => What::Group {
            scheme: scheme(&text(&mut from)?)?,
            authority: text(&mut from)?,
            name: text(&mut from)?,
        },
        PREFIX => What::Prefix(text(&mut from)?),
        HOST => What::Host(text(&mut from)?),
        ALL => What::All,
        PATTERN => What::Pattern(Arc::new(Pattern::compile(&pattern(&mut from)?).ok()?)),
        _ => return None,
    };
    from.is_empty().then_some(Predicate { what, scope, mode })
}

fn text(from: &mut Reading<'_>) -> Option<Box<str>> {
    std::str::from_utf8(from.block().ok()?).ok().map(Box::from)
}

fn scheme(word: &str) -> Option<Scheme> {
    [Scheme::Http, Scheme::Https].into_iter().find(|scheme| scheme.as_str() == word)
}

fn pattern(from: &mut Reading<'_>) -> Option<PatternText> {
    let mut expression = || match from.array().ok()? {
        [ABSENT] => Some(None),
        &[place @ (ANYWHERE | AT_START)] => {
            Some(Some(Expression { text: text(from)?, at_start: place == AT_START }))
        }
        _ => None,
    };
    Some(PatternText {
        host: expression()?,
        target: expression()?,
        content_type: expression()?,
        tags: expression()?,
    })
}

#[cfg(test)]
mod tests;
