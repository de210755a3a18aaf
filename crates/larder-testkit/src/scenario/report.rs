//! Telling what did not happen as a scenario states: expected and received side by side, then the whole story.

use std::fmt;
use std::path::PathBuf;

/// One thing that is not as stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was looked at.
    pub what: String,
    /// What the scenario states.
    pub expected: String,
    /// What there was.
    pub got: String,
}

impl Mismatch {
    pub(super) fn new(what: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { what: what.into(), expected: expected.into(), got: got.into() }
    }
}

/// A scenario that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The file.
    pub file: PathBuf,
    /// The rule that it states; empty where the file could not be read.
    pub rule: String,
    /// The number of the step from 1, and what it does; `None` before the first and after the last one.
    pub step: Option<(usize, String)>,
    /// What is wrong.
    pub mismatches: Vec<Mismatch>,
    /// The response that was looked at.
    pub response: String,
    /// What the origins received.
    pub origin_log: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((number, action)) = &self.step {
            write!(f, ", step {number} ({action})")?;
        }
        writeln!(f)?;
        if !self.rule.is_empty() {
            writeln!(f, "  rule: {}", self.rule)?;
        }
        for Mismatch { what, expected, got } in &self.mismatches {
            writeln!(f, "  {what}\n    expected: {expected}\n    got:      {got}")?;
        }
        if !self.response.is_empty() {
            writeln!(f, "  response:")?;
            for line in self.response.lines() {
                writeln!(f, "  {}", line.escape_debug())?;
            }
        }
        if !self.origin_log.is_empty() {
            writeln!(f, "  the origin received:\n{}", self.origin_log)?;
        }
        Ok(())
    }
}

/// How all scenarios went.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many passed.
    pub passed: usize,
    /// Those that did not, by file.
    pub failed: Vec<Failure>,
}

impl Report {
    /// For a test: fails with the whole report.
    ///
    /// # Panics
    /// Where a scenario failed, or none was run.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.failed.is_empty(), "{self}");
        assert!(self.passed > 0, "no scenario was run");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} scenarios passed, {} failed", self.passed, self.failed.len())?;
        for failure in &self.failed {
            writeln!(f, "\n{failure}")?;
        }
        for failure in &self.failed {
            writeln!(f, "failed: {}", failure.file.display())?;
        }
        Ok(())
    }
}
