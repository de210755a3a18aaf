//! The pieces of a filter: parentheses, words, names with their operators, values.
//!
//! In: the text of a filter. Out: one piece after the other, with the place where it begins. Whether a comma ends a value
//! depends on the operator before it, so pieces are cut as the parser asks for them, and never ahead.
//! A name is what stands directly or with blanks before an operator; every other run of characters is a word of the URL.

use std::borrow::Cow;

use super::fault::{FilterError, FilterFault, Found};
use super::operator::is_of_operator;

/// A piece that stands where a term, or a word between terms, is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Nothing is left.
    End,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `and`
    And,
    /// `or`
    Or,
    /// `not`
    Not,
    /// Part of a URL.
    Word(Cow<'t, str>),
    /// A name, and behind it at least one character of an operator.
    Name(&'t str),
}

/// A value as it was written.
#[derive(Debug)]
pub(super) struct Written<'t> {
    /// Without quotes, escapes resolved.
    pub(super) text: Cow<'t, str>,
    /// Where it begins, its quote included.
    pub(super) at: usize,
    is_quoted: bool,
}

impl Written<'_> {
    /// Whether there is none: not even quotes, or a word that joins terms.
    pub(super) fn is_absent(&self) -> bool {
        !self.is_quoted && (self.text.is_empty() || joint(&self.text).is_some())
    }
}

/// A place in a filter. Copied, it is a place to come back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Where it is, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The fault with the column of a place in bytes.
    pub(super) fn error(&self, at: usize, fault: FilterFault) -> FilterError {
        let before = self.text.get(..at).unwrap_or(self.text);
        FilterError { column: before.chars().count() + 1, fault }
    }

    /// What stands at a place, up to a blank or the end of its quotes, for a message.
    pub(super) fn found(&self, at: usize) -> Found {
        let rest = self.text.get(at..).unwrap_or_default();
        let mut ahead = Self { at, ..*self };
        let quoted = if rest.starts_with('"') { ahead.quoted().ok() } else { None };
        let found = match quoted {
            Some(_) => self.text.get(at..ahead.at),
            None => rest.split(char::is_whitespace).next(),
        };
        found.filter(|found| !found.is_empty()).map_or(Found::END, Found::new)
    }

    /// The next piece, and where it begins.
    ///
    /// # Errors
    /// A quote that is not closed or begins within a word; a parenthesis within a word; a sign of another language.
    pub(super) fn piece(&mut self) -> Result<(usize, Piece<'t>), FilterError> {
        self.skip_blanks();
        let at = self.at;
        let piece = match self.rest().chars().next() {
            None => Piece::End,
            Some('(') => self.one(Piece::Open),
            Some(')') => self.one(Piece::Close),
            Some('"') => Piece::Word(self.quoted()?),
            Some(first) if is_of_operator(first) => return Err(self.sign(at)),
            Some(_) => self.name_or_word()?,
        };
        Ok((at, piece))
    }

    fn one(&mut self, piece: Piece<'t>) -> Piece<'t> {
        self.at += 1;
        piece
    }

    fn name_or_word(&mut self) -> Result<Piece<'t>, FilterError> {
        let at = self.at;
        let name = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && self.is_operator_next(name)
        {
            return Ok(Piece::Name(name));
        }
        self.at = at;
        let word = self.run(|c| !is_end(c));
        if let Some(joint) = joint(word) {
            return Ok(joint);
        }
        if word.starts_with("&&") || word.starts_with("||") {
            return Err(self.sign(at));
        }
        self.ends_well()?;
        Ok(Piece::Word(Cow::Borrowed(word)))
    }

    /// Behind blanks, `!` alone is no operator but a sign for `not`, and a word that joins terms is no name.
    fn is_operator_next(&self, name: &str) -> bool {
        let rest = self.rest();
        let behind = rest.trim_start();
        let operator = behind.trim_start_matches(is_of_operator);
        let operator = behind.strip_suffix(operator).unwrap_or_default();
        let is_adjacent = behind.len() == rest.len();
        !operator.is_empty() && (is_adjacent || (operator != "!" && joint(name).is_none()))
    }

    /// The run of characters of operators that comes next, and where it begins.
    pub(super) fn operator(&mut self) -> (usize, &'t str) {
        self.skip_blanks();
        (self.at, self.run(is_of_operator))
    }

    /// The value that comes next; `ends_at_comma` where a list may be meant. See [`Written::is_absent`].
    ///
    /// # Errors
    /// A quote that is not closed or begins within the value; a parenthesis within it.
    pub(super) fn value(&mut self, ends_at_comma: bool) -> Result<Written<'t>, FilterError> {
        self.skip_blanks();
        let at = self.at;
        if self.rest().starts_with('"') {
            return Ok(Written { text: self.quoted()?, at, is_quoted: true });
        }
        let text = self.run(|c| !(is_end(c) || (ends_at_comma && c == ',')));
        self.ends_well()?;
        Ok(Written { text: Cow::Borrowed(text), at, is_quoted: false })
    }

    /// Steps over a comma, where one comes next.
    pub(super) fn comma(&mut self) -> bool {
        let mut ahead = *self;
        ahead.skip_blanks();
        let is_comma = ahead.rest().starts_with(',');
        if is_comma {
            *self = Self { at: ahead.at + 1, ..ahead };
        }
        is_comma
    }

    /// Where a character of a value stands in the filter.
    pub(super) fn place(&self, value: &Written<'_>, character: usize) -> usize {
        let from = if value.is_quoted { value.at + 1 } else { value.at };
        let rest = self.text.get(from..).unwrap_or_default();
        let offset = match value.is_quoted {
            true => characters(rest).nth(character).map(|(offset, ..)| offset),
            false => rest.char_indices().nth(character).map(|(offset, _)| offset),
        };
        from + offset.unwrap_or(rest.len())
    }

    fn quoted(&mut self) -> Result<Cow<'t, str>, FilterError> {
        let open = self.at;
        self.at += 1;
        let rest = self.rest();
        let Some((end, ..)) =
            characters(rest).find(|(_, character, is_escaped)| *character == '"' && !is_escaped)
        else {
            return Err(self.error(open, FilterFault::OpenQuote));
        };
        let inside = rest.get(..end).unwrap_or_default();
        self.at += end + 1;
        Ok(match inside.contains('\\') {
            true => characters(inside).map(|(_, character, _)| character).collect(),
            false => Cow::Borrowed(inside),
        })
    }

    /// A word or a value without quotes ends at a blank, a comma, `)` or the end.
    fn ends_well(&self) -> Result<(), FilterError> {
        match self.rest().chars().next() {
            Some('(') => Err(self.error(self.at, FilterFault::Parenthesis)),
            Some('"') => Err(self.error(self.at, FilterFault::QuoteInside)),
            _ => Ok(()),
        }
    }

    /// Something that other languages have begins at `at`.
    fn sign(&self, at: usize) -> FilterError {
        let rest = self.text.get(at..).unwrap_or_default();
        let sign = |found, write| FilterFault::Sign { found: Found::new(found), write };
        let fault = if rest.starts_with("&&") {
            sign("&&", "and")
        } else if rest.starts_with("||") {
            sign("||", "or")
        } else if rest.starts_with('!') && !rest.starts_with("!=") && !rest.starts_with("!~") {
            sign("!", "not")
        } else {
            FilterFault::TermExpected(self.found(at))
        };
        self.error(at, fault)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        self.run(char::is_whitespace);
    }

    /// Steps over the characters that `belongs` takes.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }
}

