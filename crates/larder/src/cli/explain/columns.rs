//! Text in two columns: numbered parts, a label to the left, words wrapped to the right of it.

use crate::cli::output::printable;

/// The most columns that a line takes, but for a word that is longer.
pub(super) const WIDTH: usize = 98;

/// What a terminal has at least, so that the right column is one.
const WIDTH_MIN: usize = 60;

/// Where the right column begins.
const INDENT: usize = 17;

/// Holds words together, and is printed as a space.
const TIE: char = '\u{a0}';

/// Lines as they are written.
pub(super) struct Columns {
    out: String,
    parts: usize,
    width: usize,
}

/// The columns of the terminal that standard output is, as far as they make a difference; [`WIDTH`] where it is none.
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    match size.map(|size| usize::from(size.ws_col)) {
        None | Some(0) => WIDTH,
        Some(columns) => columns.clamp(WIDTH_MIN, WIDTH),
    }
}

impl Columns {
    /// No lines yet, each of at most `width` columns.
    pub(super) fn new(width: usize) -> Self {
        Self { out: String::new(), parts: 0, width }
    }

    /// A line without a label, indented.
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        self.wrapped(&" ".repeat(indent), indent + 2, text);
    }

    /// Begins a numbered part.
    pub(super) fn part(&mut self, title: &str) {
        self.parts += 1;
        self.out.push('\n');
        self.wrapped(&format!("{}  ", self.parts), 3, title);
    }

    /// A label and what it stands for.
    pub(super) fn row(&mut self, label: &str, text: &str) {
        let label = printable(label);
        self.wrapped(&format!("   {label:<width$} ", width = INDENT - 4), INDENT, text);
    }

    /// A member of a list.
    pub(super) fn item(&mut self, text: &str) {
        self.wrapped("   - ", 5, text);
    }

    /// `first`, then words up to the right edge; further lines begin at `indent`.
    fn wrapped(&mut self, first: &str, indent: usize, text: &str) {
        let mut line = first.to_owned();
        let mut is_begun = false;
        for word in printable(text).split_ascii_whitespace() {
            if is_begun && line.chars().count() + 1 + word.chars().count() > self.width {
                self.end(&line);
                line = " ".repeat(indent);
                is_begun = false;
            }
            if std::mem::replace(&mut is_begun, true) {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.end(&line);
    }

    fn end(&mut self, line: &str) {
        self.out.extend(line.trim_end().chars().map(|c| if c == TIE { ' ' } else { c }));
        self.out.push('\n');
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// Words that stay on one line.
pub(super) fn tied(text: &str) -> String {
    text.replace(' ', &TIE.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_tied_ones_stay_together() {
        let mut out = Columns::new(WIDTH);
        out.row("a label", &format!("{} {}", "word ".repeat(15), tied("[RFC 9111 4.2]")));
        let expected =
            format!("   a label       {}word\n{}[RFC 9111 4.2]\n", "word ".repeat(14), " ".repeat(17));
        assert_eq!(out.finish(), expected);
    }

    #[test]
    fn a_long_label_and_a_long_word_are_shown_whole() {
        let (label, word) = ("field accept-language", "x".repeat(120));
        let mut out = Columns::new(WIDTH);
        out.row(label, &word);
        assert_eq!(out.finish(), format!("   {label} {word}\n"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let mut out = Columns::new(WIDTH);
        out.row("\u{1b}[2J", "a\u{7}b\nc\u{9b}d");
        assert_eq!(out.finish(), "   \\u{1b}[2J     a\\u{7}b\\nc\\u{9b}d\n");
    }
}
