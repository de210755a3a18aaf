//! Places in a template, for people: offsets of its body as lines and columns, and the directive that stands there.
//!
//! In: the body of a template. Out: where an operation's directive begins, and its text, cut and without anything that a
//! terminal could take for a command.

use std::ops::Range;

use bytes::Bytes;

use crate::explain::printed::visible;

/// So much of a directive is told.
const DIRECTIVE_BYTES_MAX: usize = 200;
/// What a directive begins with.
const MARKERS: [&[u8]; 2] = [b"<!--#", b"<esi:"];

/// The body of a template with its lines.
pub(super) struct ShownText {
    body: Bytes,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// A directive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    /// From 1.
    pub(super) line: usize,
    /// In bytes, from 1.
    pub(super) column: usize,
    pub(super) text: String,
}

impl ShownText {
    pub(super) fn new(body: Bytes) -> Self {
        let ends = body.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { body, lines }
    }

    /// The directive for which the bytes at `at` stand. What is dropped before it belongs to them too.
    pub(super) fn directive(&self, at: &Range<u64>) -> Directive {
        let offset = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(self.body.len());
        let (start, end) = (offset(at.start), offset(at.end));
        let covered = self.body.get(start..end).unwrap_or_default();
        let begins = (0..covered.len()).rev().find(|begin| {
            let rest = covered.get(*begin..).unwrap_or_default();
            MARKERS.iter().any(|marker| rest.starts_with(marker))
        });
        let start = start + begins.unwrap_or(0);
        let line = self.lines.partition_point(|line| *line <= start).max(1);
        let begins = self.lines.get(line - 1).copied().unwrap_or(0);
        let text = self.body.get(start..end).unwrap_or_default();
        let cut = text.get(..DIRECTIVE_BYTES_MAX);
        let told = visible(cut.unwrap_or(text));
        Directive {
            line,
            column: start - begins + 1,
            text: if cut.is_some_and(|cut| cut.len() < text.len()) { told + "..." } else { told },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_told_with_its_place_and_without_what_is_dropped_before_it() {
        let text = ShownText::new(Bytes::from_static(
            b"a\n<esi:choose>\n x <esi:when test='1'>b\x1b<!--#echo var='c'-->",
        ));
        for (at, line, column, told) in [
            (2..37, 3, 4, "<esi:when test='1'>"),
            (39..60, 3, 25, "<!--#echo var='c'-->"),
            (38..39, 3, 24, "\\x1b"),
            (900..901, 3, 45, ""),
        ] {
            let expected = Directive { line, column, text: told.to_owned() };
            assert_eq!(text.directive(&at), expected, "{at:?}");
        }
        let long = format!("<esi:include src=\"/{}\"/>", "a".repeat(300));
        let told = ShownText::new(Bytes::from(long.clone())).directive(&(0..long.len() as u64));
        assert_eq!(told.text, format!("{}...", &long[..200]));
    }
}