/// The characters within quotes: where each begins, itself, and whether a backslash makes it a plain one. Only a quote and
/// a backslash are escaped; before others a backslash is itself, so that regular expressions stay readable.
fn characters(inside: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut rest = inside.char_indices();
    std::iter::from_fn(move || {
        let (at, character) = rest.next()?;
        let escaped = rest.clone().next().filter(|(_, next)| character == '\\' && matches!(next, '"' | '\\'));
        Some(match escaped {
            Some((_, escaped)) => {
                rest.next();
                (at, escaped, true)
            }
            None => (at, character, false),
        })
    })
}

/// Whether a character ends a word or a value without quotes.
fn is_end(character: char) -> bool {
    character.is_whitespace() || matches!(character, '(' | ')' | '"')
}

/// The word between or before terms that this is. Case does not count.
fn joint(word: &str) -> Option<Piece<'static>> {
    [("and", Piece::And), ("or", Piece::Or), ("not", Piece::Not)]
        .into_iter()
        .find_map(|(known, piece)| word.eq_ignore_ascii_case(known).then_some(piece))
}

/// A part of a URL as it has to be written.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let mut scanner = Scanner::new(text);
    let is_plain = matches!(scanner.piece(), Ok((0, Piece::Word(_)))) && scanner.at == text.len();
    if is_plain && !text.starts_with('"') { Cow::Borrowed(text) } else { quote(text).into() }
}

/// A value as it has to be written, alone or in a list.
pub(super) fn value(text: &str) -> Cow<'_, str> {
    let ends = |c: char| is_end(c) || c == ',';
    let is_plain = !text.is_empty() && !text.starts_with(is_of_operator) && !text.contains(ends);
    if is_plain && joint(text).is_none() { Cow::Borrowed(text) } else { quote(text).into() }
}

/// In quotes, with a backslash before a quote, and before a backslash that would otherwise escape what follows.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let is_before_special = matches!(rest.clone().next(), None | Some('"' | '\\'));
        if character == '"' || (character == '\\' && is_before_special) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}
