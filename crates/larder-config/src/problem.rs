//! What is wrong with a config, in the form in which people see it.
//!
//! In: a place, a key, and what was found and expected there. Out: one line per problem, `file:line:column: key: ...`,
//! which editors and terminals turn into links, with a hint below where there is one. Secrets never get here: whoever
//! makes a problem says what was found without quoting them.

use std::fmt;

/// One thing that is wrong, or, as a warning, one that is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as it was named; empty where the command line is at fault.
    pub file: String,
    /// From 1; 0 where the problem has no place in the file.
    pub line: usize,
    /// From 1, in characters; 0 where `line` is.
    pub column: usize,
    /// Dotted, as in `site[0].rule[1].ttl`; a flag such as `--listen`; empty for the file as a whole.
    pub key: String,
    /// The value as it is written, or, where nothing was expected, a sentence that says it all.
    pub found: String,
    /// What would have been right there.
    pub expected: Option<String>,
    /// What to try.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(crate) fn of_file(file: &str, found: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            key: String::new(),
            found: found.into(),
            expected: None,
            hint: None,
        }
    }

    /// The same, with what would have been right there.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// The same, with what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn hint_if(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:{}:", self.line, self.column)?;
            }
            f.write_str(" ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        match &self.expected {
            Some(expected) => write!(f, "found {}, expected {expected}", self.found)?,
            None => f.write_str(&self.found)?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a config, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<Problem>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
