//! What a compiler writes to: operations with their places, text, and problems.
//!
//! In: operations in the order of the body. Out: a program that grows, in which text never runs past an operation that is yet to
//! come. Deliberately absent: the languages.

use std::ops::Range;
use std::sync::Arc;

use crate::problem::{Fault, Problem, Problems};
use crate::program::{OPERATIONS_MAX, Op, Operation, Program};

/// Patterns of one template: each may take 64 KiB.
const PATTERNS_MAX: usize = 64;

/// The receiving side of a compiler.
pub(super) struct Sink {
    program: Arc<Program>,
    problems: Problems,
    lines: Lines,
    /// From here on nothing is text, until an operation covers it.
    skip_from: Option<u64>,
    operations: usize,
    patterns: usize,
    /// All that was read.
    end: u64,
}

/// Counts line ends on the way.
#[derive(Default)]
struct Lines {
    until: u64,
    /// Line ends so far.
    ended: u32,
    /// Where the line begins that is being read.
    start: u64,
}

impl Sink {
    pub(super) fn new(program: Arc<Program>) -> Self {
        Self {
            program,
            problems: Problems::default(),
            lines: Lines::default(),
            skip_from: None,
            operations: 0,
            patterns: 0,
            end: 0,
        }
    }

    pub(super) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Counts the lines of `input`, which begins at `at`, up to `to`. Returns the place of `to`, for problems there.
    pub(super) fn place(&mut self, input: &[u8], at: u64, to: u64) -> Place {
        let offset = |position: u64| usize::try_from(position.saturating_sub(at)).unwrap_or(usize::MAX);
        let passed = input.get(offset(self.lines.until)..offset(to)).unwrap_or_default();
        for end in memchr::memchr_iter(b'\n', passed) {
            self.lines.ended = self.lines.ended.saturating_add(1);
            self.lines.start = self.lines.until + end as u64 + 1;
        }
        self.lines.until = self.lines.until.max(to);
        let column = u32::try_from(to.saturating_sub(self.lines.start)).unwrap_or(u32::MAX);
        Place { line: self.lines.ended.saturating_add(1), column: column.saturating_add(1) }
    }

    pub(super) fn problem(&mut self, place: Place, fault: Fault) {
        self.problems.add(Problem { line: place.line, column: place.column, fault });
    }

    /// Whether so many more patterns may be kept.
    pub(super) fn takes_patterns(&mut self, count: usize) -> bool {
        let fits = self.patterns + count <= PATTERNS_MAX;
        self.patterns += if fits { count } else { 0 };
        fits
    }

    /// Writes an operation for the bytes at `at`, and for all that was skipped before them.
    pub(super) fn emit(&mut self, place: Place, at: Range<u64>, op: Op) {
        let start = self.skip_from.take().unwrap_or(at.start);
        if self.operations > OPERATIONS_MAX {
            return;
        }
        self.operations += 1;
        if self.operations > OPERATIONS_MAX {
            self.problem(place, Fault::TooMany);
        }
        if self.program.push(Operation { at: start..at.end, op }) {
            self.program.know_until(at.end);
        }
    }

    /// What follows is no text, from `from` on.
    pub(super) fn skip(&mut self, from: u64) {
        self.skip_from.get_or_insert(from);
    }

    /// What follows is text again, from `to` on.
    pub(super) fn end_skip(&mut self, place: Place, to: u64) {
        if self.skip_from.is_some_and(|from| from < to) {
            self.emit(place, to..to, Op::Skip);
        }
        self.skip_from = None;
    }

    /// All up to `until` is text, unless it is skipped.
    pub(super) fn text(&mut self, until: u64) {
        self.end = self.end.max(until);
        if self.skip_from.is_none() && self.operations <= OPERATIONS_MAX {
            self.program.know_until(until);
        }
    }

    pub(super) fn finish(mut self) -> Arc<Program> {
        let place = Place { line: self.lines.ended.saturating_add(1), column: 1 };
        self.end_skip(place, self.end);
        self.program.finish(self.problems);
        self.program
    }
}

/// A place in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    line: u32,
    column: u32,
}
