//! Texts with `*` for any run of characters, also an empty one and one with slashes, and `?` for one character.
//!
//! In: a pattern, and a text. Out: whether the pattern is the whole text or, for a word of a URL, some part of it.
//! Nothing is allocated. The time is at most the product of both lengths, and a filter's patterns have 1 KiB together.
//! Deliberately absent: an escape for `*` and `?`. Both match themselves, and a regular expression can be exact.

use std::fmt;

use super::lex;

/// A pattern, ready to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    text: Box<str>,
    ignores_case: bool,
    /// A part of the text is enough, and `?`, which URLs have, is itself.
    is_word: bool,
}

impl Glob {
    /// For the whole of a text.
    pub(crate) fn of_value(text: &str, ignores_case: bool) -> Self {
        Self { text: text.into(), ignores_case, is_word: false }
    }

    /// For a part of a URL. Case does not count.
    pub(super) fn of_word(text: &str) -> Self {
        Self { text: text.into(), ignores_case: true, is_word: true }
    }

    /// Whether only an absent text and an empty one can match.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut text) = (self.text.as_bytes(), text.as_bytes());
        // What stands behind the last star, and where it was tried. An earlier star need not be tried again.
        let mut retry = self.is_word.then_some((pattern, text));
        loop {
            match (pattern.split_first(), text.split_first()) {
                (None, _) if self.is_word => return true,
                (None, None) => return true,
                (Some((b'*', rest)), _) => {
                    if rest.is_empty() {
                        return true;
                    }
                    retry = Some((rest, text));
                    pattern = rest;
                    continue;
                }
                (Some((b'?', rest)), Some(_)) if !self.is_word => {
                    (pattern, text) = (rest, behind_character(text));
                    continue;
                }
                (Some((wanted, rest)), Some((found, behind))) if self.is_same(*wanted, *found) => {
                    (pattern, text) = (rest, behind);
                    continue;
                }
                _ => {}
            }
            let Some((rest, at)) = retry.filter(|(_, at)| !at.is_empty()) else { return false };
            text = behind_character(at);
            pattern = rest;
            retry = Some((rest, text));
        }
    }

    fn is_same(&self, wanted: u8, found: u8) -> bool {
        wanted == found || (self.ignores_case && wanted.eq_ignore_ascii_case(&found))
    }
}

/// UTF-8 without its first character.
fn behind_character(text: &[u8]) -> &[u8] {
    let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
    let behind = text.get(1..).unwrap_or_default();
    let inside = behind.iter().take_while(|byte| is_inside(byte)).count();
    behind.get(inside..).unwrap_or_default()
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.is_word { lex::word(&self.text) } else { lex::value(&self.text) })
    }
}
