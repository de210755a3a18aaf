//! Text from outside as a terminal may have it.
//!
//! In: text that a peer or a file sent. Out: the same, with escapes in place of every character that a terminal could take for a command, or
//! that turns the order of the line around it.

/// The text with nothing in it that acts on a terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Marks that order bidirectional text, separators of lines, and characters without width: with them a line reads as another.
pub const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}
