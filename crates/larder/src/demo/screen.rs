//! Where the demo speaks: lines, and progress that is rewritten in place where somebody is looking.
//!
//! In: text. Out: a terminal, where progress is one line that changes; or a pipe or file, which gets the last word on
//! each load only. A reader who has gone ends the demo by an error, not by a panic.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use super::table::{grouped, rate};

/// Cells of the progress bar.
const BAR_CELLS: u128 = 20;

/// An output and whether lines on it can be rewritten.
pub(super) struct Screen<W> {
    out: W,
    is_terminal: bool,
}

impl Screen<io::Stdout> {
    /// Standard output.
    pub(super) fn stdout() -> Self {
        let out = io::stdout();
        Self { is_terminal: out.is_terminal(), out }
    }
}

impl<W: Write> Screen<W> {
    #[cfg(test)]
    pub(super) fn new(out: W, is_terminal: bool) -> Self {
        Self { out, is_terminal }
    }

    /// Writes text as it is, after whatever progress stood there.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Shows how far a load is, on a terminal.
    pub(super) fn progress(
        &mut self,
        name: &str,
        passed: Duration,
        whole: Duration,
        pages: u64,
    ) -> io::Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let passed = passed.min(whole);
        let cells = (passed.as_millis() * BAR_CELLS / whole.as_millis().max(1)) as usize;
        let bar = format!("{}{}", "#".repeat(cells), ".".repeat(BAR_CELLS as usize - cells));
        let (passed, whole, pages) = (passed.as_secs(), whole.as_secs(), grouped(pages));
        self.say(&format!("\r\x1b[K  {name:<15} [{bar}] {passed:>2} of {whole} s {pages:>11} pages"))
    }

    /// Leaves the progress shown as it is.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if self.is_terminal { self.say("\n") } else { Ok(()) }
    }

    /// Says that the demo was ended before its time.
    pub(super) fn ended(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.say("\nEnded before both loads were over.\n")
    }

    /// The last word on a load, in place of its progress.
    pub(super) fn done(
        &mut self,
        name: &str,
        whole: Duration,
        pages: u64,
        per_second: f64,
    ) -> io::Result<()> {
        let start = if self.is_terminal { "\r\x1b[K" } else { "" };
        let (pages, per_second) = (grouped(pages), rate(per_second));
        self.say(&format!(
            "{start}  {name:<15} {} s: {pages} pages, {per_second} a second\n",
            whole.as_secs()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(is_terminal: bool) -> String {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, is_terminal);
        screen.progress("app alone", Duration::from_secs(2), Duration::from_secs(8), 11).unwrap();
        screen.progress("app alone", Duration::from_secs(9), Duration::from_secs(8), 44).unwrap();
        screen.done("app alone", Duration::from_secs(8), 44, 5.5).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn progress_is_rewritten_on_a_terminal_and_left_out_elsewhere() {
        assert_eq!(shown(false), "  app alone       8 s: 44 pages, 5.5 a second\n");
        let terminal = shown(true);
        let lines: Vec<_> = terminal.split("\r\x1b[K").collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[1], "  app alone       [#####...............]  2 of 8 s          11 pages");
        assert!(lines[2].contains("[####################]  8 of 8 s"));
        assert!(lines.iter().all(|line| line.len() < 80));
    }
}
