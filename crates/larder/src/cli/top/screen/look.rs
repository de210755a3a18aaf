//! How the terminal shows things: colours where it has them, and text that cannot act on it.
//!
//! In: the environment, words of results, any text. Out: styles, and text whose width is the number of columns that it takes. Each result has its own
//! colour, and always its word beside it. With `NO_COLOR`, or on a dumb terminal, there is only bold and reverse.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::cli::output::printable;

/// The most characters of a text that are looked at for one place on the screen.
const CHARACTERS_MAX: usize = 600;
/// Stands for what had no room.
const CUT: &str = "\u{2026}";

/// How this terminal shows things.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli::top) struct ScreenLook {
    has_colours: bool,
}

impl ScreenLook {
    pub(in crate::cli::top) const fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    /// As the environment says.
    pub(in crate::cli::top) fn of_environment() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let terminal = std::env::var_os("TERM").unwrap_or_default();
        Self::new(!is_set("NO_COLOR") && !terminal.is_empty() && terminal != "dumb")
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// The colour of a result.
    pub(super) fn result(self, word: &str) -> Style {
        self.coloured(match word {
            "memory" => Color::Green,
            "disk" => Color::Cyan,
            "file" => Color::LightCyan,
            "remote" => Color::LightBlue,
            "stale" => Color::Yellow,
            "joined" => Color::Magenta,
            "asked" => Color::LightRed,
            "refused" => Color::Red,
            _ => Color::Reset,
        })
    }

    /// What has to be seen.
    pub(super) fn warning(self) -> Style {
        self.coloured(Color::LightRed).add_modifier(Modifier::BOLD)
    }

    /// What explains, and is no figure.
    pub(super) fn faint(self) -> Style {
        self.coloured(Color::DarkGray)
    }

    pub(super) const fn plain(self) -> Style {
        Style::new()
    }

    pub(super) const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

/// Any text as the screen may have it: in one line, and each character with a width of its own.
pub(super) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(CHARACTERS_MAX).map_or(text.len(), |(at, _)| at);
    let text = printable(text.get(..end).unwrap_or_default());
    let mut shown = String::with_capacity(text.len());
    let mut is_behind_base = false;
    for character in text.chars() {
        let is_mark = width(character.encode_utf8(&mut [0; 4])) == 0;
        // One mark on a letter is a letter of many languages; more of them, and selectors of another form, are not.
        let is_selector = matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        if is_mark && (is_selector || !is_behind_base) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
        is_behind_base = !is_mark;
    }
    shown
}

/// The columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The beginning of a text that takes at most so many columns, with a mark where it was cut.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for character in text.chars() {
        fitted.push(character);
        if width(&fitted) >= columns {
            fitted.pop();
            break;
        }
    }
    if columns > 0 {
        fitted.push_str(CUT);
    }
    fitted
}

/// Writes a text to a line, within so many columns; gives the column behind it.
pub(super) fn write(buffer: &mut Buffer, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
    let area = *buffer.area();
    if y >= area.bottom() || x >= area.right() {
        return x;
    }
    let columns = columns.min(area.right() - x);
    let text = fitted(text, usize::from(columns));
    buffer.set_stringn(x, y, text, usize::from(columns), style).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_harmless_and_as_wide_as_it_says() {
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\\nd");
        assert_eq!(shown("e\u{301}\u{301}"), "e\u{301}\\u{301}");
        assert_eq!(shown("\u{301}a"), "\\u{301}a");
        assert_eq!(shown("\u{263a}\u{fe0f}"), "\u{263a}\\u{fe0f}");
        assert_eq!(shown(&"\u{301}".repeat(8192)).matches("u{301}").count(), CHARACTERS_MAX);
        assert_eq!(width("\u{6f22}\u{5b57}a"), 5);
    }

    #[test]
    fn what_has_no_room_is_cut_between_characters() {
        assert_eq!(fitted("abcdef", 4), "abc\u{2026}");
        assert_eq!(fitted("abcd", 4), "abcd");
        assert_eq!(fitted("\u{6f22}\u{5b57}\u{6f22}", 4), "\u{6f22}\u{2026}");
        assert_eq!((fitted("abc", 0).as_str(), fitted("abc", 1).as_str()), ("", "\u{2026}"));
        for columns in 0..8 {
            assert!(width(&fitted("a\u{6f22}\u{5b57}e\u{301}xyz", columns)) <= columns);
        }
    }

    #[test]
    fn without_colours_there_is_none() {
        let look = ScreenLook::new(false);
        for style in
            [look.result("asked"), look.warning(), look.faint(), look.plain(), look.bold(), look.chosen()]
        {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert_eq!(ScreenLook::new(true).result("asked").fg, Some(Color::LightRed));
    }
}
