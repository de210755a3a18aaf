//! Pieces of any cut, made into input that a language can read.
//!
//! In: pieces of a body. Out: calls of [`Syntax::scan`], each with bytes that follow those which the call before has used. What it
//! leaves, the beginning of a marker or of a directive, is kept and comes again with more behind it. So what a language sees
//! depends on the body alone. Deliberately absent: any knowledge of either language.

use memchr::memmem::Finder;

use super::sink::Sink;

/// How much of a piece is put behind what was kept, at a time.
const STEP_BYTES: usize = 4096;

/// A language.
pub(super) trait Syntax {
    /// Reads `input`, which begins at the offset `at`, and returns how much of it is done with. All of it is where the body has
    /// `ended`; else at most a directive's limit is left.
    fn scan(&mut self, input: &[u8], at: u64, ended: bool, sink: &mut Sink) -> usize;

    /// The body has ended at `end`: closes what is open.
    fn close(&mut self, end: u64, sink: &mut Sink);
}

/// Between the pieces and a language.
#[derive(Default)]
pub(super) struct Scanner {
    /// What was not used yet.
    kept: Vec<u8>,
    /// Where that begins.
    at: u64,
}

impl Scanner {
    pub(super) fn feed(&mut self, piece: &[u8], syntax: &mut dyn Syntax, sink: &mut Sink) {
        let mut piece = piece;
        while !self.kept.is_empty() && !piece.is_empty() {
            let (step, rest) = piece.split_at(piece.len().min(STEP_BYTES));
            piece = rest;
            self.kept.extend_from_slice(step);
            let used = self.scan_kept(false, syntax, sink);
            self.kept.drain(..used.min(self.kept.len()));
        }
        if !piece.is_empty() {
            let used = scan(piece, self.at, false, syntax, sink);
            self.at += used as u64;
            self.kept.extend_from_slice(piece.get(used..).unwrap_or_default());
        }
    }

    pub(super) fn finish(&mut self, syntax: &mut dyn Syntax, sink: &mut Sink) {
        self.scan_kept(true, syntax, sink);
        self.kept.clear();
        syntax.close(self.at, sink);
    }

    fn scan_kept(&mut self, ended: bool, syntax: &mut dyn Syntax, sink: &mut Sink) -> usize {
        let used = scan(&self.kept, self.at, ended, syntax, sink);
        self.at += used as u64;
        used
    }
}

fn scan(input: &[u8], at: u64, ended: bool, syntax: &mut dyn Syntax, sink: &mut Sink) -> usize {
    let used = syntax.scan(input, at, ended, sink);
    sink.place(input, at, at + used as u64);
    used
}

/// Where `finder` finds its text in `input`, or how much of `input` certainly holds no beginning of it.
pub(super) fn find(finder: &Finder<'_>, input: &[u8], ended: bool) -> Result<usize, usize> {
    if let Some(found) = finder.find(input) {
        return Ok(found);
    }
    let needle = finder.needle();
    let longest = if ended { 0 } else { needle.len() - 1 };
    let tail = input.len().saturating_sub(longest);
    let begins = |from: &usize| input.get(*from..).is_some_and(|rest| needle.starts_with(rest));
    Err((tail..input.len()).find(begins).unwrap_or(input.len()))
}
