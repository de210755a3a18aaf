//! The alternatives of an expression, each written out.
//!
//! In: a regular expression. Out: for each of its alternatives the sequence of what it matches, where that is characters,
//! anchors, `.` and `.*` alone. An expression with anything else (classes, repetitions, flags) has no such form.
//! Alternatives in groups multiply, so their number and length are bounded. The library's own parser reads the
//! expression, so it means here what it means when compiled.

use regex_syntax::ast::{
    AssertionKind, Ast, ClassPerlKind, ClassSet, ClassSetItem, GroupKind, Literal, LiteralKind,
    RepetitionKind, parse,
};

/// What alternatives in groups may multiply to.
pub(super) const WORDS_MAX: usize = 1000;
/// Atoms of all alternatives together.
const ATOMS_MAX: usize = 64 * 1024;

/// A piece of an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    Char(char),
    /// `.`
    One,
    /// `.*`
    Any,
    Start,
    End,
    /// `(^|,)`: where a tag begins.
    EdgeBefore,
    /// `(,|$)`: where a tag ends.
    EdgeAfter,
}

type Word = Vec<Atom>;

/// Writes the alternatives out.
pub(super) fn words(text: &str) -> Option<Vec<Word>> {
    // Beyond ASCII `\s` is more than what separates tags.
    if !text.is_ascii() && text.contains(r"\s") {
        return None;
    }
    expand(&parse::Parser::new().parse(text).ok()?)
}

/// As deep as groups are nested, which the parser bounds.
fn expand(ast: &Ast) -> Option<Vec<Word>> {
    let word = |atoms: &[Atom]| Some(vec![atoms.to_vec()]);
    match ast {
        Ast::Empty(_) => word(&[]),
        Ast::Dot(_) => word(&[Atom::One]),
        Ast::Literal(literal) => word(&[Atom::Char(character(literal)?)]),
        Ast::Assertion(assertion) => word(&[anchor(&assertion.kind)?]),
        Ast::ClassBracketed(class) if !class.negated => match &class.kind {
            // `[.]`
            ClassSet::Item(ClassSetItem::Literal(literal)) => word(&[Atom::Char(character(literal)?)]),
            _ => None,
        },
        Ast::Repetition(repetition) => match (&*repetition.ast, &repetition.op.kind) {
            (Ast::Dot(_), RepetitionKind::ZeroOrMore) => word(&[Atom::Any]),
            (Ast::Dot(_), RepetitionKind::OneOrMore) => word(&[Atom::One, Atom::Any]),
            _ => None,
        },
        Ast::Group(group) => match &group.kind {
            GroupKind::NonCapturing(flags) if !flags.items.is_empty() => None,
            _ => expand(&group.ast),
        },
        Ast::Concat(concat) => concat.asts.iter().try_fold(vec![Word::new()], |words, ast| {
            let more = expand(ast)?;
            product(words, &more)
        }),
        Ast::Alternation(alternation) => match edge(&alternation.asts) {
            Some(edge) => word(&[edge]),
            None => alternation.asts.iter().try_fold(Vec::new(), |mut words, ast| {
                words.append(&mut expand(ast)?);
                bounded(words)
            }),
        },
        _ => None,
    }
}

/// Each of `words` with each of `more` behind it.
fn product(mut words: Vec<Word>, more: &[Word]) -> Option<Vec<Word>> {
    if let [one] = more {
        words.iter_mut().for_each(|word| word.extend_from_slice(one));
        return bounded(words);
    }
    if words.len().saturating_mul(more.len()) > WORDS_MAX {
        return None;
    }
    let all = words.iter().flat_map(|word| more.iter().map(move |more| [&word[..], more].concat()));
    bounded(all.collect())
}

fn bounded(words: Vec<Word>) -> Option<Vec<Word>> {
    let atoms: usize = words.iter().map(Vec::len).sum();
    (atoms <= ATOMS_MAX).then_some(words)
}

/// The character that a literal is. One that is written as a number may be a byte instead.
fn character(literal: &Literal) -> Option<char> {
    let is_plain =
        matches!(literal.kind, LiteralKind::Verbatim | LiteralKind::Meta | LiteralKind::Superfluous);
    (is_plain || literal.c.is_ascii()).then_some(literal.c)
}

fn anchor(kind: &AssertionKind) -> Option<Atom> {
    match kind {
        AssertionKind::StartLine | AssertionKind::StartText => Some(Atom::Start),
        AssertionKind::EndLine | AssertionKind::EndText => Some(Atom::End),
        _ => None,
    }
}

/// The edge of a tag: one end of the text, or what separates tags there.
fn edge(alternatives: &[Ast]) -> Option<Atom> {
    let anchor = |ast: &Ast| match ast {
        Ast::Assertion(assertion) => anchor(&assertion.kind),
        _ => None,
    };
    let is_separator = |ast: &Ast| match ast {
        Ast::Literal(literal) => matches!(literal.c, ',' | ' '),
        Ast::ClassPerl(class) => class.kind == ClassPerlKind::Space && !class.negated,
        _ => false,
    };
    let (anchors, separators): (Vec<_>, Vec<_>) = alternatives.iter().partition(|ast| anchor(ast).is_some());
    let [end] = anchors[..] else { return None };
    if separators.is_empty() || !separators.iter().all(|ast| is_separator(ast)) {
        return None;
    }
    anchor(end).map(|end| if end == Atom::Start { Atom::EdgeBefore } else { Atom::EdgeAfter })
}
