//! The name of a series: what is measured, of what.
//!
//! In: a scope with its names, a measure, a word. Out: `MEASURE`, `MEASURE.WORD`, or `SCOPE:NAME:MEASURE`. Names come from the
//! configuration, so what has a meaning in series' names or in a query is percent-encoded in them.

use std::fmt::Write;

/// What a series shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesName<'a> {
    /// What it is of: a kind of thing, and the names that tell which one. Empty for the whole larder.
    pub scope: &'a [&'a str],
    /// What is measured.
    pub measure: &'a str,
    /// Which part of it.
    pub word: Option<&'a str>,
}

impl<'a> SeriesName<'a> {
    /// Of the whole larder.
    pub const fn of_all(measure: &'a str) -> Self {
        Self { scope: &[], measure, word: None }
    }

    /// Of one thing.
    pub const fn of(scope: &'a [&'a str], measure: &'a str) -> Self {
        Self { scope, measure, word: None }
    }

    /// One part of it.
    #[must_use]
    pub const fn word(self, word: &'a str) -> Self {
        Self { word: Some(word), ..self }
    }

    /// Appends the name.
    pub fn write(&self, out: &mut String) {
        if !self.scope.is_empty() {
            out.push_str(&scope_name(self.scope));
            out.push(':');
        }
        out.push_str(self.measure);
        if let Some(word) = self.word {
            out.push('.');
            out.push_str(word);
        }
    }
}

/// The name of a scope, with which the names of its series begin.
pub fn scope_name(scope: &[&str]) -> String {
    let mut out = String::new();
    for (place, name) in scope.iter().enumerate() {
        if place > 0 {
            out.push(':');
        }
        encode(name, &mut out);
    }
    out
}

/// A name of a scope as it was before it was written into one. What is no encoding stays.
pub(super) fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *byte == b'%').and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encode(name: &str, out: &mut String) {
    for c in name.chars() {
        match c {
            '%' | ':' | ',' | '&' | '=' | '?' | '#' | '+' | ' ' => encode_bytes(c, out),
            c if c.is_control() => encode_bytes(c, out),
            c => out.push(c),
        }
    }
}

fn encode_bytes(c: char, out: &mut String) {
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        // A String takes everything.
        let _ = write!(out, "%{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_configuration_cannot_break_a_name() {
        let text = |name: SeriesName<'_>| {
            let mut text = String::new();
            name.write(&mut text);
            text
        };
        assert_eq!(text(SeriesName::of_all("requests")), "requests");
        assert_eq!(text(SeriesName::of_all("result").word("memory")), "result.memory");
        let scope = ["rule", "shop.example:80", "/a b/*,%\n\u{85}é"];
        for name in ["/a b/*,%\n\u{85}é:", "plain", "100%", "%zz%4", ""] {
            assert_eq!(decoded(&scope_name(&[name])), name);
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(
            text(SeriesName::of(&scope, "result").word("asked")),
            "rule:shop.example%3A80:/a%20b/*%2C%25%0A%C2%85é:result.asked"
        );
    }
}
