//! Regular expressions over what is known of a stored response.
//!
//! In: expressions as they were sent ([`PatternText`]). Out: a compiled [`Pattern`], and whether it matches a
//! [`Subject`]. Matching is linear in the length of the text, whatever the expression.
//! The expressions are those that VCL has for purges: `\<` and `\>` are word boundaries, and one in ASCII is over bytes
//! (`(?u)` changes that), as PCRE reads them there. A host is matched without regard to case.
//! Deliberately absent: look-around and back references, whose cost has no bound.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};

/// The longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// The most that one compiled expression may take, in bytes; and the same again for what it keeps while it matches.
pub const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// An expression as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Its text.
    pub text: Box<str>,
    /// Whether it matches from the first byte on: so does one that came as a path. One that came in a field may match anywhere.
    pub at_start: bool,
}

/// Expressions of which all have to match; each is for another part of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatternText {
    /// For the host, without port.
    pub host: Option<Expression>,
    /// For path and query, as they are keyed.
    pub target: Option<Expression>,
    /// For Content-Type.
    pub content_type: Option<Expression>,
    /// For the tags, joined by commas.
    pub tags: Option<Expression>,
}

/// What a response shows to patterns.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// In lower case, without port.
    pub host: &'a str,
    /// Path and query, as they are keyed.
    pub target: &'a str,
    /// Its Content-Type. A missing one is as an empty one.
    pub content_type: Option<&'a [u8]>,
    /// Its tags.
    pub tags: TagText<'a>,
}

/// The tags of a response as patterns see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagText<'a> {
    /// Joined by commas; empty where there is none.
    Joined(Cow<'a, [u8]>),
    /// It carries every tag, and so matches any expression.
    Every,
}

/// Expressions that are ready to be matched. Equal texts are equal patterns.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: PatternText,
    host: Option<Regex>,
    target: Option<Regex>,
    content_type: Option<Regex>,
    tags: Option<Regex>,
}

impl Pattern {
    /// Compiles the expressions.
    ///
    /// # Errors
    /// One of them is none that larder can match; the first such one is named.
    pub fn compile(text: &PatternText) -> Result<Self, PatternError> {
        let compiled = |part, expression: &Option<Expression>| {
            expression.as_ref().map(|expression| compile(part, expression)).transpose()
        };
        Ok(Self {
            host: compiled(PatternPart::Host, &text.host)?,
            target: compiled(PatternPart::Target, &text.target)?,
            content_type: compiled(PatternPart::ContentType, &text.content_type)?,
            tags: compiled(PatternPart::Tags, &text.tags)?,
            text: text.clone(),
        })
    }

    /// As it was sent.
    pub fn text(&self) -> &PatternText {
        &self.text
    }

    /// Whether the tags of a response matter to it. To put them together takes longer than to match an expression.
    pub fn has_tags(&self) -> bool {
        self.tags.is_some()
    }

    /// Whether all expressions match.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        let is = |expression: &Option<Regex>, text: &[u8]| {
            expression.as_ref().is_none_or(|expression| expression.is_match(text))
        };
        is(&self.host, subject.host.as_bytes())
            && is(&self.target, subject.target.as_bytes())
            && is(&self.content_type, subject.content_type.unwrap_or_default())
            && match &subject.tags {
                TagText::Joined(text) => is(&self.tags, text),
                TagText::Every => true,
            }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// The part of a response that an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// Its host.
    Host,
    /// Path and query.
    Target,
    /// Content-Type.
    ContentType,
    /// Its tags.
    Tags,
}

impl fmt::Display for PatternPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Target => "target",
            Self::ContentType => "content type",
            Self::Tags => "tags",
        })
    }
}

/// Why an expression cannot be matched, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}, column {column}: {fault}")]
pub struct PatternError {
    /// Which expression.
    pub part: PatternPart,
    /// The first character that the fault concerns, from 1 on.
    pub column: usize,
    /// What it is.
    pub fault: PatternFault,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// `(?=`, `(?!`, `(?<=` or `(?<!`.
    #[error("look-around is not supported")]
    LookAround,
    /// `\1` and the like.
    #[error("back references are not supported")]
    BackReference,
    /// More than [`EXPRESSION_BYTES_MAX`].
    #[error("longer than {EXPRESSION_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`COMPILED_BYTES_MAX`].
    #[error("more than {COMPILED_BYTES_MAX} bytes when compiled: repeat less")]
    TooLarge,
    /// It is no regular expression, in the words of the library that reads it.
    #[error("{0}")]
    Malformed(Box<str>),
}

fn compile(part: PatternPart, expression: &Expression) -> Result<Regex, PatternError> {
    let error = |column, fault| PatternError { part, column, fault };
    let sent = &*expression.text;
    if sent.len() > EXPRESSION_BYTES_MAX {
        return Err(error(column(sent, EXPRESSION_BYTES_MAX), PatternFault::TooLong));
    }
    let text = in_our_syntax(sent);
    let (is_unicode, ignores_case) = (!text.is_ascii(), part == PatternPart::Host);
    let mut reader = regex_syntax::ParserBuilder::new();
    let read = reader.utf8(false).unicode(is_unicode).case_insensitive(ignores_case).build().parse(&text);
    read.map_err(|fault| {
        let (offset, fault) = fault_of(&fault);
        error(column(&text, offset), fault)
    })?;
    let anchored = match expression.at_start {
        true => Cow::Owned(format!("^(?:{text})")),
        false => text,
    };
    RegexBuilder::new(&anchored)
        .unicode(is_unicode)
        .case_insensitive(ignores_case)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|fault| match fault {
            regex::Error::CompiledTooBig(_) => error(1, PatternFault::TooLarge),
            // It has been read before: a comment under `(?x)` that has swallowed the end of the group.
            _ => error(column(sent, sent.len()), PatternFault::Malformed("open at its end".into())),
        })
}

/// The offset of a fault, and what it is.
fn fault_of(error: &regex_syntax::Error) -> (usize, PatternFault) {
    use regex_syntax::ast::ErrorKind;
    let malformed = |words: String| PatternFault::Malformed(words.to_lowercase().into());
    match error {
        regex_syntax::Error::Parse(error) => {
            let fault = match error.kind() {
                ErrorKind::UnsupportedLookAround => PatternFault::LookAround,
                ErrorKind::UnsupportedBackreference => PatternFault::BackReference,
                kind => malformed(kind.to_string()),
            };
            (error.span().start.offset, fault)
        }
        regex_syntax::Error::Translate(error) => {
            (error.span().start.offset, malformed(error.kind().to_string()))
        }
        _ => (0, malformed(error.to_string())),
    }
}

/// The column of the character at an offset, from 1 on.
fn column(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < offset).count() + 1
}

/// An expression as the library reads it, with as many characters: `\<` and `\>` are boundaries of words.
pub(super) fn in_our_syntax(text: &str) -> Cow<'_, str> {
    if !text.contains(r"\<") && !text.contains(r"\>") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(char) = chars.next() {
        out.push(char);
        if char == '\\' {
            out.extend(chars.next().map(|escaped| if matches!(escaped, '<' | '>') { 'b' } else { escaped }));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
